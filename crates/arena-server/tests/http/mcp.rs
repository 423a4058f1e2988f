//! MCP on the level of messages. `services` tests it with the official client.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Answer, Client, Host, until};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::refusals::until_hung_up;

/// Posts bytes with these headers and those that every request needs.
fn post_raw(client: &Client, path: &str, headers: &str, body: &[u8]) -> Answer {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    client.raw(&[head.as_bytes(), body].concat()).expect("an answer")
}

fn post_call(client: &Client, endpoint: &str, tool: &str, arguments: &Value) -> Answer {
    let params = json!({ "name": tool, "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    client.post(&format!("/api/{endpoint}/mcp"), &call)
}

/// Calls a tool. Returns the text of its result, and true if the result is an error.
#[track_caller]
fn call(client: &Client, endpoint: &str, tool: &str, arguments: &Value) -> (String, bool) {
    let result = post_call(client, endpoint, tool, arguments).ok()["result"].take();
    let [content] = result["content"].as_array().expect("a list").as_slice() else { panic!("not one text: {result}") };
    assert_eq!(content["type"], "text");
    let text = content["text"].as_str().expect("a text").to_owned();
    (text, result["isError"].as_bool().expect("a flag"))
}

fn session(client: &Client) -> (String, Vec<String>) {
    let (session, invites) = client.seated("psi");
    (session, invites)
}

#[test]
fn a_tool_answers_with_the_very_text_of_rest() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = session(&client);
    let ada = &players[0];
    for index in [1, 2] {
        let rest = client.get(&format!("/api/arena/sync?channel={session}&from={ada}&index={index}"));
        let arguments = json!({ "channel": session, "from": ada, "index": index });
        assert_eq!(call(&client, "arena", "challenge_sync", &arguments), (rest.text().to_owned(), false));
    }
    let rest = client.join(ada);
    assert_eq!(rest.status, 400);
    assert_eq!(call(&client, "arena", "challenge_join", &json!({ "invite": ada })), (rest.text().to_owned(), false));

    let chat = |content: &str| json!({ "channel": session, "from": ada, "to": null, "content": content });
    let (sent, _) = call(&client, "chat", "send_chat", &chat("\u{7}\"ä\u{2028}"));
    assert_eq!(sent, format!(r#"{{"index":1,"channel":"{session}","from":"{ada}","to":null}}"#));
    let rest = client.get(&format!("/api/chat/sync?channel={session}&from={ada}"));
    let arguments = json!({ "channel": session, "from": ada });
    assert_eq!(call(&client, "chat", "sync", &arguments), (rest.text().to_owned(), false));
    let (refused, is_error) = call(&client, "chat", "send_chat", &chat("\0"));
    assert!(!is_error && refused.contains("INVALID_FIELD"), "{refused}");
}

#[test]
fn a_final_slash_changes_nothing() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = session(&client);
    let arguments = json!({ "channel": session, "from": players[0] });
    for (endpoint, tool) in [("arena", "challenge_sync"), ("chat", "sync")] {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let plain = client.post(&format!("/api/{endpoint}/mcp"), &call).ok();
        for path in [format!("/api/{endpoint}/mcp/"), format!("/api/v1/{endpoint}/mcp/")] {
            assert_eq!(client.post(&path, &call).ok(), plain, "{path}");
            assert_eq!(client.get(&path).status, 405, "{path}");
            let foreign = post_raw(&client, &path, "Origin: http://elsewhere.example\r\n", b"{}");
            assert_eq!(foreign.status, 403, "{path}");
        }
    }
}

/// Returns a response as one line: the status, and an error of the arena, an error of JSON-RPC, or a result.
fn summary(answer: &Answer) -> String {
    assert_eq!(answer.header("mcp-session-id"), None);
    let status = answer.status;
    if answer.body.is_empty() {
        return format!("{status}");
    }
    assert_eq!(answer.header("content-type"), Some("application/json"), "{}", answer.text());
    let body = answer.json();
    match (&body["error"], body["code"].as_str()) {
        (Value::String(sentence), Some(code)) => format!("{status} {code}: {sentence}"),
        (Value::Object(error), None) => format!("{status} {}: {}", error["code"], error["message"]),
        _ => format!("{status} {}", body["result"]),
    }
}

const JSON: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";

/// Checks the response to a POST at both endpoints and under both prefixes. The last line applies to all.
#[track_caller]
fn check(client: &Client, headers: &str, body: impl AsRef<[u8]>, expected: Expect) {
    let paths = ["/api/arena/mcp", "/api/chat/mcp", "/api/v1/arena/mcp", "/api/v1/chat/mcp"];
    let answers = paths.map(|path| summary(&post_raw(client, path, headers, body.as_ref())));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    expected.assert_eq(&answers[0]);
}

#[test]
fn an_invalid_message_is_refused_with_the_error_body() {
    let host = Host::start();
    let client = host.client();
    let no_message = || expect!["400 INVALID_MCP_REQUEST: the body must be a single JSON-RPC message"];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for body in [
        "",
        "{",
        "ping",
        "null",
        "7",
        "{}",
        "[]",
        &format!("[{ping},{ping}]"),
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#,
        &"[".repeat(50_000),
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#, "[".repeat(200), "]".repeat(200)),
    ] {
        check(&client, JSON, body, no_message());
    }
    check(&client, JSON, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", no_message());
    let no_json = || expect!["415 UNSUPPORTED_MEDIA_TYPE: the body must be JSON, with Content-Type: application/json"];
    for kind in ["", "Content-Type: text/plain\r\n", "Content-Type: application/jsonp\r\n", "Content-Type: \u{ff}\r\n"]
    {
        check(&client, kind, ping, no_json());
    }
    check(
        &client,
        "Content-Type: application/json\r\nAccept: text/event-stream\r\n",
        ping,
        expect!["406 NOT_ACCEPTABLE: the response is JSON; Accept must allow application/json"],
    );
    check(
        &client,
        &format!("{JSON}MCP-Protocol-Version: 1999-12-31\r\n"),
        ping,
        expect!["400 INVALID_MCP_REQUEST: Bad Request: Unsupported MCP-Protocol-Version: 1999-12-31"],
    );
    check(
        &client,
        JSON,
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(65_536)),
        expect!["413 BODY_TOO_LARGE: messages other than a well-formed tools/call may have at most 65536 bytes"],
    );
    let call = |bytes: usize| {
        let content = "x".repeat(bytes);
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{"x":"{content}"}}}}}}"#
        )
    };
    let at_most = 1024 * 1024 - call(0).len();
    let answer = post_raw(&client, "/api/arena/mcp", JSON, call(at_most).as_bytes());
    assert!(summary(&answer).contains("UNKNOWN_TOOL"), "{}", summary(&answer));
    check(
        &client,
        JSON,
        call(at_most + 1),
        expect!["413 BODY_TOO_LARGE: the request body is larger than 1048576 bytes (limits.body_bytes)"],
    );
}

