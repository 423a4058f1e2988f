//! Event streams and long polls: subscribers get all messages once and in order, despite broken connections, slow
//! readers, long channels, concurrent writers, and the end of game, session or server.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Answer, Client, EventStream, Host, until};
use serde_json::{Value, json};

use crate::refusals::{exchange, until_hung_up};

struct StreamFixture {
    host: Host,
    client: Client,
    session: String,
    players: Vec<String>,
}

impl StreamFixture {
    fn new() -> StreamFixture {
        StreamFixture::at(Host::start_with(|settings| settings.limits.chat_bytes = 1 << 30))
    }

    fn at(host: Host) -> StreamFixture {
        let client = host.client();
        let (session, players) = client.seated("psi");
        StreamFixture { host, client, session, players }
    }

    fn say(&self, text: &str) -> u64 {
        self.client.chat(&self.session, &self.players[0], text).ok()["index"].as_u64().expect("an index")
    }

    /// Sends `n` different messages of `bytes` bytes each, from several threads and without pause.
    fn say_much(&self, n: usize, bytes: usize) {
        const SPEAKERS: usize = 16;
        thread::scope(|scope| {
            for speaker in 0..SPEAKERS {
                scope.spawn(move || {
                    for i in (speaker..n).step_by(SPEAKERS) {
                        self.say(&(format!("{i:08}") + &"x".repeat(bytes - 8)));
                    }
                });
            }
        });
    }

    /// Returns the path of the chat's stream, or with the prefix `challenge_` that of the operator channel.
    fn path(&self, channel: &str) -> String {
        format!("/api/chat/ws/{channel}{}", self.session)
    }

    fn chat(&self) -> EventStream {
        self.client.stream(&self.path(""), None)
    }

    fn sync(&self, route: &str, query: &str) -> Value {
        self.client.get(&format!("/api/{route}/sync?channel={}{query}", self.session)).ok()
    }

    fn end(&self) {
        self.client.ends_well(&self.session, &self.players);
    }
}

#[derive(Debug, PartialEq)]
enum Event {
    Initial(String, Vec<Value>),
    New(String, Value),
    Ended(String, Value),
}

#[track_caller]
fn next(stream: &mut EventStream) -> Event {
    assert_eq!(stream.status, 200);
    let (id, mut data) = stream.next_event().expect("one more event");
    let kind = data["type"].as_str().expect("a type").to_owned();
    match kind.as_str() {
        "initial" => match data["messages"].take() {
            Value::Array(messages) => Event::Initial(id, messages),
            other => panic!("no list: {other}"),
        },
        "new_message" => Event::New(id, data["message"].take()),
        "game_ended" => Event::Ended(id, data["data"].take()),
        _ => panic!("{data}"),
    }
}

