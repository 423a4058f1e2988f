//! The data for records and for the arena's log.

use std::sync::Arc;

use arena_model::{Channel, ChatMessage, ContentHash, SessionId, Timestamp};
use arena_store::{
    Commit, CommitError, EndingNo, LogCursor, NewLeaf, RemovedSession, SessionChange, SessionNo, Store, StoredLeaf,
};

use crate::storage::{TestStorage, stories};
use crate::{audit, create, open, said, session, update};

stories!(
    messages_of_all_channels_keep_the_order_of_commits,
    a_commitment_is_kept_with_its_hidden_message,
    leaves_are_appended_once_and_remain_with_their_cursor,
    removals_and_creations_are_listed_in_their_order,
);

fn posted(channel: Channel, index: u64, at: i64) -> ChatMessage {
    ChatMessage { at: Timestamp(at), ..said(channel, index, "text") }
}

/// Returns the places of all messages of a session, read in pages of two.
async fn places(store: &Store, no: SessionNo, id: SessionId) -> Vec<String> {
    let mut places = Vec::new();
    loop {
        let after = places.len() as u64;
        let page = store.list_session_messages(no, id, after, 2).await.expect("readable");
        assert!(page.iter().map(|(position, _)| *position).eq(after + 1..=after + page.len() as u64));
        if page.is_empty() {
            return places;
        }
        let place = |(_, message): (u64, ChatMessage)| format!("{}/{}", message.channel, message.index);
        places.extend(page.into_iter().map(place).map(|place| place.replace(&id.to_string(), "")));
    }
}

async fn messages_of_all_channels_keep_the_order_of_commits(storage: TestStorage) {
    let store = open(&storage).await;
    let mut played = session(1);
    let id = played.facts.id;
    let (inputs, operator, chat) = (Channel::Inputs(id), Channel::Operator(id), Channel::Chat(id));
    let no = create(&store, &played).await;
    let other = create(&store, &session(2)).await;
    played.version = 2;
    // The input is later than all messages, and doesn't count as activity.
    update(&store, no, &played, vec![posted(inputs, 2, 9000), posted(operator, 1, 2000)]).await.expect("stored");
    let messages = vec![posted(chat, 1, 2001)];
    let change = SessionChange::Stays(no);
    store.commit(Commit { change, messages, answers: Vec::new() }).await.expect("stored");
    let messages = vec![posted(Channel::Chat(session(2).facts.id), 1, 2001)];
    let change = SessionChange::Stays(other);
    store.commit(Commit { change, messages, answers: Vec::new() }).await.expect("stored");
    played.version = 4;
    let messages = vec![
        posted(operator, 2, 2002),
        posted(chat, 2, 2003),
        posted(inputs, 4, 2003),
        posted(chat, 3, 2003),
        posted(operator, 3, 2003),
    ];
    let change = SessionChange::Update { no, before: 2, session: Box::new(played.clone()) };
    store.commit(Commit { change, messages, answers: Vec::new() }).await.expect("stored");
    let expected =
        ["inputs_/2", "challenge_/1", "/1", "challenge_/2", "/2", "inputs_/4", "/3", "challenge_/3"].map(str::to_owned);
    assert_eq!(places(&store, no, id).await, expected);
    let stored = store.find_session(id).await.expect("readable").expect("it exists");
    assert_eq!((stored.chat_len, stored.operator_len, stored.last_activity), (3, 3, Timestamp(2003)));
    // An index of an input can't be used twice.
    played.version = 5;
    let again = update(&store, no, &played, vec![posted(inputs, 4, 2004)]).await;
    assert!(again.is_err(), "a commit with a used version");
    drop(store);
    if let TestStorage::Schema(_) = &storage {
        // Messages from the time before their numbers are in the order of time.
        storage.change("UPDATE messages SET no = NULL WHERE at < 2003");
    }
    let store = open(&storage).await;
    let expected = match &storage {
        TestStorage::Folder(_) => expected,
        TestStorage::Schema(_) => {
            ["challenge_/1", "/1", "challenge_/2", "inputs_/2", "/2", "inputs_/4", "/3", "challenge_/3"]
                .map(str::to_owned)
        }
    };
    assert_eq!(places(&store, no, id).await, expected);
    played.version = 4;
    store.remove_session(no, Arc::new(played), audit("remove")).await.expect("the removal succeeds");
    assert!(places(&store, no, id).await.is_empty());
}

async fn a_commitment_is_kept_with_its_hidden_message(storage: TestStorage) {
    let store = open(&storage).await;
    let mut played = session(1);
    let id = played.facts.id;
    let no = create(&store, &played).await;
    played.version = 2;
    let (operator, chat) = (Channel::Operator(id), Channel::Chat(id));
    let messages = vec![said(operator, 1, "a"), said(chat, 1, "b"), said(chat, 2, "c")];
    update(&store, no, &played, messages).await.expect("the commit is stored");
    let commit = |content: &str| (content != "c").then(|| ContentHash::of(&format!("salt {content}")));
    for (channel, index) in [(operator, 1), (chat, 1), (chat, 2)] {
        let hidden = store.hide_message(Some(no), channel, index, commit, |_| audit("hide")).await;
        hidden.expect("the store can write").expect("it exists");
    }
    let mut commitments = store.list_commitments(no, id).await.expect("readable");
    commitments.sort_by_key(|(place, _)| *place);
    let expected = [((chat, 1), ContentHash::of("salt b")), ((operator, 1), ContentHash::of("salt a"))];
    assert_eq!(commitments, expected);
}