#[test]
fn clients_that_say_little_about_themselves_are_served() {
    let host = Host::start();
    let client = host.client();
    let ping = r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
    for headers in [
        "Content-Type: application/json\r\n",
        "Content-Type: Application/JSON; charset=utf-8\r\nAccept: */*\r\n",
        "Content-Type: application/json\r\nAccept: text/html\r\nAccept: application/json\r\n",
        "Content-Type: application/json\r\nMcp-Session-Id: of-yesterday\r\n",
    ] {
        check(&client, headers, ping, expect!["200 {}"]);
    }
    // HTTP/1.0 needs no `Host`.
    for host in ["", "Host: arena\r\n"] {
        let head = "POST /api/arena/mcp HTTP/1.0\r\nContent-Type: application/json\r\n";
        let request = format!("{head}{host}Content-Length: {}\r\n\r\n{ping}", ping.len());
        assert_eq!(summary(&client.raw(request.as_bytes()).expect("an answer")), "200 {}");
    }
}

#[test]
fn errors_of_the_protocol_are_in_the_words_of_the_protocol() {
    let host = Host::start();
    let client = host.client();
    let message =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let no_method =
        || expect![[r#"200 -32601: "unknown method prompts/list/all; available methods: tools/list, tools/call""#]];
    check(&client, JSON, message("prompts/list/all", "{}"), no_method());
    check(&client, JSON, message("prompts/list/all", "null"), no_method());
    let no_call = || expect![[r#"200 -32602: "tools/call requires a name, and arguments as an object""#]];
    for params in ["{}", "null", r#"{"name":1}"#, r#"{"name":"sync","arguments":[]}"#] {
        check(&client, JSON, message("tools/call", params), no_call());
    }
    check(
        &client,
        JSON,
        message("initialize", "{}"),
        expect![[
            r#"200 -32602: "initialize requires protocolVersion, capabilities, and clientInfo with name and version""#
        ]],
    );
    // Notifications get no response, and unexpected responses are refused.
    check(&client, JSON, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, expect!["202"]);
    check(&client, JSON, r#"{"jsonrpc":"2.0","method":"notifications/of/our/own","params":{"a":1}}"#, expect!["202"]);
    check(
        &client,
        JSON,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        expect![[r#"400 -32600: "stateless server does not accept JSON-RPC responses""#]],
    );
}

/// Returns the parameters of a protocol revision that has no handshake.
fn modern(version: &str) -> String {
    let meta = "io.modelcontextprotocol";
    format!(r#""_meta":{{"{meta}/protocolVersion":"{version}","{meta}/clientCapabilities":{{}}}}"#)
}

#[test]
fn a_probing_client_gets_the_supported_revisions() {
    let host = Host::start();
    let client = host.client();
    let discover = |version: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{}}}}}"#, modern(version))
    };
    let headers =
        |version: &str, method: &str| format!("{JSON}MCP-Protocol-Version: {version}\r\nMcp-Method: {method}\r\n");
    let ask = |headers: String, body: &str| post_raw(&client, "/api/chat/mcp", &headers, body.as_bytes());
    let spoken = json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);

    let found = ask(headers("2026-07-28", "server/discover"), &discover("2026-07-28")).ok();
    assert_eq!(found["result"]["supportedVersions"], spoken);
    let unheard_of = ask(headers("2031-01-01", "server/discover"), &discover("2031-01-01"));
    assert_eq!(unheard_of.status, 400);
    assert_eq!(unheard_of.json()["error"]["code"], -32022);
    assert_eq!(unheard_of.json()["error"]["data"]["supported"], spoken);

    // Clients then fall back to the handshake, in which they may ask for any revision.
    for (asked, agreed) in [("2031-01-01", "2025-11-25"), ("2026-07-28", "2025-11-25"), ("2024-11-05", "2024-11-05")] {
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{asked}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        );
        let welcome = ask(JSON.to_owned(), &hello).ok()["result"].take();
        assert_eq!(welcome["protocolVersion"], agreed, "{welcome}");
        assert_eq!(welcome["serverInfo"]["name"], "arena-chat");
        assert!(welcome["instructions"].as_str().expect("a text").contains("send_chat"));
        let listed = ask(
            format!("{JSON}MCP-Protocol-Version: {agreed}\r\n"),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        );
        assert_eq!(listed.ok()["result"]["tools"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn headers_that_contradict_the_body_are_refused() {
    let host = Host::start();
    let client = host.client();
    let call = |meta: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{}}{meta}}}}}"#)
    };
    let meta = format!(",{}", modern("2026-07-28"));
    let version = "MCP-Protocol-Version: 2026-07-28\r\n";
    check(
        &client,
        &format!("{JSON}{version}Mcp-Method: tools/call\r\nMcp-Name: y\r\n"),
        call(&meta),
        expect![[r#"400 -32020: "Mcp-Name header `y` does not match body value `x`""#]],
    );
    check(
        &client,
        &format!("{JSON}{version}Mcp-Method: tools/list\r\nMcp-Name: x\r\n"),
        call(&meta),
        expect![[r#"400 -32020: "Mcp-Method header `tools/list` does not match body method `tools/call`""#]],
    );
    check(
        &client,
        &format!("{JSON}{version}Mcp-Method: tools/call\r\n"),
        call(&meta),
        expect![[r#"400 -32020: "missing required Mcp-Name header for `tools/call`""#]],
    );
    check(
        &client,
        JSON,
        call(&meta),
        expect![[r#"400 -32020: "request _meta protocolVersion requires MCP-Protocol-Version header""#]],
    );
    check(
        &client,
        &format!("{JSON}{version}Mcp-Method: tools/call\r\nMcp-Name: x\r\n"),
        call(""),
        expect![[
            r#"400 -32602: "Invalid params: request _meta is missing or has malformed required fields: io.modelcontextprotocol/protocolVersion, io.modelcontextprotocol/clientCapabilities""#
        ]],
    );
}

// Waiting.

#[test]
fn a_call_that_waits_is_answered_as_soon_as_there_is_news() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = session(&client);
    let arguments = json!({ "channel": session, "from": players[1], "index": 1, "wait": 30 });
    let (text, _) = thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&client, "chat", "sync", &arguments));
        until("a call waits", || client.counter("arena_http_in_flight") == 2);
        client.chat(&session, &players[0], "news").ok();
        waiting.join().expect("no panic")
    });
    assert!(text.contains(r#""content":"news""#), "{text}");
}

#[test]
fn a_sync_does_not_wait_for_the_operator_after_the_end() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = session(&client);
    let begun = Instant::now();
    // The first call waits during the game for a message that is never sent. The second call starts after the end.
    let arguments = json!({ "channel": session, "from": players[0], "index": 1000 });
    let wait = || call(&client, "arena", "challenge_sync", &arguments).0;
    let early = thread::scope(|scope| {
        let early = scope.spawn(wait);
        until("a call waits", || client.counter("arena_http_in_flight") == 2);
        client.ends_well(&session, &players);
        early.join().expect("no panic")
    });
    assert_eq!([early, wait()], [r#"{"messages":[],"count":0}"#; 2]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn calls_that_wait_are_answered_when_the_server_stops() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = session(&client);
    // Both calls wait for the default time.
    let name = "Mcp-Name: =?base64?Y2hhbGxlbmdlX3N5bmM=?=\r\n";
    let modern_headers = format!("{JSON}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n{name}");
    let connections = [(JSON.to_owned(), String::new()), (modern_headers, format!(",{}", modern("2026-07-28")))].map(
        |(headers, meta)| {
            let arguments = json!({ "channel": session, "from": players[0], "index": 100 });
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"challenge_sync","arguments":{arguments}{meta}}}}}"#
            );
            let mut connection = client.connect().expect("a connection");
            let length = body.len();
            let head = format!("POST /api/arena/mcp HTTP/1.1\r\nHost: arena\r\nContent-Length: {length}\r\n{headers}\r\n");
            connection.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("a request is sent");
            connection
        },
    );
    until("both wait", || client.counter("arena_http_in_flight") == 3);
    drop(host);
    for mut connection in connections {
        let answer = until_hung_up(&mut connection);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#"{\"messages\":[],\"count\":0}"#), "{answer}");
    }
}

