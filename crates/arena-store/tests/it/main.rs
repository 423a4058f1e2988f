//! The store's guarantees: commits are stored as a whole and once, and survive a restart.

use std::sync::Arc;

use arena_model::{
    BoardTerms, Channel, ChatMessage, Ending, GameCategory, InviteCode, Occupant, Party, Phase, Score, Scoring, Script,
    SeatUsage, Seed, Session, SessionFacts, SessionId, Status, Timestamp, UsageTotal,
};
use arena_store::{
    AuditEntry, Commit, CommitError, FolderLock, NewAnswer, SessionChange, SessionFilter, SessionNo, Store, StoreError,
};
use serde_json::json;

mod administration;
mod archives;
mod derived;
mod ids;
mod postgres_copies;
mod postgres_only;
mod postgres_tls;
mod records;
mod season;
mod storage;
mod strategies;
mod unlisted;

use storage::{TestStorage, stories};

async fn open(storage: &TestStorage) -> Store {
    storage.open(Scoring::default()).await
}

fn uuid(n: u64) -> String {
    format!("00000000-0000-7000-8000-{n:012x}")
}

fn terms(rules: &str) -> BoardTerms {
    BoardTerms::read(rules, Some(&"a".repeat(64))).expect("terms")
}

fn session(n: u64) -> Session {
    let id: SessionId = uuid(n * 10).parse().expect("a UUID");
    let invite = |k: u64| format!("inv_{}", uuid(n * 10 + k)).parse::<InviteCode>().expect("an invite");
    Session {
        facts: Arc::new(SessionFacts {
            id,
            challenge: "psi".to_owned(),
            script: None,
            created_at: Timestamp(1000 + n as i64),
            seed: Some(Seed([n as u8; 32])),
            options: json!({ "setSize": 3 }),
            rated: Some(terms("1")),
            is_unlisted: false,
            invites: vec![invite(1), invite(2)],
        }),
        version: 1,
        phase: Phase::Open,
        seats: Vec::new(),
        announced: Vec::new(),
        scores: vec![Score::default(); 2],
        attributions: Vec::new(),
        usage: Arc::default(),
        unattended: 0,
        deadline: None,
        wake_at: Some(Timestamp(5000 + n as i64)),
        state: r#"{"secret":[1,2,3]}"#.to_owned(),
    }
}

fn said(channel: Channel, index: u64, text: &str) -> ChatMessage {
    let (from, to) = (Party::Operator, Some(Party::from_wire("somebody")));
    ChatMessage { channel, index, from, to, content: text.to_owned(), method: None, at: Timestamp(2000), hidden: None }
}

fn audit(action: &str) -> AuditEntry {
    let address = "192.0.2.1".to_owned();
    AuditEntry { at: Timestamp(3000), address, action: action.to_owned(), detail: json!({ "test": true }) }
}

async fn create(store: &Store, session: &Session) -> SessionNo {
    let change = SessionChange::Create(Box::new(session.clone()));
    store.commit(Commit { change, messages: Vec::new(), answers: Vec::new() }).await.expect("the commit is stored").0
}

async fn update(
    store: &Store,
    no: SessionNo,
    session: &Session,
    messages: Vec<ChatMessage>,
) -> Result<(), CommitError> {
    let change = SessionChange::Update { no, before: session.version - 1, session: Box::new(session.clone()) };
    store.commit(Commit { change, messages, answers: Vec::new() }).await.map(drop)
}

stories!(
    what_was_committed_is_there_after_a_restart,
    a_commit_decided_on_an_old_version_is_refused_whole,
    one_that_fails_does_not_hurt_those_it_shares_a_transaction_with,
    an_answer_is_given_once_and_forgotten_after_its_time,
    pages_are_the_same_whatever_was_removed_in_between,
    a_script_is_kept_once_and_is_what_it_was,
    scripts_of_no_session_are_forgotten,
);