async fn leaves_are_appended_once_and_remain_with_their_cursor(storage: TestStorage) {
    let store = open(&storage).await;
    let played = session(1);
    let id = played.facts.id;
    let created = create(&store, &played).await;
    assert_eq!(store.log_size().await.expect("readable"), 0);
    assert_eq!(store.log_cursor().await.expect("readable"), LogCursor::default());
    let leaf = |session: Option<SessionId>, kind: &str, n: u8| -> NewLeaf {
        (session, kind.to_owned(), format!(r#"{{"leaf":"{kind}","n":{n}}}"#), [n; 32])
    };
    let cursor = LogCursor { created, ended: EndingNo::default(), removed: 7 };
    let first = [leaf(None, "key", 0), leaf(Some(id), "created", 1), leaf(Some(id), "ended", 2)];
    store.append_leaves(0, first.to_vec(), cursor).await.expect("the store can write");
    for size in [0, 2, 4] {
        let late = store.append_leaves(size, vec![leaf(Some(id), "removed", 9)], LogCursor::default()).await;
        assert!(matches!(late, Err(CommitError::Conflict)), "{size}: {late:?}");
    }
    store.append_leaves(3, Vec::new(), cursor).await.expect("the store can write");
    let second = [leaf(Some(id), "excluded", 3), leaf(Some(id), "excluded", 4)];
    store.append_leaves(3, second.to_vec(), cursor).await.expect("the store can write");
    drop(store);
    let store = open(&storage).await;
    assert_eq!(store.log_size().await.expect("readable"), 5);
    assert_eq!(store.log_cursor().await.expect("readable"), cursor);
    let all: Vec<StoredLeaf> = (0..)
        .zip(first.into_iter().chain(second))
        .map(|(n, (session, kind, data, hash))| StoredLeaf { n, session, kind, data, hash })
        .collect();
    for (from, limit) in [(0, 99), (0, 2), (2, 2), (4, 9), (5, 9)] {
        let found = store.list_leaves(from, limit).await.expect("readable");
        let expected: Vec<StoredLeaf> = all.iter().skip(from as usize).take(limit).cloned().collect();
        assert_eq!(found, expected, "{from} {limit}");
    }
    let cases = [
        (id, "created", Some(1)),
        (id, "excluded", Some(4)),
        (id, "key", None),
        (session(2).facts.id, "created", None),
    ];
    for (session, kind, expected) in cases {
        assert_eq!(store.find_leaf(session, kind).await.expect("readable"), expected, "{kind}");
    }
    for (before, expected) in [(0, 0..0), (1, 0..0), (2, 1..2), (4, 1..4), (9, 1..5)] {
        let found = store.list_leaves_of(id, before).await.expect("readable");
        assert_eq!(found, all[expected], "{before}");
    }
    assert!(store.list_leaves_of(session(2).facts.id, 9).await.expect("readable").is_empty());
}

async fn removals_and_creations_are_listed_in_their_order(storage: TestStorage) {
    let store = open(&storage).await;
    let mut numbers = Vec::new();
    for n in 1..=4 {
        numbers.push(create(&store, &session(n)).await);
    }
    let listed = async |after: SessionNo, limit: usize| {
        let page = store.list_created(after, limit).await.expect("readable");
        page.into_iter().map(|created| (created.no, created.id)).collect::<Vec<_>>()
    };
    let all: Vec<_> = (1..=4).zip(&numbers).map(|(n, no)| (*no, session(n).facts.id)).collect();
    assert_eq!(listed(SessionNo::default(), 9).await, all);
    assert_eq!(listed(SessionNo::default(), 2).await, all[..2]);
    assert_eq!(listed(numbers[1], 2).await, all[2..]);
    assert!(listed(numbers[3], 2).await.is_empty());

    // The second session is removed by an administrator, and then the third one expires.
    store.remove_session(numbers[1], Arc::new(session(2)), audit("remove")).await.expect("the removal succeeds");
    let change = SessionChange::Remove(numbers[2], Box::new(session(3)));
    store.commit(Commit { change, messages: Vec::new(), answers: Vec::new() }).await.expect("the removal succeeds");
    let refused = SessionChange::Remove(numbers[2], Box::new(session(3)));
    let refused = store.commit(Commit { change: refused, messages: Vec::new(), answers: Vec::new() }).await;
    assert!(refused.is_err(), "the session was removed before");
    assert_eq!(listed(SessionNo::default(), 9).await, [all[0], all[3]]);
    let removed = store.list_removed(0, 9).await.expect("readable");
    let found: Vec<_> = removed.iter().map(|removed| (removed.id, removed.at.0, removed.reason.as_str())).collect();
    let expected = [
        (session(2).facts.id, 3000, RemovedSession::ADMINISTRATOR),
        (session(3).facts.id, 5003, RemovedSession::EXPIRED),
    ];
    assert_eq!(found, expected);
    assert!(removed[0].n < removed[1].n);
    assert_eq!(store.list_removed(removed[0].n, 9).await.expect("readable"), removed[1..]);
    assert_eq!(store.list_removed(0, 1).await.expect("readable"), removed[..1]);

    let mut unrated = session(5);
    Arc::make_mut(&mut unrated.facts).rated = None;
    create(&store, &unrated).await;
    let created = store.list_created(numbers[0], 9).await.expect("readable");
    let is_rated: Vec<bool> = created.iter().map(|created| created.is_rated).collect();
    assert_eq!(is_rated, [true, false]);
}
