//! Services that behave well and badly, against the client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};

use super::*;

/// The bytes that a stand-in sends, from the request's path and body.
type Respond = dyn Fn(&str, &Value) -> Vec<u8> + Send + Sync;

/// Starts a service. Returns its URL.
fn serve(respond: impl Fn(&str, &Value) -> Vec<u8> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let respond: Arc<Respond> = Arc::new(respond);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, respond) = (stream.unwrap(), Arc::clone(&respond));
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    if path.is_empty() {
                        path = line.split(' ').nth(1).unwrap().to_owned();
                    }
                    if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = number.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let bytes = respond(&path, &serde_json::from_slice(&body).unwrap_or_default());
                let is_endless = bytes.is_empty();
                let _ = stream.write_all(&bytes);
                if is_endless {
                    let head =
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
                    let _ = stream.write_all(head);
                    while stream.write_all(b"1\r\n \r\n").is_ok() {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
    });
    url
}

fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

fn ok(body: &Value) -> Vec<u8> {
    http("200 OK", "content-type: application/json\r\n", &body.to_string())
}

fn result(result: Value) -> Vec<u8> {
    ok(&json!({"jsonrpc": "2.0", "id": 1, "result": result}))
}

fn card(version: &str) -> Vec<u8> {
    // The placeholder is replaced by the service's own address.
    match version {
        "0.3" => ok(&json!({"protocolVersion": "0.3.0", "url": "URL/rpc", "preferredTransport": "JSONRPC"})),
        version => {
            let grpc = json!({"url": "URL/grpc", "protocolBinding": "GRPC", "protocolVersion": version});
            let rpc = json!({"url": "URL/rpc", "protocolBinding": "JSONRPC", "protocolVersion": version});
            ok(&json!({"supportedInterfaces": [grpc, rpc]}))
        }
    }
}

/// Starts a service with a card of this version, whose interface answers by `respond`.
fn service(version: &'static str, respond: impl Fn(&Value) -> Vec<u8> + Send + Sync + 'static) -> String {
    let own = Arc::new(Mutex::new(String::new()));
    let known = Arc::clone(&own);
    let url = serve(move |path, body| match path {
        CARD_PATH => {
            let url = known.lock().unwrap().clone();
            let text = String::from_utf8(card(version)).unwrap();
            let (_, body) = text.split_once("\r\n\r\n").unwrap();
            http("200 OK", "", &body.replace("URL", &url))
        }
        "/rpc" => respond(body),
        _ => http("404 Not Found", "", "nothing"),
    });
    own.lock().unwrap().clone_from(&url);
    url
}

fn client(url: &str, public_only: bool) -> A2aClient {
    A2aClient {
        http: http::client(Duration::from_secs(60), public_only),
        card: format!("{url}{CARD_PATH}"),
        service: None,
        nonce: "n".to_owned(),
        sent: 0,
        context: None,
        task: None,
    }
}

/// Sends one message with two seconds of time.
fn ask(client: &mut A2aClient) -> Result<Said, String> {
    client.ask("news", None, Instant::now() + Duration::from_secs(2))
}

