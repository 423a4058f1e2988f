//! Budgets of addresses: each refuses new work with an error that names it, and leaves games that have begun alone.

use std::io::{Read, Write};

use arena_server::Settings;
use arena_testkit::attacks::ATTACKER;
use arena_testkit::{Client, Host, known_admin_token, until};
use serde_json::{Value, json};

const HONEST: [u8; 4] = [127, 0, 0, 2];

/// Limits of a small public host, which apply to this machine too. There are no limits of rates.
fn public_host(settings: &mut Settings) {
    settings.admin_token = Some(known_admin_token());
    let limits = &mut settings.limits;
    limits.limit_loopback = true;
    limits.stored_bytes_per_address = 2 * 1024 * 1024;
    limits.requests_per_second = 0;
    limits.writes_per_second = 0;
}

#[test]
fn an_address_that_has_stored_much_begins_nothing_new_and_plays_on() {
    let host = Host::start_with(public_host);
    let client = host.client().from_address(ATTACKER.into());
    let other = host.client().from_address(HONEST.into());
    let (session, players) = client.seated("psi");
    let say = || client.chat(&session, &players[0], &"x".repeat(500_000));
    for _ in 0..5 {
        say().ok();
    }
    let refused = (429, "STORAGE_BUDGET_USED".to_owned());
    let create = |client: &Client| client.post_once("/api/challenges/psi", "a key of more than 16", &json!({}));
    let answer = create(&client);
    assert_eq!(answer.refusal(), refused);
    let wait: u64 = answer.header("retry-after").and_then(|wait| wait.parse().ok()).expect("a number");
    assert!((86_000..=86_400).contains(&wait), "{wait}");
    let error = answer.json()["error"].as_str().expect("a text").to_owned();
    let sentence = "this address has stored more than 2097152 bytes within a day and may begin nothing new for 14";
    assert!(error.starts_with(sentence) && error.ends_with("minutes (limits.stored_bytes_per_address)"), "{error}");
    assert_eq!(client.post("/api/queue/ultimatum", &json!({})).refusal(), refused);
    create(&other).ok();

    // The game ends right, and the rest of the budget ends as well.
    client.ends_well(&session, &players);
    let (session, players) = other.create("psi");
    for player in &players {
        client.join(player).ok();
    }
    let said = (0..10).map(|_| client.chat(&session, &players[0], &"x".repeat(500_000)).status).collect::<Vec<_>>();
    assert_eq!(said, [200, 200, 200, 200, 429, 429, 429, 429, 429, 429]);
    other.chat(&session, &players[1], "I may").ok();
    let mut text = String::new();
    let page = client.connect().and_then(|mut stream| {
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        stream.read_to_string(&mut text)
    });
    assert!(page.is_ok() && text.contains("429"), "{text}");
}

/// Returns the sentence of a refusal with this code and a time to wait.
#[track_caller]
fn refused(answer: &arena_testkit::Answer, code: &str) -> String {
    assert_eq!(answer.refusal(), (429, code.to_owned()));
    assert!(answer.header("retry-after").is_some(), "{}", answer.text());
    answer.json()["error"].as_str().expect("a text").to_owned()
}

/// Returns the amounts that an address uses, from the list of budgets.
fn used_by(host: &Host, address: [u8; 4]) -> Value {
    let page = host.client().get_with(known_admin_token().reveal(), "/api/admin/budgets?limit=100").ok();
    let address = std::net::IpAddr::from(address).to_string();
    let rows = page["addresses"].as_array().expect("a list");
    rows.iter().find(|row| row["address"] == address).map_or(Value::Null, |row| row["used"].clone())
}

#[test]
fn an_address_with_many_running_sessions_creates_none_until_one_ends() {
    let host = Host::start_with(|settings| {
        public_host(settings);
        settings.limits.running_sessions_per_address = 2;
    });
    let client = host.client().from_address(ATTACKER.into());
    let (first, players) = client.create("psi");
    client.create("psi");
    for player in &players {
        client.join(player).ok();
    }
    assert_eq!(used_by(&host, ATTACKER)["runningSessions"], 2);
    let create = || client.post("/api/challenges/psi", &json!({}));
    let error = refused(&create(), "TOO_MANY_SESSIONS");
    assert_eq!(
        error,
        "this address has created 2 sessions that haven't ended; it may create another when one of them ends \
         (limits.running_sessions_per_address)"
    );
    refused(&client.post("/api/queue/ultimatum", &json!({})), "TOO_MANY_SESSIONS");
    host.client().from_address(HONEST.into()).create("psi");
    client.ends_well(&first, &players);
    // Ended sessions are looked up once a second.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    create().ok();
    assert_eq!(used_by(&host, ATTACKER)["runningSessions"], 2);
}

#[test]
fn an_address_has_a_number_of_streams_and_of_places_in_queues() {
    let host = Host::start_with(|settings| {
        public_host(settings);
        settings.limits.streams_per_address = 2;
        settings.limits.tickets_per_address = 1;
    });
    let client = host.client().from_address(ATTACKER.into());
    let (session, players) = client.seated("psi");
    let path = format!("/api/chat/ws/{session}");
    let open: Vec<_> = (0..2).map(|_| client.stream(&path, None)).collect();
    assert!(open.iter().all(|stream| stream.status == 200));
    let error = refused(&client.get(&path), "TOO_MANY_STREAMS");
    let sentence = "this address has 2 open streams; it can open another when one of them ends";
    assert_eq!(error, format!("{sentence} (limits.streams_per_address)"));
    assert_eq!(used_by(&host, ATTACKER)["streams"], 2);
    assert_eq!(host.client().from_address(HONEST.into()).stream(&path, None).status, 200);

    client.post("/api/queue/ultimatum", &json!({})).ok();
    assert_eq!(used_by(&host, ATTACKER)["tickets"], 1);
    let error = refused(&client.post("/api/queue/psi", &json!({})), "TOO_MANY_TICKETS");
    assert!(error.ends_with("(limits.tickets_per_address)"), "{error}");

    // The game goes on, and a closed stream leaves its place.
    client.ends_well(&session, &players);
    drop(open);
    until("a stream has ended", || client.stream(&path, None).status == 200);
}

#[test]
fn an_address_that_has_computed_for_long_begins_nothing_new_for_a_while() {
    let host = Host::start_with(|settings| {
        public_host(settings);
        settings.limits.computing_ms_per_second = 1;
        settings.limits.computing_burst_ms = 60;
        settings.limits.stored_bytes_per_address = 1 << 40;
    });
    let client = host.client().from_address(ATTACKER.into());
    let (session, players) = client.seated("psi");
    // A deal of the largest sets takes some milliseconds.
    let costly = json!({ "options": { "range": [1, 3000], "setSize": 1000, "intersectionSize": 1000 } });
    let answers = std::iter::repeat_with(|| client.post("/api/challenges/psi", &costly));
    let answer = answers.take(1_000).find(|answer| answer.status != 200).expect("the time is limited");
    let error = refused(&answer, "COMPUTING_BUDGET_USED");
    assert!(error.starts_with("this address has used its computing time and may begin nothing new for "), "{error}");
    assert!(error.ends_with(" seconds (limits.computing_ms_per_second)"), "{error}");
    assert!(used_by(&host, ATTACKER)["computingMs"].as_u64() >= Some(55));
    // Games that have begun go on, and others aren't concerned.
    client.ends_well(&session, &players);
    host.client().from_address(HONEST.into()).create("psi");
}
