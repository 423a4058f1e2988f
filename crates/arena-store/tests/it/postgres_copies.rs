//! Copies of stores between the two databases.

use std::collections::BTreeMap;
use std::path::Path;

use arena_model::{
    Channel, ChatMessage, ContentHash, Ending, GameCategory, Occupant, Phase, Score, StrategyEntry, StrategyRow,
    Timestamp,
};
use arena_store::{
    Ban, BanSubject, CopyError, EndingNo, NewArchive, NewLeaf, RunStep, SessionChange, StoreError, copy_store,
};
use arena_store::{Commit, LogCursor, NewAnswer, SessionFilter, SessionNo, Store};

use crate::storage::{TestStorage, stories};
use crate::{audit, create, open, said, session, update};

stories!(a_copy_of_a_copy_is_the_original, a_copy_needs_an_empty_target_and_an_unfinished_one_is_not_opened,);

/// Creates a storage of the other kind.
fn other(storage: &TestStorage) -> TestStorage {
    match storage {
        TestStorage::Folder(_) => TestStorage::schema(),
        TestStorage::Schema(_) => TestStorage::folder(),
    }
}

/// The tables of leagues, which earlier programs have filled.
const LEAGUE_TABLES: [&str; 5] = ["leagues", "league_seasons", "league_agents", "league_games", "league_seats"];

/// A league with a game, in the tables of earlier programs.
const LEAGUE: &str = "
    INSERT INTO leagues (no, name, game, options, seats, paired, step_ms, bank_ms, sandbox, seed, created_at)
        VALUES (1, 'ladder', 'snake', '{}', 2, 1, 50, 1000, '{}', SEED, 1000);
    INSERT INTO league_seasons (league, number, began_at, rules_version) VALUES (1, 1, 1000, 2);
    INSERT INTO league_agents (no, league, name, generation, path, dialect, reach, files, added_at)
        VALUES (1, 1, 'a', 1, '/bots/a', 'both', '{}', '[]', 10);
    INSERT INTO league_games
        (no, league, number, season, meeting, leg, seed, epochs, termination, winner, ended_at, took_ms)
        VALUES (1, 1, 1, 1, 1, 1, SEED, 12, 'TAINTED', 'DRAW', 5000, 123.5);
    INSERT INTO league_seats (game, seat, agent, rank, score, faults, waited_ms, longest_step_ms)
        VALUES (1, 0, 1, 1, 0.3, 3, 1.5, 0.75);
";

