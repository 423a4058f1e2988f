//! Derived tables that are corrupted by hand, with the store closed or open: play continues, and the tables are
//! repaired.

use std::sync::Arc;
use std::time::Duration;

use arena_model::{ProfileChange, Timestamp};
use arena_store::{Commit, CommitError, EndingNo, ProfileWrite, SessionChange, SessionFilter, Store, StoreError};
use arena_testkit::Postgres;

use crate::season::{GAME, Game, begin, boards, end, open, play, user};
use crate::storage::{TestStorage, stories};
use crate::{audit, create, session};

stories!(
    tables_that_were_changed_while_no_store_was_open_are_made_again,
    tables_that_are_changed_under_an_open_store_are_made_again,
    endings_keep_their_numbers_when_some_are_wrong,
    a_repair_that_fails_changes_nothing_and_is_done_later,
    games_that_end_during_a_repair_are_in_the_histories,
    a_recount_that_fails_half_way_does_not_say_that_nothing_has_changed,
    a_count_of_nothing_does_not_stop_a_removal,
    a_panic_in_the_writer_costs_its_caller_only,
    a_store_that_can_write_says_so,
    an_idle_store_is_asked_without_a_write,
);

/// The time limit for a suspicion, which the write that meets the wrong value raises.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Changes that corrupt derived tables only.
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

/// Describes everything that is derived, as the store shows it.
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
    // Restored endings come after the others, so the order isn't compared.
    let mut ids: Vec<_> = ended.iter().map(|(_, _, session)| session.facts.id).collect();
    ids.sort();
    text += &format!("\n{ids:?}");
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

/// Continues play: creates a session, ends one, and removes another.
async fn second_half(store: &Store) {
    let (no, ended) = end(store, begin(store, 5, &GAME).await, &GAME).await;
    play(store, 6, &Game { users: ["eve", "ada"], ..GAME }).await;
    store.remove_session(no, Arc::new(ended), audit("remove")).await.expect("the removal succeeds");
}

async fn as_it_should_be(storage: &TestStorage) -> String {
    let storage = storage.another();
    let store = open(&storage).await;
    first_half(&store).await;
    second_half(&store).await;
    shown(&store).await
}

async fn tables_that_were_changed_while_no_store_was_open_are_made_again(storage: TestStorage) {
    let expected = as_it_should_be(&storage).await;
    for change in CHANGES {
        let storage = storage.another();
        let store = open(&storage).await;
        first_half(&store).await;
        drop(store);
        storage.change(change);
        let store = open(&storage).await;
        second_half(&store).await;
        store.check_derived().await.expect("the check succeeds");
        assert_eq!(shown(&store).await, expected, "after {change}");
        drop(store);
        let store = open(&storage).await;
        assert_eq!(shown(&store).await, expected, "after {change} and another start");
        assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
    }
}

async fn tables_that_are_changed_under_an_open_store_are_made_again(storage: TestStorage) {
    let expected = as_it_should_be(&storage).await;
    for change in CHANGES {
        let storage = storage.another();
        let store = open(&storage).await;
        first_half(&store).await;
        shown(&store).await;
        storage.change(change);
        second_half(&store).await;
        store.check_derived().await.expect("the check succeeds");
        assert_eq!(shown(&store).await, expected, "after {change}");
    }
}

async fn endings_keep_their_numbers_when_some_are_wrong(storage: TestStorage) {
    let store = open(&storage).await;
    for n in 1..=4 {
        play(&store, n, &GAME).await;
    }
    let (no, ended) = end(&store, begin(&store, 5, &GAME).await, &GAME).await;
    play(&store, 6, &GAME).await;
    store.remove_session(no, Arc::new(ended), audit("remove")).await.expect("the removal succeeds");
    let behind = async |after: EndingNo| {
        let ended = store.list_ended(after, 99).await.expect("readable");
        let last = ended.last().map_or(after, |(n, ..)| *n);
        (last, ended.iter().map(|(.., session)| session.facts.created_at.0 - 1000).collect::<Vec<_>>())
    };
    let (after, read) = behind(EndingNo::default()).await;
    assert_eq!(read, [1, 2, 3, 4, 6]);
    storage.change(
        "UPDATE endings SET session = 888 WHERE n = 2; INSERT INTO endings (n, session) VALUES (9, 1), (10, 777)",
    );
    store.check_derived().await.expect("the check succeeds");
    // The lost ending appears again, and no later one is skipped.
    let (after, read) = behind(after).await;
    assert_eq!(read, [2]);
    play(&store, 7, &GAME).await;
    assert_eq!(behind(after).await.1, [7]);
    assert_eq!(behind(EndingNo::default()).await.1, [1, 3, 4, 6, 2, 7]);
    // The number of an ending without a row isn't reused either.
    let (after, _) = behind(after).await;
    storage.change("DELETE FROM endings WHERE n > 4; UPDATE session_counts SET n = 0");
    store.check_derived().await.expect("the check succeeds");
    let (again, _) = behind(EndingNo::default()).await;
    match storage {
        TestStorage::Schema(_) => assert!(again > after, "{again:?} {after:?}"),
        TestStorage::Folder(_) => assert_eq!(behind(EndingNo::default()).await.1.len(), 6),
    }
}

