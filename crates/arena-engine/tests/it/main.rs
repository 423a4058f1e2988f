//! Tests of scheduled work, with a clock that the test sets.

mod bell;
mod ended;
mod group;
mod inputs;
mod queue;
mod services;

use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Act, Create, Engine, Join, Limits, Respond};
use arena_games::challenge as builtin;
use arena_model::{Builtin, ChallengeType, Channel, InactivityLimits, InviteCode, Party, Scoring, SessionId, Status};
use arena_store::{SessionFilter, Store};
use arena_testkit::{TestEnvironment, data_folder};
use serde_json::Map;
use tempfile::TempDir;

use bell::Bell;

pub(crate) const LIMITS: Limits = Limits {
    self_play: true,
    proven_players: false,
    channel_messages: 1000,
    chat_bytes: 1 << 30,
    spectators_chat: false,
    inactivity: InactivityLimits { open_ms: Some(600_000), active_ms: Some(1_800_000), unattended_bytes: None },
};

async fn engine(environment: &TestEnvironment, folder: &TempDir) -> Engine {
    engine_within(LIMITS, environment, folder).await
}

async fn engine_within(limits: Limits, environment: &TestEnvironment, folder: &TempDir) -> Engine {
    let store = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    let psi = builtin("psi", &Map::new()).expect("psi is built in").expect("its defaults are good");
    let bell: Arc<dyn ChallengeType> = Arc::new(Builtin::<Bell>::new(&Map::new()).expect("it has no options"));
    Engine::new(store, [psi, bell], limits, environment.for_engine()).await.expect("the store can be read")
}

async fn create(engine: &Engine) -> (SessionId, Vec<InviteCode>) {
    create_of(engine, "psi").await
}

pub(crate) async fn create_of(engine: &Engine, challenge: &str) -> (SessionId, Vec<InviteCode>) {
    let request =
        Create { challenge: challenge.to_owned(), options: Map::new(), is_rated: true, is_unlisted: false, deal: None };
    let respond = Respond::new(|written| {
        let invites: Vec<String> = written.session.facts.invites.iter().map(ToString::to_string).collect();
        format!("{} {}", written.session.facts.id, invites.join(" "))
    });
    let answer = engine.create(request, None, respond).await.expect("a session");
    let mut words = answer.split(' ');
    let id = words.next().expect("an id").parse().expect("an id");
    (id, words.map(|invite| invite.parse().expect("an invite")).collect())
}

async fn join(engine: &Engine, invite: InviteCode) {
    let respond = Respond::new(|_| String::new());
    engine.join(Join { invite, user: None }, None, respond).await.expect("a seat");
}

async fn status(engine: &Engine, id: SessionId) -> Option<Status> {
    engine.find_session(id).await.expect("the store can be read").map(|session| session.status())
}

#[tokio::test]
async fn an_open_session_is_removed_at_its_age() {
    let (environment, folder) = (TestEnvironment::new(1), data_folder());
    let engine = engine(&environment, &folder).await;
    let (id, invites) = create(&engine).await;
    join(&engine, invites[0]).await;
    environment.advance_ms(599_999);
    let next = engine.wake_due().await.expect("the store can be read");
    assert_eq!(next, Some(environment.now().plus_ms(1)));
    assert_eq!(status(&engine, id).await, Some(Status::Open));
    environment.advance_ms(1);
    assert_eq!(engine.wake_due().await.expect("the store can be read"), None);
    assert_eq!(status(&engine, id).await, None);
    assert_eq!(engine.find_invited(invites[0]).await.expect("the store can be read"), None);
    assert_eq!(engine.count_sessions(&SessionFilter::default()), 0);
    assert!(engine.read(Channel::Operator(id), 1, 9).await.expect("the store can be read").removed);
}