#[track_caller]
fn check(respond: impl Fn(&Value) -> Vec<u8> + Send + Sync + 'static, expected: Expect) {
    let url = service("1.0", respond);
    let shown = match ask(&mut client(&url, false)) {
        Ok(said) => format!("{said:?}"),
        Err(why) => why.replace(&url, "URL"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn messages_of_a_match_share_their_context() {
    for version in ["1.0", "0.3"] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let url = service(version, move |body| {
            kept.lock().unwrap().push(body.clone());
            let message =
                json!({"kind": "message", "contextId": "c1", "parts": [{"text": "hello"}, {"data": {"tool": "wait"}}]});
            result(if version == "1.0" { json!({ "message": message }) } else { message })
        });
        let mut client = client(&url, false);
        let state = json!({"epoch": 1});
        let said = client.ask("news", state.as_object(), Instant::now() + Duration::from_secs(2)).unwrap();
        assert_eq!(said.text, "hello\n{\"tool\":\"wait\"}");
        ask(&mut client).unwrap();
        let seen = seen.lock().unwrap();
        let message = |at: usize| &seen[at]["params"]["message"];
        let (method, role) = if version == "1.0" { ("SendMessage", "ROLE_USER") } else { ("message/send", "user") };
        assert_eq!((&seen[0]["method"], &message(0)["role"]), (&json!(method), &json!(role)));
        assert_eq!(message(0)["parts"][0]["text"], "news");
        assert_eq!(message(0)["parts"][1]["data"]["state"]["epoch"], 1);
        assert_eq!(message(0)["parts"][1]["kind"].as_str(), (version == "0.3").then_some("data"));
        assert!(message(0).get("contextId").is_none());
        assert_eq!(message(1)["contextId"], "c1");
        assert_ne!(message(0)["messageId"], message(1)["messageId"]);
    }
}

#[test]
fn tasks_are_awaited_and_continued() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let url = service("1.0", move |body| {
        let mut seen = kept.lock().unwrap();
        seen.push(body.clone());
        let status =
            |state: &str| json!({"state": state, "message": {"parts": [{"text": format!("at {}", seen.len())}]}});
        match seen.len() {
            1 => result(json!({"task": {"id": "t1", "contextId": "c", "status": status("TASK_STATE_WORKING")}})),
            2 => result(json!({"id": "t1", "contextId": "c", "status": status("TASK_STATE_INPUT_REQUIRED")})),
            _ => {
                let artifact = json!({"parts": [{"data": {"actions": [{"action": "move", "move": "UP"}]}}]});
                result(json!({"task": {"id": "t1", "status": status("TASK_STATE_COMPLETED"), "artifacts": [artifact]}}))
            }
        }
    });
    let mut client = client(&url, false);
    assert_eq!(ask(&mut client).unwrap().text, "at 2");
    let said = ask(&mut client).unwrap();
    assert_eq!((said.text.as_str(), said.actions), ("at 3", Some(vec![json!({"action": "move", "move": "UP"})])));
    let seen = seen.lock().unwrap();
    assert_eq!((&seen[1]["method"], &seen[1]["params"]["id"]), (&json!("GetTask"), &json!("t1")));
    assert_eq!(seen[2]["params"]["message"]["taskId"], "t1");
}

#[test]
fn bad_services_are_described() {
    check(
        |_| http("302 Found", "location: http://127.0.0.1:1/\r\n", ""),
        expect!["redirects to http://127.0.0.1:1/; give that URL"],
    );
    check(
        |_| http("200 OK", "content-type: text/html\r\n", "<html>\n</html>"),
        expect!["sent an answer that isn't a JSON object: <html> </html>"],
    );
    check(
        |_| http("200 OK", "content-type: text/event-stream\r\n", "data: {}\n\n"),
        expect!["answered with a stream of events instead of JSON"],
    );
    check(|_| http("200 OK", "", &" ".repeat(10 << 20)), expect!["sent an answer of more than 1 MiB"]);
    check(|_| Vec::new(), expect!["didn't answer in time"]);
    check(|_| http("500 Oops", "", "no"), expect!["answered HTTP 500 Internal Server Error: no"]);
    check(
        |_| ok(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal\nerror"}})),
        expect!["answered with the error -32603: Internal error"],
    );
    check(|_| ok(&json!({"jsonrpc": "2.0", "id": 1})), expect![[r#"sent no result: {"id":1,"jsonrpc":"2.0"}"#]]);
    check(|_| result(json!({"x": 1})), expect![[r#"sent neither a message nor a task: {"x":1}"#]]);
    check(
        |_| {
            result(
                json!({"task": {"status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"text": "no credit"}]}}}}),
            )
        },
        expect!["ended its task as `failed`: no credit"],
    );
    check(
        |_| result(json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}})),
        expect!["didn't finish its task in time"],
    );
}

#[test]
fn cards_and_addresses_are_checked() {
    let none = serve(|_, _| http("404 Not Found", "", "nothing"));
    let why = ask(&mut client(&none, false)).unwrap_err();
    assert_eq!(why, format!("has no agent card at {none}{CARD_PATH}: it answered HTTP 404 Not Found: nothing"));
    let other = serve(|_, _| ok(&json!({"supportedInterfaces": [{"url": "http://x", "protocolBinding": "GRPC"}]})));
    assert_eq!(ask(&mut client(&other, false)).unwrap_err(), "has no interface with JSON-RPC in its agent card");
    let well = service("1.0", |_| result(json!({"message": {"parts": []}})));
    let why = ask(&mut client(&well, true)).unwrap_err();
    assert!(why.contains("its address isn't a public one"), "{why}");
    let read = |text: &str| {
        let (_, rest) = text.split_once(':').unwrap();
        read_a2a(AgentText { whole: text, rest, search: "" }).map(|recipe| recipe.text().to_owned())
    };
    assert_eq!(read("a2a:https://a.example"), Ok("a2a:https://a.example".to_owned()));
    for (text, why) in [
        ("a2a:a.example", "its URL must begin with http:// or https://"),
        ("a2a:http:///x", "its URL has no host"),
        ("a2a:http://me:secret@a.example/", "its URL contains a name or password"),
    ] {
        assert_eq!(read(text).unwrap_err(), format!("`{text}` names no service: {why}"));
    }
}

#[test]
fn actions_as_data_become_calls() {
    let said = Said { text: String::new(), actions: Some(vec![json!({"action": "guess", "content": "7"})]) };
    let call = &said.reply(false).unwrap().calls[0];
    assert_eq!((call.name.as_str(), json!(call.arguments)), ("act_guess", json!({"Ok": {"content": "7"}})));
    let said = Said { text: r#"I act: {"tool": "act_guess", "content": "7"}"#.to_owned(), actions: None };
    assert_eq!(said.reply(false).unwrap().calls[0].name, "act_guess");
    let said = Said { text: String::new(), actions: Some(Vec::new()) };
    assert_eq!(said.reply(true).unwrap().calls[0].name, "wait");
}
