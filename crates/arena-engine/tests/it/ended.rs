//! Ended sessions in memory, from which the log computes the hashes of records: they are what the store has.

use std::sync::Arc;

use arena_engine::{Act, Administrator, Chat, Engine, Join, Limits, RecordSource, Requester, Respond, Withdrawal};
use arena_model::{ChallengeType, Channel, InactivityLimits, InviteCode, Party, Scoring, SessionId, Status};
use arena_store::{EndingNo, Store};
use arena_testkit::{TestEnvironment, data_folder};
use serde_json::Map;
use tempfile::TempDir;

use crate::{LIMITS, create_of, status};

/// Starts an arena with all built-in challenges that keeps ended sessions for a log.
async fn engine(environment: &TestEnvironment, folder: &TempDir) -> Engine {
    let store = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    let challenges: Vec<Arc<dyn ChallengeType>> = arena_games::challenges()
        .map(|name| arena_games::challenge(name, &Map::new()).expect("it is built in").expect("its defaults are good"))
        .collect();
    let inactivity = InactivityLimits { active_ms: Some(1_800_000), ..InactivityLimits::ENDLESS };
    let limits = Limits { inactivity, ..LIMITS };
    let engine = Engine::new(store, challenges, limits, environment.for_engine()).await.expect("the store is read");
    engine.keep_ended();
    engine
}

async fn join(engine: &Engine, invite: InviteCode, user: &str) {
    let join = Join { invite, user: Some(user.parse().expect("a user id")) };
    engine.join(join, None, Respond::new(|_| String::new())).await.expect("a seat");
}

async fn say(engine: &Engine, session: SessionId, from: InviteCode, to: Option<InviteCode>, content: &str) {
    let chat = Chat { session, from: Party::Player(from), to: to.map(Party::Player), content: content.to_owned() };
    engine.chat(chat, None, Respond::new(|_| String::new())).await.expect("a player may chat");
}

async fn act(engine: &Engine, session: SessionId, from: InviteCode, method: Option<&str>, content: &str) {
    let method = method.map(str::to_owned);
    let act = Act { session, from: Party::Player(from), method, content: content.to_owned() };
    // The rules may refuse it.
    let _ = engine.act(act, None, Respond::new(|_| String::new())).await;
}

/// Begins a session with users, chat and an action.
async fn begin(engine: &Engine, environment: &TestEnvironment, challenge: &str) -> (SessionId, Vec<InviteCode>) {
    let (id, invites) = create_of(engine, challenge).await;
    engine.announce(invites[0], None, Respond::new(|_| String::new())).await.expect("a free invite");
    for (seat, invite) in invites.iter().enumerate() {
        environment.advance_ms(7);
        join(engine, *invite, &format!("user-{seat}")).await;
    }
    say(engine, id, invites[0], None, "good luck, \"all\" ✓").await;
    say(engine, id, invites[1], Some(invites[0]), "between us").await;
    environment.advance_ms(11);
    act(engine, id, invites[0], Some("guess"), "1").await;
    act(engine, id, invites[1], None, "{}").await;
    (id, invites)
}

async fn wait_for_end(engine: &Engine, environment: &TestEnvironment, id: SessionId) {
    for _ in 0..2000 {
        if status(engine, id).await == Some(Status::Ended) {
            return;
        }
        environment.advance_ms(1_800_000);
        engine.wake_due().await.expect("the store can be read");
    }
    panic!("the session doesn't end");
}

/// Takes an ended session out of memory.
async fn take_ended(engine: &Engine, id: SessionId) -> Option<RecordSource> {
    let endings = engine.list_endings(EndingNo::default(), 1000).await.expect("the store can be read");
    endings.iter().find(|ended| ended.id == id).and_then(|ended| engine.take_ended(ended))
}

/// Compares the source in memory with the store's. Returns the number of messages, or `None` without one in memory.
async fn compared(engine: &Engine, id: SessionId) -> Option<usize> {
    let RecordSource { session, messages, commitments } = take_ended(engine, id).await?;
    let stored = engine.record_source(id).await.expect("the store has it");
    assert_eq!(*session, *stored.session);
    assert_eq!(messages, stored.messages);
    assert!(commitments.is_empty() && stored.commitments.is_empty());
    assert!(take_ended(engine, id).await.is_none(), "it is returned once");
    Some(messages.len())
}

#[tokio::test]
async fn ended_sessions_in_memory_are_those_of_the_store_in_every_challenge() {
    let (environment, folder) = (TestEnvironment::new(61), data_folder());
    let engine = engine(&environment, &folder).await;
    let mut short = 0;
    for challenge in arena_games::challenges() {
        let (id, _) = begin(&engine, &environment, challenge).await;
        assert!(take_ended(&engine, id).await.is_none(), "{challenge} runs");
        wait_for_end(&engine, &environment, id).await;
        // Long sessions aren't kept.
        let compared = compared(&engine, id).await;
        short += usize::from(compared.is_some_and(|messages| messages > 8));
    }
    assert!(short >= 4, "only {short} challenges have short sessions");
    // A game that its rules end.
    let (id, invites) = begin(&engine, &environment, "psi").await;
    act(&engine, id, invites[1], Some("guess"), "2").await;
    assert_eq!(status(&engine, id).await, Some(Status::Ended));
    assert!(compared(&engine, id).await.is_some());
}

#[tokio::test]
async fn sessions_that_memory_does_not_know_completely_are_read_from_the_store() {
    let (environment, folder) = (TestEnvironment::new(62), data_folder());
    let before = engine(&environment, &folder).await;
    let by = Administrator { address: std::net::IpAddr::from([127, 0, 0, 1]) };
    // A message was hidden, the session was unlisted, and the program was restarted in the middle.
    let (hidden, hidden_invites) = begin(&before, &environment, "psi").await;
    before.hide_message(by, Channel::Chat(hidden), 1).await.expect("the message exists");
    let (unlisted, unlisted_invites) = begin(&before, &environment, "psi").await;
    before
        .withdraw_session(by, unlisted, Withdrawal::Unlist(Requester::Administrator))
        .await
        .expect("the session runs");
    for (id, invites) in [(hidden, hidden_invites), (unlisted, unlisted_invites)] {
        act(&before, id, invites[1], Some("guess"), "2").await;
        assert_eq!(status(&before, id).await, Some(Status::Ended));
        assert!(take_ended(&before, id).await.is_none());
    }
    let (id, invites) = begin(&before, &environment, "psi").await;
    drop(before);
    let after = engine(&environment, &folder).await;
    act(&after, id, invites[1], Some("guess"), "2").await;
    assert_eq!(status(&after, id).await, Some(Status::Ended));
    assert!(take_ended(&after, id).await.is_none());
}

#[tokio::test]
async fn an_arena_without_a_log_keeps_no_ended_sessions() {
    let (environment, folder) = (TestEnvironment::new(63), data_folder());
    let engine = crate::engine(&environment, &folder).await;
    let (id, invites) = begin(&engine, &environment, "psi").await;
    act(&engine, id, invites[1], Some("guess"), "2").await;
    assert_eq!(status(&engine, id).await, Some(Status::Ended));
    assert!(take_ended(&engine, id).await.is_none());
}
