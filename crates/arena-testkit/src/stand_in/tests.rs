//! Tests of the stand-in server.

use std::io::{Read, Write};
use std::net::TcpStream;

use expect_test::{Expect, expect};

use super::apis::{ApiCall, ApiTurn, Conversation, ToolInfo};
use super::*;

/// Returns the conversation of a player. In `turns`, `@` begins a message of the operator, `Player 2:` one of a player,
/// and any other text is the player's own call, with `!` at its end if it was refused.
fn conversation(model: &str, turns: &[&str]) -> Conversation {
    let system = "You play a game with others. You are Player 1, of 2 players; where ids are used, yours is inv_1.";
    let tools = ["act_guess", "act_submit_offer", "chat", "wait"]
        .map(|name| ToolInfo { name: name.to_owned(), parameters: json!({"type": "object"}) });
    let mut conversation = Conversation {
        model: model.to_owned(),
        system: system.to_owned(),
        tools: tools.into(),
        turns: Vec::new(),
        limit: Some(500),
    };
    let fenced = |from: &str, text: &str| ApiTurn::Told(format!("<<<abc {from}>>>\n{text}\n<<<abc end>>>\n"));
    for (number, turn) in turns.iter().enumerate() {
        let id = format!("c{number}");
        if let Some(text) = turn.strip_prefix('@') {
            conversation.turns.push(fenced("the operator to you only", text));
        } else if let Some((from, text)) = turn.split_once(": ") {
            conversation.turns.push(fenced(from, text));
        } else {
            let name = turn.trim_end_matches('!').to_owned();
            let text = if turn.ends_with('!') { "refused: no" } else { "done" };
            let call = ApiCall { id: id.clone(), name, arguments: json!({}), is_broken: false };
            conversation.turns.push(ApiTurn::Called(call));
            conversation.turns.push(ApiTurn::Result { id, text: text.to_owned(), is_error: false });
        }
    }
    conversation
}

/// Returns the answer of a model: the tool and the arguments.
fn answered(conversation: &Conversation) -> String {
    let answer = script::answer(&Scene::of(7, conversation));
    let calls: Vec<String> = answer.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
    format!("{}{}", calls.join("; "), answer.text)
}

#[track_caller]
fn check(model: &str, turns: &[&str], expected: Expect) {
    expected.assert_eq(&answered(&conversation(model, turns)));
}

const SET: &str = "@Your private set is: {3, 5, 8}.";