async fn what_was_committed_is_there_after_a_restart(storage: TestStorage) {
    let mut session = session(1);
    let id = session.facts.id;
    {
        let store = open(&storage).await;
        let no = create(&store, &session).await;
        session.version = 2;
        session.phase = Phase::Ended { at: Timestamp(9), ending: Ending::Abandoned, category: GameCategory::Benchmark };
        session.wake_at = None;
        session.deadline = None;
        session.announced = vec![session.facts.invites[1]];
        session.seats = vec![Occupant {
            invite: session.facts.invites[1],
            user: Some("ada".parse().expect("a name")),
            deleted: None,
        }];
        session.scores[0] = Score { security: -1.0, utility: 0.1 };
        let total = UsageTotal { reports: 1, input_tokens: 7, cost_usd: Some(0.1), ..UsageTotal::default() };
        session.usage = Arc::new(vec![SeatUsage { total, reports: Vec::new() }]);
        session.state = r#"{"odd":"\u0001 'quotes' \"and\" ☃"}"#.to_owned();
        let messages =
            vec![said(Channel::Operator(id), 1, "first"), said(Channel::Chat(id), 1, "'); DROP TABLE messages; --")];
        update(&store, no, &session, messages).await.expect("the commit is stored");
    }
    let store = open(&storage).await;
    let stored = store.find_session(id).await.expect("readable").expect("it exists");
    assert_eq!(stored.session, session);
    assert_eq!((stored.chat_len, stored.operator_len, stored.last_activity), (1, 1, Timestamp(2000)));
    assert_eq!(store.find_invite(session.facts.invites[0]).await.expect("readable"), Some(id));
    let chat = store.list_messages(Some(stored.no), Channel::Chat(id), 1, 9).await.expect("readable");
    assert_eq!(chat, [said(Channel::Chat(id), 1, "'); DROP TABLE messages; --")]);
    let ended = SessionFilter { challenge: Some("psi".to_owned()), status: Some(Status::Ended) };
    assert_eq!(store.count_sessions(&ended), 1);
    assert_eq!(store.count_sessions(&SessionFilter { challenge: Some("chess".to_owned()), status: None }), 0);
}

async fn a_commit_decided_on_an_old_version_is_refused_whole(storage: TestStorage) {
    let store = open(&storage).await;
    let mut session = session(1);
    let id = session.facts.id;
    let no = create(&store, &session).await;
    session.version = 2;
    update(&store, no, &session, vec![said(Channel::Chat(id), 1, "one")]).await.expect("the commit is stored");
    let answer = NewAnswer { key: [1; 32], request: [2; 32], body: "{}".to_owned(), at: Timestamp(0) };
    let again = Commit {
        change: SessionChange::Update { no, before: session.version - 1, session: Box::new(session.clone()) },
        messages: vec![said(Channel::Chat(id), 2, "two")],
        answers: vec![answer],
    };
    assert!(matches!(store.commit(again).await, Err(CommitError::Conflict)));
    assert_eq!(
        store.find_answer(&[1; 32]).await.expect("readable"),
        None,
        "the answer was rolled back with the commit"
    );
    // A used index of a message makes the whole commit fail.
    session.version = 3;
    session.phase = Phase::Active;
    let clash = update(&store, no, &session, vec![said(Channel::Chat(id), 1, "usurper")]).await;
    assert!(matches!(clash, Err(CommitError::Conflict)));
    let stored = store.find_session(id).await.expect("readable").expect("it exists");
    assert_eq!((stored.session.version, stored.session.status(), stored.chat_len), (2, Status::Open, 1));
    let active = SessionFilter { challenge: None, status: Some(Status::Active) };
    assert_eq!(store.count_sessions(&active), 0);
}

async fn one_that_fails_does_not_hurt_those_it_shares_a_transaction_with(storage: TestStorage) {
    let store = Arc::new(open(&storage).await);
    let base = session(1);
    let id = base.facts.id;
    let no = create(&store, &base).await;
    // Ten tasks compete for each index, and one of each ten succeeds.
    let tasks: Vec<_> = (0..200)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let messages = vec![said(Channel::Chat(id), i % 20 + 1, &i.to_string())];
                store.commit(Commit { change: SessionChange::Stays(no), messages, answers: Vec::new() }).await.is_ok()
            })
        })
        .collect();
    let mut stored = 0;
    for task in tasks {
        stored += usize::from(task.await.expect("no panic"));
    }
    assert_eq!(stored, 20);
    let messages = store.list_messages(Some(no), Channel::Chat(id), 1, 99).await.expect("readable");
    assert_eq!(messages.iter().map(|message| message.index).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
}

