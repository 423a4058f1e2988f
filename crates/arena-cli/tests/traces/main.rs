//! Traces of a build with the feature `otel`, as a collector receives them.
//!
//! Servers export nothing before their end, so that each test also shows that the last spans arrive.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod collector;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "the other tests of the binary use more of it")]
mod program;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use arena_testkit::{Client, Postgres};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use collector::{Collector, ReceivedSpans};
use program::{Running, file, folder, run, run_with};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Returns the header of a sender whose span is [`PARENT`].
fn parent() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

fn serve(folder: &TempDir, more: &[&str], environment: &[(&str, &str)]) -> Running {
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().unwrap()];
    Running::start_with(&[&args, more].concat(), environment)
}

/// Runs a server while a test sends requests, and returns the exported spans.
fn received(more: &[&str], test: impl FnOnce(&Client)) -> ReceivedSpans {
    let (collector, folder) = (Collector::start(), folder());
    // The name is the default.
    let server = serve(&folder, more, &collector.environment("")[..2]);
    test(&server.client());
    server.stop();
    collector.end()
}

#[test]
fn a_request_continues_the_trace_of_its_sender() {
    let mut request_id = None;
    let received = received(&[], |client| {
        let sender = parent();
        let of_sender = [("traceparent", sender.as_str()), ("tracestate", "a=1"), ("tracestate", "b=2")];
        let answer = client.request("GET", "/api/metadata/psi?hidden=yes", &of_sender, b"");
        request_id = answer.header("x-request-id").map(str::to_owned);
        client.request("POST", "/api/arena/join", &of_sender, b"{}");
        client.request("BREW", "/nowhere/hidden", &[], b"");
    });
    let span = received.named("GET /api/metadata/{name}");
    assert_eq!((&span["trace"], &span["parent"]), (&json!(TRACE), &json!(PARENT)));
    assert_eq!(
        (&span["kind"], &span["status"], &span["service"]),
        (&json!("SERVER"), &json!("UNSET"), &json!("arena"))
    );
    assert_eq!(span["state"], "a=1,b=2");
    assert_eq!(
        span["attributes"],
        json!({
            "http.request.method": "GET",
            "http.route": "/api/metadata/{name}",
            "http.response.status_code": 200,
            "url.scheme": "http",
            "arena.request_id": request_id.unwrap(),
        })
    );
    // A route of play, which has a way of its own through the server.
    let span = received.named("POST /api/arena/join");
    assert_eq!((&span["trace"], &span["parent"]), (&json!(TRACE), &json!(PARENT)));
    assert_eq!((&span["attributes"]["http.response.status_code"], &span["status"]), (&json!(400), &json!("UNSET")));
    // Neither an invented method nor an unknown path is in a name.
    let span = received.named("HTTP");
    assert_eq!(
        (&span["attributes"]["http.request.method"], &span["attributes"]["http.route"]),
        (&json!("_OTHER"), &Value::Null)
    );
    received.lack(&["hidden", "BREW"]);
}