// Limits.

#[test]
fn a_repeated_write_happens_once_over_mcp_as_well() {
    let host = Host::start();
    let client = host.client();
    let (id, players) = session(&client);
    let arguments = json!({ "channel": id, "from": players[0], "content": "hello" });
    let params = json!({ "name": "send_chat", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let send = |key| client.post_once("/api/chat/mcp", key, &call).ok()["result"].take();
    let first = send("k");
    assert_eq!(send("k"), first);
    assert_ne!(send("l"), first);
    assert_eq!(client.get(&format!("/api/chat/sync?channel={id}")).ok()["count"], 2);
}

#[test]
fn each_message_counts_once() {
    let limits = |burst: u32| {
        Host::start_with(move |settings| {
            settings.limits.limit_loopback = true;
            settings.limits.requests_per_second = 1;
            settings.limits.requests_burst = burst;
        })
    };
    // Each second allows one more request.
    let burst = 40;
    let is_right =
        |refused: u64, begun: Instant| (burst + 1..=burst + 2 + begun.elapsed().as_secs()).contains(&refused);
    let (host, begun) = (limits(40), Instant::now());
    let client = host.client();
    let sync = || call(&client, "arena", "challenge_sync", &json!({ "channel": "x", "from": "y" }));
    let (refused, (text, is_error)) =
        (1..1000).map(|n| (n, sync())).find(|(_, (text, _))| text.contains("RATE_LIMITED")).expect("too many at last");
    assert!(is_right(refused, begun), "{refused}");
    assert!(!is_error && text.contains("limits.requests_per_second") && text.contains("retryAfterMs"), "{text}");

    // Other messages count as well, regardless of their result.
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let bad_call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }).to_string();
    for (headers, body) in [(JSON, &ping[..]), ("", &ping[..]), (JSON, b"{"), (JSON, bad_call.as_bytes())] {
        let (host, begun) = (limits(40), Instant::now());
        let client = host.client();
        let post = || post_raw(&client, "/api/arena/mcp", headers, body);
        let refused = (1..1000).find(|_| post().status == 429).expect("too many at last");
        assert!(is_right(refused, begun), "{refused}");
        let answer = (1..100).map(|_| post()).find(|answer| answer.status == 429).expect("too many again");
        assert!(
            summary(&answer).starts_with("429 RATE_LIMITED: more than 1 requests per second"),
            "{}",
            summary(&answer)
        );
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
}

#[test]
fn too_many_messages_for_one_result_come_in_several() {
    let host = Host::start_with(|settings| settings.limits.chat_bytes = 1 << 30);
    let client = host.client();
    let (session, players) = session(&client);
    // Two long messages nearly fill a result, and all short ones together exceed it. A single one may be of any length.
    let long = "x".repeat(1_040_000);
    let contents = std::iter::repeat_n(long.as_str(), 5).chain(std::iter::repeat_n("short", 600));
    let mut count = 0;
    for content in contents {
        client.chat(&session, &players[0], content).ok();
        count += 1;
    }
    let (mut next, mut pieces) = (1, Vec::new());
    while next <= count {
        let (text, is_error) =
            call(&client, "chat", "sync", &json!({ "channel": session, "from": "viewer", "index": next }));
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let messages = answer["messages"].as_array().expect("a list");
        assert!(!is_error && messages[0]["index"] == json!(next) && answer["count"] == json!(messages.len()));
        pieces.push(messages.len());
        next += messages.len();
    }
    assert_eq!(pieces, [1, 1, 1, 50, 500, 52]);
}

// Random calls.

#[test]
fn no_call_makes_the_server_fail() {
    let host = Host::start();
    let client = host.client();
    let (session, players) = session(&client);
    let known =
        [session.as_str(), &players[0], &players[1], "operator", "viewer", "guess", "-5", "\0", "", "__proto__"];
    let known: Vec<Value> = known.iter().map(|text| json!(text)).collect();
    let value = prop_oneof![
        6 => prop::sample::select(known),
        1 => any::<String>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!([{ "a": [] }])),
    ];
    const NAMES: [&str; 10] =
        ["invite", "userId", "challengeId", "from", "messageType", "content", "channel", "index", "to", "key"];
    let arguments = prop::collection::btree_map(prop::sample::select(&NAMES[..]), value, 0..8);
    const TOOLS: [(&str, &str); 5] = [
        ("arena", "challenge_join"),
        ("arena", "challenge_message"),
        ("arena", "challenge_sync"),
        ("chat", "send_chat"),
        ("chat", "sync"),
    ];
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        source_file: Some(file!()),
        ..ProptestConfig::default()
    });
    let checked = runner.run(&(prop::sample::select(&TOOLS[..]), arguments), |((endpoint, tool), arguments)| {
        let mut arguments = json!(arguments);
        arguments["wait"] = json!(0);
        let answer = post_call(&client, endpoint, tool, &arguments);
        prop_assert_eq!(answer.status, 200, "{}", answer.text());
        let result = &answer.json()["result"];
        let summary: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        prop_assert!(summary.is_object());
        prop_assert!(result["isError"] == json!(false) || summary["code"].is_string(), "{}", result);
        Ok(())
    });
    checked.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(client.get("/health").status, 200);
}