/// Fills a store with all kinds of rows, among them texts that Postgres can't store as they are.
async fn fill(store: &Store) {
    for n in 1..=40 {
        let mut played = session(n);
        let id = played.facts.id;
        let no = create(store, &played).await;
        if n % 4 == 0 {
            continue;
        }
        played.version = 2;
        played.seats = vec![Occupant {
            invite: played.facts.invites[0],
            user: Some(format!("user \u{10ffff}{}", n % 3).parse().expect("an id")),
            deleted: None,
        }];
        let text = |k: u64| format!("{n}/{k} \u{10ffff}0 ' \" \\ \n ☃");
        let mut messages: Vec<ChatMessage> = (1..=n).map(|k| said(Channel::Chat(id), k, &text(k))).collect();
        messages.push(said(Channel::Inputs(id), 2, ""));
        messages.push(ChatMessage { method: Some("guess".to_owned()), ..said(Channel::Operator(id), 1, "x") });
        messages.push(said(Channel::Invites, n - n / 4, "an offer"));
        if n % 3 != 0 {
            played.phase =
                Phase::Ended { at: Timestamp(n as i64), ending: Ending::Completed, category: GameCategory::Train };
            played.wake_at = None;
            played.scores[0] = Score { security: 1.0, utility: -0.5 };
        }
        let answer = NewAnswer { key: [n as u8; 32], request: [7; 32], body: "{}".to_owned(), at: Timestamp(1) };
        let change = SessionChange::Update { no, before: 1, session: Box::new(played.clone()) };
        store.commit(Commit { change, messages, answers: vec![answer] }).await.expect("stored");
    }
    let ended = session(1).facts.id;
    let found = store.find_session(ended).await.expect("readable").expect("it exists");
    let commit = |_: &str| Some(ContentHash::of("salt"));
    store.hide_message(Some(found.no), Channel::Chat(ended), 1, commit, |_| audit("hide")).await.expect("hidden");
    let removed = store.find_session(session(2).facts.id).await.expect("readable").expect("it exists");
    store.remove_session(removed.no, removed.session.into(), audit("remove")).await.expect("removed");
    let subject = BanSubject::User("eve \u{10ffff}".parse().expect("an id"));
    let ban = Ban { subject, reason: "a reason \u{10ffff}1".to_owned(), at: Timestamp(5) };
    store.ban(ban, audit("ban")).await.expect("banned");
    let leaf = |n: u8| -> NewLeaf { (Some(ended), "ended".to_owned(), format!("{{\"n\":{n}}}"), [n; 32]) };
    store.append_leaves(0, vec![leaf(1), leaf(2)], LogCursor::default()).await.expect("appended");
    let archived = store.find_session(session(5).facts.id).await.expect("readable").expect("it exists");
    let (chat, operator) = (archived.chat_len, archived.operator_len);
    let of = |len| arena_store::ArchivedChannel { len, last_at: Timestamp(2000) };
    let archive = NewArchive {
        session: archived.no,
        file: "a.jsonl.gz".to_owned(),
        sha256: ContentHash::of("the file"),
        at: Timestamp(9),
        chat: of(chat),
        operator: of(operator),
        messages: chat + operator + 1,
        hidden: 0,
    };
    store.note_archive_file(archive.file.clone(), archive.at).await.expect("noted");
    store.note_archive_file("b.jsonl.gz".to_owned(), Timestamp(8)).await.expect("noted");
    store.archive_session(archive).await.expect("archived");
    store.begin_run("elo", "v1").await.expect("stored");
    let run = store.find_strategy("elo").await.expect("readable").runs.remove(0);
    let row = |entry| StrategyRow { entry, state: Some("[\"\\u0000\"]".to_owned()) };
    let entry = StrategyEntry { games: 3, metrics: BTreeMap::from([("elo:rating".to_owned(), 1200.5)]) };
    let rows = [("", row(None)), ("user \u{10ffff}1", row(Some(entry)))];
    let rows = rows.into_iter().map(|(player, row)| (("b".to_owned(), player.to_owned()), row)).collect();
    let error = Some("an error \u{10ffff}".to_owned());
    let step = RunStep { rows, place: EndingNo::default(), error, is_whole: true };
    store.advance_run("elo", run, step).await.expect("stored");
}

/// Returns all that a store's readers can ask for, as text.
async fn content(store: &Store) -> Vec<String> {
    let mut content = Vec::new();
    let all = store.list_sessions(&SessionFilter::default(), 0, 99).await.expect("readable");
    for session in all.items {
        let id = session.facts.id;
        let found = store.find_session(id).await.expect("readable").expect("it exists");
        content.push(format!("{found:?} {:?}", store.find_invite(session.facts.invites[0]).await));
        content.push(format!("{:?}", store.list_session_messages(found.no, id, 0, 999).await));
        content.push(format!("{:?}", store.list_commitments(found.no, id).await));
        content.push(format!("{:?}", store.find_archive(found.no).await));
    }
    let strategy = store.find_strategy("elo").await.expect("readable");
    let keys = ["", "user \u{10ffff}1"].map(|player| ("b".to_owned(), player.to_owned())).into();
    content.push(format!("{:?}", store.find_rows(strategy.runs[0].id, &keys).await));
    content.push(format!("{strategy:?}"));
    content.push(format!("{:?}", store.list_unused_archive_files(Timestamp(9)).await));
    content.push(format!("{:?}", store.list_ended(EndingNo::default(), 99).await));
    content.push(format!("{:?}", store.list_messages(None, Channel::Invites, 1, 99).await));
    content.push(format!("{:?}", store.list_users(0, 99).await));
    content.push(format!("{:?} {:?}", store.list_bans().await, store.list_audit(0, 99).await));
    content.push(format!("{:?}", store.list_leaves(0, 99).await));
    content.push(format!("{:?} {:?}", store.list_removed(0, 99).await, store.log_cursor().await));
    content.push(format!("{:?} {:?}", store.list_created(SessionNo::default(), 99).await, store.read_totals().await));
    content.push(format!("{:?}", store.find_answer(&[1; 32]).await));
    content
}

