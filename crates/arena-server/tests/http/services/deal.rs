//! Deals are verifiable: the script in `docs/`, which shares no code with the arena, reproduces them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use arena_server::ChallengeSettings;
use arena_testkit::Host;
use serde_json::{Map, json};

/// Runs the script on a page of sessions. Returns true if it succeeds, and its output.
fn verdict(page: &str) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verify-deal.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python 3 is needed for this test");
    python.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("the script reads");
    let output = python.wait_with_output().expect("the script ends");
    (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
}

#[test]
fn a_deal_follows_from_the_seed_that_was_committed_to() {
    let host = Host::start();
    let client = host.client();
    let created = client.post("/api/challenges/psi", &json!({ "options": { "setSize": 25 } })).ok();
    let session = created["id"].as_str().expect("an id");
    let invites: Vec<&str> = created["invites"].as_array().expect("a list").iter().filter_map(|i| i.as_str()).collect();
    for invite in &invites {
        client.join(invite).ok();
    }
    let (right, text) = verdict(client.get("/api/challenges").text());
    assert!(right && text.contains("not ended yet"), "{text}");
    for invite in &invites {
        client.act(session, invite, "guess", "1").ok();
    }
    let page = client.get("/api/challenges");
    assert_eq!(page.json()["challenges"][0]["seedCommitment"], created["seedCommitment"]);
    let (right, text) = verdict(page.text());
    assert!(right && text.contains("the deal follows from it"), "{text}");

    let forged = page.text().replacen("\"intersectionSet\":[", "\"intersectionSet\":[5,", 1);
    assert!(!verdict(&forged).0);
    let seed = page.json()["challenges"][0]["seed"].as_str().expect("the seed is revealed").to_owned();
    let other: String = seed.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    assert!(!verdict(&page.text().replace(&seed, &other)).0);
}

#[test]
fn the_script_knows_how_every_built_in_challenge_deals() {
    // Options and actions that end each challenge for any deal.
    let games = [
        ("psi", json!({}), "guess", "1"),
        ("ultimatum", json!({ "maxRounds": 1 }), "pass", "no"),
        ("millionaire", json!({}), "guess", "50"),
        ("dining-cryptographers", json!({}), "guess", "unknown"),
    ];
    assert!(games.iter().map(|(name, ..)| *name).eq(arena_games::CHALLENGES.iter().map(|challenge| challenge.id)));
    let host = Host::start_with(|settings| {
        let hosted = |(name, ..): &(&str, _, _, _)| ChallengeSettings {
            name: (*name).to_owned(),
            options: Map::new(),
            scoring: Vec::new(),
        };
        settings.challenges = games.iter().map(hosted).collect();
    });
    let client = host.client();
    for (name, options, method, content) in games {
        let created = client.post(&format!("/api/challenges/{name}"), &json!({ "options": options })).ok();
        let session = created["id"].as_str().expect("an id");
        let invites: Vec<&str> =
            created["invites"].as_array().expect("a list").iter().filter_map(|i| i.as_str()).collect();
        for invite in &invites {
            client.join(invite).ok();
        }
        for invite in &invites {
            client.act(session, invite, method, content).ok();
        }
        let page = client.get(&format!("/api/challenges/{name}"));
        let (right, text) = verdict(page.text());
        assert!(right && text.contains("the deal follows from it"), "{name}: {text}");
        for dealt in ["userSets", "reservationValues", "wealth", "payer"].map(|name| format!("\"{name}\":")) {
            let forged = page.text().replace(&dealt, &format!("{dealt}[99],\"was\":"));
            assert_eq!(verdict(&forged).0, !page.text().contains(&dealt), "{name}, {dealt}");
        }
    }
}
