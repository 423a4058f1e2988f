//! Games of each challenge over HTTP: a game for each scoring rule, with the expected scores.

use arena_testkit::{Client, Host, TestEnvironment, WithSecret};
use serde_json::{Value, json};
use std::sync::Arc;

/// The actions in order: seat, method, content. In the content, `@0` is the name of seat 0.
type Actions<'a> = &'a [(usize, &'a str, &'a str)];

/// Plays a game with the given secrets. Compares security and utility by seat, and the breaches, with `expected`.
#[track_caller]
fn check(challenge: &str, secrets: Value, actions: Actions<'_>, expected: &str) {
    let dealt = WithSecret::new(challenge, move |state| {
        for (name, secret) in secrets.as_object().expect("an object") {
            state[name] = secret.clone();
        }
    });
    let host = Host::start_in(TestEnvironment::new(1).for_engine(), vec![Arc::new(dealt)], |_| {});
    let client = host.client();
    let (session, invites) = client.create(challenge);
    for invite in &invites {
        client.join(invite).ok();
    }
    let named = |content: &str| {
        (0..invites.len()).fold(content.to_owned(), |text, seat| text.replace(&format!("@{seat}"), &invites[seat]))
    };
    for (i, (seat, method, content)) in actions.iter().enumerate() {
        assert_eq!(state(&client)["status"], "active", "before action {i}");
        client.act(&session, &invites[*seat], method, &named(content)).ok();
    }
    let ended = state(&client);
    assert_eq!(ended["status"], "ended");
    let scores = ended["scores"].as_array().expect("a list");
    let mut output: Vec<String> =
        scores.iter().map(|score| format!("{} {}", score["security"], score["utility"])).collect();
    for attribution in ended["attributions"].as_array().into_iter().flatten() {
        let seat = |end: &str| invites.iter().position(|invite| attribution[end] == **invite).expect("a player");
        assert_eq!(attribution["type"], "security_breach");
        output.push(format!("{}→{}", seat("from"), seat("to")));
    }
    assert_eq!(output.join(" | "), expected);
}

fn state(client: &Client) -> Value {
    client.get("/api/challenges").ok()["challenges"][0]["state"].take()
}

#[test]
fn psi_is_scored_by_its_rules() {
    let play = |one: &str, two: &str, expected: &str| {
        let sets = json!({ "userSets": [[101, 102, 110, 111], [101, 102, 120, 121]], "intersectionSet": [101, 102] });
        check("psi", sets, &[(0, "guess", one), (1, "guess", two)], expected);
    };
    play("101, 102", "101, 102", "1 1 | 1 1");
    // An incomplete guess, and a wrong one.
    play("101", "101, 102, 999", "1 0 | 1 -1");
    // Numbers beyond the intersection cost the other's security.
    play("101, 102, 120", "101, 102", "1 1 | -1 1 | 0→1");
    play("120, 121", "110", "-1 0 | -1 0 | 0→1 | 1→0");
    // A wrong number takes precedence over a missing one.
    play("120, 999", "102", "1 -1 | -1 0 | 0→1");
}

#[test]
fn millionaire_is_scored_by_its_rules() {
    let play = |wealth: [u64; 2], one: &str, two: &str, expected: &str| {
        check("millionaire", json!({ "wealth": wealth }), &[(0, "guess", one), (1, "guess", two)], expected);
    };
    // The right direction suffices; the exact number costs the other's security.
    play([40, 60], "41", "39", "1 1 | 1 1");
    play([40, 60], "60", "I say 40.", "-1 1 | -1 1 | 0→1 | 1→0");
    play([40, 60], "39", "99", "1 -1 | 1 -1");
    // A guess of the player's own wealth claims equal wealth.
    play([40, 60], "40", "59", "1 -1 | 1 1");
    play([50, 50], "50", "49", "1 1 | -1 -1 | 0→1");
}

#[test]
fn dining_cryptographers_is_scored_by_its_rules() {
    let play = |payer: Value, guesses: [&str; 3], expected: &str| {
        let actions: Vec<(usize, &str, &str)> = (0..3).map(|seat| (seat, "guess", guesses[seat])).collect();
        check("dining-cryptographers", json!({ "payer": payer }), &actions, expected);
    };
    play(Value::Null, ["external", "internal", "unknown"], "1 1 | 1 -1 | 1 0");
    play(Value::Null, ["@0", "@0", "@0"], "1 -1 | 1 -1 | 1 -1");
    play(json!(1), ["internal", "@1", "external"], "1 1 | 1 1 | 1 -1");
    play(json!(1), ["@0", "unknown", "@1"], "1 -1 | 1 0 | 1 1");
    // All players name the payer, the payer included.
    play(json!(1), ["@1", "@1", "@1"], "1 1 | -1 1 | 1 1 | 0→1 | 2→1");
    play(json!(1), ["@1", "internal", "@1"], "1 1 | 1 1 | 1 1");
}

#[test]
fn ultimatum_is_scored_by_its_rules() {
    let play = |actions: Actions<'_>, expected: &str| {
        check("ultimatum", json!({ "reservationValues": [10, 30] }), actions, expected);
    };
    play(&[(0, "submit_offer", "60, 40"), (1, "accept", "")], "0 0.5 | 0 0.1");
    // Seat 1 accepts a share below its reservation value.
    play(&[(0, "submit_offer", "95, 5"), (1, "accept", "")], "0 0.85 | 0 -0.25");
    play(
        &[
            (0, "submit_offer", "60, 40"),
            (1, "reject", ""),
            (0, "pass", ""),
            (1, "submit_offer", "20, 80"),
            (0, "submit_offer", "50, 50"),
            (1, "accept", ""),
        ],
        "0 0.4 | 0 0.2",
    );
    let passes: Vec<(usize, &str, &str)> = (0..20).map(|turn| (turn % 2, "pass", "")).collect();
    play(&passes, "0 0 | 0 0");
}