async fn an_answer_is_given_once_and_forgotten_after_its_time(storage: TestStorage) {
    let store = open(&storage).await;
    let commit = |n: u64, key: u8, at: i64| Commit {
        change: SessionChange::Create(Box::new(session(n))),
        messages: Vec::new(),
        answers: vec![NewAnswer { key: [key; 32], request: [9; 32], body: format!("answer {n}"), at: Timestamp(at) }],
    };
    store.commit(commit(1, 1, 100)).await.expect("the commit is stored");
    store.commit(commit(2, 2, 200)).await.expect("the commit is stored");
    match store.commit(commit(3, 1, 300)).await {
        Err(CommitError::Answered(answer)) => assert_eq!((answer.body.as_str(), answer.request), ("answer 1", [9; 32])),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.count_sessions(&SessionFilter::default()), 2);
    store.forget_answers(Timestamp(150)).await.expect("the store can write");
    assert_eq!(store.find_answer(&[1; 32]).await.expect("readable"), None);
    assert!(store.find_answer(&[2; 32]).await.expect("readable").is_some());
}

async fn pages_are_the_same_whatever_was_removed_in_between(storage: TestStorage) {
    let store = open(&storage).await;
    let mut kept = Vec::new();
    // The sessions fill more than two blocks of counts.
    for n in 1..=600 {
        let session = session(n);
        let no = create(&store, &session).await;
        if n % 3 == 0 {
            let change = SessionChange::Remove(no, Box::new(session));
            store
                .commit(Commit { change, messages: Vec::new(), answers: Vec::new() })
                .await
                .expect("the removal succeeds");
        } else {
            kept.push(session.facts.id);
        }
    }
    kept.reverse();
    for (offset, limit) in [(0, 50), (1, 1), (170, 40), (399, 50), (400, 50), (100_000, 5)] {
        let page = store.list_sessions(&SessionFilter::default(), offset, limit).await.expect("readable");
        let found: Vec<_> = page.items.iter().map(|session| session.facts.id).collect();
        let expected: Vec<_> = kept.iter().copied().skip(offset as usize).take(limit).collect();
        assert_eq!((page.total, found), (400, expected), "offset {offset}");
    }
    let due = store.list_due(Timestamp(5004), 99).await.expect("readable");
    assert_eq!(due.iter().map(|due| due.at.0).collect::<Vec<_>>(), [5001, 5002, 5004]);
    assert_eq!(store.find_invite(session(3).facts.invites[0]).await.expect("readable"), None);
}

async fn a_script_is_kept_once_and_is_what_it_was(storage: TestStorage) {
    let store = open(&storage).await;
    let script = Script::new(r#"{"files":{"main.js":"'\u0000' \"☃\" 􏿿0"}}"#.to_owned());
    assert_eq!(store.find_script(script.version()).await.expect("readable"), None);
    for _ in 0..2 {
        store.keep_script(&script).await.expect("the store can write");
    }
    let mut session = session(1);
    let mut facts = (*session.facts).clone();
    facts.script = Some(script.version());
    session.facts = facts.into();
    create(&store, &session).await;
    drop(store);
    let store = open(&storage).await;
    assert_eq!(store.find_script(script.version()).await.expect("readable").as_ref(), Some(&script));
    let stored = store.find_session(session.facts.id).await.expect("readable").expect("it exists");
    assert_eq!(stored.session, session);
    drop(store);
    storage.change("UPDATE scripts SET source = '{}'");
    let damaged = open(&storage).await.find_script(script.version()).await.expect_err("the script has another version");
    assert!(damaged.to_string().contains("another version"), "{damaged}");
}

async fn scripts_of_no_session_are_forgotten(storage: TestStorage) {
    let store = open(&storage).await;
    let scripts = ["a", "b", "c"].map(|source| Script::new(source.to_owned()));
    let mut sessions = Vec::new();
    for (number, script) in (1..).zip(&scripts[..2]) {
        store.keep_script(script).await.expect("the store can write");
        let mut session = session(number);
        let mut facts = (*session.facts).clone();
        facts.script = Some(script.version());
        session.facts = facts.into();
        sessions.push((create(&store, &session).await, session));
    }
    store.keep_script(&scripts[2]).await.expect("the store can write");
    create(&store, &session(3)).await;
    assert_eq!(store.forget_scripts().await.expect("writable"), 1, "no session uses the third script");
    let (no, session) = sessions.swap_remove(0);
    store.remove_session(no, Arc::new(session), audit("remove")).await.expect("the removal succeeds");
    assert_eq!(store.forget_scripts().await.expect("writable"), 1, "no session uses the first script any more");
    let mut left = Vec::new();
    for script in &scripts {
        left.push(store.find_script(script.version()).await.expect("readable").is_some());
    }
    assert_eq!(left, [false, true, false]);
}

#[test]
fn a_folder_that_is_made_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().expect("a temp folder");
    let folder = parent.path().join("data");
    drop(Store::open(&folder, Scoring::default()).expect("the store opens"));
    let mode = std::fs::metadata(&folder).expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_folder_belongs_to_one_store_at_a_time() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let first = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    match Store::open(folder.path(), Scoring::default()).map(drop) {
        Err(StoreError::InUse { holder, .. }) => assert_eq!(holder, std::process::id().to_string()),
        other => panic!("{other:?}"),
    }
    drop(first);
    Store::open(folder.path(), Scoring::default()).expect("the folder is free again");
}

