//! The inputs of sessions: the sources of records have them, and no reader gets them.

use std::sync::Arc;

use arena_engine::{
    Act, Administrator, Chat, ContentPlace, Engine, EngineError, Join, RecordSource, Respond, Withdrawal,
};
use arena_model::{Channel, ContentHash, InviteCode, Party, SessionId, Status};
use arena_testkit::{TestEnvironment, data_folder};

use crate::{create, create_of, engine, status};

/// Describes the messages of a session in their order. Senders of inputs are seats from 1 or `operator`.
async fn described(engine: &Engine, id: SessionId) -> Vec<String> {
    let RecordSource { session, messages, .. } = engine.record_source(id).await.expect("it exists");
    let seat_of = |party: &Party| match party {
        Party::Player(invite) => {
            let seat = session.facts.invites.iter().position(|code| code == invite).expect("a player");
            (seat + 1).to_string()
        }
        other => other.to_string(),
    };
    let describe = |message: &arena_model::ChatMessage| match message.channel {
        Channel::Inputs(_) => {
            format!("{} {} {}", message.index, message.method.as_deref().expect("a kind"), seat_of(&message.from))
        }
        Channel::Operator(_) => format!("operator/{}", message.index),
        Channel::Chat(_) => format!("chat/{}", message.index),
        Channel::Invites => unreachable!("the public channel belongs to no session"),
    };
    messages.iter().map(describe).collect()
}

/// Joins, and checks that the response can't show the input.
async fn join(engine: &Engine, invite: InviteCode) {
    let respond = Respond::new(|written| {
        assert!(written.messages.iter().all(|message| !message.channel.is_inputs()));
        String::new()
    });
    engine.join(Join { invite, user: None }, None, respond).await.expect("a seat");
}

async fn say(engine: &Engine, session: SessionId, from: InviteCode, content: &str) {
    let chat = Chat { session, from: Party::Player(from), to: None, content: content.to_owned() };
    engine.chat(chat, None, Respond::new(|_| String::new())).await.expect("a player may chat");
}

#[tokio::test]
async fn an_input_precedes_its_messages_and_has_the_version_after_it() {
    let (environment, folder) = (TestEnvironment::new(51), data_folder());
    let before = engine(&environment, &folder).await;
    let (id, invites) = create_of(&before, "bell").await;
    assert_eq!(described(&before, id).await, ["1 created operator"]);
    join(&before, invites[0]).await;
    let tap = |content: &str| Act {
        session: id,
        from: Party::Player(invites[0]),
        method: Some("tap".to_owned()),
        content: content.to_owned(),
    };
    before.act(tap("1"), None, Respond::new(|_| String::new())).await.expect("a player may tap");
    for _ in 0..2 {
        environment.advance_ms(1000);
        before.wake_due().await.expect("the store can be read");
        say(&before, id, invites[0], "listen!").await;
    }
    drop(before);
    // A new engine has none of the messages in memory.
    let engine = engine(&environment, &folder).await;
    environment.advance_ms(1000);
    engine.wake_due().await.expect("the store can be read");
    let expected = [
        "1 created operator",
        "2 join 1",
        "operator/1",
        // The action has version 3 and no input.
        "operator/2",
        "4 deadline operator",
        "operator/3",
        "chat/1",
        "5 deadline operator",
        "operator/4",
        "chat/2",
        "6 deadline operator",
        "operator/5",
    ];
    assert_eq!(described(&engine, id).await, expected);
    let source = engine.record_source(id).await.expect("it exists");
    assert_eq!((source.session.version, source.session.status()), (6, Status::Ended));
    assert!(source.messages.iter().map(|message| message.at).is_sorted());
}