async fn a_copy_of_a_copy_is_the_original(storage: TestStorage) {
    let store = open(&storage).await;
    fill(&store).await;
    let original = content(&store).await;
    drop(store);
    let seed = match storage {
        TestStorage::Folder(_) => "x'07'",
        TestStorage::Schema(_) => "'7'",
    };
    storage.change(&LEAGUE.replace("SEED", seed));
    let there = other(&storage);
    let back = storage.another();
    let mut steps = 0;
    let copied = copy_store(&storage.place(), &there.place(), |_| steps += 1).await.expect("it is copied");
    assert!(steps > 2, "{steps}");
    assert_eq!((copied.sessions, copied.users), (39, 2));
    let again = copy_store(&there.place(), &back.place(), |_| {}).await.expect("it is copied");
    assert_eq!(again, copied);
    for copy in [&there, &back, &storage] {
        for table in LEAGUE_TABLES {
            assert_eq!(copy.count(table), 1, "{table}");
        }
        let store = open(copy).await;
        assert_eq!(content(&store).await, original);
        // Derived tables agree with the sessions, and new rows get new numbers.
        let recount = store.recount(|_| audit("mend")).await.expect("readable");
        assert!(recount.wrong.is_empty(), "{recount:?}");
        let no = create(&store, &session(50)).await;
        let mut next = session(50);
        next.version = 2;
        update(&store, no, &next, vec![said(Channel::Chat(next.facts.id), 1, "new")]).await.expect("stored");
        let removed = store.find_session(session(4).facts.id).await.expect("readable").expect("it exists");
        store.remove_session(removed.no, removed.session.into(), audit("remove")).await.expect("removed");
        assert_eq!(store.list_removed(0, 9).await.expect("readable").len(), 2);
    }
}

async fn a_copy_needs_an_empty_target_and_an_unfinished_one_is_not_opened(storage: TestStorage) {
    let store = open(&storage).await;
    create(&store, &session(1)).await;
    drop(store);
    let target = other(&storage);
    let store = open(&target).await;
    create(&store, &session(1)).await;
    drop(store);
    let refused = copy_store(&storage.place(), &target.place(), |_| {}).await;
    assert!(matches!(refused, Err(CopyError::NotEmpty(_))), "{refused:?}");
    // The same store is in use by its other role.
    assert!(copy_store(&storage.place(), &storage.place(), |_| {}).await.is_err());
    let target = other(&storage);
    drop(open(&target).await);
    target.change("INSERT INTO notes (name, value) VALUES ('copying', '1')");
    let refused = copy_store(&storage.place(), &target.place(), |_| {}).await;
    assert!(matches!(refused, Err(CopyError::Store(StoreError::Unfinished { .. }))), "{refused:?}");
    let refused = match &target {
        TestStorage::Folder(folder) => Store::open(Path::new(folder.path()), arena_model::Scoring::default()).map(drop),
        TestStorage::Schema(url) => {
            Store::connect(url.parse().expect("a URL"), arena_model::Scoring::default()).await.map(drop)
        }
    };
    let error = refused.expect_err("it is unfinished").to_string();
    assert!(error.contains("has an unfinished copy of another store"), "{error}");
}
