//! The rights of a session's creator: canceling, unlisting, and the list of free invites.

use std::time::{Duration, Instant};

use arena_record::{Parsed, ReadLimits, reexecute};
use arena_testkit::{Client, Host, known_admin_token};
use serde_json::{Map, Value, json};

/// The time in which the log must have an event. The promise is one second; the rest is for slow machines.
const PATIENCE: Duration = Duration::from_secs(20);

struct Created {
    id: String,
    invites: Vec<String>,
    key: String,
}

fn start() -> Host {
    Host::start_with(|settings| settings.admin_token = Some(known_admin_token()))
}

/// Creates a rated session.
fn create(client: &Client, challenge: &str) -> Created {
    create_with(client, challenge, &json!({}))
}

/// Creates a session of PSI that is unrated, because it has options of its own.
fn create_unrated(client: &Client) -> Created {
    create_with(client, "psi", &json!({ "options": { "setSize": 5 } }))
}

fn create_with(client: &Client, challenge: &str, settings: &Value) -> Created {
    let session = client.post(&format!("/api/challenges/{challenge}"), settings).ok();
    let invites = serde_json::from_value(session["invites"].clone()).expect("invites");
    let text = |name: &str| session[name].as_str().expect("a text").to_owned();
    Created { id: text("id"), invites, key: text("creatorKey") }
}

