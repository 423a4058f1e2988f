//! Reported usage is stored with the session, and private until the session's end.

use arena_testkit::{Client, Host, known_admin_token};
use expect_test::expect;
use serde_json::{Value, json};

/// Creates a session of PSI with both players. Returns its id and invites.
fn begin(client: &Client) -> (String, Vec<String>) {
    let (session, invites) = client.create("psi");
    for invite in &invites {
        client.join(invite).ok();
    }
    (session, invites)
}

fn report(client: &Client, session: &str, from: &str, input: u64, more: &Value) -> Value {
    let mut body = json!({ "challengeId": session, "from": from, "inputTokens": input, "outputTokens": 7 });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    client.post("/api/arena/usage", &body).ok()
}

/// Returns the session's state in the list of sessions.
fn state(client: &Client, session: &str) -> Value {
    let list = client.get("/api/challenges?limit=100").ok();
    let listed = list["challenges"].as_array().expect("a list").iter().find(|listed| listed["id"] == session);
    listed.expect("the session is listed")["state"].clone()
}

#[test]
fn reported_usage_is_private_until_the_end_and_public_then() {
    let host = Host::start_with(|settings| settings.admin_token = Some(known_admin_token()));
    let client = host.client();
    let (session, invites) = begin(&client);
    let mut stream = client.stream(&format!("/api/chat/ws/challenge_{session}"), None);
    let lens = || client.get(&format!("/api/arena/sync?channel={session}")).ok()["count"].clone();
    let before = (state(&client, &session), lens());

    let first = json!({ "model": "opus", "cachedTokens": 90, "costUsd": 0.5, "ms": 800 });
    report(&client, &session, &invites[1], 100, &first);
    let total = report(&client, &session, &invites[1], 20, &json!({ "model": "haiku", "estimated": true }));
    expect![[
        r#"{"cachedTokens":90,"costUsd":0.5,"estimated":true,"inputTokens":120,"models":["opus","haiku"],"ms":800,"outputTokens":14,"reports":2}"#
    ]]
    .assert_eq(&total.to_string());
    assert_eq!((state(&client, &session), lens()), before, "the report is private");

    // A seat without reports has zero usage.
    for invite in &invites {
        client.act(&session, invite, "guess", "1").ok();
    }
    let nothing = json!({ "reports": 0, "inputTokens": 0, "outputTokens": 0, "cachedTokens": 0, "models": [] });
    let expected = json!([nothing, total]);
    assert_eq!(state(&client, &session)["reportedUsage"], expected);
    let ended = std::iter::from_fn(|| stream.next_event()).find(|(_, event)| event["type"] == "game_ended");
    assert_eq!(ended.expect("the stream sends the end").1["data"]["reportedUsage"], expected);

    let page = client.get(&format!("/sessions/{session}"));
    for text in ["Usage reported by the players", "opus, haiku", "≈ 120", "$0.5000", "0.8 s"] {
        assert!(page.text().contains(text), "{text}: {}", page.text());
    }

    // The administrator's export contains the single reports.
    let export = client.get_with(known_admin_token().reveal(), "/api/admin/export");
    let line = export.text().lines().find(|line| line.contains("reportedUsage")).expect("the session").to_owned();
    let line: Value = serde_json::from_str(&line).expect("JSON");
    let list = line["state"]["reportedUsage"][1]["list"].as_array().expect("a list");
    let kept: Vec<(&Value, &Value)> = list.iter().map(|report| (&report["inputTokens"], &report["model"])).collect();
    assert_eq!(kept, [(&json!(100), &json!("opus")), (&json!(20), &json!("haiku"))]);

    let body = json!({ "challengeId": session, "from": invites[0], "inputTokens": 1, "outputTokens": 1 });
    let (status, code) = client.post("/api/arena/usage", &body).refusal();
    assert_eq!((status, code.as_str()), (400, "SESSION_ENDED"));
}

#[test]
fn a_report_counts_once_and_changes_nothing_in_the_game() {
    let host = Host::start();
    let client = host.client();
    // A player may report before the others have joined.
    let (session, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    let body = json!({ "challengeId": session, "from": invites[0], "inputTokens": 5, "outputTokens": 1 });
    for _ in 0..2 {
        assert_eq!(client.post_once("/api/arena/usage", "first", &body).ok()["reports"], 1);
    }
    client.join(&invites[1]).ok();
    for invite in &invites {
        client.act(&session, invite, "guess", "1").ok();
    }
    // Seats after the last one with a report aren't listed.
    assert_eq!(state(&client, &session)["reportedUsage"].as_array().map(Vec::len), Some(1));

    // Without reports the field is absent.
    let (session, invites) = begin(&client);
    for invite in &invites {
        client.act(&session, invite, "guess", "1").ok();
    }
    assert_eq!(state(&client, &session).get("reportedUsage"), None);
}
