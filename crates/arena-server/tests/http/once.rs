//! `Idempotency-Key`: a repeated write has an effect only once.

use std::thread;

use arena_testkit::{Client, Host};
use serde_json::json;

#[test]
fn a_repeated_write_gets_the_first_answer_and_happens_once() {
    let host = Host::start();
    let client = host.client();
    let create = || client.post_once("/api/challenges/psi", "create-1-7d0f2c9e", &json!({}));
    let session = create().ok();
    assert_eq!(create().ok(), session);
    assert_eq!(client.get("/api/challenges").ok()["total"], 1);

    let invites: Vec<&str> = session["invites"].as_array().expect("a list").iter().filter_map(|i| i.as_str()).collect();
    let join = || client.post_once("/api/arena/join", "join-1", &json!({ "invite": invites[0] }));
    let joined = join().ok();
    assert_eq!(join().ok(), joined);
    // Without the key, the repeated join is refused like any other join with a used invite.
    assert_eq!(client.join(invites[0]).refusal().1, "INVITE_ALREADY_USED");
    client.join(invites[1]).ok();

    let say = |key: &str, text: &str| {
        client.post_once(
            "/api/chat/send",
            key,
            &json!({ "channel": session["id"], "from": invites[0], "content": text }),
        )
    };
    assert_eq!(say("chat-1", "once").ok()["index"], 1);
    assert_eq!(say("chat-1", "once").ok()["index"], 1);
    assert_eq!(say("chat-2", "once").ok()["index"], 2);
    assert_eq!(say("chat-1", "twice").refusal(), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));

    let guess = || {
        let body = json!({ "challengeId": session["id"], "from": invites[0], "messageType": "guess", "content": "5" });
        client.post_once("/api/arena/message", "guess-1", &body)
    };
    assert_eq!(guess().ok(), json!({ "ok": "Message sent" }));
    assert_eq!(guess().ok(), json!({ "ok": "Message sent" }));

    let offer = |key: &str| client.post_once("/api/invites", key, &json!({ "inviteId": invites[1] }));
    assert_eq!(offer("offer-1").refusal().0, 409);
}

#[test]
fn a_refused_write_may_be_tried_again_under_its_key() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    let body = json!({ "channel": session, "from": invites[0], "content": "hello" });
    assert_eq!(client.post_once("/api/chat/send", "k", &body).refusal().1, "PLAYER_NOT_FOUND");
    client.join(&invites[0]).ok();
    assert_eq!(client.post_once("/api/chat/send", "k", &body).ok()["index"], 1);
}

#[test]
fn repetitions_at_the_same_moment_happen_once() {
    let host = Host::start();
    let client = host.client();
    let answers: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| scope.spawn(|| client.post_once("/api/challenges/psi", "race-7d0f2c9e-51", &json!({})).ok()))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(client.get("/api/challenges").ok()["total"], 1);
}

#[test]
fn a_session_and_its_invites_are_given_to_its_creator_only() {
    for is_authenticated in [false, true] {
        let host = Host::start_with(|settings| settings.auth.enabled = is_authenticated);
        let [ada, bob] = ["127.0.0.1", "127.0.0.2"].map(|address| host.client().from_address(address.parse().unwrap()));
        let key = "7d0f2c9e-51aa-4c39";
        let create = |client: &Client, key: &str| client.post_once("/api/challenges/psi", key, &json!({}));
        let own = create(&ada, key).ok();
        assert_eq!(create(&ada, key).ok(), own, "authenticated: {is_authenticated}");
        let other = create(&bob, key).ok();
        assert_ne!(other["id"], own["id"], "authenticated: {is_authenticated}");
        assert_ne!(other["invites"], own["invites"]);
        // Two clients at one address could use counters as keys. Such keys are too short for creating sessions.
        for guessable in ["1", "create-1", &"k".repeat(15)] {
            let refused = create(&ada, guessable);
            assert_eq!(refused.refusal(), (400, "INVALID_IDEMPOTENCY_KEY".to_owned()));
            assert_eq!(refused.refusal(), create(&bob, guessable).refusal());
        }
        assert_eq!(ada.get("/api/challenges").ok()["total"], 2);
    }
}

#[test]
fn players_with_equal_keys_are_independent() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.create("psi");
    for invite in &invites {
        let joined = client.post_once("/api/arena/join", "1", &json!({ "invite": invite })).ok();
        assert_eq!(joined["ChallengeID"], session, "{joined}");
    }
    for (seat, index) in [(0, 1), (1, 2), (0, 1)] {
        let body = json!({ "channel": session, "from": invites[seat], "content": "hi" });
        assert_eq!(client.post_once("/api/chat/send", "2", &body).ok()["index"], index);
    }
    let (_, others) = client.create("psi");
    for invite in &others {
        client.post_once("/api/invites", "1", &json!({ "inviteId": invite })).ok();
    }
    for user in ["ada", "bob"] {
        client.post_once("/api/users", "1", &json!({ "userId": user, "username": user })).ok();
    }
}

#[test]
fn spectators_of_one_name_and_two_addresses_have_keys_of_their_own() {
    let host = Host::start_with(|settings| settings.sessions.spectators_chat = true);
    let [near, far] = ["127.0.0.1", "127.0.0.2"].map(|address| host.client().from_address(address.parse().unwrap()));
    let (session, _) = near.create("psi");
    let say = |client: &Client, text: &str| {
        client.post_once("/api/chat/send", "1", &json!({ "channel": session, "from": "guest", "content": text }))
    };
    assert_eq!(say(&near, "hello").ok()["index"], 1);
    assert_eq!(say(&far, "good luck").ok()["index"], 2);
    assert_eq!(say(&near, "hello").ok()["index"], 1);
}