#[test]
fn an_invalid_sender_begins_a_new_trace() {
    let sender = parent();
    let invalid: [&[(&str, &str)]; 5] = [
        &[("traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01")],
        &[("traceparent", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")],
        &[("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7")],
        &[("traceparent", &sender), ("traceparent", &sender)],
        &[("tracestate", "a=1")],
    ];
    let received = received(&[], |client| {
        for headers in invalid {
            client.request("GET", "/health", headers, b"");
        }
        let long = format!("a={}", "x".repeat(511));
        client.request("GET", "/ready", &[("traceparent", &sender), ("tracestate", &long)], b"");
    });
    let spans = received.all("GET /health");
    assert_eq!(spans.len(), invalid.len());
    for span in spans {
        assert!(span["parent"] == "" && span["state"] == "" && span["trace"] != TRACE, "{span}");
    }
    let span = received.named("GET /ready");
    assert_eq!((&span["parent"], &span["state"]), (&json!(PARENT), &json!("")));
}

#[test]
fn a_tool_call_is_a_child_of_its_request_or_of_the_call_that_it_names() {
    let call = |client: &Client, name: &str, arguments: Value, meta: Value| {
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let headers = [("traceparent", parent()), ("accept", "application/json, text/event-stream".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        client.request("POST", "/api/arena/mcp", &headers, message.as_bytes()).ok()
    };
    let mut joined = None;
    let received = received(&[], |client| {
        let (_, invites) = client.create("psi");
        call(client, "challenge_join", json!({ "invite": invites[0] }), json!({}));
        joined = Some(invites);
        let own = format!("00-{TRACE}-aaaaaaaaaaaaaaaa-01");
        call(client, "queue_join", json!({ "challenge": "psi" }), json!({ "traceparent": own }));
        call(client, "hidden_tool", json!({}), json!({}));
    });
    let requests = received.all("POST /api/arena/mcp");
    assert!(requests.len() == 3 && requests.iter().all(|request| request["parent"] == PARENT), "{requests:#?}");
    let is_request = |span: &Value| requests.iter().any(|request| request["id"] == span["parent"]);
    let join = received.named("tools/call challenge_join");
    assert!(is_request(join) && join["trace"] == TRACE && join["status"] == "UNSET", "{join}");
    assert_eq!(
        join["attributes"],
        json!({
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "challenge_join",
        })
    );
    assert_eq!(received.named("tools/call queue_join")["parent"], "aaaaaaaaaaaaaaaa");
    let unknown = received.named("tools/call");
    assert!(is_request(unknown) && unknown["status"] == "ERROR", "{unknown}");
    assert_eq!(unknown["attributes"]["error.type"], "tool_error");
    received.lack(&["hidden_tool", &joined.unwrap()[0]]);
}

#[test]
fn a_request_that_is_passed_on_is_one_trace_over_both_nodes() {
    let (url, collector, folders) = (Postgres::shared().schema(), Collector::start(), [folder(), folder()]);
    let start = |folder: &TempDir, name: &str| {
        let shared = [("DATABASE_URL", url.as_str()), ("ADMIN_TOKEN", "0123456789abcdef0123456789abcdef")];
        let environment = [&collector.environment(name)[..], &shared].concat();
        serve(folder, &["--shared", "--node-listen", "127.0.0.1:0"], &environment)
    };
    let nodes = [start(&folders[0], "one"), start(&folders[1], "two")];
    let clients = nodes.each_ref().map(Running::client);
    let sender = parent();
    program::eventually("the second node passes a read on", || {
        let (session, _) = clients[0].create("psi");
        let path = format!("/api/chat/sync?channel={session}");
        clients[1].request("GET", &path, &[("traceparent", &sender)], b"").ok();
        (clients[1].counter("arena_requests_passed_on_total") > 0).then_some(())
    });
    nodes.into_iter().for_each(Running::stop);
    let received = collector.end();
    let spans = received.all("GET /api/chat/sync");
    let passed = spans.iter().find(|span| span["kind"] == "CLIENT").expect("a request is passed on");
    let of = |found: &str, id: &Value| {
        let span = spans.iter().find(|span| &span[found] == id).unwrap_or_else(|| panic!("{found} {id}: {spans:#?}"));
        (span["service"].clone(), span["kind"].clone(), span["trace"].clone(), span["attributes"].clone())
    };
    let (service, kind, trace, first) = of("id", &passed["parent"]);
    assert_eq!((service, kind, trace), (json!("two"), json!("SERVER"), json!(TRACE)));
    let (service, kind, trace, last) = of("parent", &passed["id"]);
    assert_eq!((service, kind, trace), (json!("one"), json!("SERVER"), json!(TRACE)));
    assert_eq!(first["arena.request_id"], last["arena.request_id"]);
    assert!(passed["service"] == "two" && passed["trace"] == TRACE, "{passed}");
    assert_eq!(passed["attributes"]["http.response.status_code"], 200);
    assert_eq!(passed["attributes"]["server.address"], "127.0.0.1");
}

#[test]
fn a_call_of_a_model_is_in_the_trace_of_its_game() {
    let (collector, folder) = (Collector::start(), folder());
    let stand_in = Running::start_saying("stand-in is at ", &["eval", "stand-in"], &[]);
    let model = |name: &str, url: &str| {
        format!(
            "[[models]]\nname = \"{name}\"\nmodel = \"{name}\"\nendpoint = \"{url}\"\nkey_env = \"ARENA_TEST_KEY\"\n\
             params = {{ max_tokens = 500 }}\n"
        )
    };
    let begin = "name = \"test\"\nseeds = 1\nseed = 5\n[[challenges]]\nname = \"psi\"\n";
    let (key, file) = ("sk-hidden-key", |name: &str, text: &str| file(folder.path(), name, text));
    let environment = [&collector.environment("arena")[..], &[("ARENA_TEST_KEY", key)]].concat();
    let dir = folder.path().join("run");
    let dir = dir.to_str().unwrap();
    let played = file("played.toml", &format!("{begin}{}", model("leaky", &stand_in.url)));
    let run_played = run_with(&["eval", "run", &played, "--out", dir], &environment);
    assert_eq!(run_played.code, 0, "{run_played:#?}");
    let failing = file("failing.toml", &format!("{begin}{}", model("absent", "http://127.0.0.1:9/v1")));
    let other = folder.path().join("other");
    let args = ["eval", "run", &failing, "--out", other.to_str().unwrap(), "--patience", "0"];
    let run_failing = run_with(&args, &environment);
    assert_eq!(run_failing.code, 17, "{run_failing:#?}");

    let received = collector.end();
    let games = received.all("game");
    let calls = received.all("chat leaky");
    assert!(
        !calls.is_empty() && calls.iter().all(|call| games.iter().any(|game| game["id"] == call["parent"])),
        "{calls:#?}"
    );
    let attributes = &calls[0]["attributes"];
    let port: u64 = stand_in.url.trim_end_matches("/v1").rsplit(':').next().unwrap().parse().unwrap();
    for (name, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("leaky")),
        ("gen_ai.response.model", json!("leaky")),
        ("gen_ai.response.finish_reasons", json!(["stop"])),
        ("server.address", json!("127.0.0.1")),
        ("server.port", json!(port)),
        ("error.type", Value::Null),
    ] {
        assert_eq!(attributes[name], value, "{name}: {attributes:#}");
    }
    for name in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(attributes[name].as_u64().unwrap() > 0, "{name}: {attributes:#}");
    }
    assert_eq!((&calls[0]["kind"], &calls[0]["status"]), (&json!("CLIENT"), &json!("UNSET")));
    let failed = received.all("chat absent");
    assert!(!failed.is_empty());
    for call in failed {
        assert_eq!((&call["status"], &call["attributes"]["error.type"]), (&json!("ERROR"), &json!("unreachable")));
    }

    let found = run(&["eval", "calls", dir, "--search", "My numbers are"]);
    assert!(found.stdout.contains("leaky"), "{found:#?}");
    received.lack(&[key, "My numbers are"]);
}

#[test]
fn no_secret_and_no_message_is_exported() {
    let mut secrets = vec!["a-word-in-private".to_owned()];
    let received = received(&["--auth", "--log", "trace"], |client| {
        let (session, invites) = client.create("psi");
        client.get(&format!("/api/invites/{}", invites[0]));
        client.get(&format!("/play/{}", invites[0]));
        let own = tool(client, "/api/arena/mcp", "identity_create", json!({}))["identity"].as_str().unwrap().to_owned();
        let join = json!({ "invite": invites[0], "identity": own });
        let session_key =
            tool(client, "/api/arena/mcp", "challenge_join", join)["sessionKey"].as_str().unwrap().to_owned();
        let said = json!({ "channel": session, "key": session_key, "content": secrets[0] });
        tool(client, "/api/chat/mcp", "send_chat", said);
        let read = format!("/api/chat/sync?channel={session}&key={session_key}");
        assert!(client.get(&read).text().contains(&secrets[0]));
        let path = format!("/api/chat/ws/{session}?key={session_key}");
        assert!(client.stream(&path, None).next_event().is_some());
        secrets.extend(invites);
        secrets.extend([own, session_key, session]);
    });
    assert_eq!(received.all("GET /api/invites/{invite}").len(), 1);
    assert_eq!(received.all("GET /api/chat/ws/{channel}").len(), 1);
    assert!(received.spans().all(|span| span["events"] == 0), "lines of the log are in spans");
    received.lack(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Calls an MCP tool and returns its result.
fn tool(client: &Client, path: &str, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    client.post(path, &message).ok()["result"]["structuredContent"].clone()
}

#[test]
fn a_collector_that_fails_disturbs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (refusing, silent) = ("http://127.0.0.1:9", &format!("http://{}", listener.local_addr().unwrap()));
    // Each span is an export of its own. The last case has no time to fail.
    for (endpoint, timeout, warnings) in [(refusing, "50", 1), (silent, "50", 1), (silent, "60000", 0)] {
        let folder = folder();
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", timeout),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1"),
        ];
        let mut server = serve(&folder, &[], &environment);
        let client = server.client();
        for _ in 0..20 {
            client.get("/ready").ok();
        }
        let begun = Instant::now();
        server.signal(Signal::TERM);
        assert_eq!(server.ended().code(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(20), "{endpoint}: the stop took {:?}", begun.elapsed());
        let log = server.said();
        assert_eq!(log.matches("traces are lost").count(), warnings, "{endpoint} {timeout}: {log}");
    }
}

#[test]
fn the_environment_configures_the_export() {
    let spans = |more: &[(&str, &str)]| {
        let (collector, folder) = (Collector::start(), folder());
        let server = serve(&folder, &[], &[&collector.environment("arena")[..], more].concat());
        server.client().get("/ready").ok();
        server.stop();
        collector.end().spans().count()
    };
    assert_eq!(spans(&[]), 1);
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_TRACES_SAMPLER", "always_off")]
    {
        assert_eq!(spans(&[off]), 0, "{off:?}");
    }
    let folder = folder();
    for (name, value) in [("PROTOCOL", "grpc"), ("TIMEOUT", "soon"), ("ENDPOINT", "no url")] {
        let environment =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), (&format!("OTEL_EXPORTER_OTLP_{name}"), value)];
        let refused = run_with(&["serve", "--data", folder.path().to_str().unwrap()], &environment);
        assert!(refused.code == 2 && refused.stderr.contains(name), "{refused:#?}");
    }
}
