//! What the log tells, and what it must never tell.

use arena_testkit::Client;
use rustix::process::Signal;
use serde_json::json;

use crate::program::{Running, folder};

#[test]
fn the_log_and_the_metrics_hold_no_secret_however_much_they_tell() {
    let data = folder();
    let data = data.path().to_str().expect("a UTF-8 path");
    let mut server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--log", "trace,rmcp=trace"]);
    let address = server.url.strip_prefix("http://").expect("a URL").parse().expect("an address");
    let client = Client::new(address);
    let (session, invites) = client.create("psi");
    client.post("/api/arena/join", &json!({ "invite": invites[0], "userId": "ada-the-player" })).ok();
    client.chat(&session, &invites[0], "the chat text").ok();
    let told = client.get(&format!("/api/arena/sync?channel={session}&from={}", invites[0])).ok();
    let set = told["messages"][0]["content"].as_str().expect("a set").to_owned();
    let numbers = set.trim_start_matches("Your private set is: {").trim_end_matches("}.");
    client.act(&session, &invites[0], "guess", numbers);
    client.act("nonsense", &invites[1], "guess", numbers);
    // The name in a form that is allowed but unusual: such calls go through the SDK, which is talkative.
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
    let metrics = client.get("/metrics").text().to_owned();
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    let log = server.said();
    assert!(log.contains("/api/arena/join"), "at this level the log tells of requests: {log}");
    for secret in [invites[0].as_str(), invites[1].as_str(), "ada-the-player", "the chat text", numbers] {
        assert!(!log.contains(secret), "the log holds {secret:?}");
        assert!(!metrics.contains(secret), "the metrics hold {secret:?}");
    }
}
