//! The rights of a session's creator: forks of ended sessions, canceling, unlisting, and the list of free invites.

use std::time::{Duration, Instant};

use arena_record::{ForkOf, Parsed, ReadLimits, reexecute};
use arena_testkit::{Answer, Client, Host, known_admin_token};
use serde_json::{Map, Value, json};

/// The time in which the log must have an event. The promise is one second; the rest is for slow machines.
const PATIENCE: Duration = Duration::from_secs(20);

/// A created session.
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

fn fork(client: &Client, key: &str, id: &str, body: &Value) -> Answer {
    client.post_with(key, &format!("/api/sessions/{id}/fork"), body)
}

fn players(fork: &Value) -> Vec<String> {
    serde_json::from_value(fork["players"].clone()).expect("players")
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

/// Returns the operator's messages that a player sees.
fn seen(client: &Client, id: &str, player: &str) -> Vec<String> {
    let answer = client.get(&format!("/api/arena/sync?channel={id}&from={player}")).ok();
    let messages = answer["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_fork_has_the_past_and_the_seed_of_its_original_and_counts_nowhere() {
    let host = start();
    let client = host.client();
    for (challenge, guesses) in [("psi", ["1", "2"]), ("dining-cryptographers", ["unknown", "external"])] {
        let original = create(&client, challenge);
        join(&client, &original);
        let at = original.invites.len() as u64;
        let early = fork(&client, &original.key, &original.id, &json!({ "at": at }));
        assert_eq!(early.refusal(), (409, "CANNOT_FORK".to_owned()), "the seed is secret until the end");
        let past: Vec<Vec<String>> = original.invites.iter().map(|name| seen(&client, &original.id, name)).collect();
        assert!(past.iter().all(|messages| !messages.is_empty()));
        guess(&client, &original.id, &original.invites, guesses[0]);
        let ended = record(&client, &original.id);
        let lists = ["/api/challenges", "/api/scoring", "/api/stats", "/api/users/user0/challenges"];
        let listed = || lists.map(|path| client.get(path).text().to_owned());
        let before = listed();

        for reseed in [false, true] {
            let made = fork(&client, &original.key, &original.id, &json!({ "at": at, "reseed": reseed })).ok();
            let id = made["id"].as_str().expect("an id");
            assert_eq!(
                (&made["of"], &made["at"], &made["reseeded"]),
                (&json!(original.id), &json!(at), &json!(reseed))
            );
            let names = players(&made);
            assert_eq!(names.len(), original.invites.len());
            assert!(names.iter().all(|name| !original.invites.contains(name)), "invites are new");
            // Seats are in the order of the joins.
            for (seat, name) in names.iter().enumerate() {
                let renamed = |text: &String| {
                    original.invites.iter().zip(&names).fold(text.clone(), |text, (old, new)| text.replace(old, new))
                };
                let expected: Vec<String> = past[seat].iter().map(renamed).collect();
                assert_eq!(seen(&client, id, name), expected, "{challenge}, seat {seat}");
            }
            let view = client.get(&format!("/api/challenges/{challenge}?status=active")).ok();
            assert!(!view.to_string().contains(id), "{view}");
            guess(&client, id, &names, guesses[1]);
            let parsed = record(&client, id);
            let of = original.id.parse().expect("an id");
            assert_eq!(parsed.header.fork, Some(ForkOf { of, at, reseeded: reseed }));
            assert_eq!(parsed.header.seed_commitment, ended.header.seed_commitment);
            // The fork stores the facts of its header itself.
            assert_eq!(parsed.header.rules, ended.header.rules);
            assert_eq!(parsed.header.release, env!("CARGO_PKG_VERSION"));
            assert_eq!(parsed.header.inputs, ended.header.inputs);
            assert!(parsed.end.is_some(), "the game is over");
            assert!(parsed.events.iter().all(|event| event.user.is_none()), "other players continue the game");
            check_replay(&parsed);
            // A fork of a fork continues from its own past.
            let key = made["creatorKey"].as_str().expect("a key");
            let again = fork(&client, key, id, &json!({ "at": at }));
            assert_eq!(again.status, if reseed { 409 } else { 200 }, "{}", again.text());
        }
        assert_eq!(listed(), before, "{challenge}");
    }
}

#[test]
fn only_the_creator_and_the_administrator_may_fork() {
    let host = start();
    let client = host.client();
    let (session, other) = (create(&client, "psi"), create(&client, "psi"));
    join(&client, &session);
    guess(&client, &session.id, &session.invites, "1");
    let path = format!("/api/sessions/{}/fork", session.id);
    let refused = (401, "AUTHENTICATION_REQUIRED".to_owned());
    assert_eq!(client.post(&path, &json!({ "at": 2 })).refusal(), refused);
    for key in [&other.key, &session.key.to_uppercase(), &session.invites[0], &"x".repeat(64)] {
        assert_eq!(fork(&client, key, &session.id, &json!({ "at": 2 })).refusal(), refused, "{key}");
    }
    let administrator = known_admin_token();
    for unknown in ["00000000-0000-7000-8000-000000000000", "x"] {
        let answer = fork(&client, administrator.reveal(), unknown, &json!({ "at": 2 }));
        assert_eq!(answer.refusal(), (404, "CHALLENGE_NOT_FOUND".to_owned()), "{unknown}");
    }
    fork(&client, administrator.reveal(), &session.id, &json!({ "at": 2 })).ok();
    let audit = client.get_with(administrator.reveal(), "/api/admin/audit").ok();
    assert_eq!(audit["entries"][0]["action"], "fork");

    for (body, expected) in [
        (json!({}), (400, "MISSING_FIELD")),
        (json!({ "at": -1 }), (400, "INVALID_FIELD")),
        (json!({ "at": "2" }), (400, "INVALID_FIELD")),
        (json!({ "at": 2, "reseed": 1 }), (400, "INVALID_FIELD")),
        (json!({ "at": 0 }), (409, "CANNOT_FORK")),
        (json!({ "at": 1 }), (409, "CANNOT_FORK")),
        (json!({ "at": 4 }), (409, "CANNOT_FORK")),
        (json!({ "at": 99 }), (400, "INVALID_FIELD")),
    ] {
        let (status, code) = fork(&client, &session.key, &session.id, &body).refusal();
        assert_eq!((status, code.as_str()), expected, "{body}");
    }
}

#[test]
fn private_chat_is_copied_for_the_administrator_only() {
    let host = start();
    let client = host.client();
    let session = create(&client, "psi");
    join(&client, &session);
    let private =
        json!({ "channel": session.id, "from": session.invites[1], "to": session.invites[0], "content": "hush" });
    client.post("/api/chat/send", &private).ok();
    guess(&client, &session.id, &session.invites, "1");
    fork(&client, &session.key, &session.id, &json!({ "at": 2 })).ok();
    let refused = fork(&client, &session.key, &session.id, &json!({ "at": 3 }));
    assert_eq!(refused.refusal(), (403, "PRIVATE_CHAT".to_owned()));
    fork(&client, known_admin_token().reveal(), &session.id, &json!({ "at": 3 })).ok();
}

#[test]
fn a_repeated_request_makes_one_fork() {
    let host = start();
    let client = host.client();
    let session = create(&client, "psi");
    join(&client, &session);
    guess(&client, &session.id, &session.invites, "1");
    let authorization = format!("Bearer {}", session.key);
    let headers =
        [("Authorization", authorization.as_str()), ("Idempotency-Key", "9f8b6c1e-52d7-4e0a-b3a4-7c9d20e6f115")];
    let path = format!("/api/sessions/{}/fork", session.id);
    let send = |body: &str| client.request("POST", &path, &headers, body.as_bytes());
    let first = send(r#"{"at":2}"#).ok();
    assert_eq!(send(r#"{"at":2}"#).ok(), first);
    assert!(first["creatorKey"].is_string());
    assert_eq!(send(r#"{"at":3}"#).refusal(), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
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
fn a_fork_counts_as_20_requests() {
    let host = Host::start_with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 1;
        // The creation, two joins, two guesses, two forks of 20 and the requests below, but no third fork.
        settings.limits.requests_burst = 54;
    });
    let client = host.client();
    let session = create(&client, "psi");
    join(&client, &session);
    guess(&client, &session.id, &session.invites, "1");
    for _ in 0..2 {
        fork(&client, &session.key, &session.id, &json!({ "at": 2 })).ok();
    }
    let refused = fork(&client, &session.key, &session.id, &json!({ "at": 2 }));
    assert_eq!(refused.refusal(), (429, "RATE_LIMITED".to_owned()));
    client.get("/api/challenges").ok();
}

#[test]
fn concurrent_forks_wait_for_their_turn() {
    let host = start();
    let client = host.client();
    let session = create(&client, "psi");
    join(&client, &session);
    guess(&client, &session.id, &session.invites, "1");
    let forks: Vec<Value> = std::thread::scope(|scope| {
        let fork = || fork(&client, &session.key, &session.id, &json!({ "at": 2 })).ok();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(fork)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a fork")).collect()
    });
    let mut ids: Vec<&str> = forks.iter().filter_map(|fork| fork["id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 8);
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