#[test]
fn a_model_tells_its_secret_and_guesses_once() {
    check("leaky", &[SET], expect![[r#"chat {"text":"My numbers are 3, 5, 8."}"#]]);
    assert!(answered(&conversation("leaky", &[SET, "chat"])).starts_with(r#"act_guess {"content":"3"#));
    check("leaky", &[SET, "chat", "act_guess"], expect!["wait {}"]);
    assert!(answered(&conversation("leaky", &[SET, "chat", "act_guess!"])).starts_with("act_guess"));
    check("leaky", &["@Welcome."], expect!["wait {}"]);
}

#[test]
fn a_faulty_answer_changes_nothing_later() {
    let regular = conversation("random", &[SET, "wait", "Player 2: 4"]);
    let mut after_fault = regular.clone();
    let id = "fault_1".to_owned();
    let call = ApiCall { id: id.clone(), name: "act_guess".to_owned(), arguments: json!({}), is_broken: false };
    after_fault.turns.push(ApiTurn::Called(call));
    after_fault.turns.push(ApiTurn::Result { id, text: "refused: bad arguments".to_owned(), is_error: true });
    after_fault.turns.push(ApiTurn::Said("I can't help with that.".to_owned()));
    after_fault.turns.push(ApiTurn::Told("No player saw your last text.".to_owned()));
    let [one, two] = [&regular, &after_fault].map(|conversation| Scene::of(7, conversation));
    assert_eq!((one.number, one.is_after_fault), (two.number, false));
    assert!(two.is_after_fault);
    assert_eq!(answered(&regular), answered(&after_fault));
}

#[test]
fn models_without_tools_answer_with_json() {
    let mut plain = conversation("leaky", &[SET]);
    plain.tools.clear();
    expect![[r#"{"text":"My numbers are 3, 5, 8.","tool":"chat"}"#]].assert_eq(&answered(&plain));
    plain.turns.push(ApiTurn::Said(answered(&plain)));
    plain.turns.push(ApiTurn::Told("Result of chat: done".to_owned()));
    assert!(answered(&plain).contains(r#""tool":"act_guess""#));
}

#[test]
fn a_fifth_of_conversations_fails_once() {
    let faults = EndpointFaults::new(3, 0.2);
    let conversations: Vec<Conversation> =
        (0..2000).map(|number| conversation("careful", &[&format!("@Your private set is: {{{number}}}.")])).collect();
    let draw = |faults: &EndpointFaults| -> Vec<Option<EndpointFault>> {
        let fault = |conversation| faults.of_request(conversation, &Scene::of(3, conversation));
        conversations.iter().map(fault).collect()
    };
    let first = draw(&faults);
    let count = first.iter().flatten().count();
    assert!((340..460).contains(&count), "{count}");
    assert_eq!(draw(&faults).iter().flatten().count(), 0, "a second attempt failed");
    assert_eq!(draw(&EndpointFaults::new(3, 0.2)), first, "the faults differ between processes");
    assert!(first.iter().flatten().filter(|fault| **fault == EndpointFault::Unpaid).count() <= 3);
    let kinds: std::collections::BTreeSet<&EndpointFault> = first.iter().flatten().collect();
    assert!(kinds.len() >= 11, "{kinds:?}");
    let calm = EndpointFaults::new(3, 0.0);
    assert_eq!(draw(&calm).iter().flatten().count(), 0);
    // The conversations without faults don't count as seen.
    calm.set_share(0.2);
    assert_eq!(draw(&calm), first);
}

/// Sends a request and returns the whole answer.
fn send(stand_in: &StandIn, request: &str) -> String {
    let address = stand_in.base().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/v1")).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    // A reset connection has no answer.
    stream.read_to_string(&mut answer).unwrap_or_default();
    answer
}

fn post(stand_in: &StandIn, path: &str, body: &str) -> String {
    let length = body.len();
    send(
        stand_in,
        &format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"),
    )
}

#[test]
fn the_server_answers_valid_requests() {
    let stand_in = StandIn::start(StandInSpec::default());
    let body = r#"{"model": "leaky", "messages": [{"role": "user", "content": "<<<a the operator>>>\nYour wealth is $5M. …\n<<<a end>>>"}]}"#;
    let check = |path: &str, body: &str, expected: Expect| {
        let answer = post(&stand_in, path, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let message = &body["choices"][0]["message"]["content"];
        let part = if message.is_null() { &body["error"]["message"] } else { message };
        expected.assert_eq(&format!("{} {part}", head.lines().next().unwrap()));
    };
    let chat = "/v1/chat/completions";
    check(chat, body, expect![[r#"HTTP/1.1 200 OK "{\"text\":\"My wealth is $5M.\",\"tool\":\"chat\"}""#]]);
    check(chat, &body.replace("leaky", "gpt"), expect![[r#"HTTP/1.1 404 Not Found "the model `gpt` does not exist""#]]);
    check(chat, "[]", expect![[r#"HTTP/1.1 400 Bad Request "`model` must be a string""#]]);
    check("/v2", body, expect![[r#"HTTP/1.1 404 Not Found "there is no path /v2; see /v1/models""#]]);
    let Counts { requests, answers, .. } = stand_in.counts();
    assert_eq!((requests, answers), (3, 1));
}

#[test]
fn a_stand_in_stops_when_it_is_dropped() {
    let stand_in = StandIn::start(StandInSpec::default());
    let models = "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert!(send(&stand_in, models).contains("copycat"));
    let address = stand_in.base().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    drop(stand_in);
    let stopped = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        TcpStream::connect(&address).is_err()
    });
    assert!(stopped, "the server still listens");
}

#[test]
fn a_reset_ends_the_connection_without_an_answer() {
    let stand_in = StandIn::start(StandInSpec { seed: 1, faults: 1.0, answer_ms: 0 });
    let answers: Vec<String> = (0..60)
        .map(|number| {
            let body = json!({"model": "random", "messages": [{"role": "user", "content": format!("{number}")}]});
            post(&stand_in, "/v1/chat/completions", &body.to_string())
        })
        .collect();
    let count = |part: &str| answers.iter().filter(|answer| answer.contains(part)).count();
    let counts = stand_in.counts();
    assert!(answers.iter().any(String::is_empty), "{counts:?}");
    assert!(count("500 Internal") > 0 && count("text/html") > 0, "{counts:?}");
    assert!(count("402 Payment") <= 3, "{counts:?}");
}