/// Joins all players. The first events of the session are their joins.
fn join(client: &Client, session: &Created) {
    for (number, invite) in session.invites.iter().enumerate() {
        let user = format!("user{number}");
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
}

/// Lets all players guess, which ends a game of PSI or of dining cryptographers.
fn guess(client: &Client, id: &str, players: &[String], content: &str) {
    for player in players {
        client.act(id, player, "guess", content).ok();
    }
}

fn record(client: &Client, id: &str) -> Parsed {
    let answer = client.get(&format!("/api/sessions/{id}/record"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    arena_record::read(answer.text().as_bytes(), ReadLimits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn check_replay(parsed: &Parsed) {
    let challenge = arena_games::challenge(&parsed.header.challenge, &Map::new()).expect("built in").expect("valid");
    let played = reexecute(parsed, &*challenge).unwrap_or_else(|lie| panic!("{lie}"));
    assert_eq!(played.unchecked, None);
}

/// Waits until the log has a leaf of a session. Returns the leaves of the log's first tile as text.
fn wait_for_leaf(client: &Client, id: &str, kind: &str) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = client.get(&format!("/log/proof/{id}?kind={kind}"));
        if answer.status == 200 {
            let size = answer.json()["size"].clone();
            let leaves = client.get(&format!("/log/tile/entries/000.p/{size}"));
            assert_eq!(leaves.status, 200, "{size}");
            return String::from_utf8_lossy(&leaves.body).into_owned();
        }
        assert!(Instant::now() < until, "waited in vain for {kind}: {}", answer.text());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_creator_cancels_a_session_that_has_not_ended() {
    let host = start();
    let client = host.client();
    let (open, active, ended) = (create(&client, "psi"), create_unrated(&client), create(&client, "psi"));
    join(&client, &active);
    join(&client, &ended);
    guess(&client, &ended.id, &ended.invites, "1");
    let cancel = |session: &Created, key: &str| {
        client.post_with(key, &format!("/api/sessions/{}/cancel", session.id), &json!({}))
    };
    assert_eq!(cancel(&open, &active.key).refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    assert_eq!(cancel(&ended, &ended.key).refusal(), (409, "SESSION_ENDED".to_owned()));
    for session in [&open, &active] {
        wait_for_leaf(&client, &session.id, "created");
        assert_eq!(cancel(session, &session.key).ok(), json!({ "canceled": true }));
        assert_eq!(cancel(session, &session.key).refusal(), (404, "CHALLENGE_NOT_FOUND".to_owned()));
        assert_eq!(client.join(&session.invites[0]).refusal(), (400, "INVITE_NOT_FOUND".to_owned()));
        // No session is dropped unseen.
        let leaves = wait_for_leaf(&client, &session.id, "removed");
        let leaf = format!(r#"{{"leaf":"removed","session":"{}","reason":"creator","at":"#, session.id);
        assert!(leaves.contains(&leaf), "{leaves}");
    }
    record(&client, &ended.id);
}

#[test]
fn the_creator_unlists_a_session_and_the_log_shows_it() {
    let host = start();
    let client = host.client();
    let (open, active) = (create(&client, "psi"), create_unrated(&client));
    join(&client, &active);
    let unlist = |session: &Created, key: &str| {
        client.post_with(key, &format!("/api/sessions/{}/unlist", session.id), &json!({}))
    };
    assert_eq!(unlist(&open, &active.key).refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    for session in [&open, &active] {
        wait_for_leaf(&client, &session.id, "created");
        assert!(client.get("/api/challenges").text().contains(&session.id));
        assert_eq!(unlist(session, &session.key).ok(), json!({ "unlisted": true }));
        assert_eq!(unlist(session, &session.key).ok(), json!({ "unlisted": true }), "again");
        assert!(!client.get("/api/challenges").text().contains(&session.id));
    }
    join(&client, &open);
    for session in [&open, &active] {
        guess(&client, &session.id, &session.invites, "1");
        check_replay(&record(&client, &session.id));
        let leaves = wait_for_leaf(&client, &session.id, "excluded");
        let leaf = format!(r#"{{"leaf":"excluded","session":"{}","reason":"unlisted","at":"#, session.id);
        assert!(leaves.contains(&leaf), "{leaves}");
        assert_eq!(unlist(session, &session.key).ok(), json!({ "unlisted": true }), "ended");
    }
    assert_eq!(client.get("/api/users/user0/challenges").json()["challenges"].as_array().map_or(0, Vec::len), 0);
    let ended = create(&client, "psi");
    join(&client, &ended);
    guess(&client, &ended.id, &ended.invites, "1");
    assert_eq!(unlist(&ended, &ended.key).refusal(), (409, "SESSION_ENDED".to_owned()));
}

#[test]
fn only_an_administrator_withdraws_a_rated_game_that_has_begun() {
    let host = start();
    let client = host.client();
    let administrator = known_admin_token();
    for (action, answer) in [("cancel", json!({ "canceled": true })), ("unlist", json!({ "unlisted": true }))] {
        let withdraw = |session: &Created, key: &str| {
            client.post_with(key, &format!("/api/sessions/{}/{action}", session.id), &json!({}))
        };
        let half = create(&client, "psi");
        client.join(&half.invites[0]).ok();
        assert_eq!(withdraw(&half, &half.key).ok(), answer, "{action}: one seat is free");

        let game = create(&client, "psi");
        wait_for_leaf(&client, &game.id, "created");
        join(&client, &game);
        client.act(&game.id, &game.invites[0], "guess", "1").ok();
        let refused = (409, "RATED_GAME".to_owned());
        assert_eq!(withdraw(&game, &game.key).refusal(), refused, "{action}");
        assert!(client.get("/api/challenges").text().contains(&game.id), "{action}: nothing has changed");
        assert_eq!(withdraw(&game, administrator.reveal()).ok(), answer, "{action}");

        let ended = create(&client, "psi");
        join(&client, &ended);
        guess(&client, &ended.id, &ended.invites, "1");
        for key in [&ended.key, &administrator.reveal().to_owned()] {
            assert_eq!(withdraw(&ended, key).refusal(), (409, "SESSION_ENDED".to_owned()), "{action}");
        }
        if action == "cancel" {
            let leaves = wait_for_leaf(&client, &game.id, "removed");
            let leaf = format!(r#"{{"leaf":"removed","session":"{}","reason":"administrator","at":"#, game.id);
            assert!(leaves.contains(&leaf), "{leaves}");
        }
    }
}

#[test]
fn the_creator_lists_free_invites() {
    let host = start();
    let client = host.client();
    let session = create(&client, "psi");
    let path = format!("/api/sessions/{}/invites", session.id);
    let free = || client.get_with(&session.key, &path).ok()["invites"].clone();
    assert_eq!(client.get(&path).refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    assert_eq!(free(), json!(session.invites));
    client.join(&session.invites[0]).ok();
    assert_eq!(free(), json!(session.invites[1..]));
    client.post("/api/invites", &json!({ "inviteId": session.invites[1] })).ok();
    assert_eq!(free(), json!([]), "the public knows the invite");
}
