//! Concurrent requests have the same effect as sequential ones.

use std::collections::{BTreeSet, HashSet};
use std::sync::Barrier;
use std::thread;

use arena_testkit::Host;
use serde_json::{Value, json};

/// Calls `what` with each number below `n`, on threads that start together. Returns the results.
fn together<T: Send>(n: usize, what: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(n);
    let (what, barrier) = (&what, &barrier);
    thread::scope(|scope| {
        let run = |i| {
            scope.spawn(move || {
                barrier.wait();
                what(i)
            })
        };
        let threads: Vec<_> = (0..n).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn one_invite_seats_one_player_however_many_come() {
    let host = Host::start();
    let client = host.client();
    for _ in 0..5 {
        let (session, invites) = client.create("psi");
        let answers = together(64, |_| client.join(&invites[0]));
        let (seated, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!(seated.len(), 1);
        for answer in refused {
            assert_eq!(answer.refusal(), (400, "INVITE_ALREADY_USED".to_owned()));
        }
        client.join(&invites[1]).ok();
        let received = client.get(&format!("/api/arena/sync?channel={session}&from={}", invites[0])).messages();
        assert_eq!(received.len(), 2, "two players, two sets");
    }
}

#[test]
fn a_game_starts_once_when_all_come_at_the_same_moment() {
    let host = Host::start();
    let client = host.client();
    for _ in 0..20 {
        let (session, invites) = client.create("psi");
        for answer in together(2, |seat| client.join(&invites[seat])) {
            answer.ok();
        }
        let received = client.get(&format!("/api/arena/sync?channel={session}")).messages();
        let indexes: Vec<u64> = received.iter().filter_map(|message| message["index"].as_u64()).collect();
        assert_eq!(indexes, [1, 2]);
        let recipients: HashSet<&str> = received.iter().filter_map(|message| message["to"].as_str()).collect();
        assert_eq!(recipients, invites.iter().map(String::as_str).collect());
        let page = client.get("/api/challenges/psi?limit=1").ok();
        assert_eq!(page["challenges"][0]["state"]["status"], "active");
    }
}

#[test]
fn no_score_is_lost_when_all_guess_at_the_same_moment() {
    let host = Host::start();
    let client = host.client();
    for _ in 0..20 {
        let (session, invites) = client.seated("psi");
        let sets = [0, 1].map(|seat| client.set_of(&session, &invites[seat]).into_iter().collect::<BTreeSet<u64>>());
        let common = &sets[0] & &sets[1];
        // Each player guesses twice, concurrently. One of the two guesses counts.
        let answers = together(4, |i| client.guess(&session, &invites[i % 2], &common));
        let mut outcomes: Vec<String> = answers
            .iter()
            .map(|answer| if answer.status == 200 { "taken".to_owned() } else { answer.refusal().1 })
            .collect();
        outcomes.sort();
        // The last player's second guess may arrive after the end: the response is 200, the operator replies privately.
        let refused = outcomes.iter().filter(|outcome| *outcome == "DUPLICATE_GUESS").count();
        let late = client
            .get(&format!("/api/arena/sync?channel={session}"))
            .messages()
            .iter()
            .filter(|message| message["content"].as_str().is_some_and(|text| text.starts_with("ERR_GAME_NOT_RUNNING")))
            .count();
        assert_eq!(refused + late, 2, "{outcomes:?}");
        let ended = &client.get("/api/challenges/psi?limit=1").ok()["challenges"][0];
        assert_eq!(ended["state"]["status"], "ended");
        assert_eq!(ended["state"]["scores"], json!([{"security": 1, "utility": 1}, {"security": 1, "utility": 1}]));
    }
}

#[test]
fn a_channel_has_no_gap_when_many_speak_at_the_same_moment() {
    let host = Host::start();
    let client = host.client();
    let (session, invites) = client.seated("psi");
    let answers = together(16, |i| {
        (0..25)
            .map(|n| client.chat(&session, &invites[i % 2], &format!("{i}/{n}")).ok()["index"].clone())
            .collect::<Vec<_>>()
    });
    let mut received: Vec<u64> = answers.iter().flatten().filter_map(Value::as_u64).collect();
    received.sort_unstable();
    assert_eq!(received, (1..=400).collect::<Vec<u64>>());
    let stored = client.get(&format!("/api/chat/sync?channel={session}")).messages();
    let indexes: Vec<u64> = stored.iter().filter_map(|message| message["index"].as_u64()).collect();
    assert_eq!(indexes, received);
    let texts: HashSet<&str> = stored.iter().filter_map(|message| message["content"].as_str()).collect();
    assert_eq!(texts.len(), 400);
}
