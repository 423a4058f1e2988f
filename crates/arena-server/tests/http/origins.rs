//! Writes from web pages of other origins, `Host` headers, and headers for browsers.

use arena_server::Settings;
use arena_testkit::{Answer, Client, Host, known_secret};
use serde_json::{Value, json};

fn allowing(origins: &[&str]) -> impl FnOnce(&mut Settings) {
    let origins = origins.iter().map(|origin| origin.parse().expect("an origin")).collect();
    move |settings| settings.network.allowed_origins = origins
}

/// Writes that a page can send without a preflight request, and one that needs a preflight request.
const WRITES: [(&str, &str, &str); 6] = [
    ("/api/challenges/psi", "application/json", "{}"),
    ("/api/challenges/psi", "text/plain", "{}"),
    ("/api/v1/challenges/psi", "application/x-www-form-urlencoded", ""),
    ("/challenges/psi", "application/x-www-form-urlencoded", ""),
    ("/api/users", "text/plain", r#"{"userId":"ada","username":"Mallory"}"#),
    ("/api/arena/mcp", "application/json", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
];

/// Sends a write with the header `Host: host`.
fn write(client: &Client, host: &str, (path, kind, body): (&str, &str, &str), headers: &[(&str, &str)]) -> Answer {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    client.raw(request.as_bytes()).expect("an answer")
}

const REFUSED: (u16, &str) = (403, "ORIGIN_NOT_ALLOWED");

#[track_caller]
fn refused(answer: &Answer) {
    let (status, code) = answer.refusal();
    assert_eq!((status, code.as_str()), REFUSED);
}

#[test]
fn a_page_of_another_origin_reads_and_does_not_write() {
    let host = Host::start();
    let client = host.client();
    let port = host.address().port();
    let own = format!("127.0.0.1:{port}");
    for write_ in WRITES {
        for headers in [
            &[("Origin", "http://page.example")][..],
            &[("Origin", "null")],
            &[("Origin", "http://127.0.0.1:1")],
            &[("Origin", &format!("http://localhost:{port}"))],
            &[("Origin", "junk \u{e4}")],
            &[("Origin", "http://page.example"), ("Sec-Fetch-Site", "same-origin")],
            &[("Sec-Fetch-Site", "cross-site")],
            &[("Sec-Fetch-Site", "same-site")],
        ] {
            refused(&write(&client, &own, write_, headers));
        }
        // A page under a foreign name that resolves to this server is refused.
        refused(&write(
            &client,
            &format!("page.example:{port}"),
            write_,
            &[("Origin", &format!("http://page.example:{port}"))],
        ));
    }
    let removal = client.request("DELETE", "/api/agents/x", &[("Origin", "http://page.example")], b"");
    refused(&removal);
    assert_eq!(client.get("/api/challenges").ok()["total"], 0, "something was stored");
    assert_eq!(client.get("/api/users").ok(), json!([]));
    // The page can read the error, and it can read data.
    let output = client.request("POST", "/api/challenges/psi", &[("Origin", "http://page.example")], b"{}");
    assert_eq!(output.header("access-control-allow-origin"), Some("*"));
    assert!(output.text().contains("a page of http://page.example may not write to this server"), "{}", output.text());
    for path in ["/api/challenges", "/api/metadata", "/api/chat/sync?channel=invites"] {
        let read =
            client.request("GET", path, &[("Origin", "http://page.example"), ("Sec-Fetch-Site", "cross-site")], b"");
        assert_eq!((read.status, read.header("access-control-allow-origin")), (200, Some("*")), "{path}");
    }
    // The server's own pages may write, and programs that aren't browsers, with any content type.
    for write_ in WRITES {
        for (host, headers) in [
            (own.clone(), vec![]),
            (own.clone(), vec![("Sec-Fetch-Site", "none")]),
            (own.clone(), vec![("Sec-Fetch-Site", "same-origin")]),
            (own.clone(), vec![("Origin", &*format!("http://{own}"))]),
            (format!("localhost:{port}"), vec![("Origin", &*format!("http://localhost:{port}"))]),
            ("[::1]".to_owned(), vec![("Origin", "https://[::1]")]),
        ] {
            let answer = write(&client, &host, write_, &headers);
            assert_eq!(answer.status, 200, "{write_:?} {host} {headers:?}: {}", answer.text());
        }
    }
}

#[test]
fn pages_that_the_settings_allow_write() {
    for (origins, page, may) in [
        (&["https://page.example", "null"][..], "https://page.example", true),
        (&["https://page.example", "null"], "null", true),
        (&["https://page.example"], "http://page.example", false),
        (&["https://page.example"], "https://page.example:8443", false),
        (&["https://page.example"], "https://page.example.evil.example", false),
        (&["HTTPS://Page.Example:443"], "https://page.example", true),
        (&["*"], "http://anywhere.example:81", true),
    ] {
        let host = Host::start_with(allowing(origins));
        for write_ in WRITES {
            let answer = write(&host.client(), "arena", write_, &[("Origin", page), ("Sec-Fetch-Site", "cross-site")]);
            assert_eq!(answer.status, if may { 200 } else { 403 }, "{origins:?} {page} {write_:?}: {}", answer.text());
        }
    }
}

#[test]
fn where_players_have_keys_pages_may_write_but_not_over_mcp() {
    let keys = |settings: &mut Settings| {
        settings.auth.enabled = true;
        settings.auth.secret = Some(known_secret());
    };
    let foreign = [("Origin", "https://page.example")];
    let host = Host::start_with(keys);
    let client = host.client();
    assert_eq!(write(&client, "arena.example", WRITES[0], &foreign).status, 200);
    refused(&write(&client, "arena.example", WRITES[5], &foreign));
    for own in [&[("Origin", "https://arena.example")][..], &[]] {
        assert_eq!(write(&client, "arena.example", WRITES[5], own).status, 200);
    }
    let host = Host::start_with(|settings| {
        keys(settings);
        allowing(&["https://page.example"])(settings);
    });
    assert_eq!(write(&host.client(), "arena.example", WRITES[5], &foreign).status, 200);
}

#[test]
fn a_request_names_one_host() {
    let host = Host::start();
    let client = host.client();
    let ask = |path: &str, version: &str, hosts: &[&str]| {
        let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
        client
            .raw(format!("GET {path} HTTP/{version}\r\n{hosts}Connection: close\r\n\r\n").as_bytes())
            .expect("an answer")
    };
    for path in ["/health", "/api/challenges", "/", "/nowhere"] {
        for (version, hosts) in [
            ("1.1", &[][..]),
            ("1.1", &["arena", "arena"]),
            ("1.1", &["arena", "page.example"]),
            ("1.0", &["arena", "page.example"]),
            ("1.1", &["a b"]),
            ("1.1", &["ada@arena"]),
            ("1.1", &["http://arena"]),
            ("1.1", &["arena/x"]),
            ("1.1", &["arena:x"]),
        ] {
            let answer = ask(path, version, hosts);
            assert_eq!(answer.refusal(), (400, "INVALID_HOST".to_owned()), "{path} {version} {hosts:?}");
        }
    }
    for (version, hosts) in [
        ("1.0", &[][..]),
        ("1.0", &["arena"]),
        ("1.1", &[""]),
        ("1.1", &["arena_1:3001"]),
        ("1.1", &["127.0.0.1:3001"]),
        ("1.1", &["[::1]:3001"]),
        ("1.1", &["ARENA.example"]),
    ] {
        assert_eq!(ask("/health", version, hosts).status, 200, "{version} {hosts:?}");
    }
}

#[test]
fn responses_are_not_cached_and_not_sniffed() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    let mcp = client.request(
        "POST",
        "/api/arena/mcp",
        &[("Content-Type", "application/json")],
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    );
    let mut answers = vec![("POST /api/arena/mcp".to_owned(), mcp)];
    for path in [
        format!("/api/arena/sync?channel={session}&from={}", invites[0]),
        format!("/api/chat/sync?channel={session}"),
        format!("/api/invites/{}", invites[1]),
        "/api/challenges".to_owned(),
        "/api/users".to_owned(),
        "/api/scoring".to_owned(),
        "/api/nothing".to_owned(),
        "/docs".to_owned(),
        "/openapi.json".to_owned(),
        "/skill.md".to_owned(),
        "/metrics".to_owned(),
        "/health".to_owned(),
        "/".to_owned(),
        "/nothing".to_owned(),
        "/admin".to_owned(),
    ] {
        let answer = client.get(&path);
        answers.push((path, answer));
    }
    answers.push(("POST /api/arena/join".to_owned(), client.join(&invites[1])));
    for (path, answer) in &answers {
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    // Static files are cacheable and have their own header.
    for path in ["/web/style.css", "/web/page.js"] {
        assert_eq!(client.get(path).header("cache-control"), Some("no-cache"), "{path}");
        assert_eq!(client.get(path).header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    // Browsers get metrics as plain text, and other programs get the type that they accept.
    let kind = |accept: &str| {
        let answer = client.request("GET", "/metrics", &[("Accept", accept)], b"");
        answer.header("content-type").expect("a type").to_owned()
    };
    assert!(kind("text/html,*/*;q=0.8").starts_with("text/plain"));
    assert!(kind("*/*").starts_with("application/openmetrics-text"));
    assert!(
        kind("application/openmetrics-text;version=1.0.0,text/plain;q=0.5").starts_with("application/openmetrics-text")
    );
}

#[test]
fn nested_json_is_refused_and_the_connection_stays() {
    let host = Host::start();
    let client = host.client();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"challenge_join","arguments":{{"invite":"x","mood":{arguments}}}}}}}"#
        )
    };
    let list = |arguments: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"mood":{arguments}}}}}"#)
    };
    for path in ["/api/arena/mcp", "/api/chat/mcp"] {
        for depth in [1, 50, 100, 120] {
            for body in [call(&nested(depth)), list(&nested(depth))] {
                let answer = client.request("POST", path, &[("Content-Type", "application/json")], body.as_bytes());
                assert_eq!(answer.status, 200, "{path} {depth}: {}", answer.text());
            }
        }
        for depth in [128, 200, 5_000, 30_000, 200_000] {
            for body in
                [nested(depth), call(&nested(depth)), list(&nested(depth)), "[".repeat(depth), "{\"a\":".repeat(depth)]
            {
                let answer = client.request("POST", path, &[("Content-Type", "application/json")], body.as_bytes());
                assert_eq!(answer.refusal(), (400, "INVALID_MCP_REQUEST".to_owned()), "{path} {depth}: {:.100}", body);
            }
        }
    }
    for depth in [128, 30_000] {
        let body = format!(r#"{{"options":{{"a":{}}}}}"#, nested(depth));
        let answer = client.request("POST", "/api/challenges/psi", &[], body.as_bytes());
        assert_eq!(answer.refusal(), (400, "INVALID_JSON".to_owned()));
    }
}

