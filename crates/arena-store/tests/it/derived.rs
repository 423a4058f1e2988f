//! Derived tables that somebody has made wrong by hand, with the store closed or open: play goes on, and they are made again.

use std::sync::Arc;
use std::time::Duration;

use arena_model::{ProfileChange, Timestamp};
use arena_store::{CommitError, EndingNo, ProfileWrite, SessionFilter, Store, StoreError};

use crate::place::{Place, stories};
use crate::season::{GAME, Game, begin, boards, end, open, play, user};
use crate::{audit, create, session};

stories!(
    tables_that_were_changed_while_no_store_was_open_are_made_again,
    tables_that_are_changed_under_an_open_store_are_made_again,
    a_count_of_nothing_does_not_stop_a_removal,
    a_panic_in_the_writer_costs_its_caller_only,
    a_store_that_can_write_says_so,
);

/// Longest time until a suspicion is told: it is told by the write that meets what is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// Changes that leave sessions and messages as they are.
const CHANGES: &[&str] = &[
    "UPDATE session_counts SET n = 0",
    "UPDATE session_counts SET n = n - 400",
    "UPDATE session_counts SET n = 1000000000000",
    "DELETE FROM session_counts",
    "UPDATE session_counts SET status = 'lost' WHERE status = 'ended'",
    "INSERT INTO session_counts (block, type, status, n) VALUES (1000000000000, 'psi', 'ended', 5)",
    "DELETE FROM totals",
    "UPDATE totals SET n = -5",
    "DELETE FROM endings",
    "INSERT INTO endings (n, session) VALUES (99, 1), (100, 777)",
    "DELETE FROM careers WHERE n = 0",
    "DELETE FROM careers WHERE n > 0",
    "DELETE FROM careers",
    "UPDATE careers SET session = 7 WHERE n = 0",
    "UPDATE careers SET session = 1 WHERE n = 0",
    "UPDATE careers SET standings = '{' WHERE n = 0",
    "UPDATE careers SET standings = NULL WHERE n = 0",
    "UPDATE careers SET n = n + 5 WHERE n = 1",
    "DELETE FROM boards",
    "UPDATE boards SET options = '{}'",
    "INSERT INTO boards (id, type, options, rated) VALUES ('0123456789abcdef', 'psi', '{}', '1'), ('x', 'psi', '', '')",
    "UPDATE careers SET session = 3 WHERE n = 1",
];

/// All that is derived, as it shows.
async fn shown(store: &Store) -> String {
    let mut text = boards(store).await;
    let totals = store.read_totals().await.expect("totals");
    text += &format!("\n{:?} {}", totals.games, totals.participants);
    let all = SessionFilter::default();
    let page = store.list_sessions(&all, 0, 99).await.expect("readable");
    text += &format!("\n{} of {}, {} of them", page.items.len(), page.total, store.count_sessions(&all));
    let mut boards = store.list_boards("psi").await.expect("readable");
    boards.sort_by(|a, b| a.id.cmp(&b.id));
    text += &format!("\n{boards:?}");
    let ended = store.list_ended(EndingNo::default(), 99).await.expect("readable");
    text += &format!("\n{:?}", ended.iter().map(|(_, _, session)| session.facts.id).collect::<Vec<_>>());
    text += &format!("\n{} run", store.list_running(None).await.expect("readable").len());
    for name in ["ada", "bob", "eve"] {
        let played = store.list_played(&user(name), 0, 99).await.expect("readable");
        let ids = played.map(|page| (page.total, page.items.iter().map(|s| s.facts.created_at.0).collect::<Vec<_>>()));
        text += &format!("\n{name} {ids:?}");
    }
    text
}

async fn first_half(store: &Store) {
    play(store, 1, &GAME).await;
    play(store, 2, &Game { users: ["bob", "eve"], breach: false, ..GAME }).await;
    play(store, 3, &Game { challenge: "chess", ..GAME }).await;
    begin(store, 4, &GAME).await;
}

/// Goes on as if nothing had happened: a new session, the end of one, and the removal of another.
async fn second_half(store: &Store) {
    let (no, ended) = end(store, begin(store, 5, &GAME).await, &GAME).await;
    play(store, 6, &Game { users: ["eve", "ada"], ..GAME }).await;
    store.remove_session(no, Arc::new(ended), audit("remove")).await.expect("it is removed");
}

async fn as_it_should_be(place: &Place) -> String {
    let place = place.another();
    let store = open(&place).await;
    first_half(&store).await;
    second_half(&store).await;
    shown(&store).await
}

async fn tables_that_were_changed_while_no_store_was_open_are_made_again(place: Place) {
    let expected = as_it_should_be(&place).await;
    for change in CHANGES {
        let place = place.another();
        let store = open(&place).await;
        first_half(&store).await;
        drop(store);
        place.change(change);
        let store = open(&place).await;
        second_half(&store).await;
        store.check_derived().await.expect("it can be checked");
        assert_eq!(shown(&store).await, expected, "after {change}");
        drop(store);
        let store = open(&place).await;
        assert_eq!(shown(&store).await, expected, "after {change} and another start");
        assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
    }
}

async fn tables_that_are_changed_under_an_open_store_are_made_again(place: Place) {
    let expected = as_it_should_be(&place).await;
    for change in CHANGES {
        let place = place.another();
        let store = open(&place).await;
        first_half(&store).await;
        shown(&store).await;
        place.change(change);
        second_half(&store).await;
        store.check_derived().await.expect("it can be checked");
        assert_eq!(shown(&store).await, expected, "after {change}");
    }
}

async fn a_count_of_nothing_does_not_stop_a_removal(place: Place) {
    let store = open(&place).await;
    let (no, ended) = end(&store, begin(&store, 1, &GAME).await, &GAME).await;
    place.change("UPDATE session_counts SET n = 0; UPDATE totals SET n = 0");
    store.remove_session(no, Arc::new(ended), audit("remove")).await.expect("it is removed");
    tokio::time::timeout(PATIENCE, store.suspected()).await.expect("what can't be is noticed");
    store.check_derived().await.expect("it can be checked");
    assert_eq!(store.count_sessions(&SessionFilter::default()), 0);
    play(&store, 2, &GAME).await;
    assert_eq!(store.count_sessions(&SessionFilter::default()), 1);
}

async fn a_panic_in_the_writer_costs_its_caller_only(place: Place) {
    let store = Arc::new(open(&place).await);
    create(&store, &session(1)).await;
    let broken = |name: &str| ProfileWrite {
        user: user(name),
        change: ProfileChange::default(),
        respond: Box::new(|_| panic!("on purpose")),
        once: Vec::new(),
        at: Timestamp(1),
    };
    for n in 2..5 {
        let failed = store.change_profile(broken("ada")).await;
        assert!(matches!(failed, Err(CommitError::Unavailable(StoreError::Unsure))), "{failed:?}");
        create(&store, &session(n)).await;
    }
    store.check_writing().await.expect("it writes");
    assert_eq!(store.count_sessions(&SessionFilter::default()), 4);
    assert_eq!(store.list_users(0, 9).await.expect("readable").total, 0, "what was written before the panic is gone");
    play(&store, 9, &GAME).await;
}

async fn a_store_that_can_write_says_so(place: Place) {
    let store = open(&place).await;
    for _ in 0..3 {
        store.check_writing().await.expect("it writes");
    }
    place.change("DROP TABLE notes");
    // The last success is proof for a second.
    let until = std::time::Instant::now() + PATIENCE;
    while store.check_writing().await.is_ok() {
        assert!(std::time::Instant::now() < until, "it can't write");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
