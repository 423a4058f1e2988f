//! The commands of a session's creator, against a real server.

use serde_json::json;

use crate::program::{Run, run_with};
use crate::records::RecordFixture;

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

fn join(fixture: &RecordFixture, session: &CreatedSession) {
    for invite in &session.invites {
        fixture.server.client().join(invite).ok();
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
