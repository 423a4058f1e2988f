//! The messages of ended sessions leave the store and come back.

use arena_model::{Channel, ChatMessage, ContentHash, Ending, GameCategory, Phase, Session, Timestamp};
use arena_store::{
    ArchivedChannel, ArchivedFile, ArchivedMessage, Commit, CommitError, EndingNo, NewArchive, RemovedSession,
    SessionChange, SessionNo, Store,
};

use crate::storage::{TestStorage, stories};
use crate::{audit, create, open, said, session, update};

stories!(
    an_archived_session_comes_back_as_it_was,
    only_what_the_archive_has_is_removed,
    old_sessions_are_listed_until_they_are_archived,
    a_file_is_noted_until_a_session_has_it_or_it_is_removed,
);

/// Creates the `n`th session and ends it at time `at`, with five messages.
async fn play(store: &Store, n: u64, at: i64) -> (SessionNo, Session) {
    let mut played = session(n);
    let id = played.facts.id;
    let no = create(store, &played).await;
    played.version = 2;
    played.phase = Phase::Ended { at: Timestamp(at), ending: Ending::Completed, category: GameCategory::Train };
    played.wake_at = None;
    let (inputs, operator, chat) = (Channel::Inputs(id), Channel::Operator(id), Channel::Chat(id));
    let mut messages = vec![
        said(inputs, 2, "joined"),
        said(operator, 1, "a \u{10ffff} ' \"\n"),
        said(chat, 1, "b"),
        said(chat, 2, "secret"),
        said(operator, 2, "c"),
    ];
    messages[1].method = Some("guess".to_owned());
    update(store, no, &played, messages).await.expect("the commit is stored");
    (no, played)
}

async fn chat(store: &Store, no: SessionNo, message: ChatMessage) -> Result<(), CommitError> {
    let change = SessionChange::Stays(no);
    store.commit(Commit { change, messages: vec![message], answers: Vec::new() }).await.map(drop)
}

async fn messages(store: &Store, no: SessionNo, session: &Session) -> Vec<ArchivedMessage> {
    let id = session.facts.id;
    let commitments = store.list_commitments(no, id).await.expect("readable");
    let of = |message: &ChatMessage| {
        let place = (message.channel, message.index);
        commitments.iter().find(|(known, _)| *known == place).map(|(_, commitment)| *commitment)
    };
    let found = store.list_session_messages(no, id, 0, 99).await.expect("readable");
    found.into_iter().map(|(_, message)| (message.clone(), of(&message))).collect()
}

fn file_of(no: SessionNo) -> String {
    format!("{no:?}.jsonl.gz")
}

fn archived_file(no: SessionNo) -> ArchivedFile {
    ArchivedFile { file: file_of(no), sha256: Some(ContentHash::of("the file")) }
}

/// Notes the file of an archive and archives its session.
async fn archive(store: &Store, archive: NewArchive) -> Result<(), CommitError> {
    // The file may be noted already.
    let _ = store.note_archive_file(archive.file.clone(), archive.at).await;
    store.archive_session(archive).await
}

fn archive_of(no: SessionNo, messages: &[ArchivedMessage]) -> NewArchive {
    let of = |is_wanted: fn(&Channel) -> bool| {
        let mut channel = messages.iter().filter(|(message, _)| is_wanted(&message.channel));
        ArchivedChannel {
            len: channel.clone().count() as u64,
            last_at: channel.next_back().map(|(message, _)| message.at).unwrap_or_default(),
        }
    };
    NewArchive {
        session: no,
        file: file_of(no),
        sha256: ContentHash::of("the file"),
        at: Timestamp(9000),
        chat: of(|channel| matches!(channel, Channel::Chat(_))),
        operator: of(|channel| matches!(channel, Channel::Operator(_))),
        messages: messages.len() as u64,
        hidden: messages.iter().filter(|(message, _)| message.hidden.is_some()).count() as u64,
    }
}

async fn an_archived_session_comes_back_as_it_was(storage: TestStorage) {
    let store = open(&storage).await;
    let (no, played) = play(&store, 1, 2500).await;
    let (other, others) = play(&store, 2, 2500).await;
    let id = played.facts.id;
    let commit = |content: &str| Some(ContentHash::of(&format!("salt {content}")));
    let hidden = store.hide_message(Some(no), Channel::Chat(id), 2, commit, |_| audit("hide")).await;
    hidden.expect("the store can write").expect("it exists");
    let (all, rest) = (messages(&store, no, &played).await, messages(&store, other, &others).await);
    assert_eq!(all.iter().filter(|(message, commitment)| message.hidden.is_some() && commitment.is_some()).count(), 1);
    let before = store.find_session(id).await.expect("readable").expect("it exists");

    archive(&store, archive_of(no, &all)).await.expect("it is archived");
    assert_eq!(messages(&store, no, &played).await, []);
    assert_eq!(messages(&store, other, &others).await, rest);
    assert_eq!(store.session_bytes(no).await.expect("readable"), 0);
    assert_eq!(store.find_archive(no).await.expect("readable"), Some(archived_file(no)));
    assert_eq!(store.find_archive(other).await.expect("readable"), None);
    // Twice is an error that changes nothing.
    assert!(matches!(store.archive_session(archive_of(no, &all)).await, Err(CommitError::Conflict)));
    drop(store);

    // The next indexes follow the archived ones, also after a restart.
    let store = open(&storage).await;
    let stored = store.find_session(id).await.expect("readable").expect("it exists");
    assert_eq!((stored.chat_len, stored.operator_len, stored.session), (2, 2, before.session));
    assert_eq!(stored.last_activity, before.last_activity);
    let late = ChatMessage { at: Timestamp(7000), ..said(Channel::Chat(id), 3, "late") };
    chat(&store, no, late.clone()).await.expect("the chat is stored");
    let stored = store.find_session(id).await.expect("readable").expect("it exists");
    assert_eq!((stored.chat_len, stored.last_activity), (3, Timestamp(7000)));

    let expected: Vec<ArchivedMessage> = all.iter().cloned().chain([(late, None)]).collect();
    let other_file = store.restore_session(no, id, "other".to_owned(), all.clone(), None).await;
    assert!(!other_file.expect("the store can write"), "the archive that it was read from is outdated");
    for expected_restored in [true, false] {
        let restored = store.restore_session(no, id, file_of(no), all.clone(), Some(audit("restore"))).await;
        assert_eq!(restored.expect("the store can write"), expected_restored);
        assert_eq!(messages(&store, no, &played).await, expected);
    }
    let entries = store.list_audit(0, 9).await.expect("readable").items;
    assert_eq!(entries.iter().map(|(_, entry)| entry.action.as_str()).collect::<Vec<_>>(), ["restore", "hide"]);
}

