//! Several engines on one database: each sees the commits of the others, and nothing happens twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_engine::{
    Act, Administrator, Chat, Create, Engine, EngineError, Enqueue, Join, NatsUrl, Once, Posted, QueueState, Respond,
    Subscription, Ticket, Withdrawal,
};
use arena_games::challenge as builtin;
use arena_model::{
    Board, Builtin, ChallengeType, Channel, InviteCode, Order, Party, Scoring, SessionId, Status, Viewer,
};
use arena_store::{
    AuditNo, BanSubject, EndingNo, ImportOutcome, ImportedSession, NodeTerms, SessionFilter, Store, StoreError,
};
use arena_testkit::{NatsServer, Postgres, TestEnvironment, data_folder};
use serde_json::{Map, Value};

use crate::LIMITS;
use crate::bell::Bell;

fn challenges() -> [Arc<dyn ChallengeType>; 2] {
    let psi = builtin("psi", &Map::new()).expect("psi is built in").expect("its defaults are good");
    [psi, Arc::new(Builtin::<Bell>::new(&Map::new()).expect("it has no options"))]
}

async fn join(url: &str, secret: &str) -> Result<Store, StoreError> {
    let terms = NodeTerms::from([("AUTH_SECRET".to_owned(), secret.to_owned())]);
    let scoring =
        Scoring::new(&["average".to_owned()], [("psi", &[][..])], None, None).expect("there is such a strategy");
    Store::join(url.parse().expect("a URL"), scoring, &terms).await
}

async fn node(url: &str, environment: &TestEnvironment) -> Engine {
    let store = join(url, "open sesame").await.expect("they agree");
    Engine::new(store, challenges(), LIMITS, environment.for_engine()).await.expect("the store can be read")
}

/// Creates `N` nodes on a new database with the same clock.
async fn nodes<const N: usize>(environment: &TestEnvironment) -> [Engine; N] {
    let url = Postgres::shared().schema();
    let mut nodes = Vec::new();
    for _ in 0..N {
        nodes.push(node(&url, environment).await);
    }
    nodes.try_into().unwrap_or_else(|_| unreachable!("N were made"))
}

/// Returns the number of sessions that match a filter, in a list that begins after the call.
async fn count(engine: &Engine, filter: &SessionFilter) -> u64 {
    engine.list_sessions(filter, 0, 1).await.expect("the store can be read").total
}

fn told_nothing() -> Respond {
    Respond::new(|_| String::new())
}

async fn create(engine: &Engine, challenge: &str) -> (SessionId, Vec<InviteCode>) {
    crate::create_of(engine, challenge).await
}

async fn take_seat(engine: &Engine, invite: InviteCode, user: Option<&str>) -> Result<String, EngineError> {
    let user = user.map(|user| user.parse().expect("an id"));
    engine.join(Join { invite, user }, None, told_nothing()).await
}

async fn say(engine: &Engine, session: SessionId, invite: InviteCode, text: &str) -> Result<String, EngineError> {
    let chat = Chat { session, from: Party::Player(invite), to: None, content: text.to_owned() };
    engine.chat(chat, None, told_nothing()).await
}

async fn guess(engine: &Engine, session: SessionId, invite: InviteCode, set: &str) -> Result<String, EngineError> {
    let act = Act { session, from: Party::Player(invite), method: Some("guess".to_owned()), content: set.to_owned() };
    engine.act(act, None, told_nothing()).await
}

fn read_json(message: &Posted, viewer: Viewer) -> Value {
    serde_json::from_slice(message.json(viewer, true, true)).expect("JSON")
}

