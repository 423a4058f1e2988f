//! The absence of secrets in the log and in the metrics, and the access log.

use arena_engine::Environment;
use arena_testkit::{Client, Player, data_folder};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, file};

/// Stops a server that logs at every level, and checks that its log has no secrets.
#[track_caller]
fn tells_none_of(secrets: &[&str], mut server: Running, client: &Client) {
    let metrics = client.get("/metrics").text().to_owned();
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = server.said();
    assert!(log.contains("/api/arena/join"), "at this level the log must contain requests: {log}");
    for secret in secrets {
        assert!(!log.contains(secret), "the log contains {secret:?}");
        assert!(!metrics.contains(secret), "the metrics contain {secret:?}");
    }
}

#[test]
fn the_log_and_the_metrics_contain_no_secret_at_any_level() {
    let data = data_folder();
    let data = data.path().to_str().expect("a UTF-8 path");
    let server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--log", "trace,rmcp=trace"]);
    let client = server.client();
    let (session, invites) = client.create("psi");
    client.post("/api/arena/join", &json!({ "invite": invites[0], "userId": "ada-the-player" })).ok();
    client.join(&invites[1]).ok();
    client.chat(&session, &invites[0], "the chat text").ok();
    let numbers = client.set_of(&session, &invites[0]).iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let numbers = numbers.as_str();
    client.act(&session, &invites[0], "guess", numbers);
    client.act("nonsense", &invites[1], "guess", numbers);
    // The tool's name is in base64, which is allowed. Such calls are handled by the SDK, which logs a lot.
    let name = ("Mcp-Name", "=?base64?Y2hhbGxlbmdlX21lc3NhZ2U=?=");
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), name];
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "challenge_message",
        "arguments": { "challengeId": session, "from": invites[0], "messageType": "guess", "content": numbers },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    } });
    let answer = client.request("POST", "/api/arena/mcp", &headers, call.to_string().as_bytes());
    assert_eq!(answer.ok()["result"]["isError"], json!(false), "{}", answer.text());
    tells_none_of(&[&invites[0], &invites[1], "ada-the-player", "the chat text", numbers], server, &client);
}

#[test]
fn the_log_and_the_metrics_contain_no_administrator_token() {
    let data = data_folder();
    let token = "a-token-of-the-owners-choice";
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", data.path().to_str().expect("a UTF-8 path")];
    let server = Running::start_with(&[&args[..], &["--log", "trace"]].concat(), &[("ADMIN_TOKEN", token)]);
    let client = server.client();
    let (session, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    client.chat(&session, &invites[0], "the chat text").ok();
    client.post_with(token, "/api/admin/messages/hide", &json!({ "channel": session, "index": 1 })).ok();
    let lines = client.get_with(token, "/api/admin/export");
    client.request("POST", "/api/admin/import", &[("Authorization", &format!("Bearer {token}"))], &lines.body).ok();
    client.get_with("a-wrong-token", "/api/admin/audit");
    client.get_with(token, "/api/challenges").ok();
    let seed = lines.text().split(r#""seed":""#).nth(1).expect("a seed")[..64].to_owned();
    tells_none_of(&[token, "a-wrong-token", &invites[0], &invites[1], "the chat text", &seed], server, &client);
}

#[test]
fn the_log_and_the_metrics_contain_no_session_key() {
    let data = data_folder();
    let secret = "a secret of the operator's own";
    let args = ["serve", "--auth", "--listen", "127.0.0.1:0", "--data", data.path().to_str().expect("a UTF-8 path")];
    let server = Running::start_with(&[&args[..], &["--log", "trace"]].concat(), &[("AUTH_SECRET", secret)]);
    let client = server.client();
    let (session, invites) = client.create("psi");
    let player = Player::new(1);
    let join = player.signed_join(&invites[0], Environment::system().now());
    let key = client.post("/api/arena/join", &join).ok()["sessionKey"].as_str().expect("a key").to_owned();
    client.post("/api/arena/join", &join);
    let forged = format!("s_1.{}", &key[4..]);
    for key in [&key, &forged] {
        for path in [format!("/api/arena/sync?channel={session}"), format!("/api/chat/ws/{session}")] {
            // Only the head of the stream is read, because a stream doesn't end.
            client.stream_as(key, &path);
            client.stream(&format!("{path}{}key={key}", if path.contains('?') { "&" } else { "?" }), None);
        }
        client.post_with(key, "/api/chat/send", &json!({ "channel": session, "content": "the chat text" }));
        client.post(&format!("/api/nothing?key={key}"), &json!({}));
    }
    let signature = join["signature"].as_str().expect("a text");
    let secrets = [secret, &key, &key[4..], &forged, signature, &player.user_id(), &invites[0], "the chat text"];
    tells_none_of(&secrets, server, &client);
}

#[test]
fn the_access_log_has_a_line_for_each_request_with_the_id_of_its_response() {
    let folder = data_folder();
    let config = file(folder.path(), "arena.toml", "[network]\ntrusted_proxies = [\"127.0.0.1\"]\n");
    let data = folder.path().join("data").to_str().expect("a UTF-8 path").to_owned();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", &data, "--config", &config];
    let options = ["--log", "info,access=debug", "--log-format", "json"];
    let mut server = Running::start(&[&args[..], &options].concat());
    let client = server.client();
    let get = |path: &str, headers: &[(&str, &str)]| {
        let answer = client.request("GET", path, headers, b"");
        answer.header("x-request-id").expect("an id").to_owned()
    };
    // A proxy that names its client may name the request.
    let proxied = [("X-Forwarded-For", "192.0.2.7"), ("X-Request-Id", "of-the-proxy")];
    let proxied_id = get("/api/invites/inv_00000000-0000-4000-8000-000000000000", &proxied);
    assert_eq!(proxied_id, "of-the-proxy");
    let id = get("/api/chat/sync?channel=invites&from=somebody", &[("X-Request-Id", "of-the-client")]);
    assert_ne!(id, "of-the-client");
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let said = server.said();
    let lines: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let line_of = |id: &str| {
        let mut line = lines.iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("no {id}: {said}")).clone();
        let took = line.as_object_mut().expect("an object").remove("took_us");
        assert!(took.is_some_and(|took| took.is_u64()), "{line}");
        let field = |name: &str| line[name].to_string();
        ["target", "client", "method", "route", "status"].map(field).join(" ")
    };
    assert_eq!(line_of("of-the-proxy"), r#""access" "192.0.2.7" "GET" "/api/invites/{invite}" 404"#);
    assert_eq!(line_of(&id), r#""access" "127.0.0.1" "GET" "/api/chat/sync" 200"#);
    assert!(!said.contains("somebody"), "{said}");
}