#[test]
fn the_lock_of_a_folder_holds_without_its_file() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let _first = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    std::fs::remove_file(folder.path().join("arena.lock")).expect("it exists");
    let second = Store::open(folder.path(), Scoring::default()).map(drop);
    assert!(matches!(second, Err(StoreError::InUse { .. })), "{second:?}");
}

#[test]
fn others_can_neither_write_in_the_folder_nor_read_its_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = tempfile::tempdir().expect("a temp folder");
    let folder = parent.path().join("data");
    let mode = |path: &std::path::Path| path.metadata().expect("it exists").permissions().mode() & 0o7777;
    let change = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is the test's own");
    };
    let open = || Store::open(&folder, Scoring::default());
    let files = ["arena.sqlite3", "arena.sqlite3-wal", "arena.sqlite3-shm"].map(|file| folder.join(file));
    let store = open().expect("the store opens");
    assert_eq!((mode(&folder), files.each_ref().map(|file| mode(file))), (0o700, [0o600; 3]));
    drop(store);
    // A folder and a file of an older program, or of an administrator.
    change(&folder, 0o777);
    change(&files[0], 0o644);
    let store = open().expect("the store opens");
    assert_eq!((mode(&folder), files.each_ref().map(|file| mode(file))), (0o755, [0o600; 3]));
    drop(store);
    change(&folder, 0o1777);
    let refused = open().map(drop).expect_err("the folder is a common one").to_string();
    assert!(refused.contains("other users can write in it") && refused.contains("chmod go-w"), "{refused}");
}

#[test]
fn who_comes_while_another_one_is_ending_waits() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let first = FolderLock::take(folder.path()).expect("the folder is unused");
    let ending = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(first);
    });
    FolderLock::take(folder.path()).expect("the lock is released in time");
    ending.join().expect("no panic");
}