/// Returns the message of the next event. The event's id must be the message's index followed by `mark`.
#[track_caller]
fn next_message(stream: &mut EventStream, mark: &str) -> Value {
    match next(stream) {
        Event::New(id, message) => {
            assert_eq!(id, format!("{}{mark}", message["index"]));
            message
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the messages of a new subscriber's first event. The event's id must be the last message's index.
#[track_caller]
fn initial(stream: &mut EventStream) -> Vec<Value> {
    match next(stream) {
        Event::Initial(id, messages) => {
            assert_eq!(id, messages.last().map_or_else(|| "0".to_owned(), |message| message["index"].to_string()));
            messages
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the messages of a new subscriber up to index `len`.
#[track_caller]
fn all(stream: &mut EventStream, len: u64) -> Vec<Value> {
    let mut received = initial(stream);
    while received.last().is_none_or(|message| message["index"].as_u64() < Some(len)) {
        received.push(next_message(stream, ""));
    }
    received
}

fn indexes(messages: &[Value]) -> Vec<u64> {
    messages.iter().map(|message| message["index"].as_u64().expect("an index")).collect()
}

fn contents(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["content"].as_str().expect("a text")).collect()
}

// Format of a stream.

#[test]
fn a_stream_has_the_headers_that_keep_it_alive() {
    let table = StreamFixture::new();
    let session = &table.session;
    for api in ["/api", "/api/v1"] {
        for channel in [session.clone(), format!("challenge_{session}"), "invites".to_owned()] {
            let stream = table.client.stream(&format!("{api}/chat/ws/{channel}"), None);
            assert_eq!(stream.status, 200);
            for (name, value) in [
                ("content-type", "text/event-stream"),
                ("cache-control", "no-cache, no-transform"),
                ("x-accel-buffering", "no"),
                ("access-control-allow-origin", "*"),
            ] {
                let found: Vec<&str> =
                    stream.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect();
                assert_eq!(found, [value], "{name} of {channel}");
            }
        }
    }
}

#[test]
fn an_event_is_a_line_of_data_and_a_line_of_id_whatever_is_said() {
    let table = StreamFixture::new();
    let texts = ["plain", "two\nlines", "\r\n\r\ndata: {}\nid: 99\n\n", "\u{2028}\u{85}", "event: x\n", ": ping", ""];
    let mut stream = table.chat();
    for text in texts {
        table.say(text);
    }
    table.end();
    let mut late = table.chat();
    let check = |stream: &mut EventStream, id: &str| -> Value {
        let block = stream.next_block().expect("one more event");
        let lines: Vec<&str> = block.split(['\n', '\r']).collect();
        let [data, end] = lines[..] else { panic!("{block:?}") };
        assert_eq!(end, format!("id: {id}"), "{block:?}");
        serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON")
    };
    assert_eq!(check(&mut stream, "0"), json!({"type": "initial", "messages": []}));
    for (text, id) in texts.iter().zip(1..) {
        let event = check(&mut stream, &id.to_string());
        assert_eq!((&event["type"], &event["message"]["content"]), (&json!("new_message"), &json!(text)));
    }
    assert_eq!(check(&mut stream, "7.ended")["type"], "game_ended");
    let event = check(&mut late, "7");
    assert_eq!(event["type"], "initial");
    assert_eq!(contents(event["messages"].as_array().expect("a list")), texts);
    assert_eq!(check(&mut late, "7.ended")["type"], "game_ended");
}

#[test]
fn initial_comes_first_and_contains_the_existing_messages() {
    let table = StreamFixture::new();
    assert_eq!(initial(&mut table.chat()), Vec::<Value>::new());
    for n in 1..=3 {
        table.say("hello");
        let there = initial(&mut table.chat());
        assert_eq!(there, table.client.get(&format!("/api/chat/sync?channel={}", table.session)).messages());
        assert_eq!(indexes(&there), (1..=n).collect::<Vec<u64>>());
    }
    let mut operator = table.client.stream(&table.path("challenge_"), None);
    assert_eq!(json!(initial(&mut operator)), table.sync("arena", "")["messages"]);
}

// Visibility.

#[test]
fn each_viewer_sees_its_messages_live_and_later() {
    let host = Host::start_with(|settings| {
        settings.challenges[0].options.insert("players".to_owned(), json!(3));
    });
    let client = host.client();
    let (session, players) = client.create("psi");
    let viewers: Vec<String> =
        players.iter().map(String::as_str).chain(["viewer", "operator", "ada", ""]).map(str::to_owned).collect();
    let open = |channel: &str| -> Vec<EventStream> {
        let path = |from: &String| format!("/api/chat/ws/{channel}{session}?from={from}");
        viewers.iter().map(|from| client.stream(&path(from), None)).collect()
    };
    let mut live = [open(""), open("challenge_")];
    for stream in live.iter_mut().flatten() {
        assert_eq!(initial(stream), Vec::<Value>::new());
    }
    for player in &players {
        client.join(player).ok();
    }
    client.chat(&session, &players[0], "to all").ok();
    let whisper = json!({ "channel": session, "from": players[0], "to": players[1], "content": "to one" });
    client.post("/api/chat/send", &whisper).ok();

    let mut late = [open(""), open("challenge_")];
    for (i, viewer) in viewers.iter().enumerate() {
        let [chat, operator] = &mut live;
        let said: Vec<Value> = (0..2).map(|_| next_message(&mut chat[i], "")).collect();
        let received: Vec<Value> = (0..3).map(|_| next_message(&mut operator[i], "")).collect();
        let [chat, operator] = &mut late;
        assert_eq!(initial(&mut chat[i]), said, "{viewer}");
        assert_eq!(initial(&mut operator[i]), received, "{viewer}");

        assert_eq!(said[0]["content"], "to all");
        let heard = i < 2;
        assert_eq!(said[1]["content"], if heard { "to one" } else { "" }, "{viewer}");
        for (message, mine) in
            said[1..].iter().map(|message| (message, heard)).chain(received.iter().zip((0..3).map(|j| i == j)))
        {
            let mut parts: Vec<&str> = message.as_object().expect("an object").keys().map(String::as_str).collect();
            parts.retain(|part| !["channel", "content", "from", "index", "timestamp", "to"].contains(part));
            assert_eq!(parts, if mine { &[][..] } else { &["redacted"] }, "{viewer}: {message}");
            assert_eq!(message["content"] == "", !mine, "{viewer}: {message}");
        }
    }
    // After the end the operator channel is public, and private chat stays private.
    for player in &players {
        client.act(&session, player, "guess", "999").ok();
    }
    for (i, viewer) in viewers.iter().enumerate() {
        let [mut chat, mut operator] = ["", "challenge_"]
            .map(|channel| client.stream(&format!("/api/chat/ws/{channel}{session}?from={viewer}"), None));
        let (said, received) = (initial(&mut chat), initial(&mut operator));
        assert_eq!(said[1]["content"], if i < 2 { "to one" } else { "" }, "{viewer}");
        assert!(
            received.iter().all(|message| message["content"] != "" && message.get("redacted").is_none()),
            "{viewer}"
        );
    }
}

#[test]
fn an_arena_may_reveal_private_chat_after_the_end() {
    let table = StreamFixture::at(Host::start_with(|settings| settings.sessions.reveal_chat = true));
    let whisper = json!({
        "channel": table.session, "from": table.players[0], "to": table.players[1], "content": "between us"
    });
    table.client.post("/api/chat/send", &whisper).ok();
    assert_eq!(contents(&initial(&mut table.chat())), [""]);
    table.end();
    assert_eq!(contents(&initial(&mut table.chat())), ["between us"]);
}

// Each message once, in order.

#[test]
fn each_message_comes_once_and_in_order_despite_concurrent_writers_and_broken_connections() {
    const SPEAKERS: usize = 8;
    const EACH: usize = 60;
    const ALL: u64 = (SPEAKERS * EACH) as u64;
    let table = StreamFixture::new();
    let table = &table;
    let seen: Vec<Vec<Value>> = thread::scope(|scope| {
        // One subscriber stays connected. The others reconnect every few events, at different times.
        let subscribers: Vec<_> = [u64::MAX, 1, 2, 7, 50]
            .into_iter()
            .map(|patience| {
                scope.spawn(move || {
                    let mut received = Vec::new();
                    let mut last_id: Option<String> = None;
                    while (received.len() as u64) < ALL {
                        let mut stream = table.client.stream(&table.path(""), last_id.as_deref());
                        let mut events = 0;
                        while events < patience && (received.len() as u64) < ALL {
                            events += 1;
                            match (next(&mut stream), &last_id) {
                                (Event::Initial(id, messages), None) => {
                                    received.extend(messages);
                                    last_id = Some(id);
                                }
                                (Event::New(id, message), Some(_)) => {
                                    received.push(message);
                                    last_id = Some(id);
                                }
                                (other, last_id) => panic!("{other:?} after {last_id:?}"),
                            }
                        }
                    }
                    received
                })
            })
            .collect();
        for speaker in 0..SPEAKERS {
            scope.spawn(move || {
                for n in 0..EACH {
                    let player = &table.players[speaker % 2];
                    table.client.chat(&table.session, player, &format!("{speaker}/{n}")).ok();
                }
            });
        }
        subscribers.into_iter().map(|subscriber| subscriber.join().expect("no panic")).collect()
    });
    let stored = table.client.get(&format!("/api/chat/sync?channel={}", table.session)).messages();
    assert_eq!(indexes(&stored), (1..=ALL).collect::<Vec<u64>>());
    for received in seen {
        assert!(received == stored, "{:?}", indexes(&received));
    }
}

#[test]
fn a_subscriber_resumes_with_exactly_the_rest() {
    const LEN: u64 = 12;
    let table = StreamFixture::new();
    let mut streams: Vec<EventStream> = (0..=LEN).map(|_| table.chat()).collect();
    for stream in &mut streams {
        initial(stream);
    }
    for n in 1..=LEN {
        table.say(&n.to_string());
    }
    // The connection of subscriber n breaks after n messages.
    let mut streams: Vec<EventStream> = (0..=LEN)
        .zip(streams)
        .map(|(n, mut stream)| {
            let received: Vec<Value> = (0..n).map(|_| next_message(&mut stream, "")).collect();
            assert_eq!(indexes(&received), (1..=n).collect::<Vec<u64>>());
            drop(stream);
            table.client.stream(&table.path(""), Some(&n.to_string()))
        })
        .collect();
    let last = table.say("the last one");
    for (n, stream) in (0..=LEN).zip(&mut streams) {
        let received: Vec<Value> = (n..last).map(|_| next_message(stream, "")).collect();
        assert_eq!(indexes(&received), (n + 1..=last).collect::<Vec<u64>>(), "after {n}");
        assert_eq!(received.last().expect("a message")["content"], "the last one");
    }
    // An empty id counts as missing.
    let mut stream = table.client.stream(&table.path(""), Some(""));
    assert_eq!(indexes(&initial(&mut stream)), (1..=last).collect::<Vec<u64>>());
}

#[test]
fn a_long_channel_is_streamed_whole() {
    const LEN: u64 = 3000;
    let table = StreamFixture::new();
    table.say_much(LEN as usize, 8);
    let stored = table.client.get(&format!("/api/chat/sync?channel={}", table.session)).messages();
    let received = all(&mut table.chat(), LEN);
    assert!(received == stored, "{:?}", indexes(&received));
    let mut stream = table.client.stream(&table.path(""), Some("1500"));
    let rest: Vec<Value> = (1500..LEN).map(|_| next_message(&mut stream, "")).collect();
    assert!(rest == stored[1500..], "{:?}", indexes(&rest));
    table.say("and one more");
    assert_eq!(next_message(&mut stream, "")["content"], "and one more");
}

#[test]
fn a_slow_reader_loses_nothing_and_delays_no_writer() {
    const LEN: u64 = 5000;
    // The readers below read nothing while all messages are sent. On a busy machine that takes longer than the default
    // timeout for clients that don't read.
    let table = StreamFixture::at(Host::start_with(|settings| {
        settings.limits.stalled_ms = 600_000;
        settings.limits.chat_bytes = 1 << 30;
    }));
    let mut slow = table.chat();
    let mut slow_from_the_first = table.client.stream(&table.path(""), Some("0"));
    table.say_much(LEN as usize, 4096);
    let stored = table.client.get(&format!("/api/chat/sync?channel={}", table.session)).messages();
    assert_eq!(stored.len() as u64, LEN);
    let received = all(&mut slow, LEN);
    assert!(received == stored, "{:?}", indexes(&received));
    let received: Vec<Value> = (0..LEN).map(|_| next_message(&mut slow_from_the_first, "")).collect();
    assert!(received == stored, "{:?}", indexes(&received));
    table.say("and one more");
    assert_eq!(next_message(&mut slow, "")["content"], "and one more");
}

// The end of a game.

#[test]
fn the_end_is_sent_once_on_both_channels_and_to_later_subscribers() {
    let table = StreamFixture::new();
    let channels = ["", "challenge_"];
    let mut live = channels.map(|channel| table.client.stream(&table.path(channel), None));
    table.say("hello");
    table.end();
    let len = [1, table.sync("arena", "")["count"].as_u64().expect("a number")];
    let page = table.client.get("/api/challenges").ok();
    let state = &page["challenges"][0]["state"];
    let mut late = channels.map(|channel| table.client.stream(&table.path(channel), None));
    let mut behind = channels.map(|channel| table.client.stream(&table.path(channel), Some("0")));
    let mut knowing = [0, 1].map(|i| table.client.stream(&table.path(channels[i]), Some(&format!("{}.ended", len[i]))));
    // Two messages are sent after the end of the game.
    table.say("good game");
    table.client.act(&table.session, &table.players[0], "guess", "1").ok();
    for i in 0..2 {
        for stream in [&mut live[i], &mut late[i], &mut behind[i]] {
            let mut received = Vec::new();
            let ended = loop {
                match next(stream) {
                    Event::Initial(_, messages) => received.extend(messages),
                    Event::New(_, message) => received.push(message),
                    Event::Ended(id, data) => break (id, data),
                }
            };
            // The message after the end may come before or after the event `game_ended`, depending on the time of
            // subscribing.
            let seen = received.len() as u64;
            assert!(seen == len[i] || seen == len[i] + 1, "{received:?}");
            assert_eq!(indexes(&received), (1..=seen).collect::<Vec<u64>>());
            let (id, mut data) = ended;
            assert_eq!(id, format!("{seen}.ended"));
            assert_eq!(data.as_object_mut().expect("an object").remove("profiles"), Some(json!({})));
            assert_eq!(&data, state);
            for index in seen + 1..=len[i] + 1 {
                assert_eq!(next_message(stream, ".ended")["index"], index);
            }
        }
        assert_eq!(next_message(&mut knowing[i], ".ended")["index"], len[i] + 1);
    }
    // The event `game_ended` isn't repeated: the next event is the next message.
    table.say("good night");
    table.client.act(&table.session, &table.players[0], "guess", "1").ok();
    for i in 0..2 {
        for stream in [&mut live[i], &mut late[i], &mut behind[i], &mut knowing[i]] {
            assert_eq!(next_message(stream, ".ended")["index"], len[i] + 2);
        }
    }
}

#[test]
fn a_resuming_subscriber_does_not_get_the_end_again() {
    for channel in ["", "challenge_"] {
        let table = StreamFixture::new();
        let more = || match channel {
            "" => _ = table.say("more"),
            _ => _ = table.client.act(&table.session, &table.players[0], "guess", "1").ok(),
        };
        let mut stream = table.client.stream(&table.path(channel), None);
        let there = initial(&mut stream).len() as u64;
        table.end();
        more();
        more();
        let len =
            table.sync(if channel.is_empty() { "chat" } else { "arena" }, "")["count"].as_u64().expect("a number");
        // Returns an event's id and the index of its message, if any.
        let read = |stream: &mut EventStream| match next(stream) {
            Event::New(id, message) => (id, message["index"].as_u64()),
            Event::Ended(id, _) => (id, None),
            Event::Initial(..) => panic!("a second start"),
        };
        let seen: Vec<(String, Option<u64>)> = (0..len + 1 - there).map(|_| read(&mut stream)).collect();
        let streams: Vec<EventStream> =
            seen.iter().map(|(id, _)| table.client.stream(&table.path(channel), Some(id))).collect();
        more();
        for (at, mut stream) in streams.into_iter().enumerate() {
            let (known, missing) = seen.split_at(at + 1);
            let rest: Vec<Option<u64>> = (0..=missing.len()).map(|_| read(&mut stream).1).collect();
            // A message after the end may precede `game_ended` in the stream.
            let received: Vec<u64> = rest.iter().flatten().copied().collect();
            let last = known.iter().filter_map(|(_, index)| *index).max().unwrap_or(there);
            assert_eq!(received, (last + 1..=len + 1).collect::<Vec<u64>>(), "after {:?}", known.last());
            let ends = rest.len() - received.len() + known.iter().filter(|(_, index)| index.is_none()).count();
            assert_eq!(ends, 1, "after {:?}", known.last());
        }
    }
}

// The end of a session, and the stop of the server.

/// Returns the raw response to a GET, until the server disconnects.
fn everything(client: &Client, path: &str) -> String {
    exchange(client, format!("GET {path} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n").as_bytes(), false)
}

/// True if a chunked response is complete.
fn is_complete(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n0\r\n\r\n")
}

#[test]
fn a_session_that_is_removed_ends_its_streams_and_waits() {
    let host = Host::start_with(|settings| settings.sessions.stale_open_s = 8);
    let client = host.client();
    let (session, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    let (stream, poll) = ("/api/chat/ws/", "/api/chat/sync?wait=50&index=2&channel=");
    thread::scope(|scope| {
        for path in [stream, poll] {
            for channel in [session.clone(), format!("challenge_{session}")] {
                scope.spawn(move || {
                    let answer = everything(&client, &format!("{path}{channel}"));
                    if path == stream {
                        assert!(is_complete(&answer) && answer.matches("data: ").count() == 1, "{answer}");
                    } else {
                        assert!(answer.ends_with(r#"{"messages":[],"count":0}"#), "{answer}");
                    }
                });
            }
        }
    });
    // The session is removed completely.
    let gone = |answer: Answer, status: u16, code: &str| assert_eq!(answer.refusal(), (status, code.to_owned()));
    gone(client.get(&format!("{stream}{session}")), 404, "CHANNEL_NOT_FOUND");
    gone(client.get(&format!("{stream}challenge_{session}")), 404, "CHANNEL_NOT_FOUND");
    gone(client.join(&invites[1]), 400, "INVITE_NOT_FOUND");
    gone(client.get(&format!("/api/invites/{}", invites[1])), 404, "INVITE_NOT_FOUND");
    gone(client.post("/api/invites", &json!({ "inviteId": invites[1] })), 404, "INVITE_NOT_FOUND");
    gone(client.act(&session, &invites[0], "guess", "1"), 400, "CHALLENGE_NOT_FOUND");
    gone(client.chat(&session, &invites[0], "hello"), 400, "INVALID_CHANNEL");
    assert_eq!(client.get("/api/challenges").ok()["total"], 0);
    assert_eq!(client.counter("arena_stream_subscribers"), 0);
}

#[test]
fn a_server_that_stops_ends_streams_and_waits_at_once() {
    let StreamFixture { host, client, session, .. } = StreamFixture::new();
    let ask = |path: String| -> TcpStream {
        let mut connection = client.connect().expect("a connection");
        write!(connection, "GET {path} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n")
            .expect("a request is sent");
        connection
    };
    let channels = [session.clone(), format!("challenge_{session}"), "invites".to_owned()];
    let streams = channels.map(|channel| ask(format!("/api/chat/ws/{channel}")));
    let polls = ["chat", "arena"].map(|route| ask(format!("/api/{route}/sync?channel={session}&index=9&wait=50")));
    until("all are served", || {
        client.counter("arena_stream_subscribers") == 3 && client.counter("arena_http_in_flight") == 3
    });
    drop(host);
    // A response cut off by the shutdown timeout would be incomplete.
    for mut stream in streams {
        let answer = until_hung_up(&mut stream);
        assert!(is_complete(&answer), "{answer}");
    }
    for mut poll in polls {
        let answer = until_hung_up(&mut poll);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(r#"{"messages":[],"count":0}"#), "{answer}");
    }
}

#[test]
fn a_reader_that_does_not_read_keeps_no_server_from_stopping() {
    let table = StreamFixture::new();
    let stream = table.chat();
    table.say_much(100, 200_000);
    until("the reader is served", || table.client.counter("arena_stream_subscribers") == 1);
    let started = Instant::now();
    drop(table.host);
    // The shutdown timeout is two seconds.
    assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
    drop(stream);
}

// Other channels and event ids.

#[test]
fn the_public_channel_carries_announcements() {
    let host = Host::start();
    let client = host.client();
    let mut stream = client.stream("/api/chat/ws/invites", None);
    assert_eq!(initial(&mut stream), Vec::<Value>::new());
    let (_, invites) = client.create("psi");
    for (n, invite) in (1..).zip(&invites) {
        client.post("/api/invites", &json!({ "inviteId": invite })).ok();
        let message = next_message(&mut stream, "");
        let parts = (&message["channel"], &message["from"], &message["content"], &message["index"]);
        assert_eq!(parts, (&json!("invites"), &json!("operator"), &json!(invite), &json!(n)));
        assert!(message.get("to").is_none());
    }
    let there = initial(&mut client.stream("/api/v1/chat/ws/invites", None));
    assert_eq!(contents(&there), invites);
    assert_eq!(there, client.get("/api/chat/sync?channel=invites").messages());
    assert_eq!(client.get("/api/chat/sync?channel=invites&index=2&wait=50").ok()["messages"], json!(there[1..]));
    let mut resumed = client.stream("/api/chat/ws/invites", Some("1"));
    assert_eq!(next_message(&mut resumed, ""), there[1]);
}

#[test]
fn an_id_that_is_none_is_refused() {
    let table = StreamFixture::new();
    for channel in [table.session.clone(), "invites".to_owned(), "nothing".to_owned()] {
        for api in ["/api", "/api/v1"] {
            let ids = "x|-1|+1|1.5|1e3|0x1|NaN|1 2|1,2|.ended|-1.ended|+1.ended|1.end|1.ended.ended|1.ended ended|\
                18446744073709551616|99999999999999999999|١|initial|null|1;";
            for id in ids.split('|') {
                let answer =
                    table.client.request("GET", &format!("{api}/chat/ws/{channel}"), &[("Last-Event-ID", id)], b"");
                assert_eq!(answer.refusal(), (400, "INVALID_LAST_EVENT_ID".to_owned()), "{id}");
                assert_eq!(answer.json()["error"], "Last-Event-ID must be an event id of this stream");
            }
        }
    }
    // The largest integer is a valid id, although no message can follow it.
    let stream = table.client.stream(&table.path(""), Some("18446744073709551615"));
    assert_eq!(stream.status, 200);
}

// Long polls.

#[test]
fn a_wait_is_over_at_once_when_something_is_there() {
    let table = StreamFixture::new();
    table.say("hello");
    // If these requests waited, the client would time out.
    for (route, query, count) in [
        ("chat", "&wait=50", 1),
        ("chat", "&wait=1e9", 1),
        ("chat", "&wait=50&index=1", 1),
        ("chat", "&wait=50&index=junk", 1),
        ("arena", "&wait=50", 2),
        ("arena", "&wait=50&index=2", 1),
        ("arena", "&wait=50&limit=1", 1),
        ("chat", "&wait=0&index=2", 0),
        ("chat", "&wait=0.0&index=2", 0),
        ("chat", "&wait=-0&index=2", 0),
    ] {
        assert_eq!(table.sync(route, query)["count"], count, "{route} {query}");
    }
}

#[test]
fn a_wait_ends_when_a_message_comes() {
    for wait in ["50", "50.5", "1e9", "4.9e1"] {
        let table = StreamFixture::new();
        let (client, session) = (table.client, &table.session);
        for (route, index) in [("chat", 1), ("arena", 3)] {
            let path =
                |from: &str| format!("/api/{route}/sync?channel={session}&index={index}&wait={wait}&from={from}");
            let (stranger, player) = (path("viewer"), path(&table.players[0]));
            thread::scope(|scope| {
                let waiting = [&stranger, &player].map(|path| scope.spawn(move || client.get(path).ok()));
                until("they wait", || client.counter("arena_http_in_flight") == 3);
                match route {
                    "chat" => _ = table.say("hello"),
                    _ if wait == "50" => table.end(),
                    _ => _ = client.act(session, &table.players[0], "guess", "1").ok(),
                }
                let [stranger, player] = waiting.map(|waiting| waiting.join().expect("no panic"));
                assert_eq!(indexes(player["messages"].as_array().expect("a list"))[0], index);
                assert_eq!(indexes(stranger["messages"].as_array().expect("a list"))[0], index);
            });
        }
    }
}

#[test]
fn one_message_wakes_all_long_polls() {
    const WAITING: u64 = 50;
    let table = StreamFixture::new();
    let table = &table;
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(|| table.sync("chat", "&wait=50"))).collect();
        until("they wait", || table.client.counter("arena_http_in_flight") == WAITING + 1);
        table.say("wake up");
        for waiting in waiting {
            let sync = waiting.join().expect("no panic");
            assert_eq!((&sync["count"], &sync["messages"][0]["content"]), (&json!(1), &json!("wake up")));
        }
    });
}

#[test]
fn a_wait_for_nothing_ends_empty_when_its_time_is_over() {
    let table = StreamFixture::new();
    for (route, index) in [("chat", 1), ("arena", 3)] {
        for (wait, ms) in [("0.3", 300), ("1e-1", 100), ("0.000000001", 0), ("1e-300", 0)] {
            let started = Instant::now();
            let sync = table.sync(route, &format!("&index={index}&wait={wait}"));
            assert_eq!(sync, json!({"messages": [], "count": 0}));
            assert!(started.elapsed() >= Duration::from_millis(ms), "{wait}: {:?}", started.elapsed());
        }
    }
}

#[test]
fn a_wait_that_is_no_number_is_refused() {
    let table = StreamFixture::new();
    for route in ["chat", "arena"] {
        for channel in [table.session.as_str(), "nothing"] {
            for api in ["/api", "/api/v1"] {
                for wait in [
                    "", "x", "-1", "-0.1", "NaN", "nan", "-inf", "1s", "0x1", "1,5", "%201", "1%00", "null", "1e",
                    "--1",
                ] {
                    let answer = table.client.get(&format!("{api}/{route}/sync?channel={channel}&wait={wait}"));
                    assert_eq!(answer.refusal(), (400, "INVALID_WAIT".to_owned()), "{wait}");
                    assert_eq!(answer.json()["error"], "wait must be a number of seconds from 0 to 50");
                }
            }
        }
    }
}

// Syncs of long channels.

#[test]
fn a_sync_answers_a_long_channel_whole_or_as_much_as_is_asked_for() {
    const LEN: u64 = 3000;
    let table = StreamFixture::new();
    table.say_much(LEN as usize, 8);
    for (query, first, last) in [
        ("", 1, LEN),
        ("&index=0", 1, LEN),
        ("&wait=50", 1, LEN),
        ("&index=2", 2, LEN),
        ("&index=1501", 1501, LEN),
        ("&index=2501", 2501, LEN),
        ("&index=2950", 2950, LEN),
        ("&index=3000", 3000, LEN),
        ("&index=3001", 3001, LEN),
        ("&index=3001&limit=5", 3001, LEN),
        ("&index=4000", 4000, LEN),
        ("&limit=1", 1, 1),
        ("&limit=499", 1, 499),
        ("&limit=500", 1, 500),
        ("&limit=501", 1, 501),
        ("&limit=1000", 1, 1000),
        ("&limit=2999", 1, 2999),
        ("&limit=3000", 1, LEN),
        ("&limit=3001", 1, LEN),
        ("&index=2900&limit=50", 2900, 2949),
        ("&index=2900&limit=101", 2900, LEN),
        ("&index=700&limit=1234", 700, 1933),
    ] {
        let sync = table.sync("chat", query);
        let found = indexes(sync["messages"].as_array().expect("a list"));
        assert!(found == (first..=last).collect::<Vec<u64>>(), "{query}: {found:?}");
        assert_eq!(sync["count"], found.len(), "{query}");
    }
}

#[test]
fn a_sync_of_large_messages_is_whole_too() {
    let table = StreamFixture::new();
    table.say_much(60, 100_000);
    for (query, first, last) in [("", 1, 60), ("&limit=25", 1, 25), ("&index=31", 31, 60), ("&index=5&limit=50", 5, 54)]
    {
        let sync = table.sync("chat", query);
        let messages = sync["messages"].as_array().expect("a list");
        assert_eq!(indexes(messages), (first..=last).collect::<Vec<u64>>(), "{query}");
        assert_eq!(sync["count"], messages.len(), "{query}");
        assert!(contents(messages).iter().all(|content| content.len() == 100_000));
    }
    let received = all(&mut table.chat(), 60);
    assert!(json!(received) == table.sync("chat", "")["messages"], "{:?}", indexes(&received));
}

/// The stream of a session has the messages that both channels show to the same caller, in order and once.
#[test]
fn both_channels_of_a_session_are_one_stream() {
    let fixture = StreamFixture::new();
    let (client, session) = (&fixture.client, &fixture.session);
    let private =
        json!({ "channel": session, "from": fixture.players[0], "to": fixture.players[1], "content": "for you only" });
    client.post("/api/chat/send", &private).ok();
    fixture.say("for all");
    let path = format!("/api/sessions/{session}/stream");
    /// Returns the next messages, by channel.
    fn read(stream: &mut EventStream, count: usize) -> [Vec<Value>; 2] {
        let mut messages = [Vec::new(), Vec::new()];
        while messages.iter().map(Vec::len).sum::<usize>() < count {
            let (_, data) = stream.next_event().expect("an event");
            let new = data["messages"].as_array().cloned().unwrap_or_else(|| vec![data["message"].clone()]);
            for message in new {
                let is_chat = !message["channel"].as_str().expect("a channel").starts_with("challenge_");
                messages[usize::from(is_chat)].push(message);
            }
        }
        messages
    }
    let expected = |from: &str| {
        ["arena", "chat"].map(|route| fixture.sync(route, from)["messages"].as_array().expect("messages").clone())
    };
    let callers = ["".to_owned(), format!("from={}", fixture.players[0]), format!("from={}", fixture.players[1])];
    for from in &callers {
        let expected = expected(&format!("&{from}"));
        let mut stream = client.stream(&format!("{path}?{from}"), None);
        assert_eq!(read(&mut stream, expected.iter().map(Vec::len).sum()), expected, "{from}");
        // A new message of each channel follows.
        let index = fixture.say("one more");
        let [operator, chat] = read(&mut stream, 1);
        assert_eq!((operator, &chat[0]["index"]), (Vec::new(), &json!(index)), "{from}");
        // Who has messages already gets only the later ones.
        let known = format!("{path}?{from}&operator={}&chat={}", expected[0].len(), index - 1);
        let [operator, chat] = read(&mut client.stream(&known, None), 1);
        assert_eq!((operator.len(), &chat[0]["index"]), (0, &json!(index)), "{from}");
    }
    let shown = serde_json::to_string(&expected("")).expect("JSON");
    assert!(!shown.contains("for you only") && shown.contains("for all"), "{shown}");
    assert_eq!(
        client.get(&path.replace(session, &session.replace('0', "1"))).refusal(),
        (404, "CHALLENGE_NOT_FOUND".to_owned())
    );
    assert_eq!(client.get(&format!("{path}?chat=-1")).status, 400);
    let mut stream = client.stream(&path, None);
    fixture.end();
    while stream.next_event().expect("the end").1["type"] != "game_ended" {}
}
