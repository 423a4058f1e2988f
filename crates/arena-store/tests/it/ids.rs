//! Lookup of sessions and invites by id, for ids that end with a time and ids that begin with one; also in a store
//! that an older arena created.

use std::sync::Arc;

use arena_model::{InviteCode, Session, SessionFacts, SessionId};
use arena_store::{CommitError, Store};

use crate::storage::{TestStorage, stories};
use crate::{create, open, session};

stories!(both_sorts_of_ids_are_found_and_each_is_given_once, what_an_older_arena_stored_is_found);

const OLD: &str = "018f6b2e-0000-7000-8000-00000000abcd";
const NEW: &str = "7d1c0e5a-93b2-4f6e-a1d0-018f6b2e0001";

/// Creates the `n`th session, with this id and similar invites.
fn with_id(n: u64, id: &str) -> Session {
    let plain = session(n);
    let code = |digit: &str| format!("inv_{digit}{}", &id[1..]).parse::<InviteCode>().expect("an invite");
    let facts = SessionFacts {
        id: id.parse().expect("an id"),
        invites: vec![code("a"), code("b")],
        ..SessionFacts::clone(&plain.facts)
    };
    Session { facts: Arc::new(facts), ..plain }
}

async fn check(store: &Store, id: &str) {
    let id: SessionId = id.parse().expect("an id");
    let found = store.find_session(id).await.expect("readable").expect("it exists").session;
    assert_eq!(found.facts.id, id);
    for invite in &found.facts.invites {
        assert_eq!(store.find_invite(*invite).await.expect("readable"), Some(id));
    }
}

async fn both_sorts_of_ids_are_found_and_each_is_given_once(storage: TestStorage) {
    let store = open(&storage).await;
    for (n, id) in [(1, OLD), (2, NEW)] {
        create(&store, &with_id(n, id)).await;
        check(&store, id).await;
        let again = arena_store::SessionChange::Create(Box::new(with_id(n, id)));
        let commit = arena_store::Commit { change: again, messages: Vec::new(), answers: Vec::new() };
        let refused = store.commit(commit).await.map(drop).expect_err("the id is taken");
        assert!(matches!(refused, CommitError::Conflict), "{refused}");
    }
    // These ids have the same end or the same beginning as an existing one.
    for other in ["7d1c0e5a-93b2-4f6e-a1d0-018f6b2e0002", "8d1c0e5a-93b2-4f6e-a1d0-018f6b2e0001"] {
        let id: SessionId = other.parse().expect("an id");
        assert!(store.find_session(id).await.expect("readable").is_none());
        let invite = format!("inv_{other}").parse().expect("an invite");
        assert_eq!(store.find_invite(invite).await.expect("readable"), None);
    }
}

/// Restores the tables that a store had before its indexes were based on the time of ids.
fn make_older(storage: &TestStorage) {
    storage.change(match storage {
        TestStorage::Folder(_) => {
            "DROP INDEX sessions_deal; DROP INDEX sessions_id; CREATE UNIQUE INDEX sessions_id ON sessions (id);
             CREATE TABLE older (code TEXT PRIMARY KEY, session INTEGER NOT NULL) WITHOUT ROWID;
             INSERT INTO older SELECT code, session FROM invites;
             DROP TABLE invites; ALTER TABLE older RENAME TO invites;
             ALTER TABLE sessions DROP COLUMN rated; DROP VIEW standings; DROP TABLE boards; CREATE VIEW standings AS SELECT 1;
             ALTER TABLE league_seasons DROP COLUMN rules_version;
             DROP TABLE strategy_rows; DROP TABLE strategy_runs;
             DROP TABLE archives; DROP TABLE archive_files; DROP TABLE reports; DROP TABLE queue; ALTER TABLE sessions DROP COLUMN unlisted;
             DROP TABLE log_leaves; DROP TABLE removed_sessions; ALTER TABLE messages DROP COLUMN commitment;
             PRAGMA user_version = 6"
        }
        TestStorage::Schema(_) => {
            "DROP INDEX sessions_id; CREATE UNIQUE INDEX sessions_id ON sessions (id);
             ALTER TABLE invites DROP CONSTRAINT invites_pkey; ALTER TABLE invites DROP COLUMN made;
             ALTER TABLE invites ADD PRIMARY KEY (code);
             ALTER TABLE sessions DROP COLUMN rated; DROP VIEW standings; DROP TABLE boards; CREATE VIEW standings AS SELECT 1;
             DROP TABLE changes, numbers; ALTER TABLE sessions DROP COLUMN edits; DROP INDEX session_counts_changed;
             ALTER TABLE session_counts DROP COLUMN changed; CREATE TABLE journal (n BIGINT PRIMARY KEY);
             CREATE SEQUENCE ending_numbers;
             DROP TABLE strategy_rows; DROP TABLE strategy_runs;
             DROP TABLE archives; DROP TABLE archive_files; DROP TABLE reports; DROP TABLE queue; ALTER TABLE sessions DROP COLUMN unlisted;
             DROP TABLE log_leaves; DROP TABLE removed_sessions; ALTER TABLE messages DROP COLUMN commitment;
             ALTER TABLE messages DROP COLUMN no; DROP SEQUENCE message_numbers;
             DROP TABLE leagues, league_seasons, league_agents, league_games, league_seats;
             UPDATE arena_schema SET version = 3"
        }
    });
}

async fn what_an_older_arena_stored_is_found(storage: TestStorage) {
    let store = open(&storage).await;
    create(&store, &with_id(1, OLD)).await;
    create(&store, &with_id(2, NEW)).await;
    drop(store);
    make_older(&storage);
    let store = open(&storage).await;
    check(&store, OLD).await;
    check(&store, NEW).await;
}

#[tokio::test]
async fn ids_are_looked_up_by_the_index_that_grows_at_one_end() {
    let storage = TestStorage::folder();
    let store = open(&storage).await;
    create(&store, &with_id(2, NEW)).await;
    drop(store);
    let TestStorage::Folder(folder) = &storage else { unreachable!("it is a folder") };
    let database = rusqlite::Connection::open(folder.path().join("arena.sqlite3")).expect("a database");
    let plan = |sql: &str| -> String {
        database.query_row(&format!("EXPLAIN QUERY PLAN {sql}"), [NEW], |row| row.get(3)).expect("a plan")
    };
    let session = plan("SELECT no FROM sessions WHERE substr(id, -12) = substr(?1, -12) AND id = ?1");
    assert!(session.contains("INDEX sessions_id (<expr>=? AND id=?)"), "{session}");
    let invite = plan("SELECT session FROM invites WHERE made = substr(?1, -12) AND code = ?1");
    assert!(invite.contains("USING PRIMARY KEY (made=? AND code=?)"), "{invite}");
}