async fn a_repair_that_fails_changes_nothing_and_is_done_later(storage: TestStorage) {
    let store = open(&storage).await;
    let names: Vec<&'static str> = (0..150).map(|n| &*format!("user-{n}").leak()).collect();
    for (n, users) in (1..).zip(names.chunks(2)) {
        play(&store, n, &Game { users: [users[0], users[1]], ..GAME }).await;
    }
    let refuse = match storage {
        TestStorage::Folder(_) => "CREATE TRIGGER refuse BEFORE INSERT ON totals BEGIN SELECT RAISE(ABORT, 'no'); END;",
        TestStorage::Schema(_) => {
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
             CREATE TRIGGER refuse BEFORE INSERT ON totals FOR EACH ROW EXECUTE FUNCTION refuse();"
        }
    };
    storage.change(&format!(
        "{refuse} UPDATE session_counts SET n = 0; DELETE FROM boards; DELETE FROM careers; DELETE FROM totals"
    ));
    store.check_derived().await.expect_err("totals can't be written");
    assert_eq!(store.list_boards("psi").await.expect("readable").len(), 0);
    let played = store.list_played(&user(names[0]), 0, 9).await.expect("readable");
    assert!(played.is_none_or(|page| page.total == 0), "the histories are as before");
    assert_eq!(store.read_totals().await.expect("totals").participants, 0);
    storage.change(match storage {
        TestStorage::Folder(_) => "DROP TRIGGER refuse",
        TestStorage::Schema(_) => "DROP TRIGGER refuse ON totals",
    });
    store.check_derived().await.expect("the check succeeds");
    assert_eq!(store.count_sessions(&SessionFilter::default()), 75);
    assert_eq!(store.list_boards("psi").await.expect("readable").len(), 1);
    for name in names {
        let played = store.list_played(&user(name), 0, 9).await.expect("readable").expect("the user is known");
        assert_eq!(played.total, 1, "{name}");
    }
    assert_eq!(store.read_totals().await.expect("totals").participants, 150);
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
}

async fn games_that_end_during_a_repair_are_in_the_histories(storage: TestStorage) {
    let store = Arc::new(open(&storage).await);
    let players: Vec<_> = [1, 1001]
        .into_iter()
        .map(|first| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in first..first + 100 {
                    play(&store, n, &GAME).await;
                }
            })
        })
        .collect();
    while !players.iter().all(tokio::task::JoinHandle::is_finished) {
        storage.change("DELETE FROM careers");
        store.check_derived().await.expect("the check succeeds");
    }
    for player in players {
        player.await.expect("no panic");
    }
    for name in ["ada", "bob"] {
        let played = store.list_played(&user(name), 0, 9).await.expect("readable").expect("the user is known");
        assert_eq!(played.total, 200, "{name}");
    }
    assert_eq!(store.read_totals().await.expect("totals").participants, 2);
    assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
}

async fn a_recount_that_fails_half_way_does_not_say_that_nothing_has_changed(storage: TestStorage) {
    let store = open(&storage).await;
    play(&store, 1, &GAME).await;
    let refuse = match storage {
        TestStorage::Folder(_) => {
            "CREATE TRIGGER refuse BEFORE UPDATE ON careers WHEN NEW.user = 2 BEGIN SELECT RAISE(ABORT, 'no'); END;"
        }
        TestStorage::Schema(_) => {
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
             CREATE TRIGGER refuse BEFORE UPDATE ON careers FOR EACH ROW WHEN (NEW.user_no = 2) EXECUTE FUNCTION refuse();"
        }
    };
    storage.change(&format!("UPDATE careers SET standings = '{{}}' WHERE n = 0; {refuse}"));
    let failed = store.recount(|_| audit("mend")).await;
    assert!(matches!(failed, Err(CommitError::Unavailable(StoreError::Unsure))), "{failed:?}");
    storage.change(match storage {
        TestStorage::Folder(_) => "DROP TRIGGER refuse",
        TestStorage::Schema(_) => "DROP TRIGGER refuse ON careers",
    });
    assert_eq!(
        store.recount(|_| audit("mend")).await.expect("a recount").wrong,
        [user("bob")],
        "the standings of ada were repaired before the failure"
    );
}