#[tokio::test]
async fn inputs_are_no_activity_and_have_no_readers() {
    let (environment, folder) = (TestEnvironment::new(52), data_folder());
    let engine = engine(&environment, &folder).await;
    let (id, invites) = create(&engine).await;
    engine.announce(invites[0], None, Respond::new(|_| String::new())).await.expect("it is offered");
    join(&engine, invites[0]).await;
    join(&engine, invites[1]).await;
    environment.advance_ms(1_700_000);
    say(&engine, id, invites[0], "still here").await;
    environment.advance_ms(100_000);
    let next = engine.wake_due().await.expect("the store can be read");
    assert_eq!(next, Some(environment.now().plus_ms(1_700_000)), "only the chat counts");
    environment.advance_ms(1_700_000);
    engine.wake_due().await.expect("the store can be read");
    assert_eq!(status(&engine, id).await, Some(Status::Ended));

    let all = described(&engine, id).await;
    let inputs: Vec<&str> = all.iter().map(String::as_str).filter(|line| !line.contains('/')).collect();
    let expected =
        ["1 created operator", "2 announce 1", "3 join 1", "4 join 2", "5 wake operator", "6 abandon operator"];
    assert_eq!(inputs, expected);
    let source = engine.record_source(id).await.expect("it exists");
    let contents: Vec<&str> = source
        .messages
        .iter()
        .filter(|message| message.channel.is_inputs() && !message.content.is_empty())
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(contents.len(), 1, "{contents:?}");
    assert!(contents[0].starts_with("{\"prompt\":\"") && contents[0].contains("\"release\":\""), "{contents:?}");

    let channel = Channel::Inputs(id);
    let read = engine.read(channel, 1, 99).await.expect("the store can be read");
    assert!(read.removed && read.messages.is_empty() && read.session.is_none());
    assert!(engine.subscribe(channel).await.expect("the store can be read").is_none());
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    let refused = engine.hide_message(by, channel, 2).await.expect_err("inputs can't be hidden");
    assert!(matches!(refused, EngineError::UnknownMessage { .. }), "{refused:?}");
    engine.withdraw_session(by, id, Withdrawal::Remove).await.expect("it is removed");
    let gone = engine.record_source(id).await.expect_err("it is gone");
    assert!(matches!(gone, EngineError::UnknownSession), "{gone:?}");
}

#[tokio::test]
async fn a_session_with_too_many_bytes_has_no_record() {
    let (environment, folder) = (TestEnvironment::new(54), data_folder());
    let engine = engine(&environment, &folder).await;
    let (id, invites) = create(&engine).await;
    join(&engine, invites[0]).await;
    let content = "x".repeat(1 << 20);
    for _ in 0..127 {
        say(&engine, id, invites[0], &content).await;
    }
    assert_eq!(engine.record_bytes(id).await.expect("a record") >> 20, 127);
    assert_eq!(engine.record_source(id).await.expect("a record").session.facts.id, id);
    say(&engine, id, invites[0], &content).await;
    let refused = engine.record_bytes(id).await.expect_err("the messages are too long");
    let text = "the session has no record, because its messages have more than 128 MiB";
    assert_eq!(refused.to_string(), text);
}

#[tokio::test]
async fn the_commitment_of_a_hidden_message_remains() {
    let (environment, folder) = (TestEnvironment::new(53), data_folder());
    let engine = engine(&environment, &folder).await;
    let (id, invites) = create(&engine).await;
    join(&engine, invites[0]).await;
    for content in ["one", "two", "three"] {
        say(&engine, id, invites[0], content).await;
    }
    let by = Administrator { address: "127.0.0.1".parse().expect("an address") };
    let chat = Channel::Chat(id);
    engine.hide_message(by, chat, 1).await.expect("it is hidden");
    // From now on, the engine keeps commitments.
    engine.set_commitments(Arc::new(|place: ContentPlace, content: &str| {
        let ContentPlace::Message(channel, index) = place else { return None };
        Some(ContentHash::of(&format!("{channel} {index} salted {content}")))
    }));
    engine.hide_message(by, chat, 3).await.expect("it is hidden");
    engine.hide_message(by, chat, 1).await.expect("it stays hidden");
    let source = engine.record_source(id).await.expect("it exists");
    let commitment = ContentHash::of(&format!("{chat} 3 salted three"));
    assert_eq!(source.commitments.into_iter().collect::<Vec<_>>(), [((chat, 3), commitment)]);
    let said: Vec<_> = source.messages.iter().filter(|message| message.channel == chat).collect();
    assert_eq!(said.iter().map(|message| message.content.as_str()).collect::<Vec<_>>(), ["", "two", ""]);
    assert_eq!(said.iter().map(|message| message.hidden.is_some()).collect::<Vec<_>>(), [true, false, true]);
}