#[tokio::test]
async fn an_idle_game_ends_as_abandoned_and_a_busy_one_goes_on() {
    let (environment, folder) = (TestEnvironment::new(2), data_folder());
    let engine = engine(&environment, &folder).await;
    let (idle, idle_invites) = create(&engine).await;
    let (busy, busy_invites) = create(&engine).await;
    for invite in idle_invites.iter().chain(&busy_invites) {
        join(&engine, *invite).await;
    }
    environment.advance_ms(1_700_000);
    engine.wake_due().await.expect("the store can be read");
    let chat = arena_engine::Chat {
        session: busy,
        from: Party::Player(busy_invites[0]),
        to: None,
        content: "still here".to_owned(),
    };
    engine.chat(chat, None, Respond::new(|_| String::new())).await.expect("a player may chat");
    environment.advance_ms(100_000);
    let next = engine.wake_due().await.expect("the store can be read");
    assert_eq!(status(&engine, idle).await, Some(Status::Ended));
    assert_eq!(status(&engine, busy).await, Some(Status::Active));
    assert_eq!(next, Some(environment.now().plus_ms(1_700_000)), "the chat is what counts");

    let operator_texts = engine.read(Channel::Operator(idle), 1, 99).await.expect("the store can be read");
    let last = operator_texts.messages.last().expect("the end is told");
    let text = String::from_utf8(last.json(arena_model::Viewer::Nobody, true, false).to_vec()).expect("JSON");
    assert!(text.contains("Abandoned: nothing happened for 30 minutes."), "{text}");
    let session = engine.find_session(idle).await.expect("the store can be read").expect("it is there");
    let view = serde_json::to_value(arena_model::view(&session, arena_model::Viewer::Nobody)).expect("JSON");
    assert_eq!(view["state"]["abandoned"], true);
}

#[tokio::test]
async fn a_game_that_only_its_rules_go_on_with_ends_as_abandoned() {
    let (environment, folder) = (TestEnvironment::new(7), data_folder());
    // This limit is enough for one ring with its message.
    let inactivity = InactivityLimits { unattended_bytes: Some(1024 + "ring 1".len() as u64), ..LIMITS.inactivity };
    let limits = Limits { inactivity, ..LIMITS };
    let before = engine_within(limits.clone(), &environment, &folder).await;
    let (id, invites) = create_of(&before, "bell").await;
    join(&before, invites[0]).await;
    environment.advance_ms(1000);
    before.wake_due().await.expect("the store can be read");
    assert_eq!(operator_texts(&before, id).await, ["listen", "ring 1"]);
    drop(before);

    let after = engine_within(limits, &environment, &folder).await;
    environment.advance_ms(1000);
    assert_eq!(after.wake_due().await.expect("the store can be read"), None);
    let last = "Game ended.\n\nAbandoned: the rules wrote more than 1030 bytes without an action of a player. The game doesn't count.";
    assert_eq!(operator_texts(&after, id).await, ["listen", "ring 1", "ring 2", last]);
    assert_eq!(status(&after, id).await, Some(Status::Ended));

    // Output before a player's action doesn't count.
    let (id, invites) = create_of(&after, "bell").await;
    join(&after, invites[0]).await;
    for _ in 0..3 {
        environment.advance_ms(1000);
        after.wake_due().await.expect("the store can be read");
        let tap = Act {
            session: id,
            from: Party::Player(invites[0]),
            method: Some("tap".to_owned()),
            content: "x".repeat(2000),
        };
        after.act(tap, None, Respond::new(|_| String::new())).await.expect("a player may tap");
    }
    let ended = operator_texts(&after, id).await;
    assert!(ended.iter().any(|text| text.starts_with("Game ended.\n\nScores")), "{ended:?}");
}

#[tokio::test]
async fn what_is_due_survives_a_restart() {
    let (environment, folder) = (TestEnvironment::new(3), data_folder());
    let before = engine(&environment, &folder).await;
    let (id, _) = create(&before).await;
    drop(before);
    environment.advance_ms(600_000);
    let after = engine(&environment, &folder).await;
    assert_eq!(status(&after, id).await, Some(Status::Open));
    after.wake_due().await.expect("the store can be read");
    assert_eq!(status(&after, id).await, None);
}

