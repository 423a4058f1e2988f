//! Concurrent requests for one session, which share commits.

use std::collections::{BTreeMap, BTreeSet};

use arena_engine::{Chat, Engine, EngineError, Join, Once, Respond};
use arena_model::{Channel, ChatError, Party, SessionId};
use arena_testkit::{TestEnvironment, data_folder};
use tokio::task::JoinHandle;

use crate::{create, engine, join};

type Answer = JoinHandle<Result<String, EngineError>>;

/// Starts a chat message. The answer is the message's index.
fn say(engine: &Engine, session: SessionId, from: Party, content: &str, once: Option<Once>) -> Answer {
    let (engine, content) = (engine.clone(), content.to_owned());
    let respond = Respond::new(|written| {
        assert!(!written.messages[0].content.starts_with("panic"), "the rules of this test panic here");
        written.messages[0].index.to_string()
    });
    tokio::spawn(async move { engine.chat(Chat { session, from, to: None, content }, once, respond).await })
}

async fn texts(engine: &Engine, id: SessionId) -> BTreeMap<u64, String> {
    let read = engine.read(Channel::Chat(id), 1, 10_000).await.expect("the store can be read");
    let json = read.messages.iter().map(|posted| posted.json(arena_model::Viewer::Nobody, true, true).to_vec());
    let values = json.map(|json| serde_json::from_slice::<serde_json::Value>(&json).expect("JSON"));
    values
        .map(|value| {
            (value["index"].as_u64().expect("an index"), value["content"].as_str().expect("a text").to_owned())
        })
        .collect()
}

#[tokio::test]
async fn concurrent_messages_get_successive_indexes_and_survive_a_restart() {
    let (environment, folder) = (TestEnvironment::new(21), data_folder());
    let before = engine(&environment, &folder).await;
    let (id, invites) = create(&before).await;
    for invite in &invites {
        join(&before, *invite).await;
    }
    let player = |number: usize| Party::Player(invites[number % 2]);
    let stranger = Party::Player("inv_00000000-0000-4000-8000-000000000000".parse().expect("an invite"));
    let mut answers: Vec<(usize, Answer)> = Vec::new();
    let mut refused = Vec::new();
    let mut panicked = Vec::new();
    for number in 0..600 {
        let once = (number % 10 == 0).then_some(Once { key: [(number / 10) as u8; 32], request: [7; 32] });
        let content = format!("message {number}");
        answers.push((number, say(&before, id, player(number), &content, once)));
        if once.is_some() {
            // A client sends the request again before the first one is answered.
            answers.push((number, say(&before, id, player(number), &content, once)));
        }
        if number % 97 == 0 {
            refused.push(say(&before, id, stranger.clone(), "I have no seat", None));
            panicked.push(say(&before, id, player(number), "panic", None));
        }
    }
    let mut indexes = BTreeMap::new();
    for (number, answer) in answers {
        let index: u64 = answer.await.expect("no panic").expect("the message is stored").parse().expect("an index");
        let first = *indexes.entry(number).or_insert(index);
        assert_eq!(index, first, "the answer to the same request");
    }
    for answer in refused {
        let error = answer.await.expect("no panic").expect_err("no seat");
        assert!(matches!(error, EngineError::Chat(ChatError::NotAPlayer)), "{error:?}");
    }
    for answer in panicked {
        assert!(answer.await.expect_err("a panic").is_panic());
    }
    let distinct: BTreeSet<u64> = indexes.values().copied().collect();
    assert_eq!(distinct, (1..=600).collect());
    let stored = texts(&before, id).await;
    assert_eq!(stored, indexes.iter().map(|(number, index)| (*index, format!("message {number}"))).collect());
    drop(before);
    let after = engine(&environment, &folder).await;
    assert_eq!(texts(&after, id).await, stored);
}

#[tokio::test]
async fn one_of_many_concurrent_joins_takes_the_seat() {
    let (environment, folder) = (TestEnvironment::new(22), data_folder());
    let engine = engine(&environment, &folder).await;
    let (_, invites) = create(&engine).await;
    let joins: Vec<Answer> = (0..20)
        .map(|number| {
            let (engine, invite) = (engine.clone(), invites[number % 2]);
            tokio::spawn(async move {
                engine.join(Join { invite, user: None }, None, Respond::new(|_| String::new())).await
            })
        })
        .collect();
    let mut seated = 0;
    for joined in joins {
        match joined.await.expect("no panic") {
            Ok(_) => seated += 1,
            Err(error) => assert!(matches!(error, EngineError::InviteUsed(_)), "{error:?}"),
        }
    }
    assert_eq!(seated, 2);
}