#[test]
fn tools_describe_their_results_and_return_them_as_data() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    let ask = |path: &str, method: &str, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let answer = client.request("POST", path, &[("Content-Type", "application/json")], body.as_bytes());
        answer.ok()["result"].take()
    };
    let mut schemas = serde_json::Map::new();
    for path in ["/api/arena/mcp", "/api/chat/mcp"] {
        for tool in ask(path, "tools/list", json!({}))["tools"].as_array().expect("tools") {
            assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
            schemas.insert(tool["name"].as_str().expect("a name").to_owned(), tool["outputSchema"].clone());
        }
    }
    let call = |path: &str, name: &str, arguments: Value| {
        let result = ask(path, "tools/call", json!({ "name": name, "arguments": arguments }));
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        assert_eq!(result["structuredContent"], text, "{name}");
        let fields = schemas[name]["properties"].as_object().expect("fields");
        for field in text.as_object().expect("an object").keys() {
            assert!(fields.contains_key(field), "{name} answers {field}");
        }
        let is_whole = |required: &Value| {
            required["required"]
                .as_array()
                .expect("names")
                .iter()
                .all(|name| text.get(name.as_str().expect("a name")).is_some())
        };
        assert!(schemas[name]["anyOf"].as_array().expect("ways").iter().any(is_whole), "{name}: {text}");
        text
    };
    let (play, chat) = ("/api/arena/mcp", "/api/chat/mcp");
    let invite = &invites[0];
    assert_eq!(call(play, "challenge_join", json!({ "invite": invite }))["ChallengeID"], session);
    assert_eq!(call(play, "challenge_join", json!({ "invite": invite }))["code"], "INVITE_ALREADY_USED");
    client.join(&invites[1]).ok();
    assert_eq!(call(play, "challenge_sync", json!({ "channel": session, "from": invite, "wait": 0 }))["count"], 2);
    assert_eq!(call(chat, "send_chat", json!({ "channel": session, "from": invite, "content": "hi" }))["index"], 1);
    assert_eq!(call(chat, "sync", json!({ "channel": session, "from": invite }))["count"], 1);
    let moved = json!({ "challengeId": session, "from": invite, "messageType": "guess", "content": "1" });
    assert_eq!(call(play, "challenge_message", moved)["ok"], "Message sent");
    let first = call(play, "queue_join", json!({ "challenge": "psi" }));
    let second = call(play, "queue_join", json!({ "challenge": "psi", "houseAfterS": 3600 }));
    assert_eq!((&first["state"], &second["state"]), (&json!("waiting"), &json!("matched")));
    let first = call(play, "queue_sync", json!({ "challenge": "psi", "ticket": first["ticket"] }));
    assert_eq!(first["session"], second["session"]);
    assert_eq!(call(play, "challenge_join", json!({ "invite": first["invite"] }))["ChallengeID"], second["session"]);
}