#[tokio::test]
async fn a_damaged_write_ahead_log_is_reported_until_the_report_is_removed() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let store = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    for n in 1..=40 {
        create(&store, &session(n)).await;
    }
    // The mark follows the last commit within a second or so.
    let log = folder.path().join("arena.sqlite3-wal");
    let pages = (std::fs::metadata(&log).expect("the log exists").len() - 32) / (24 + 4096);
    let begun = std::time::Instant::now();
    let mark = || std::fs::read_to_string(folder.path().join("arena.mark")).unwrap_or_default();
    while !mark().ends_with(&format!(" {pages:010}\n")) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{} of {pages} pages", mark());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // Copies of the files are what a killed arena leaves.
    for (flipped, is_lost) in [(None, false), (Some(20), true), (Some(32 + 10 * (24 + 4096) + 100), true)] {
        let copy = tempfile::tempdir().expect("a temp folder");
        for file in ["arena.sqlite3", "arena.sqlite3-wal", "arena.mark"] {
            std::fs::copy(folder.path().join(file), copy.path().join(file)).expect("a copy");
        }
        let mut bytes = std::fs::read(&log).expect("the log exists");
        flipped.into_iter().for_each(|at: usize| bytes[at] ^= 1);
        std::fs::write(copy.path().join("arena.sqlite3-wal"), bytes).expect("it is writable");
        let store = Store::open(copy.path(), Scoring::default()).expect("the store opens");
        let total = store.list_sessions(&SessionFilter::default(), 0, 99).await.expect("readable").total;
        let report = copy.path().join("arena.lost");
        assert_eq!((total < 40, report.exists()), (is_lost, is_lost), "{flipped:?}: {total}");
        match store.check_writing().await {
            Ok(()) => assert!(!is_lost),
            Err(CommitError::Unavailable(StoreError::Lost { .. })) => assert!(is_lost),
            other => panic!("{other:?}"),
        }
        // The store goes on with what is left, and the next start doesn't report it again.
        create(&store, &session(50)).await;
        drop(store);
        let _ = std::fs::remove_file(&report);
        let store = Store::open(copy.path(), Scoring::default()).expect("the store opens");
        store.check_writing().await.expect("the report was removed");
        assert!(!report.exists());
    }
}

#[tokio::test]
async fn a_missing_write_ahead_log_is_reported_unless_the_store_was_closed() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let [file, log, mark, report] =
        ["arena.sqlite3", "arena.sqlite3-wal", "arena.mark", "arena.lost"].map(|name| folder.path().join(name));
    let open = || Store::open(folder.path(), Scoring::default()).expect("the store opens");
    let store = open();
    create(&store, &session(1)).await;
    // The writer writes the mark after it has answered the first commit.
    let mut marked = Vec::new();
    for _ in 0..6_000 {
        marked = std::fs::read(&mark).expect("a mark");
        if !marked.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!marked.is_empty(), "the mark wasn't written within 30 s");
    drop(store);
    assert_eq!(std::fs::read(&mark).expect("a mark"), b"");
    open().check_writing().await.expect("the store was closed");
    for (emptied, is_lost) in [(false, true), (true, true), (true, false)] {
        // The mark of a killed arena whose log is missing or empty. Then the same with a checkpoint after the mark.
        std::fs::write(&mark, &marked).expect("it is writable");
        if emptied {
            std::fs::write(&log, b"").expect("it is writable");
        }
        if !is_lost {
            let marked_at = std::fs::metadata(&mark).and_then(|mark| mark.modified()).expect("a time");
            let later = marked_at + std::time::Duration::from_secs(10);
            std::fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(later)).expect("a time");
        }
        let store = open();
        match store.check_writing().await {
            Ok(()) => assert!(!is_lost),
            Err(CommitError::Unavailable(StoreError::Lost { .. })) => assert!(is_lost),
            other => panic!("{other:?}"),
        }
        assert_eq!(report.exists(), is_lost);
        drop(store);
        let _ = std::fs::remove_file(&report);
        open().check_writing().await.expect("the report was removed");
    }
    // A restored backup is another file.
    std::fs::write(&mark, &marked).expect("it is writable");
    let copy = folder.path().join("copy");
    std::fs::copy(&file, &copy).and_then(|_| std::fs::rename(&copy, &file)).expect("a copy");
    std::fs::write(&mark, &marked).expect("it is writable");
    open().check_writing().await.expect("a restored backup has no log");
}

#[tokio::test]
async fn the_write_ahead_log_begins_anew_while_writes_go_on() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let store = Store::open(folder.path(), Scoring::default()).expect("the store opens");
    let session = session(1);
    let (id, no) = (session.facts.id, create(&store, &session).await);
    let text = "x".repeat(1 << 20);
    for index in 1..=320 {
        let commit = Commit {
            change: SessionChange::Stays(no),
            messages: vec![said(Channel::Chat(id), index, &text)],
            answers: Vec::new(),
        };
        store.commit(commit).await.expect("the commit is stored");
    }
    let log = std::fs::metadata(folder.path().join("arena.sqlite3-wal")).expect("the log exists").len();
    assert!(log < 256 << 20, "{log} bytes in the log after 320 MiB of messages");
}
