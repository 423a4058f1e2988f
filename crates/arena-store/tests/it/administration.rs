//! Actions of administrators: each change is complete, has an audit entry, and changes nothing else.

use std::sync::Arc;

use arena_model::{Channel, ContentHash, Occupant, Seat, Session, SessionId, Status, Timestamp, UserProfile};
use arena_store::{
    AuditEntry, AuditNo, Ban, BanSubject, CommitError, DeletionOutcome, EndingNo, ImportOutcome, ImportedSession,
    SessionFilter, SessionNo, Store, UserDeletion,
};
use arena_testkit::Postgres;
use proptest::prelude::*;

use crate::season::{GAME, Game, begin, board, boards, end, games, open, play, psi, user};
use crate::storage::{TestStorage, stories, with_each_storage};
use crate::{audit, create, said, session, update};

stories!(
    a_hidden_message_leaves_its_hash_and_no_trace_of_its_content,
    bans_outlive_a_restart_and_are_lifted_once,
    a_session_is_removed_whole_or_not_at_all,
    a_deleted_user_leaves_commitments_and_no_trace_of_its_id,
    a_session_with_anothers_invite_is_not_taken,
    sessions_without_a_seed_are_over,
    running_sessions_are_found_among_many_ended_ones,
);

/// Returns the entries of the audit log, oldest first.
async fn audited(store: &Store) -> Vec<String> {
    let page = store.list_audit(0, 100).await.expect("readable");
    assert_eq!(page.total, page.items.len() as u64);
    page.items.iter().rev().map(|(no, entry)| format!("{} {} {}", no.0, entry.action, entry.detail)).collect()
}

/// Returns true if any file of a folder, or any message in a database, contains a text. Postgres keeps deleted
/// content in its files until VACUUM and longer in its log, which a store can't influence.
fn holds(storage: &TestStorage, text: &str) -> bool {
    let folder = match storage {
        TestStorage::Folder(folder) => folder.path(),
        TestStorage::Schema(url) => {
            let sql = format!("SELECT count(*) FROM messages WHERE content LIKE '%{text}%'");
            return Postgres::shared().run_sql(url, &sql).trim() != "0";
        }
    };
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let text = text.as_bytes();
    files
        .map(|file| std::fs::read(file).expect("readable"))
        .any(|bytes| bytes.windows(text.len()).any(|part| part == text))
}

async fn a_hidden_message_leaves_its_hash_and_no_trace_of_its_content(storage: TestStorage) {
    let store = open(&storage).await;
    let mut session = session(1);
    let id = session.facts.id;
    let no = create(&store, &session).await;
    // The second text is so long that it takes pages of its own.
    let (short, long) = ("a home address", format!("a long story: {}", "and then ".repeat(2000)));
    let chat = Channel::Chat(id);
    let messages = vec![said(chat, 1, short), said(chat, 2, &long), said(chat, 3, "harmless")];
    session.version = 2;
    update(&store, no, &session, messages).await.expect("the commit is stored");
    assert!(holds(&storage, short) && holds(&storage, "and then and then "));

    let entry = |hash: ContentHash| AuditEntry { detail: hash.to_string().into(), ..audit("hide") };
    let hide =
        async |index| store.hide_message(Some(no), chat, index, |_| None, entry).await.expect("the store can write");
    let hashes = [ContentHash::of(short), ContentHash::of(&long)];
    assert_eq!([hide(1).await, hide(2).await], hashes.map(Some));
    // The message is hidden already, or doesn't exist.
    assert_eq!(
        [hide(1).await, hide(4).await, hide(0).await, hide(u64::MAX).await],
        [Some(hashes[0]), None, None, None]
    );
    let expected = [format!("1 hide \"{}\"", hashes[0]), format!("2 hide \"{}\"", hashes[1])];
    assert_eq!(audited(&store).await, expected);

    let read = store.list_messages(Some(no), chat, 1, 9).await.expect("readable");
    let seen: Vec<_> = read.iter().map(|message| (message.content.as_str(), message.hidden)).collect();
    assert_eq!(seen, [("", Some(hashes[0])), ("", Some(hashes[1])), ("harmless", None)]);
    assert!(!holds(&storage, short) && !holds(&storage, "and then and then "));
    assert!(holds(&storage, "harmless"));
}