async fn a_count_of_nothing_does_not_stop_a_removal(storage: TestStorage) {
    let store = open(&storage).await;
    let (no, ended) = end(&store, begin(&store, 1, &GAME).await, &GAME).await;
    storage.change("UPDATE session_counts SET n = 0; UPDATE totals SET n = 0");
    store.remove_session(no, Arc::new(ended), audit("remove")).await.expect("the removal succeeds");
    tokio::time::timeout(TIMEOUT, store.suspected()).await.expect("the impossible value raises a suspicion");
    store.check_derived().await.expect("the check succeeds");
    assert_eq!(store.count_sessions(&SessionFilter::default()), 0);
    play(&store, 2, &GAME).await;
    assert_eq!(store.count_sessions(&SessionFilter::default()), 1);
}

async fn a_panic_in_the_writer_costs_its_caller_only(storage: TestStorage) {
    let store = Arc::new(open(&storage).await);
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
    store.check_writing().await.expect("the store can write");
    assert_eq!(store.count_sessions(&SessionFilter::default()), 4);
    assert_eq!(store.list_users(0, 9).await.expect("readable").total, 0, "the write before the panic was rolled back");
    play(&store, 9, &GAME).await;
}

async fn a_store_that_can_write_says_so(storage: TestStorage) {
    let store = open(&storage).await;
    for _ in 0..3 {
        store.check_writing().await.expect("the store can write");
    }
    storage.change("DROP TABLE notes");
    // The last success counts as evidence for one second.
    let until = std::time::Instant::now() + TIMEOUT;
    while store.check_writing().await.is_ok() {
        assert!(std::time::Instant::now() < until, "the failure wasn't noticed in time");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn an_idle_store_is_asked_without_a_write(storage: TestStorage) {
    let store = open(&storage).await;
    store.check_writing().await.expect("the store can write");
    let probes = || match &storage {
        TestStorage::Folder(folder) => {
            let connection = rusqlite::Connection::open(folder.path().join("arena.sqlite3")).expect("a database");
            let sql = "SELECT group_concat(value) FROM notes WHERE name = 'probe'";
            connection.query_row(sql, [], |row| row.get(0)).expect("notes")
        }
        TestStorage::Schema(url) => Postgres::shared().run_sql(url, "SELECT value FROM notes WHERE name = 'probe'"),
    };
    let before: String = probes();
    // The checks continue for longer than one success counts as evidence.
    let until = std::time::Instant::now() + Duration::from_millis(1500);
    while std::time::Instant::now() < until {
        store.check_writing().await.expect("the store can write");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(probes(), before);
    }
    // After a failure, the check does a durable write.
    if let TestStorage::Folder(_) = storage {
        storage.change("ALTER TABLE sessions RENAME TO away");
        let change = SessionChange::Create(Box::new(session(1)));
        store
            .commit(Commit { change, messages: Vec::new(), answers: Vec::new() })
            .await
            .expect_err("nothing is written");
        store.check_writing().await.expect("the store can write");
        assert_ne!(probes(), before);
    }
}

#[tokio::test]
async fn a_writer_that_is_busy_counts_as_working() {
    let store = Arc::new(open(&TestStorage::folder()).await);
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, gone_on) = std::sync::mpsc::channel::<()>();
    let long = ProfileWrite {
        user: user("ada"),
        change: ProfileChange::default(),
        respond: Box::new(move |_| {
            begun.send(()).expect("the test waits");
            gone_on.recv().expect("the test goes on");
            String::new()
        }),
        once: Vec::new(),
        at: Timestamp(1),
    };
    let writer = Arc::clone(&store);
    let long = tokio::spawn(async move { writer.change_profile(long).await });
    has_begun.recv().await.expect("the write begins");
    let checked = tokio::time::timeout(Duration::from_secs(5), store.check_writing()).await;
    go_on.send(()).expect("the write waits");
    checked.expect("the check doesn't wait for the write").expect("the writer works");
    long.await.expect("no panic").expect("the write succeeds");
}
