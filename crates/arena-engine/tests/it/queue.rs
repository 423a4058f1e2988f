//! The queues: dropped tickets, limits, and the time until house bots step in.

use std::time::Duration;

use arena_engine::{Engine, EngineError, Enqueue, Leaving, QueueState, Ticket};
use arena_testkit::{TestEnvironment, data_folder};

use crate::engine;

const WAITING: QueueState = QueueState::Waiting { house_in: None };

fn request(network: &str, house_after: Option<Duration>) -> Enqueue {
    Enqueue { challenge: "psi".to_owned(), network: network.to_owned(), per_network: Some(1), house_after }
}

/// Puts a caller of a network, which may have one ticket, into the queue. Returns `None` if it has one already.
async fn enqueue(engine: &Engine, network: &str) -> Option<Ticket> {
    match engine.enqueue(request(network, None), None).await {
        Err(EngineError::TooManyTickets { limit: 1 }) => None,
        result => Some(result.expect("the store can be written")),
    }
}

async fn poll(engine: &Engine, ticket: &Ticket) -> Option<QueueState> {
    engine.poll_ticket("psi", ticket).await.expect("the store can be written")
}

#[tokio::test]
async fn a_ticket_without_a_poll_for_a_minute_is_dropped() {
    let (environment, folder) = (TestEnvironment::new(11), data_folder());
    let engine = engine(&environment, &folder).await;
    let gone = enqueue(&engine, "a").await.expect("a ticket");
    // Each poll keeps the ticket for another minute.
    for _ in 0..3 {
        environment.advance_ms(60_000);
        assert_eq!(poll(&engine, &gone).await, Some(WAITING));
    }
    environment.advance_ms(60_001);
    assert_eq!(poll(&engine, &gone).await, None);
    assert!(!engine.has_left_queue("psi", &gone).await.expect("the store can be read"));
    // A dropped ticket gets no opponent and doesn't count against the limit.
    let waiting = enqueue(&engine, "a").await.expect("a ticket");
    assert_eq!(poll(&engine, &waiting).await, Some(WAITING));
    assert_eq!(poll(&engine, &gone).await, None);
    assert_eq!(engine.leave_queue("psi", &gone).await.expect("the store can be written"), Leaving::Unknown);
}

#[tokio::test]
async fn a_caller_without_a_poll_for_15_seconds_gets_no_opponent_until_the_next_one() {
    let (environment, folder) = (TestEnvironment::new(14), data_folder());
    let engine = engine(&environment, &folder).await;
    let absent = enqueue(&engine, "a").await.expect("a ticket");
    environment.advance_ms(15_001);
    let present = enqueue(&engine, "b").await.expect("a ticket");
    assert_eq!(poll(&engine, &present).await, Some(WAITING));
    for ticket in [&absent, &present] {
        assert!(matches!(poll(&engine, ticket).await, Some(QueueState::Matched { .. })));
    }
}

#[tokio::test]
async fn a_network_has_a_limited_number_of_tickets() {
    let (environment, folder) = (TestEnvironment::new(12), data_folder());
    let engine = engine(&environment, &folder).await;
    let first = enqueue(&engine, "a").await.expect("a ticket");
    assert!(enqueue(&engine, "a").await.is_none());
    let second = enqueue(&engine, "b").await.expect("another network has its own tickets");
    for ticket in [&first, &second] {
        assert!(matches!(poll(&engine, ticket).await, Some(QueueState::Matched { .. })));
    }
    // Neither a matched ticket nor a ticket whose caller has left counts.
    let third = enqueue(&engine, "a").await.expect("a ticket");
    assert_eq!(engine.leave_queue("psi", &third).await.expect("the store can be written"), Leaving::Left);
    assert!(engine.has_left_queue("psi", &third).await.expect("the store can be read"));
    assert!(enqueue(&engine, "a").await.is_some());
}

#[tokio::test]
async fn house_bots_step_in_at_the_agreed_time() {
    let (environment, folder) = (TestEnvironment::new(13), data_folder());
    let engine = engine(&environment, &folder).await;
    let after = Some(Duration::from_secs(30));
    let ticket = engine.enqueue(request("a", after), None).await.expect("a ticket");
    for (advance_ms, left_ms) in [(0, 30_000), (29_999, 1), (1, 0), (5000, 0)] {
        environment.advance_ms(advance_ms);
        let house_in = Some(Duration::from_millis(left_ms));
        assert_eq!(poll(&engine, &ticket).await, Some(QueueState::Waiting { house_in }));
    }
    let bots = engine.match_with_house("psi", &ticket, 1).await.expect("the store can be written");
    assert_eq!(bots.map(|invites| invites.len()), Some(1));
    assert!(matches!(poll(&engine, &ticket).await, Some(QueueState::Matched { .. })));

    let alone = enqueue(&engine, "b").await.expect("a ticket");
    let bots = engine.match_with_house("psi", &alone, 1).await.expect("the store can be written");
    assert_eq!((bots, poll(&engine, &alone).await), (None, Some(WAITING)));
}