#[tokio::test]
async fn what_was_erased_while_a_reader_was_busy_goes_from_the_log_afterwards() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let file = folder.path().join("arena.sqlite3");
    let storage = TestStorage::Folder(folder);
    let store = open(&storage).await;
    let mut session = session(1);
    let no = create(&store, &session).await;
    let chat = Channel::Chat(session.facts.id);
    session.version = 2;
    update(&store, no, &session, vec![said(chat, 1, "a home address")]).await.expect("the commit is stored");
    let reader = rusqlite::Connection::open(file).expect("a database");
    reader.execute_batch("BEGIN; SELECT * FROM messages").expect("an older state");
    store
        .hide_message(Some(no), chat, 1, |_| None, |_| audit("hide"))
        .await
        .expect("the store can write")
        .expect("the message exists");
    assert!(holds(&storage, "a home address"));
    reader.execute_batch("COMMIT").expect("the reader can commit");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while holds(&storage, "a home address") {
        assert!(std::time::Instant::now() < until, "the content is still in a file");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_error_of_a_damaged_hash_names_its_message() {
    let folder = tempfile::tempdir().expect("a temp folder");
    let file = folder.path().join("arena.sqlite3");
    let storage = TestStorage::Folder(folder);
    let store = open(&storage).await;
    let mut session = session(1);
    let no = create(&store, &session).await;
    let chat = Channel::Chat(session.facts.id);
    session.version = 2;
    update(&store, no, &session, vec![said(chat, 1, "hello")]).await.expect("the commit is stored");
    let other = rusqlite::Connection::open(file).expect("a database");
    other.execute_batch("UPDATE messages SET hidden = 'damaged'").expect("the store is idle");
    let error =
        store.hide_message(Some(no), chat, 1, |_| None, |_| audit("hide")).await.expect_err("the hash is damaged");
    let CommitError::Unavailable(error) = error else { panic!("{error}") };
    assert!(error.to_string().starts_with(&format!("message 1 of channel {chat} cannot be read: ")), "{error}");
}

async fn bans_outlive_a_restart_and_are_lifted_once(storage: TestStorage) {
    let store = open(&storage).await;
    let ban = |subject: BanSubject, reason: &str| Ban { subject, reason: reason.to_owned(), at: Timestamp(7) };
    let ada = BanSubject::User(user("ada"));
    let network = BanSubject::Addresses("192.0.2.77/24".parse().expect("a range"));
    for (subject, reason) in [(&network, "noise"), (&ada, "cheats"), (&ada, "cheats again")] {
        store.ban(ban(subject.clone(), reason), audit("ban")).await.expect("the commit is stored");
    }
    drop(store);
    let store = open(&storage).await;
    let bans = store.list_bans().await.expect("readable");
    assert_eq!(bans, [ban(network, "noise"), ban(ada.clone(), "cheats again")]);
    assert!(store.lift_ban(ada.clone(), audit("lift")).await.expect("the store can write"));
    assert!(!store.lift_ban(ada, audit("lift")).await.expect("the store can write"));
    assert_eq!(store.list_bans().await.expect("readable").len(), 1);
    let output = ["1 ban", "2 ban", "3 ban", "4 lift"].map(|entry| format!("{entry} {{\"test\":true}}"));
    assert_eq!(audited(&store).await, output);
    let page = store.list_audit(1, 2).await.expect("readable");
    assert_eq!(page.items.iter().map(|(no, _)| no.0).collect::<Vec<_>>(), [3, 2]);
}

async fn a_session_is_removed_whole_or_not_at_all(storage: TestStorage) {
    let store = open(&storage).await;
    let (no, ended) = end(&store, begin(&store, 1, &GAME).await, &GAME).await;
    let before = boards(&store).await;
    // This version isn't the latest.
    let stale = Arc::new(Session { version: 1, ..ended.clone() });
    let refused = store.remove_session(no, stale, audit("remove")).await;
    assert!(matches!(refused, Err(CommitError::Conflict)));
    assert_eq!((boards(&store).await, audited(&store).await), (before, Vec::<String>::new()));
    assert_eq!(store.count_sessions(&SessionFilter::default()), 1);

    let ended = Arc::new(ended);
    store.remove_session(no, Arc::clone(&ended), audit("remove")).await.expect("the removal succeeds");
    let id = ended.facts.id;
    assert!(store.find_session(id).await.expect("readable").is_none());
    assert_eq!(store.find_invite(ended.facts.invites[0]).await.expect("readable"), None);
    assert!(store.list_messages(Some(no), Channel::Chat(id), 1, 9).await.expect("readable").is_empty());
    assert!(store.list_ended(EndingNo::default(), 9).await.expect("readable").is_empty());
    assert!(!holds(&storage, "well played"));
    assert_eq!(audited(&store).await.len(), 1);
    // Later changes of the removed session are refused.
    assert!(matches!(update(&store, no, &ended, Vec::new()).await, Err(CommitError::Conflict)));
    let again = store.remove_session(no, ended, audit("remove")).await;
    assert!(matches!(again, Err(CommitError::Conflict)));

    // A session in progress hasn't counted for anything.
    let (no, running) = begin(&store, 2, &GAME).await;
    store.remove_session(no, Arc::new(running), audit("remove")).await.expect("the removal succeeds");
    assert_eq!(store.count_sessions(&SessionFilter::default()), 0);
    assert_eq!(store.read_totals().await.expect("totals").participants, 0);
}

/// Deletes a user, whose commitment in each session is the hash of this text.
async fn delete(store: &Store, name: &str) -> DeletionOutcome {
    let commit = Box::new(|id: SessionId, Seat(seat): Seat| ContentHash::of(&format!("{id} {seat}")));
    let placeholder = user(&format!("deleted-{}", name.len()));
    let deletion = UserDeletion { user: user(name), placeholder, commit, audit: audit("delete") };
    store.delete_user(deletion).await.expect("the store can write")
}

async fn a_deleted_user_leaves_commitments_and_no_trace_of_its_id(storage: TestStorage) {
    const NAME: &str = "ada \"lovelace\"";
    let store = open(&storage).await;
    let game = Game { users: [NAME, "bob"], ..GAME };
    let (_, ended) = end(&store, begin(&store, 1, &game).await, &game).await;
    let double = Game { users: [NAME, NAME], ..GAME };
    let (_, alone) = end(&store, begin(&store, 2, &double).await, &double).await;
    // The search must not find a name that contains the other.
    let other = Game { users: ["ada", "lovelace"], ..GAME };
    let (_, others) = end(&store, begin(&store, 3, &other).await, &other).await;
    let (no, mut running) = begin(&store, 4, &game).await;
    running.version = 2;
    let invite = running.facts.invites[0];
    running.seats = vec![Occupant { invite, user: Some(user(NAME)), deleted: None }];
    update(&store, no, &running, Vec::new()).await.expect("the commit is stored");

    assert_eq!(delete(&store, "zoe").await, DeletionOutcome::Unknown);
    assert_eq!(delete(&store, NAME).await, DeletionOutcome::Playing(vec![running.facts.id]));
    assert_eq!(store.read_totals().await.expect("totals").participants, 4);
    assert!(audited(&store).await.is_empty());
    store.remove_session(no, Arc::new(running), audit("remove")).await.expect("the removal succeeds");

    let bob = store.find_standings(&user("bob")).await.expect("readable");
    let mut sessions = vec![ended.facts.id, alone.facts.id];
    sessions.sort();
    let DeletionOutcome::Deleted(mut deleted) = delete(&store, NAME).await else { panic!("the user exists") };
    deleted.sort();
    assert_eq!(deleted, sessions);
    assert_eq!(delete(&store, NAME).await, DeletionOutcome::Unknown);
    assert_eq!(audited(&store).await.len(), 2);
    assert!(!holds(&storage, "lovelace\\"));
    let check = async |store: &Store| {
        let seats = async |id| store.find_session(id).await.expect("readable").expect("it exists").session.seats;
        let commitment = |id: SessionId, seat: u64| Some(ContentHash::of(&format!("{id} {seat}")));
        let id = ended.facts.id;
        let found: Vec<_> = seats(id).await.into_iter().map(|occupant| (occupant.user, occupant.deleted)).collect();
        assert_eq!(found, [(None, commitment(id, 0)), (Some(user("bob")), None)]);
        let id = alone.facts.id;
        let found: Vec<_> = seats(id).await.into_iter().map(|occupant| occupant.deleted).collect();
        assert_eq!(found, [commitment(id, 0), commitment(id, 1)]);
        assert_eq!(seats(others.facts.id).await, others.seats);
        // The other player's game counts as before, for all strategies.
        assert_eq!(store.find_standings(&user("bob")).await.expect("readable"), bob);
        assert_eq!(store.find_standings(&user(NAME)).await.expect("readable"), None);
        assert_eq!(board(store, &psi("average"), None, 0, 9).await, "ada 1 1.00, bob 1 -1.00, lovelace 1 -1.00 of 3");
        assert_eq!(store.read_totals().await.expect("totals").participants, 3);
        assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
    };
    check(&store).await;
    drop(store);
    let store = open(&storage).await;
    check(&store).await;
    // The same name can play again, as a new user.
    play(&store, 5, &game).await;
    assert_eq!(board(&store, &psi("average"), None, 0, 1).await, "ada 1 1.00 of 4");
}

/// Describes everything that a store shows about ended games.
async fn shown(store: &Store) -> String {
    let totals = store.read_totals().await.expect("totals");
    let mut text =
        format!("{} {:?}", boards(store).await, totals.games.iter().filter(|(_, n)| **n > 0).collect::<Vec<_>>());
    text += &format!(" {} of {}", totals.participants, store.count_sessions(&SessionFilter::default()));
    for name in ["ada", "bob", "eve", "joe"] {
        if let Some(page) = store.list_played(&user(name), 0, 99).await.expect("readable") {
            let played: Vec<String> = page.items.iter().map(|session| session.facts.id.to_string()).collect();
            assert_eq!(page.total, played.len() as u64);
            if !played.is_empty() {
                text += &format!("\n{name}: {}", played.join(" "));
            }
        }
    }
    text
}

/// Imports all users and ended sessions of another store.
async fn import(from: &Store, to: &Store) -> Vec<ImportOutcome> {
    let mut outcomes = Vec::new();
    for profile in from.list_users(0, 99).await.expect("readable").items {
        outcomes.push(to.import_user(Arc::new(profile)).await.expect("the store can write"));
    }
    let mut sessions = Vec::new();
    for (_, no, session) in from.list_ended(EndingNo::default(), 99).await.expect("readable") {
        let id = session.facts.id;
        let mut messages = from.list_messages(Some(no), Channel::Operator(id), 1, 99).await.expect("readable");
        messages.extend(from.list_messages(Some(no), Channel::Chat(id), 1, 99).await.expect("readable"));
        sessions.push(to.import_session(ImportedSession {
            session: Session { version: 1, ..session },
            messages,
            import: AuditNo(1),
        }));
    }
    // The sessions count in the order of the calls, regardless of the order in which the results are awaited.
    while let Some(session) = sessions.pop() {
        outcomes.push(session.await.expect("the store can write"));
    }
    outcomes
}

/// Plays a season in which games end in another order than they began.
async fn season(store: &Store, games: &[Game], order: &[usize]) -> Vec<(SessionNo, Session)> {
    let mut begun = Vec::new();
    for (i, game) in games.iter().enumerate() {
        begun.push(Some(begin(store, i as u64 + 1, game).await));
    }
    let mut ended = Vec::new();
    for &i in order {
        let session = begun[i].take().expect("each session ends once");
        ended.push(end(store, session, &games[i]).await);
    }
    ended
}

fn a_season() -> impl Strategy<Value = (Vec<Game>, Vec<usize>, Vec<bool>)> {
    games().prop_flat_map(|games| {
        let order: Vec<usize> = (0..games.len()).collect();
        let removed = prop::collection::vec(any::<bool>(), games.len());
        (Just(games), Just(order).prop_shuffle(), removed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn what_is_removed_has_never_counted_on_sqlite_or_postgres((games, order, removed) in a_season()) {
        with_each_storage(async |storage| {
            let other = storage.another();
            let (whole, without) = (open(&storage).await, open(&other).await);
            // This loads the boards into memory before the sessions are removed.
            boards(&whole).await;
            let ended = season(&whole, &games, &order).await;
            for ((no, session), &i) in ended.into_iter().zip(&order) {
                if removed[i] {
                    whole.remove_session(no, Arc::new(session), audit("remove")).await.expect("the removal succeeds");
                }
            }
            // The same season without the removed sessions. Users become known in the same order, because
            // equal ranks are sorted by it.
            for profile in whole.list_users(0, 99).await.expect("readable").items {
                without.import_user(Arc::new(UserProfile::of(profile.user_id))).await.expect("the store can write");
            }
            let kept: Vec<usize> = order.iter().copied().filter(|&i| !removed[i]).collect();
            for i in kept {
                play(&without, i as u64 + 1, &games[i]).await;
            }
            let expected = shown(&without).await;
            assert_eq!(shown(&whole).await, expected);
            assert!(whole.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
            drop(whole);
            assert_eq!(shown(&open(&storage).await).await, expected);
        });
    }

    #[test]
    fn the_games_of_a_deleted_user_count_for_the_others_on_sqlite_and_postgres((games, order, _) in a_season()) {
        with_each_storage(async |storage| {
            let store = open(&storage).await;
            boards(&store).await;
            season(&store, &games, &order).await;
            let others = async |store: &Store| {
                let mut lines = Vec::new();
                for name in ["bob", "eve", "joe"] {
                    lines.push(format!("{:?}", store.find_standings(&user(name)).await.expect("readable")));
                }
                lines
            };
            let before = (others(&store).await, store.read_totals().await.expect("totals"));
            let is_known = store.find_standings(&user("ada")).await.expect("readable").is_some();
            let deleted = delete(&store, "ada").await;
            assert_eq!(deleted != DeletionOutcome::Unknown, is_known);
            let mut totals = store.read_totals().await.expect("totals");
            totals.participants += u64::from(is_known);
            assert_eq!((others(&store).await, totals), before);
            assert!(store.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
            let expected = shown(&store).await;
            drop(store);
            assert_eq!(shown(&open(&storage).await).await, expected);
        });
    }

    #[test]
    fn what_is_taken_over_counts_as_where_it_was_played_on_sqlite_and_postgres((games, order, _) in a_season(), repeat in any::<bool>()) {
        with_each_storage(async |storage| {
            let other = storage.another();
            let (there, here) = (open(&storage).await, open(&other).await);
            boards(&here).await;
            season(&there, &games, &order).await;
            assert!(import(&there, &here).await.iter().all(|taken| *taken == ImportOutcome::New));
            if repeat {
                assert!(import(&there, &here).await.iter().all(|taken| *taken == ImportOutcome::Known));
            }
            assert_eq!(shown(&here).await, shown(&there).await);
            assert!(here.recount(|_| audit("mend")).await.expect("a recount").wrong.is_empty());
            let all = async |store: &Store| {
                let ended = store.list_ended(EndingNo::default(), 99).await.expect("readable");
                ended.into_iter().map(|(_, _, session)| Session { version: 1, ..session }).collect::<Vec<_>>()
            };
            assert_eq!(all(&here).await, all(&there).await);
        });
    }
}

async fn a_session_with_anothers_invite_is_not_taken(storage: TestStorage) {
    let store = open(&storage).await;
    create(&store, &session(1)).await;
    let other = storage.another();
    let elsewhere = open(&other).await;
    let (_, mut foreign) = end(&elsewhere, begin(&elsewhere, 2, &GAME).await, &GAME).await;
    let mut facts = (*foreign.facts).clone();
    facts.invites = session(1).facts.invites.clone();
    foreign.facts = Arc::new(facts);
    let imported = ImportedSession { session: foreign, messages: Vec::new(), import: AuditNo(1) };
    assert_eq!(store.import_session(imported).await.expect("the store can write"), ImportOutcome::ForeignInvite);
    assert_eq!(boards(&store).await.matches(" of 0").count(), 5);
    let running = ImportedSession { session: session(3), messages: Vec::new(), import: AuditNo(1) };
    assert!(matches!(store.import_session(running).await, Err(CommitError::Unavailable(_))));
    assert_eq!(store.count_sessions(&SessionFilter::default()), 1);
}

async fn sessions_without_a_seed_are_over(storage: TestStorage) {
    let store = open(&storage).await;
    let (_, mut imported) = end(&store, begin(&store, 1, &GAME).await, &GAME).await;
    let mut facts = (*session(2).facts).clone();
    facts.seed = None;
    imported.facts = Arc::new(facts);
    imported.version = 1;
    let taken =
        store.import_session(ImportedSession { session: imported.clone(), messages: Vec::new(), import: AuditNo(1) });
    assert_eq!(taken.await.expect("the store can write"), ImportOutcome::New);
    let stored = store.find_session(imported.facts.id).await.expect("readable").expect("it exists");
    assert_eq!(stored.session, imported);
    drop(store);
    storage.change("UPDATE sessions SET status = 'open' WHERE imported IS NOT NULL");
    let damaged = open(&storage).await.find_session(imported.facts.id).await.expect_err("it can't be played");
    assert!(damaged.to_string().contains("has no seed"), "{damaged}");
}

async fn running_sessions_are_found_among_many_ended_ones(storage: TestStorage) {
    let store = open(&storage).await;
    let mut running = Vec::new();
    // The sessions fill three blocks of counts; all sessions of the second block have ended.
    for n in 1..=700 {
        let begun = begin(&store, n, &GAME).await;
        if n % 100 == 7 && !(256..512).contains(&n) {
            running.push(begun.1.facts.id);
        } else {
            let mut ended = begun.1.clone();
            ended.version = 2;
            ended.phase = arena_model::Phase::Ended {
                at: Timestamp(1),
                ending: arena_model::Ending::Abandoned,
                category: arena_model::GameCategory::Train,
            };
            update(&store, begun.0, &ended, Vec::new()).await.expect("the commit is stored");
        }
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_running(after).await.expect("readable");
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        found.extend(page.iter().map(|(_, session)| session.facts.id));
        assert!(page.iter().all(|(_, session)| session.status() == Status::Open));
    }
    assert_eq!(found, running);
}
