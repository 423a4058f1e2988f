//! The commands of a session's creator, against a real server.

use serde_json::{Value, json};

use crate::program::{Run, run, run_with};
use crate::records::RecordFixture;

/// A session that the program has created.
struct CreatedSession {
    id: String,
    invites: Vec<String>,
    key: String,
}

/// Creates a session of PSI. Sessions with options of their own are unrated.
#[track_caller]
fn create(fixture: &RecordFixture, options: &[&str]) -> CreatedSession {
    let created = fixture.run(&[&["challenges", "create", "psi"], options].concat()).json();
    let invites = serde_json::from_value(created["invites"].clone()).unwrap();
    let text = |name: &str| created[name].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    CreatedSession { id: text("id"), invites, key: text("creatorKey") }
}

/// Lets both players join.
fn join(fixture: &RecordFixture, session: &CreatedSession) {
    for invite in &session.invites {
        fixture.server.client().join(invite).ok();
    }
}

/// Lets both players guess, which ends the game.
fn guess(fixture: &RecordFixture, id: &str, players: &[String]) {
    for player in players {
        fixture.server.client().act(id, player, "guess", "1").ok();
    }
}

#[track_caller]
fn check_refusal(refused: &Run, code: i32, part: &str) {
    assert_eq!(refused.code, code, "{refused:#?}");
    assert!(refused.stderr.contains(part) && refused.stdout.is_empty(), "{part}: {refused:#?}");
}

#[test]
fn the_creator_lists_invites_unlists_and_cancels() {
    let fixture = RecordFixture::open();
    let session = create(&fixture, &[]);
    let (id, key) = (session.id.as_str(), session.key.as_str());
    let with_key = |verb: &str, key: &str| fixture.run(&["session", verb, id, "--creator-key", key]);
    assert_eq!(with_key("invites", key).json(), json!({ "invites": session.invites }));
    fixture.server.client().join(&session.invites[0]).ok();
    assert_eq!(with_key("invites", key).json(), json!({ "invites": session.invites[1..] }));

    let other = create(&fixture, &[]);
    for verb in ["invites", "unlist", "cancel"] {
        check_refusal(&with_key(verb, &other.key), 3, "the key isn't that of this session's creator");
        check_refusal(&fixture.run(&["session", verb, id]), 2, "ARENA_CREATOR_KEY");
    }

    // The key may come from the environment.
    let url = fixture.server.url.as_str();
    let by_environment = |verb: &str| run_with(&["session", verb, id, "--url", url], &[("ARENA_CREATOR_KEY", key)]);
    assert!(fixture.run(&["challenges", "list", "--json"]).stdout.contains(id));
    assert_eq!(by_environment("unlist").json(), json!({ "unlisted": true }));
    assert!(!fixture.run(&["challenges", "list", "--json"]).stdout.contains(id));
    assert_eq!(by_environment("cancel").json(), json!({ "canceled": true }));
    check_refusal(&by_environment("cancel"), 3, "no session has this id");
}

#[test]
fn only_the_administrator_cancels_a_rated_game_that_has_begun() {
    let fixture = RecordFixture::open();
    let session = create(&fixture, &[]);
    join(&fixture, &session);
    for verb in ["cancel", "unlist"] {
        let refused = fixture.run(&["session", verb, &session.id, "--creator-key", &session.key]);
        check_refusal(&refused, 3, "RATED_GAME");
    }
    let canceled = fixture.run(&["session", "cancel", &session.id, "--admin", "--data", fixture.data()]);
    assert_eq!(canceled.json(), json!({ "canceled": true }));

    let unrated = create(&fixture, &["--options", r#"{"setSize": 5}"#]);
    join(&fixture, &unrated);
    let canceled = fixture.run(&["session", "cancel", &unrated.id, "--creator-key", &unrated.key]);
    assert_eq!(canceled.json(), json!({ "canceled": true }));
}

#[test]
fn a_session_on_a_server_is_forked_and_the_record_of_the_fork_verifies() {
    let fixture = RecordFixture::open();
    let session = create(&fixture, &[]);
    join(&fixture, &session);
    let fork = |options: &[&str]| {
        fixture.run(&[&["session", "fork", &session.id, "--at", "2", "--creator-key", &session.key], options].concat())
    };
    check_refusal(&fork(&[]), 3, "the session has not ended");
    guess(&fixture, &session.id, &session.invites);
    for option in [["--swap", "1=house"], ["--others", "house"], ["--count", "2"], ["--out", "fork.jsonl"]] {
        check_refusal(&fork(&option), 2, &format!("{} works on files only", option[0]));
    }

    for (options, reseeded) in [(&[][..], false), (&["--reseed"][..], true)] {
        let made = fork(options).json();
        assert_eq!(
            (&made["of"], &made["at"], &made["reseeded"]),
            (&json!(session.id), &json!(2), &json!(reseeded)),
            "{made}"
        );
        let id = made["id"].as_str().unwrap();
        let players: Vec<String> = serde_json::from_value(made["players"].clone()).unwrap();
        // The fork is in no list, and its players return to their seats nevertheless.
        fixture.server.client().act(id, &players[1], "guess", "1").ok();
        let played = fixture.run(&["play", "--from", &players[0], "--agent", "house", "--json"]);
        assert_eq!(played.code, 0, "{played:#?}");
        assert!(played.stdout.contains(id), "{played:#?}");
        let record = fixture.get(id, &format!("{id}.jsonl"), &[]);
        let verified = run(&["verify", &record, "--json"]);
        assert_eq!(verified.code, 0, "{verified:#?}");
        let line: Value = serde_json::from_str(verified.stdout.lines().next().unwrap()).unwrap();
        assert!(line["checked"].as_array().unwrap().contains(&json!("rules")), "{line}");
        assert!(made["creatorKey"].as_str().unwrap().starts_with("o_"), "{made}");
    }
    let admin = fixture.run(&["session", "fork", &session.id, "--at", "2", "--admin", "--data", fixture.data()]);
    assert_eq!(admin.json()["of"], json!(session.id));
}
