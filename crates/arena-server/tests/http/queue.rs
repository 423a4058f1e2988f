//! The queues: callers that wait for opponents get the seats of a session in the order in which they came.

use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Client, Host};
use serde_json::{Value, json};

/// Puts a caller into a queue, and returns the answer.
fn wait_in(client: &Client, challenge: &str) -> Value {
    client.post(&format!("/api/queue/{challenge}"), &json!({})).ok()
}

/// Returns the state of a ticket after at most `wait` seconds.
fn look(client: &Client, place: &Value, wait: u32) -> Value {
    client.get(&path(place, &format!("?wait={wait}"))).ok()
}

fn path(place: &Value, query: &str) -> String {
    format!("/api/queue/psi/{}{query}", place["ticket"].as_str().expect("a ticket"))
}

fn leave(client: &Client, place: &Value) -> arena_testkit::Answer {
    client.request("DELETE", &path(place, ""), &[], b"")
}

#[test]
fn two_callers_get_a_session_and_the_third_waits() {
    let host = Host::start();
    let client = host.client();
    let first = wait_in(&client, "psi");
    assert_eq!((&first["state"], &first["invite"]), (&json!("waiting"), &Value::Null));
    assert_eq!(look(&client, &first, 0)["state"], "waiting");
    let second = wait_in(&client, "psi");
    let third = wait_in(&client, "psi");
    assert_eq!((&second["state"], &third["state"]), (&json!("matched"), &json!("waiting")));

    let first = look(&client, &first, 20);
    assert_eq!((&first["state"], &first["session"]), (&json!("matched"), &second["session"]));
    assert_ne!(first["invite"], second["invite"]);
    assert_eq!(look(&client, &second, 20), second);
    for place in [&first, &second] {
        let joined = client.join(place["invite"].as_str().expect("an invite")).ok();
        assert_eq!(joined["ChallengeID"], first["session"]);
    }
    let all = client.get("/api/challenges").ok();
    assert_eq!((&all["total"], &all["challenges"][0]["rated"]), (&json!(1), &json!(false)));
    assert_eq!(look(&client, &third, 0)["state"], "waiting");
}

#[test]
fn a_waiting_caller_is_listed_with_a_button_that_takes_a_seat() {
    let host = Host::start();
    let client = host.client();
    let pages = || ["/", "/challenges/psi"].map(|path| client.get(path).text().to_owned());
    let is_listed = |page: &String| {
        page.contains("A player is waiting for an opponent.")
            && page.contains("action=\"/queue/psi\"><button class=\"btn primary\">Join")
    };
    assert!(!pages().iter().any(is_listed));
    let first = wait_in(&client, "psi");
    assert!(pages().iter().all(is_listed), "{:?}", pages());

    let form = [("content-type", "application/x-www-form-urlencoded")];
    let joined = client.request("POST", "/queue/psi", &form, b"");
    let place = joined.header("location").expect("a place in the queue").to_owned();
    let seat = client.get(&place);
    assert!(seat.text().contains("href=\"/play/inv_"), "{place}: {}", seat.text());
    assert_eq!(look(&client, &first, 20)["state"], "matched");
    assert!(!pages().iter().any(is_listed));
}

#[test]
fn games_of_queues_are_rated_if_players_prove_their_identities() {
    for proven in [false, true] {
        let host = Host::start_with(|settings| settings.auth.enabled = proven);
        let client = host.client();
        let [_, second] = [(); 2].map(|()| wait_in(&client, "psi"));
        assert_eq!(second["state"], "matched");
        assert_eq!(client.get("/api/challenges").ok()["challenges"][0]["rated"], json!(proven));
    }
}

