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
use arena_store::{BanSubject, NodeTerms, SessionFilter, Store, StoreError};
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

fn told_nothing() -> Respond {
    Respond::new(|_| String::new())
}

async fn create(engine: &Engine, challenge: &str) -> (SessionId, Vec<InviteCode>) {
    crate::create_of(engine, challenge).await
}

async fn take_seat(engine: &Engine, invite: InviteCode, user: Option<&str>) -> Result<String, EngineError> {
    engine.catch_up().await.expect("the store can be read");
    let user = user.map(|user| user.parse().expect("an id"));
    engine.join(Join { invite, user }, None, told_nothing()).await
}

async fn say(engine: &Engine, session: SessionId, invite: InviteCode, text: &str) -> Result<String, EngineError> {
    engine.catch_up().await.expect("the store can be read");
    let chat = Chat { session, from: Party::Player(invite), to: None, content: text.to_owned() };
    engine.chat(chat, None, told_nothing()).await
}

async fn guess(engine: &Engine, session: SessionId, invite: InviteCode, set: &str) -> Result<String, EngineError> {
    engine.catch_up().await.expect("the store can be read");
    let act = Act { session, from: Party::Player(invite), method: Some("guess".to_owned()), content: set.to_owned() };
    engine.act(act, None, told_nothing()).await
}

fn read_json(message: &Posted, viewer: Viewer) -> Value {
    serde_json::from_slice(message.json(viewer, true, true)).expect("JSON")
}