/// Returns the operator's broadcasts.
async fn operator_texts(engine: &Engine, id: SessionId) -> Vec<String> {
    let snapshot = engine.read(Channel::Operator(id), 1, 99).await.expect("the store can be read");
    let json = |message: &Arc<arena_engine::Posted>| {
        let json = message.json(arena_model::Viewer::Nobody, false, false);
        serde_json::from_slice::<serde_json::Value>(json).expect("JSON")
    };
    let texts = snapshot.messages.iter().map(json);
    texts.filter_map(|message| message["content"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_deadline_passes_at_its_moment_and_survives_a_restart() {
    let (environment, folder) = (TestEnvironment::new(4), data_folder());
    let before = engine(&environment, &folder).await;
    let (id, invites) = create_of(&before, "bell").await;
    join(&before, invites[0]).await;
    assert_eq!(before.wake_due().await.expect("the store can be read"), Some(environment.now().plus_ms(1000)));
    environment.advance_ms(999);
    before.wake_due().await.expect("the store can be read");
    assert_eq!(operator_texts(&before, id).await, ["listen"]);
    drop(before);

    environment.advance_ms(1);
    let after = engine(&environment, &folder).await;
    after.wake_due().await.expect("the store can be read");
    assert_eq!(operator_texts(&after, id).await, ["listen", "ring 1"]);
    // Several deadlines have passed: the bell rings once, and the next interval starts now.
    environment.advance_ms(5000);
    assert_eq!(after.wake_due().await.expect("the store can be read"), Some(environment.now().plus_ms(1000)));
    assert_eq!(operator_texts(&after, id).await, ["listen", "ring 1", "ring 2"]);
    environment.advance_ms(1000);
    after.wake_due().await.expect("the store can be read");
    let last = operator_texts(&after, id).await.pop().expect("something was said");
    assert!(last.starts_with("Game ended."), "{last}");
    assert_eq!(status(&after, id).await, Some(Status::Ended));
    assert_eq!(after.wake_due().await.expect("the store can be read"), None);
}

#[tokio::test]
async fn a_session_that_cannot_be_woken_delays_no_other() {
    let (environment, folder) = (TestEnvironment::new(6), data_folder());
    let before = engine(&environment, &folder).await;
    let (_, invites) = create_of(&before, "bell").await;
    join(&before, invites[0]).await;
    let (psi, _) = create(&before).await;
    let removed_at = environment.now().plus_ms(600_000);
    drop(before);

    // The bell challenge is removed, so this session can't be woken.
    let store = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    let hosted = builtin("psi", &Map::new()).expect("psi is built in").expect("its defaults are good");
    let after = Engine::new(store, [hosted], LIMITS, environment.for_engine()).await.expect("the store can be read");
    environment.advance_ms(590_000);
    assert_eq!(after.wake_due().await.expect("the store can be read"), Some(removed_at));
    environment.advance_ms(10_000);
    after.wake_due().await.expect("the store can be read");
    assert_eq!(status(&after, psi).await, None);
}

#[tokio::test]
async fn a_sleeping_keeper_of_time_is_woken_by_a_nearer_deadline() {
    let (environment, folder) = (TestEnvironment::new(5), data_folder());
    let engine = engine(&environment, &folder).await;
    let keeper = engine.clone();
    let keeping = tokio::spawn(async move { keeper.run_deadlines().await });
    // The loop sleeps for half a minute because nothing is due; the join sets a deadline in a second.
    let (id, invites) = create_of(&engine, "bell").await;
    let mut watch = engine.subscribe(Channel::Operator(id)).await.expect("readable").expect("it is there");
    join(&engine, invites[0]).await;
    watch.changed().await;
    environment.advance_ms(1000);
    tokio::time::timeout(Duration::from_secs(20), watch.changed())
        .await
        .expect("the bell rings before the long sleep ends");
    assert_eq!(operator_texts(&engine, id).await, ["listen", "ring 1"]);
    keeping.abort();
}