#[test]
fn a_waiting_poll_ends_with_the_match() {
    let host = Host::start();
    let client = host.client();
    let first = wait_in(&client, "psi");
    thread::scope(|scope| {
        let polled = scope.spawn(|| (look(&host.client(), &first, 50), Instant::now()));
        wait_in(&client, "psi");
        let matched_at = Instant::now();
        let (state, polled_at) = polled.join().expect("no panic");
        assert_eq!(state["state"], "matched");
        assert!(polled_at.saturating_duration_since(matched_at) < Duration::from_secs(10));
    });
}

#[test]
fn a_caller_that_leaves_gets_no_opponent() {
    let host = Host::start();
    let client = host.client();
    let gone = wait_in(&client, "psi");
    assert_eq!(leave(&client, &gone).ok(), json!({ "left": true }));
    // Leaving twice is harmless.
    assert_eq!(leave(&client, &gone).ok(), json!({ "left": true }));
    assert_eq!(client.get(&path(&gone, "")).refusal(), (404, "TICKET_NOT_FOUND".to_owned()));

    let [one, two] = [wait_in(&client, "psi"), wait_in(&client, "psi")];
    assert_eq!((&one["state"], &two["state"]), (&json!("waiting"), &json!("matched")));
    assert_eq!(leave(&client, &one).refusal(), (409, "ALREADY_MATCHED".to_owned()));
}

#[test]
fn a_repeated_request_gets_the_same_ticket() {
    let host = Host::start();
    let client = host.client();
    let wait = || client.post_once("/api/queue/psi", "queue-1-7d0f2c9e", &json!({})).ok();
    let first = wait();
    assert_eq!(wait(), first);
    assert_eq!(wait_in(&client, "psi")["state"], "matched");
    assert_eq!(wait()["state"], "matched");
}

#[test]
fn callers_of_both_seats_may_come_at_once() {
    let host = Host::start();
    let places: Vec<Value> = thread::scope(|scope| {
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(|| wait_in(&host.client(), "psi"))).collect();
        callers.into_iter().map(|caller| caller.join().expect("no panic")).collect()
    });
    let client = host.client();
    let places: Vec<Value> = places.iter().map(|place| look(&client, place, 20)).collect();
    let mut invites: Vec<&str> = places.iter().map(|place| place["invite"].as_str().expect("an invite")).collect();
    invites.sort_unstable();
    invites.dedup();
    assert_eq!(invites.len(), 8);
    assert_eq!(client.get("/api/challenges").ok()["total"], 4);
}

#[test]
fn invalid_requests_are_refused() {
    let host = Host::start();
    let client = host.client();
    assert_eq!(client.post("/api/queue/golf", &json!({})).refusal(), (400, "UNKNOWN_CHALLENGE".to_owned()));
    assert_eq!(client.post("/api/queue/psi", &json!({ "houseAfterS": -1 })).refusal().0, 400);
    for ticket in ["none", "tkt_0", &format!("tkt_{}", "0".repeat(64))] {
        let path = format!("/api/queue/psi/{ticket}");
        assert_eq!(client.get(&path).refusal(), (404, "TICKET_NOT_FOUND".to_owned()));
        let left = client.request("DELETE", &path, &[], b"");
        assert_eq!(left.refusal(), (404, "TICKET_NOT_FOUND".to_owned()));
    }
    let place = wait_in(&client, "psi");
    assert_eq!(client.get(&path(&place, "?wait=-1")).refusal(), (400, "INVALID_WAIT".to_owned()));
    // A ticket of one challenge is unknown in the queue of another.
    let elsewhere = path(&place, "").replace("psi", "chess");
    let is_unknown = |method: &str| {
        let answer = client.request(method, &elsewhere, &[], b"");
        assert_eq!(answer.refusal(), (404, "TICKET_NOT_FOUND".to_owned()), "{method}");
    };
    ["GET", "DELETE"].iter().for_each(|method| is_unknown(method));
    assert_eq!(look(&client, &place, 0)["state"], "waiting");
    wait_in(&client, "psi");
    assert_eq!(look(&client, &place, 0)["state"], "matched");
    ["GET", "DELETE"].iter().for_each(|method| is_unknown(method));
}