async fn texts(engine: &Engine, channel: Channel, viewer: Viewer) -> Vec<String> {
    engine.catch_up().await.expect("the store can be read");
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
    engine.catch_up().await.expect("the store can be read");
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
    engine.catch_up().await.expect("the store can be read");
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_session_waits_for_the_log_in_memory_unless_another_node_has_written_to_it() {
    let environment = TestEnvironment::new(33);
    let [here, there] = nodes(&environment).await;
    here.keep_ended();
    let alone = play_at(&here, async |_, _| {}).await;
    assert!(here.has_ended(alone));
    let in_memory = here.take_ended(alone).expect("it is in memory");
    let stored = here.record_source(alone).await.expect("the store can be read");
    assert_eq!(in_memory.messages, stored.messages);

    // A message of the other node before the end.
    let shared =
        play_at(&here, async |id, invite| drop(say(&there, id, invite, "over there").await.expect("a message")));
    assert!(!here.has_ended(shared.await));

    // A message after the end.
    let late = play_at(&here, async |_, _| {}).await;
    assert!(here.has_ended(late));
    let invites =
        here.find_session(late).await.expect("the store can be read").expect("the session").facts.invites.clone();
    say(&there, late, invites[0], "good game").await.expect("a message");
    here.catch_up().await.expect("the store can be read");
    assert!(!here.has_ended(late));
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
            assert_eq!(node.count_sessions(&ended), round + 1);
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
        // Writer and reader vary. The reader gets the commit only because its request reads the journal first.
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
            assert_eq!(reader.count_sessions(&SessionFilter::default()), round as u64 + 2);
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
                node.catch_up().await.expect("the store can be read");
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
            let request = Create { challenge, options, is_rated: true, is_unlisted: false };
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ban_holds_at_all_nodes_from_its_answer_on() {
    let environment = TestEnvironment::new(35);
    let [here, there] = nodes(&environment).await;
    let (_, invites) = create(&here, "psi").await;
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    let ada = BanSubject::User("ada".parse().expect("an id"));
    let near = BanSubject::Addresses("192.0.2.0/24".parse().expect("a range"));
    let address = "192.0.2.7".parse().expect("an address");
    for _ in 0..20 {
        here.ban(by, ada.clone(), "cheats".to_owned()).await.expect("banned");
        here.ban(by, near.clone(), "noise".to_owned()).await.expect("banned");
        let refused = take_seat(&there, invites[0], Some("ada")).await.expect_err("she is banned");
        assert_eq!(refused.to_string(), "banned from this arena: cheats");
        assert!(there.admit_address(address).is_err());
        there.lift_ban(by, near.clone()).await.expect("lifted");
        there.lift_ban(by, ada.clone()).await.expect("lifted");
        here.catch_up().await.expect("the store can be read");
        assert!(here.admit_address(address).is_ok());
    }
    take_seat(&here, invites[0], Some("ada")).await.expect("she may again");
    let engine: arena_model::UserId = "engine-1".parse().expect("an id");
    here.set_benchmark(by, engine.clone(), true).await.expect("it is one");
    assert!(there.find_profiles(std::slice::from_ref(&engine)).await.expect("readable")[&engine].is_benchmark);
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
    node.catch_up().await.expect("the store can be read");
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
        node.catch_up().await.expect("the store can be read");
        (node.count_sessions(&SessionFilter::default()), node.read_totals().await.expect("readable").participants)
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
        insist(async || node.catch_up().await).await;
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
        insist(async || node.catch_up().await).await;
    }
    // One node continues to the same journal number, so that numbers alone don't show the loss.
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
        assert_eq!(node.count_sessions(&SessionFilter::default()), fresh.count_sessions(&SessionFilter::default()));
    }
    // Both nodes work as before: each sees the other's writes.
    take_seat(&there, invites[1], Some("eve")).await.expect("nobody is banned any more");
    assert_eq!(status(&here, open).await, Some(Status::Active));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_heard_nothing_for_long_reads_everything_anew() {
    let (environment, url) = (TestEnvironment::new(39), Postgres::shared().schema());
    let [here, there] = [node(&url, &environment).await, node(&url, &environment).await];
    let (id, invites) = create(&here, "psi").await;
    take_seat(&there, invites[0], None).await.expect("a seat");
    say(&there, id, invites[0], "over").await.expect("it is said");
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    assert_eq!(texts(&there, Channel::Chat(id), Viewer::Nobody).await, ["over"]);
    board(&there).await;
    // Only the last entry stays in the journal.
    here.catch_up().await.expect("the store can be read");
    here.hide_message(by, Channel::Chat(id), 1).await.expect("it is hidden");
    here.announce(invites[1], None, told_nothing()).await.expect("it is offered");
    here.ban(by, BanSubject::User("eve".parse().expect("an id")), "cheats".to_owned()).await.expect("banned");
    take_seat(&here, invites[1], None).await.expect("a seat");
    play(&here, ["ada", "bob"]).await;
    Postgres::shared().run_sql(&url, "DELETE FROM journal WHERE n < (SELECT max(n) FROM journal)");
    assert_eq!(status(&there, id).await, Some(Status::Active));
    assert_eq!(texts(&there, Channel::Chat(id), Viewer::Nobody).await, [""]);
    assert_eq!(texts(&there, Channel::Invites, Viewer::Nobody).await.len(), 1);
    assert_eq!(there.count_sessions(&SessionFilter { challenge: None, status: Some(Status::Ended) }), 1);
    assert_eq!(board(&there).await.len(), 2);
    let (_, invites) = create(&there, "psi").await;
    assert!(take_seat(&there, invites[0], Some("eve")).await.is_err());
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
    there.catch_up().await.expect("the store can be read");
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

#[tokio::test]
async fn a_look_reads_what_is_new_and_not_the_whole_journal() {
    let environment = TestEnvironment::new(12);
    let (postgres, url) = (Postgres::shared(), Postgres::shared().schema());
    let node = node(&url, &environment).await;
    let grow = |by: u64| {
        let sql = format!(
            "INSERT INTO journal SELECT n, 0, 'nobody', '{{}}', '{{}}', '{{}}', '[]', false FROM generate_series(
                 (SELECT coalesce(max(n), 0) + 1 FROM journal), (SELECT coalesce(max(n), 0) + {by} FROM journal)) n"
        );
        postgres.run_sql(&url, &sql);
    };
    // The database chooses the plan for the journal query by the table's size.
    grow(100);
    for _ in 0..20 {
        node.catch_up().await.expect("the store can be read");
    }
    grow(20_000);
    let scans = |how: &str| -> u64 {
        let sql = format!(
            "SELECT coalesce({how}, 0) FROM pg_stat_user_tables
             WHERE relname = 'journal' AND schemaname = current_schema()"
        );
        postgres.run_sql(&url, &sql).trim().parse().expect("a number")
    };
    // Each connection reports its statistics once a second. The writers may have scanned the journal once or twice.
    let began = Instant::now();
    while scans("idx_scan") + scans("seq_scan") < 60 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} scans", scans("idx_scan"));
        node.catch_up().await.expect("the store can be read");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(scans("seq_scan") < 10, "{} of {}", scans("seq_scan"), scans("idx_scan"));
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
            node.catch_up().await.expect("the store can be read");
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
            node.catch_up().await.expect("the store can be read");
            assert_eq!(node.count_sessions(&SessionFilter::default()), 3 * (u64::from(round) + 1));
        }
    }
}