async fn texts(engine: &Engine, channel: Channel, viewer: Viewer) -> Vec<String> {
    let snapshot = engine.read(channel, 1, 9999).await.expect("the store can be read");
    let indexes: Vec<u64> = snapshot.messages.iter().map(|message| message.index()).collect();
    assert!(indexes.iter().copied().eq(1..=snapshot.len), "{indexes:?} of {}", snapshot.len);
    let json = snapshot.messages.iter().map(|message| read_json(message, viewer));
    json.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Returns the numbers of a player's private set.
async fn set_of(engine: &Engine, session: SessionId, invite: InviteCode) -> BTreeSet<u32> {
    let operator_texts = texts(engine, Channel::Operator(session), Viewer::Player(invite)).await;
    let set =
        operator_texts.iter().find_map(|text| text.strip_prefix("Your private set is: ")).expect("a set").to_owned();
    set.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

async fn status(engine: &Engine, id: SessionId) -> Option<Status> {
    engine.find_session(id).await.expect("the store can be read").map(|session| session.status())
}

/// Returns the number of granted requests and the reasons of the refusals.
fn granted(answers: impl IntoIterator<Item = Result<String, EngineError>>) -> (usize, Vec<String>) {
    let (granted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    (granted.len(), refused.into_iter().filter_map(|refused| Some(refused.err()?.to_string())).collect())
}

/// Plays a game at one node. `between` runs before the last guess.
async fn play_at(engine: &Engine, between: impl AsyncFnOnce(SessionId, InviteCode)) -> SessionId {
    let (id, invites) = create(engine, "psi").await;
    for invite in &invites {
        take_seat(engine, *invite, None).await.expect("a seat");
    }
    guess(engine, id, invites[0], "1").await.expect("a guess");
    between(id, invites[1]).await;
    guess(engine, id, invites[1], "1").await.expect("a guess");
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transition_of_a_game_happens_once_though_two_nodes_are_asked_for_each() {
    let environment = TestEnvironment::new(31);
    let [here, there, third] = nodes(&environment).await;
    for round in 0..5 {
        let (id, invites) = create(&here, "psi").await;
        for (invite, name) in invites.iter().zip(["ada", "bob"]) {
            let (one, other) =
                tokio::join!(take_seat(&here, *invite, Some(name)), take_seat(&there, *invite, Some(name)));
            let (seats, refused) = granted([one, other]);
            assert_eq!((seats, &*refused), (1, &["This invite has already been used.".to_owned()][..]));
        }
        assert_eq!(status(&third, id).await, Some(Status::Active));
        let [ada, bob] = [set_of(&here, id, invites[0]).await, set_of(&there, id, invites[1]).await];
        let common: Vec<String> = ada.intersection(&bob).map(u32::to_string).collect();
        for invite in &invites {
            let common = common.join(", ");
            let asked = [&here, &there].map(|node| guess(node, id, *invite, &common));
            let [one, other] = asked;
            let (one, other) = tokio::join!(one, other);
            let (guesses, _) = granted([one, other]);
            assert!((1..=2).contains(&guesses), "the second may be told that the game is over");
        }
        let operator_texts = texts(&third, Channel::Operator(id), Viewer::Nobody).await;
        assert_eq!(
            operator_texts.iter().filter(|text| text.starts_with("Game ended.")).count(),
            1,
            "{operator_texts:?}"
        );
        for node in [&here, &there, &third] {
            assert_eq!(status(node, id).await, Some(Status::Ended));
            let ended = SessionFilter { challenge: None, status: Some(Status::Ended) };
            assert_eq!(count(node, &ended).await, round + 1);
            let ada = "ada".parse().expect("an id");
            let played = node.list_played(&ada, 0, 9).await.expect("readable").expect("she has played");
            assert_eq!(played.total, round + 1);
            let totals = node.read_totals().await.expect("readable");
            assert_eq!(totals.participants, 2);
        }
    }
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    assert_eq!(third.recount(by).await.expect("it counts").wrong, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_at_one_node_is_known_at_the_others_at_once() {
    let environment = TestEnvironment::new(32);
    let nodes: [Engine; 3] = nodes(&environment).await;
    let (id, invites) = create(&nodes[0], "psi").await;
    for (seat, invite) in invites.iter().enumerate() {
        take_seat(&nodes[seat], *invite, None).await.expect("a seat");
    }
    let mut said = Vec::new();
    for round in 0..60 {
        // Writer and reader vary. The reader gets the commit only because its request compares its memory with the store.
        let (writer, reader) = (&nodes[round % 3], &nodes[(round * 7 + 1) % 3]);
        said.push(format!("{round}"));
        say(writer, id, invites[round % 2], &said[round]).await.expect("it is said");
        assert_eq!(texts(reader, Channel::Chat(id), Viewer::Nobody).await, said);
    }
    // The public channel and the counts.
    for (round, node) in nodes.iter().enumerate() {
        let (_, invites) = create(node, "psi").await;
        node.announce(invites[0], None, told_nothing()).await.expect("it is offered");
        for reader in &nodes {
            assert_eq!(texts(reader, Channel::Invites, Viewer::Nobody).await.len(), round + 1);
            assert_eq!(count(reader, &SessionFilter::default()).await, round as u64 + 2);
        }
    }
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    nodes[1].hide_message(by, Channel::Chat(id), 1).await.expect("it is hidden");
    for reader in &nodes {
        assert_eq!(texts(reader, Channel::Chat(id), Viewer::Nobody).await[..2], ["", "1"]);
    }
    nodes[2].withdraw_session(by, id, Withdrawal::Remove).await.expect("it is removed");
    for node in &nodes {
        assert_eq!(status(node, id).await, None);
        let error = say(node, id, invites[0], "anybody?").await.expect_err("it is gone").to_string();
        assert_eq!(error, "Challenge not found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_removed_and_imported_is_found_at_all_nodes() {
    let (environment, url) = (TestEnvironment::new(66), Postgres::shared().schema());
    let nodes = [node(&url, &environment).await, node(&url, &environment).await, node(&url, &environment).await];
    let mut player = None;
    let id = play_at(&nodes[0], async |_, invite| player = Some(invite)).await;
    // All nodes have it in memory.
    let mut session = None;
    for node in &nodes {
        session = node.find_session(id).await.expect("the store can be read");
    }
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    nodes[1].withdraw_session(by, id, Withdrawal::Remove).await.expect("it is removed");
    let session = session.as_deref().expect("it was there").clone();
    let imported = ImportedSession { session, messages: Vec::new(), import: AuditNo(1) };
    let store = join(&url, "open sesame").await.expect("they agree");
    assert_eq!(store.import_session(imported).await.expect("it is imported"), ImportOutcome::New);
    say(&nodes[0], id, player.expect("one played"), "again").await.expect("it is there");
    for node in &nodes {
        assert_eq!(texts(node, Channel::Chat(id), Viewer::Nobody).await, ["again"]);
        assert_eq!(texts(node, Channel::Operator(id), Viewer::Nobody).await.len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_reads_a_session_from_memory_only_if_no_other_node_took_chat() {
    let environment = TestEnvironment::new(67);
    let [here, there] = nodes(&environment).await;
    here.keep_ended();
    for has_chat in [false, true] {
        let id = play_at(&here, async |id, invite| {
            if has_chat {
                say(&there, id, invite, "hello").await.expect("it is said");
            }
        })
        .await;
        let endings = here.list_endings(EndingNo::default(), 9).await.expect("readable");
        let taken = here.take_ended(endings.iter().find(|ended| ended.id == id).expect("it has ended"));
        let stored = here.record_source(id).await.expect("readable");
        assert_eq!(taken.map(|source| source.messages), (!has_chat).then_some(stored.messages));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_read_the_archive_of_one() {
    let environment = TestEnvironment::new(61);
    let nodes: [Engine; 2] = nodes(&environment).await;
    let folder = data_folder();
    nodes.iter().for_each(|node| node.set_archive(folder.path().to_owned()));
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    let mut played = Vec::new();
    let id = play_at(&nodes[0], async |id, invite| {
        for n in 0..3 {
            say(&nodes[0], id, invite, &format!("message {n}")).await.expect("it is said");
        }
        played.push(invite);
    })
    .await;
    let record = nodes[0].record_source(id).await.expect("readable").messages;
    environment.advance_ms(1000);
    // Both nodes archive, and one of them does.
    let (here, there) =
        tokio::join!(nodes[0].archive_ended(None, environment.now()), nodes[1].archive_ended(None, environment.now()));
    let sessions = [here, there].map(|count| count.expect("it is archived").sessions);
    assert_eq!(sessions.iter().sum::<u64>(), 1, "{sessions:?}");
    let files = std::fs::read_dir(folder.path().join(&id.to_string()[..2])).expect("a folder");
    assert_eq!(files.count(), 1, "the node that lost has removed its file");
    let mut said: Vec<String> = (0..3).map(|n| format!("message {n}")).collect();
    // Each node adds chat after the end; the other has the session from the database.
    for node in [1, 0] {
        for reader in [1, 0] {
            assert_eq!(texts(&nodes[reader], Channel::Chat(id), Viewer::Nobody).await, said, "{reader}");
        }
        said.push(format!("late at {node}"));
        say(&nodes[node], id, played[0], &said[said.len() - 1]).await.expect("it is said");
    }
    for node in &nodes {
        let found = node.record_source(id).await.expect("readable").messages;
        assert_eq!(found[..record.len()], record);
        assert_eq!(found.len(), record.len() + 2);
    }
    assert!(nodes[1].restore(by, id).await.expect("it is restored"));
    assert!(!nodes[0].restore(by, id).await.expect("it is not archived"));
    for node in &nodes {
        assert_eq!(texts(node, Channel::Chat(id), Viewer::Nobody).await, said);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_inputs_of_a_session_are_the_same_on_all_nodes() {
    let environment = TestEnvironment::new(47);
    let nodes: [Engine; 2] = nodes(&environment).await;
    let (id, invites) = create(&nodes[0], "bell").await;
    take_seat(&nodes[1], invites[0], None).await.expect("a seat");
    // The nodes take turns, so each appends to the other's inputs.
    for round in 0..3 {
        say(&nodes[round % 2], id, invites[0], "listen!").await.expect("it is said");
        environment.advance_ms(1000);
        nodes[round % 2].wake_due().await.expect("the store can be read");
    }
    let mut seen = Vec::new();
    // The log asks for the sources of records without a request that would read the other node's commits.
    for node in &nodes {
        let source = node.record_source(id).await.expect("it exists");
        assert_eq!(source.session.status(), Status::Ended);
        let places = source.messages.iter().map(|message| format!("{} {}", message.channel, message.index));
        seen.push(places.map(|place| place.replace(&id.to_string(), "")).collect::<Vec<_>>().join(", "));
    }
    let expected = "inputs_ 1, inputs_ 2, challenge_ 1,  1, inputs_ 3, challenge_ 2,  2, inputs_ 4, challenge_ 3,  3, \
                    inputs_ 5, challenge_ 4";
    assert_eq!(seen, [expected, expected]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_invite_seats_one_player_and_one_key_answers_once() {
    let environment = TestEnvironment::new(33);
    let nodes: [Engine; 2] = nodes(&environment).await;
    for round in 0..10_u8 {
        let (id, invites) = create(&nodes[0], "psi").await;
        let joins = (0..8).map(|n| {
            let (node, invite) = (nodes[n % 2].clone(), invites[0]);
            tokio::spawn(async move { take_seat(&node, invite, None).await })
        });
        let mut answers = Vec::new();
        for join in joins.collect::<Vec<_>>() {
            answers.push(join.await.expect("it ends"));
        }
        let (seats, refused) = granted(answers);
        assert_eq!(seats, 1, "{refused:?}");
        assert!(refused.iter().all(|refused| refused == "This invite has already been used."), "{refused:?}");

        // Both nodes get the same request. The request is executed once, and both nodes return the same answer.
        let once = Once { key: [round; 32], request: [1; 32] };
        let joins = (0..6).map(|n| {
            let (node, invite) = (nodes[n % 2].clone(), invites[1]);
            let asked = n.to_string();
            tokio::spawn(async move {
                let respond = Respond::new(move |written| format!("{asked} {}", written.session.seats.len()));
                node.join(Join { invite, user: None }, Some(once), respond).await.expect("granted, or granted before")
            })
        });
        let mut answers = BTreeSet::new();
        for join in joins.collect::<Vec<_>>() {
            answers.insert(join.await.expect("it ends"));
        }
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(status(&nodes[1], id).await, Some(Status::Active));

        let once = Once { key: [round + 100; 32], request: [2; 32] };
        let creations = nodes.iter().map(|node| {
            let (challenge, options) = ("psi".to_owned(), Map::new());
            let request = Create { challenge, options, is_rated: true, is_unlisted: false, deal: None };
            let respond = Respond::new(|written| written.session.facts.id.to_string());
            node.create(request, Some(once), respond)
        });
        let mut creations = creations.collect::<Vec<_>>().into_iter();
        let (one, other) = tokio::join!(creations.next().expect("two"), creations.next().expect("two"));
        assert_eq!(one.expect("a session"), other.expect("the same"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_talk_at_all_nodes_and_all_is_said_once() {
    let environment = TestEnvironment::new(34);
    let nodes: [Engine; 3] = nodes(&environment).await;
    let (id, invites) = create(&nodes[0], "psi").await;
    let talk = (0..12).map(|n| {
        let (node, invite) = (nodes[n % 3].clone(), invites[n % 2]);
        tokio::spawn(async move {
            if n < 2 {
                take_seat(&node, invite, None).await.expect("a seat");
            }
            let mut said = Vec::new();
            for word in 0..10 {
                let text = format!("{n} {word}");
                loop {
                    match say(&node, id, invite, &text).await {
                        Ok(_) => break said.push(text),
                        // The player hasn't joined yet, or there are too many concurrent changes.
                        Err(EngineError::Contended | EngineError::Chat(_)) => tokio::task::yield_now().await,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            said
        })
    });
    let mut acknowledged = BTreeSet::new();
    for talker in talk.collect::<Vec<_>>() {
        acknowledged.extend(talker.await.expect("it ends"));
    }
    let chat = texts(&nodes[1], Channel::Chat(id), Viewer::Nobody).await;
    assert_eq!(chat.len(), 120);
    assert_eq!(chat.into_iter().collect::<BTreeSet<_>>(), acknowledged);
}

/// Waits until a node knows something that another has changed. Rare changes take a second.
async fn within_seconds(what: &str, is_known: impl AsyncFn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !is_known().await {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ban_soon_holds_at_all_nodes() {
    let environment = TestEnvironment::new(35);
    let [here, there] = nodes(&environment).await;
    let following =
        [here.clone(), there.clone()].map(|node| tokio::spawn(async move { node.follow_others(None).await }));
    let (id, invites) = create(&here, "psi").await;
    for (node, invite, user) in [(&here, invites[0], "ada"), (&there, invites[1], "bob")] {
        take_seat(node, invite, Some(user)).await.expect("a seat");
    }
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    let ada = BanSubject::User("ada".parse().expect("an id"));
    let near = BanSubject::Addresses("192.0.2.0/24".parse().expect("a range"));
    let address = "192.0.2.7".parse().expect("an address");
    here.ban(by, ada.clone(), "cheats".to_owned()).await.expect("banned");
    here.ban(by, near.clone(), "noise".to_owned()).await.expect("banned");
    // She plays at the other node.
    within_seconds("she is banned", async || {
        let refused = say(&there, id, invites[0], "hello").await.map_err(|error| error.to_string());
        refused == Err("banned from this arena: cheats".to_owned())
    })
    .await;
    within_seconds("the addresses are banned", async || there.admit_address(address).is_err()).await;
    there.lift_ban(by, near.clone()).await.expect("lifted");
    there.lift_ban(by, ada.clone()).await.expect("lifted");
    within_seconds("the addresses are admitted", async || here.admit_address(address).is_ok()).await;
    within_seconds("she may again", async || say(&here, id, invites[0], "hello").await.is_ok()).await;
    let engine: arena_model::UserId = "engine-1".parse().expect("an id");
    here.set_benchmark(by, engine.clone(), true).await.expect("it is one");
    assert!(there.find_profiles(std::slice::from_ref(&engine)).await.expect("readable")[&engine].is_benchmark);
    following.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_not_decided_on_old_memory() {
    let environment = TestEnvironment::new(62);
    let [here, there] = nodes(&environment).await;
    for round in 0..10 {
        let (id, invites) = create(&here, "psi").await;
        assert_eq!(status(&there, id).await, Some(Status::Open));
        for invite in &invites {
            take_seat(&here, *invite, None).await.expect("a seat");
        }
        // In the other node's memory, all seats are free and nobody may act.
        if round % 2 == 0 {
            say(&there, id, invites[0], "hello").await.expect("a player may talk");
        } else {
            guess(&there, id, invites[1], "1").await.expect("a player may guess");
        }
        let unknown = say(&there, id, invites[1], "hello").await;
        unknown.expect("both have seats");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_that_end_at_all_nodes_at_once_are_numbered_without_gaps_and_counted_once() {
    let (environment, url) = (TestEnvironment::new(63), Postgres::shared().schema());
    let nodes = [node(&url, &environment).await, node(&url, &environment).await, node(&url, &environment).await];
    assert_eq!(board(&nodes[0]).await.len(), 0);
    let names = ["ada", "bob", "cleo", "dora"];
    let mut games = tokio::task::JoinSet::new();
    for game in 0..36 {
        let node = nodes[game % 3].clone();
        games.spawn(async move { play(&node, [names[game % 4], names[(game + 1 + game / 9) % 4]]).await });
    }
    games.join_all().await;
    let numbers = Postgres::shared().run_sql(&url, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM endings");
    let expected: Vec<String> = (1..=36).map(|n| n.to_string()).collect();
    assert_eq!(numbers.trim(), expected.join(" "));
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    assert_eq!(nodes[1].recount(by).await.expect("it counts").wrong, []);
    let fresh = node(&url, &environment).await;
    for node in &nodes {
        assert_eq!(board(node).await, board(&fresh).await);
        assert_eq!(count(node, &SessionFilter { challenge: None, status: Some(Status::Ended) }).await, 36);
    }
}

/// The number of kinds of [`change_something`].
const DEEDS: usize = 9;

/// Changes something at a node: one of the kinds of transactions that lock rows which those of other nodes need.
async fn change_something(node: &Engine, deed: usize, user: &str) -> Result<(), EngineError> {
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    let (id, invites) = match deed {
        0 | 1 => {
            play(node, if deed == 0 { ["ada", "bob"] } else { ["bob", "ada"] }).await;
            return Ok(());
        }
        2 => return node.set_benchmark(by, "ada".parse().expect("an id"), false).await.map(drop),
        3 => {
            let subject = BanSubject::User(user.parse().expect("an id"));
            return node.ban(by, subject, "cheats".to_owned()).await.map(drop);
        }
        8 => {
            let deleted = node.delete_user(by, "ada".parse().expect("an id")).await.map(drop);
            // She may be playing, or may not have played yet.
            let is_refused = matches!(deleted, Err(EngineError::UserPlays { .. } | EngineError::UnknownUser));
            return if is_refused { Ok(()) } else { deleted };
        }
        _ => create(node, "psi").await,
    };
    match deed {
        4 => node.announce(invites[0], None, told_nothing()).await.map(drop),
        5 => node.withdraw_session(by, id, Withdrawal::Unlist(arena_engine::Requester::Administrator)).await,
        6 => {
            take_seat(node, invites[0], Some("cleo")).await?;
            say(node, id, invites[0], "hello").await?;
            node.hide_message(by, Channel::Chat(id), 1).await.map(drop)
        }
        _ => {
            let played = play(node, ["ada", "bob"]).await;
            node.withdraw_session(by, played, Withdrawal::Remove).await
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_of_two_nodes_lock_rows_in_one_order() {
    let (environment, mut postgres) = (TestEnvironment::new(64), Postgres::start());
    let url = postgres.schema();
    let [here, there] = [node(&url, &environment).await, node(&url, &environment).await];
    for one in 0..DEEDS {
        for other in one..DEEDS {
            for _ in 0..3 {
                let (one, other) =
                    tokio::join!(change_something(&here, one, "eve"), change_something(&there, other, "mallory"));
                one.expect("it is done");
                other.expect("it is done");
            }
        }
    }
    let deadlocks = postgres.run_sql(&url, "SELECT sum(deadlocks) FROM pg_stat_database");
    assert_eq!(deadlocks.trim(), "0");
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    assert_eq!(here.recount(by).await.expect("it counts").wrong, []);
    postgres.crash();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_passes_once_whoever_sees_to_it() {
    let environment = TestEnvironment::new(36);
    let [here, there] = nodes(&environment).await;
    let (id, invites) = create(&here, "bell").await;
    take_seat(&here, invites[0], None).await.expect("a seat");
    for rung in 1..=2 {
        environment.advance_ms(1000);
        let (one, other) = tokio::join!(here.wake_due(), there.wake_due());
        assert_eq!(one.expect("readable"), Some(environment.now().plus_ms(1000)));
        assert_eq!(other.expect("readable"), Some(environment.now().plus_ms(1000)));
        let operator_texts = texts(&there, Channel::Operator(id), Viewer::Nobody).await;
        assert_eq!(operator_texts.len(), 1 + rung, "{operator_texts:?}");
    }
    // The node that created the session is gone; another one wakes it.
    drop(here);
    environment.advance_ms(1000);
    assert_eq!(there.wake_due().await.expect("readable"), None);
    assert_eq!(status(&there, id).await, Some(Status::Ended));
}

/// Plays a game of PSI between two players; the first one guesses right.
async fn play(node: &Engine, names: [&str; 2]) -> SessionId {
    let (id, invites) = create(node, "psi").await;
    for (invite, name) in invites.iter().zip(names) {
        take_seat(node, *invite, Some(name)).await.expect("a seat");
    }
    let [one, other] = [set_of(node, id, invites[0]).await, set_of(node, id, invites[1]).await];
    let common: Vec<String> = one.intersection(&other).map(u32::to_string).collect();
    guess(node, id, invites[0], &common.join(", ")).await.expect("it is taken");
    guess(node, id, invites[1], "1").await.expect("it is taken");
    id
}

async fn board(node: &Engine) -> Vec<String> {
    let is_average = |board: &Board| matches!(board, Board::Of { strategy: "average", .. });
    let board = node.main_boards("psi").into_iter().find(is_average).expect("it is scored");
    let metric = node.scoring().metrics(&board).first().expect("it has metrics").key;
    let page = node.list_board(&board, Order { metric, by_low_end: false }, 0, 99).await.expect("readable");
    page.items.iter().map(|(user, entry)| format!("{} {entry:?}", user.user_id)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaderboard_in_memory_follows_the_games_of_others() {
    let (environment, url) = (TestEnvironment::new(38), Postgres::shared().schema());
    let [here, there] = [node(&url, &environment).await, node(&url, &environment).await];
    // From now on, both nodes have the board in memory.
    assert_eq!((board(&here).await.len(), board(&there).await.len()), (0, 0));
    let names = ["ada", "bob", "cleo", "dora"];
    for round in 0..6 {
        let (player, other) = (names[round % 4], names[(round + 1 + round / 4) % 4]);
        let last = play([&here, &there][round % 2], [player, other]).await;
        let expected = board(&node(&url, &environment).await).await;
        assert_eq!((board(&here).await, board(&there).await), (expected.clone(), expected));
        if round == 5 {
            let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
            there.withdraw_session(by, last, Withdrawal::Remove).await.expect("it is removed");
        }
    }
    let expected = board(&node(&url, &environment).await).await;
    assert_eq!((board(&here).await, board(&there).await), (expected.clone(), expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn derived_tables_that_are_wrong_are_made_again_for_all_nodes() {
    let (environment, url) = (TestEnvironment::new(42), Postgres::shared().schema());
    let [here, there] = [node(&url, &environment).await, node(&url, &environment).await];
    let keeping = [here.clone(), there.clone()].map(|node| tokio::spawn(async move { node.keep_derived().await }));
    play(&here, ["ada", "bob"]).await;
    let (id, _) = create(&there, "psi").await;
    Postgres::shared().run_sql(&url, "UPDATE session_counts SET n = 0; UPDATE totals SET n = 0; DELETE FROM endings");
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    there.withdraw_session(by, id, Withdrawal::Remove).await.expect("it is removed");
    let until = Instant::now() + Duration::from_secs(60);
    let counted = async |node: &Engine| {
        (count(node, &SessionFilter::default()).await, node.read_totals().await.expect("readable").participants)
    };
    while (counted(&here).await, counted(&there).await) != ((1, 2), (1, 2)) {
        assert!(Instant::now() < until, "{:?} {:?}", counted(&here).await, counted(&there).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    play(&there, ["ada", "cleo"]).await;
    assert_eq!((counted(&here).await, counted(&there).await), ((2, 3), (2, 3)));
    keeping.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Repeats a request until a restarted database answers.
async fn insist<T>(what: impl AsyncFn() -> Result<T, EngineError>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match what().await {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_drop_what_a_database_has_lost() {
    let (environment, mut postgres) = (TestEnvironment::new(41), Postgres::start());
    let url = postgres.schema();
    let [here, there] = [node(&url, &environment).await, node(&url, &environment).await];
    let kept = play(&here, ["ada", "bob"]).await;
    let (open, invites) = create(&here, "psi").await;
    take_seat(&there, invites[0], Some("ada")).await.expect("a seat");
    assert_eq!(board(&there).await.len(), 2);
    postgres.crash();
    postgres.back_up();
    postgres.start_again();
    for node in [&here, &there] {
        insist(async || node.check().await).await;
        insist(async || node.read_changes().await).await;
    }
    // The primary is lost with these writes: the standby that takes over doesn't have them.
    let lost = play(&here, ["ada", "cleo"]).await;
    take_seat(&here, invites[1], Some("bob")).await.expect("a seat");
    say(&there, open, invites[0], "hello?").await.expect("it is said");
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    here.ban(by, BanSubject::User("eve".parse().expect("an id")), "cheats".to_owned()).await.expect("banned");
    assert_eq!((board(&here).await.len(), board(&there).await.len()), (3, 3));
    assert_eq!(status(&there, open).await, Some(Status::Active));
    postgres.crash();
    postgres.put_back();
    postgres.start_again();
    for node in [&here, &there] {
        insist(async || node.check().await).await;
        insist(async || node.read_changes().await).await;
    }
    // One node continues to the same versions and numbers, which alone don't show the loss.
    for _ in 0..3 {
        play(&here, ["dora", "emil"]).await;
    }
    let fresh = node(&url, &environment).await;
    let expected = board(&fresh).await;
    assert_eq!((expected.len(), &board(&here).await, &board(&there).await), (4, &expected, &expected));
    for node in [&here, &there] {
        assert_eq!(status(node, kept).await, Some(Status::Ended));
        assert_eq!(status(node, lost).await, None, "it was never played");
        assert_eq!(status(node, open).await, Some(Status::Open), "one seat is free again");
        assert!(texts(node, Channel::Chat(open), Viewer::Nobody).await.is_empty());
        assert_eq!(count(node, &SessionFilter::default()).await, count(&fresh, &SessionFilter::default()).await);
    }
    // Both nodes work as before: each sees the other's writes.
    take_seat(&there, invites[1], Some("eve")).await.expect("nobody is banned any more");
    assert_eq!(status(&here, open).await, Some(Status::Active));
}

/// Reads a chat to its end: `len` messages, in order.
async fn hear(mut subscription: Subscription, len: u64) -> Vec<u64> {
    let mut heard = Vec::new();
    while (heard.len() as u64) < len {
        let next = heard.last().map_or(1, |last| last + 1);
        let snapshot = subscription.read(next, 100).await.expect("readable");
        heard.extend(snapshot.messages.iter().map(|message| message.index()));
        if snapshot.messages.is_empty() {
            let changed = tokio::time::timeout(Duration::from_secs(20), subscription.changed());
            changed.await.expect("somebody is told of what was said elsewhere");
        }
    }
    heard
}

/// Checks that two subscribers at one node get `len` messages of another, while `meanwhile` disturbs the events.
async fn check_watching(nats: Option<&str>, len: usize, mut meanwhile: impl AsyncFnMut(usize)) {
    let environment = TestEnvironment::new(37);
    let [here, there] = nodes(&environment).await;
    let (id, invites) = create(&here, "psi").await;
    for invite in &invites {
        take_seat(&here, *invite, None).await.expect("a seat");
    }
    let url: Option<NatsUrl> = nats.map(|url| url.parse().expect("a URL"));
    let follow = |node: &Engine| {
        let (node, url) = (node.clone(), url.clone());
        tokio::spawn(async move { node.follow_others(url.as_ref()).await })
    };
    let following = [follow(&here), follow(&there)];
    let mut hearing = Vec::new();
    for channel in [Channel::Chat(id), Channel::Chat(id)] {
        let subscription = there.subscribe(channel).await.expect("readable").expect("it is there");
        hearing.push(tokio::spawn(hear(subscription, len as u64)));
    }
    for n in 0..len {
        meanwhile(n).await;
        say(&here, id, invites[n % 2], "listen").await.expect("it is said");
    }
    for hearing in hearing {
        assert!(hearing.await.expect("it ends").into_iter().eq(1..=len as u64));
    }
    following.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_at_one_node_is_told_in_order_what_is_said_at_another() {
    check_watching(None, 40, async |_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_hidden_under_a_stream_at_another_node() {
    let environment = TestEnvironment::new(65);
    let [here, there] = nodes(&environment).await;
    let (id, invites) = create(&here, "psi").await;
    take_seat(&here, invites[0], None).await.expect("a seat");
    say(&here, id, invites[0], "a secret").await.expect("it is said");
    let mut subscription = there.subscribe(Channel::Chat(id)).await.expect("readable").expect("it is there");
    let node = there.clone();
    let following = tokio::spawn(async move { node.follow_others(None).await });
    let first = subscription.read(1, 9).await.expect("readable");
    assert_eq!(read_json(&first.messages[0], Viewer::Nobody)["content"], "a secret");
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    here.hide_message(by, Channel::Chat(id), 1).await.expect("it is hidden");
    let changed = tokio::time::timeout(Duration::from_secs(20), subscription.changed());
    changed.await.expect("the subscriber is woken");
    let first = subscription.read(1, 9).await.expect("readable");
    assert_ne!(read_json(&first.messages[0], Viewer::Nobody)["content"], "a secret");
    following.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_is_told_of_everything_though_nats_comes_and_goes() {
    let mut server = Some(NatsServer::start_plain());
    let url = server.as_ref().expect("it runs").url();
    let change = |mut nats: NatsServer, up: bool| {
        let changed = tokio::task::spawn_blocking(move || {
            if up {
                nats.start_again()
            } else {
                nats.stop()
            }
            nats
        });
        async { Some(changed.await.expect("it is done")) }
    };
    check_watching(Some(&url), 40, async |n| {
        if n == 10 || n == 30 {
            server = change(server.take().expect("it is there"), n == 30).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_database_is_shared_by_those_who_agree_or_one_has_it_alone() {
    let url = Postgres::shared().schema();
    let alone = || Store::connect(url.parse().expect("a URL"), Scoring::default());
    let first = join(&url, "open sesame").await.expect("it is free");
    let port = Postgres::shared().port().to_string();
    let operator_texts = |refused: StoreError| {
        let said = refused.to_string().replace(&port, "PORT");
        let (head, tail) = said.split_once("connected from").unwrap_or((&said, ""));
        format!("{head}{}", tail.split_once(')').map_or("", |(_, tail)| tail))
    };
    let refused = operator_texts(join(&url, "another").await.map(drop).expect_err("they don't agree"));
    assert_eq!(
        refused,
        "the nodes that share the database postgres at 127.0.0.1:PORT have a different AUTH_SECRET; use the same on \
         all nodes, or stop the other nodes first"
    );
    let other = Scoring::default();
    let terms = NodeTerms::from([("AUTH_SECRET".to_owned(), "open sesame".to_owned())]);
    let refused = Store::join(url.parse().expect("a URL"), other, &terms).await.map(drop);
    assert!(operator_texts(refused.expect_err("they don't agree")).contains("have a different scoring;"));
    let second = join(&url, "open sesame").await.expect("they agree");
    let refused = operator_texts(alone().await.map(drop).expect_err("it is shared"));
    assert_eq!(
        refused,
        "the database postgres at 127.0.0.1:PORT is shared by other nodes (: start this arena with --shared or \
         --nats-url too, or stop those nodes first"
    );
    drop((first, second));
    let alone = alone().await.expect("it is free");
    let refused = operator_texts(join(&url, "open sesame").await.map(drop).expect_err("somebody has it alone"));
    assert!(
        refused.starts_with("another arena has exclusive use of the database postgres at 127.0.0.1:PORT ("),
        "{refused}"
    );
    drop(alone);
    // The first node sets the terms.
    join(&url, "another").await.expect("nobody is there to disagree");
}

/// Puts a caller into the queue, and repeats the request until it succeeds.
async fn enqueue(engine: Engine, number: u8) -> Ticket {
    let once = Once { key: [number; 32], request: [number; 32] };
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let (challenge, network) = ("psi".to_owned(), number.to_string());
        let request = Enqueue { challenge, network, per_network: Some(1), house_after: None };
        match engine.enqueue(request, Some(once)).await {
            Ok(ticket) => return ticket,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_of_a_queue_gets_one_seat_though_all_nodes_match() {
    let environment = TestEnvironment::new(42);
    let nodes: [Engine; 3] = nodes(&environment).await;
    for round in 0..5 {
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..6 {
            callers.spawn(enqueue(nodes[usize::from(number) % 3].clone(), 6 * round + number + 1));
        }
        let tickets = callers.join_all().await;
        let (mut sessions, mut invites) = (Vec::new(), BTreeSet::new());
        for (number, ticket) in tickets.iter().enumerate() {
            let node = &nodes[number % 3];
            let state = insist(async || match node.poll_ticket("psi", ticket).await? {
                Some(QueueState::Matched { session, invite }) => Ok((session, invite)),
                state => panic!("six callers get seats: {state:?}"),
            });
            let (session, invite) = state.await;
            sessions.push(session);
            invites.insert(invite);
        }
        assert_eq!(invites.len(), 6);
        sessions.sort_unstable();
        assert!(sessions.chunks(2).all(|pair| pair[0] == pair[1]), "{sessions:?}");
        sessions.dedup();
        assert_eq!(sessions.len(), 3);
        for node in &nodes {
            assert_eq!(count(node, &SessionFilter::default()).await, 3 * (u64::from(round) + 1));
        }
    }
}