async fn only_what_the_archive_has_is_removed(storage: TestStorage) {
    let store = open(&storage).await;
    let (no, played) = play(&store, 1, 2500).await;
    let id = played.facts.id;
    let written = messages(&store, no, &played).await;
    // A message is hidden after the archive was written, so the archive still has its content.
    let hidden = store.hide_message(Some(no), Channel::Chat(id), 2, |_| None, |_| audit("hide")).await;
    hidden.expect("the store can write").expect("it exists");
    let refused = archive(&store, archive_of(no, &written)).await;
    assert!(matches!(refused, Err(CommitError::Conflict)));
    assert_eq!(store.find_archive(no).await.expect("readable"), None);
    // A message that comes after the archive was written stays in the store.
    let written = messages(&store, no, &played).await;
    let late = said(Channel::Chat(id), 3, "late");
    chat(&store, no, late.clone()).await.expect("the chat is stored");
    archive(&store, archive_of(no, &written)).await.expect("it is archived");
    assert_eq!(messages(&store, no, &played).await, [(late, None)]);
    // A session that hasn't ended isn't archived.
    let running = create(&store, &session(2)).await;
    assert!(matches!(archive(&store, archive_of(running, &[])).await, Err(CommitError::Conflict)));
    // A removed session leaves nothing.
    let removed = store.remove_session_for(no, played.into(), RemovedSession::CREATOR, audit("remove")).await;
    assert_eq!(removed.expect("the removal succeeds"), Some(file_of(no)));
    assert_eq!(store.find_archive(no).await.expect("readable"), None);
}

async fn old_sessions_are_listed_until_they_are_archived(storage: TestStorage) {
    let store = open(&storage).await;
    let mut played = Vec::new();
    for (n, at) in [(1, 2000), (2, 3000), (3, 1000), (4, 2500)] {
        played.push(play(&store, n, at).await);
    }
    create(&store, &session(5)).await;
    let archivable = async |before: i64| {
        let (mut after, mut found) = (EndingNo::default(), Vec::new());
        loop {
            let page = store.list_archivable(Timestamp(before), after, 2).await.expect("readable");
            let Some((last, ..)) = page.last() else { return found };
            after = *last;
            found.extend(page.into_iter().map(|(_, _, id)| id));
        }
    };
    let ids: Vec<_> = played.iter().map(|(_, session)| session.facts.id).collect();
    assert_eq!(archivable(1000).await, []);
    assert_eq!(archivable(3000).await, [ids[0], ids[2], ids[3]]);
    assert_eq!(archivable(9999).await, ids);
    for place in [2, 0] {
        let (no, session) = &played[place];
        archive(&store, archive_of(*no, &messages(&store, *no, session).await)).await.expect("it is archived");
    }
    assert_eq!(archivable(9999).await, [ids[1], ids[3]]);
    let first = store.list_archived(SessionNo::default(), 1).await.expect("readable");
    assert_eq!(first, [(played[0].0, ids[0])]);
    assert_eq!(store.list_archived(first[0].0, 9).await.expect("readable"), [(played[2].0, ids[2])]);
}

async fn a_file_is_noted_until_a_session_has_it_or_it_is_removed(storage: TestStorage) {
    let store = open(&storage).await;
    let (no, played) = play(&store, 1, 2500).await;
    let all = messages(&store, no, &played).await;
    let unused = async |before| store.list_unused_archive_files(Timestamp(before)).await.expect("readable");
    // Without its note, a file could be removed at any time.
    assert!(matches!(store.archive_session(archive_of(no, &all)).await, Err(CommitError::Conflict)));
    store.note_archive_file(file_of(no), Timestamp(9000)).await.expect("the store can write");
    assert_eq!((unused(9000).await, unused(9001).await), (vec![], vec![file_of(no)]));
    store.archive_session(archive_of(no, &all)).await.expect("it is archived");
    assert!(unused(9001).await.is_empty());
    // From the commit on that takes the file from its session, it is to be removed.
    let restored = store.restore_session(no, played.facts.id, file_of(no), all.clone(), None).await;
    assert!(restored.expect("the store can write"));
    assert_eq!(unused(1).await, [file_of(no)]);
    store.forget_archive_file(file_of(no)).await.expect("the store can write");
    assert!(unused(9001).await.is_empty());
    archive(&store, archive_of(no, &all)).await.expect("it is archived");
    let removed = store.remove_session_for(no, played.into(), RemovedSession::CREATOR, audit("remove")).await;
    assert_eq!(removed.expect("the removal succeeds"), Some(file_of(no)));
    assert_eq!(unused(1).await, [file_of(no)]);
}
