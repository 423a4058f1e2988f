//! Abuse: attacks from one address while others play. Honest players' games end right and nobody refuses them, and the
//! ledger explains all refusals of the attacker.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_server::Settings;
use arena_testkit::{Client, Host, known_admin_token};
use serde_json::{Value, json};

use super::refusals::ends_well;

const ATTACKER: [u8; 4] = [127, 0, 0, 66];

const HONEST: [u8; 4] = [127, 0, 0, 2];

/// Limits of a small public host. They apply to this machine too.
const CONNECTIONS_PER_ADDRESS: usize = 60;
const WAITING_BYTES: usize = 4 * 1024 * 1024;
const STORED_BYTES: u64 = 2 * 1024 * 1024;

fn public_host(settings: &mut Settings) {
    settings.admin_token = Some(known_admin_token());
    let limits = &mut settings.limits;
    limits.limit_loopback = true;
    limits.connections = 400;
    limits.connections_per_address = CONNECTIONS_PER_ADDRESS;
    limits.waiting_bytes = WAITING_BYTES;
    limits.waiting_bytes_per_address = WAITING_BYTES / 4;
    limits.stored_bytes_per_address = STORED_BYTES;
    limits.stalled_ms = 1_000;
}

/// An attack: one round of it with a client at the attacker's address. Rounds are repeated while others play.
type Attack = fn(&Target);

struct Target {
    client: Client,
    /// A session with a long channel, and the invite of a seat that the attacker holds.
    session: String,
    invite: String,
    /// All paths of the API description, with their methods.
    routes: Vec<(String, String)>,
}

const ATTACKS: [(&str, Attack); 11] = [
    ("answers that nobody reads", unread_answers),
    ("connections without requests", idle_connections),
    ("heads that arrive byte by byte", slow_heads),
    ("bodies that don't arrive", missing_bodies),
    ("streams", streams),
    ("new sessions", new_sessions),
    ("tickets in queues", tickets),
    ("joins with wrong invites", joins),
    ("deep and large JSON", deep_json),
    ("long messages", long_messages),
    ("nonsense to all routes", all_routes),
];

/// Opens connections, sends the beginning of a request on each, and keeps them for a moment.
fn hold(target: &Target, begin: &str) {
    let open = || {
        let mut stream = target.client.connect().ok()?;
        stream.write_all(begin.as_bytes()).ok()?;
        Some(stream)
    };
    let held: Vec<TcpStream> = (0..CONNECTIONS_PER_ADDRESS).filter_map(|_| open()).collect();
    thread::sleep(Duration::from_millis(200));
    drop(held);
}

fn unread_answers(target: &Target) {
    let Target { session, invite, .. } = target;
    let one = format!("GET /api/chat/sync?channel={session}&from={invite} HTTP/1.1\r\nHost: arena\r\n\r\n");
    hold(target, &one.repeat(5));
}

fn idle_connections(target: &Target) {
    hold(target, "");
}

fn slow_heads(target: &Target) {
    hold(target, "GET /api/metadata HTTP/1.1\r\nHost: ar");
}

fn missing_bodies(target: &Target) {
    hold(target, "POST /api/challenges/psi HTTP/1.1\r\nHost: arena\r\nContent-Length: 1000000\r\n\r\n{\"options\": ");
}

fn streams(target: &Target) {
    let Target { session, invite, .. } = target;
    hold(target, &format!("GET /api/chat/ws/{session}?from={invite} HTTP/1.1\r\nHost: arena\r\n\r\n"));
}

/// Sends a request that may be refused or cut off.
fn send(target: &Target, method: &str, path: &str, body: &[u8]) {
    let _ = target.client.try_request(method, path, &[], body);
}

fn new_sessions(target: &Target) {
    for _ in 0..50 {
        send(target, "POST", "/api/challenges/psi", br#"{"options": {"size": 1000}}"#);
    }
}

fn tickets(target: &Target) {
    for _ in 0..50 {
        send(target, "POST", "/api/queue/ultimatum", b"{}");
    }
}

fn joins(target: &Target) {
    for n in 0..50 {
        let body = json!({
            "invite": format!("inv_00000000-0000-7000-8000-{n:012}"),
            "publicKey": "00".repeat(44),
            "signature": "11".repeat(64),
            "timestamp": 1,
        });
        send(target, "POST", "/api/arena/join", body.to_string().as_bytes());
    }
}

fn deep_json(target: &Target) {
    let deep = "[".repeat(100_000);
    let wide = format!("{{{}\"a\": 1}}", "\"b\": [1, 2, 3, null], ".repeat(40_000));
    for body in [deep, wide] {
        send(target, "POST", "/api/challenges/psi", body.as_bytes());
    }
}

fn long_messages(target: &Target) {
    let Target { session, invite, .. } = target;
    let body = json!({ "channel": session, "from": invite, "content": "x".repeat(100_000) }).to_string();
    for _ in 0..10 {
        send(target, "POST", "/api/chat/send", body.as_bytes());
    }
}

fn all_routes(target: &Target) {
    for (method, path) in &target.routes {
        let path = path.replace(['{', '}'], "");
        for path in [path.clone(), format!("{path}?limit=9999999999&offset=9999999999&from=%00&wait=1")] {
            send(target, &method.to_uppercase(), &path, br#"{"content": "\u0000", "limit": -1e999}"#);
        }
    }
}

fn routes_of(client: &Client) -> Vec<(String, String)> {
    let description = client.get("/openapi.json").ok();
    let paths = description["paths"].as_object().expect("paths");
    let methods = |(path, item): (&String, &Value)| {
        let methods = item.as_object().expect("methods").keys().cloned();
        methods.map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    // A stream would be read to its end.
    paths.iter().flat_map(methods).filter(|(_, path)| !path.contains("/ws/")).collect()
}

/// Returns a row of the ledger, and the row of a budget.
fn ledger(client: &Client, address: [u8; 4], budget: &str) -> (Value, Value) {
    let page = client.get_with(known_admin_token().reveal(), "/api/admin/budgets?limit=100").ok();
    let find = |list: &str, key: &str, value: &str| {
        let rows = page[list].as_array().expect("a list");
        rows.iter().find(|row| row[key] == value).cloned().unwrap_or_default()
    };
    (find("addresses", "address", &IpAddr::from(address).to_string()), find("budgets", "name", budget))
}

#[test]
fn honest_players_are_not_harmed_by_any_attack() {
    let host = Host::start_with(public_host);
    let at = |address: [u8; 4]| host.client().from_address(address.into());
    let [honest, admin] = [HONEST, [127, 0, 0, 3]].map(at);
    let attacker = at(ATTACKER).patient_for(Duration::from_secs(5));
    let (session, invites) = attacker.create("psi");
    for invite in &invites {
        attacker.join(invite).ok();
    }
    for _ in 0..5 {
        attacker.chat(&session, &invites[0], &"x".repeat(100_000)).ok();
    }
    let routes = routes_of(&admin);
    assert!(routes.len() > 50, "{routes:?}");
    let target = Target { client: attacker, session, invite: invites[0].clone(), routes };

    let (over, rounds) = (AtomicBool::new(false), ATTACKS.map(|_| AtomicUsize::new(0)));
    thread::scope(|scope| {
        for ((_, attack), rounds) in ATTACKS.iter().zip(&rounds) {
            let (target, over) = (&target, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    attack(target);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // If an assertion fails, the attacks end as well.
        let end = EndOnDrop(&over);
        let begun = Instant::now();
        let mut games = 0;
        while games < 10
            || begun.elapsed() < Duration::from_secs(6)
            || rounds.iter().any(|rounds| rounds.load(Ordering::Relaxed) == 0)
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "rounds: {rounds:?}");
            let (session, players) = honest.create("psi");
            for player in &players {
                honest.join(player).ok();
                honest.chat(&session, player, "good luck").ok();
            }
            ends_well(&honest, &session, &players);
            games += 1;
            // Below the rate limit.
            thread::sleep(Duration::from_millis(150));
            let (own, waiting) = ledger(&admin, ATTACKER, "waitingBytes");
            let number = |value: &Value| value.as_u64().expect("a number");
            assert!(number(&waiting["used"]) <= WAITING_BYTES as u64, "{waiting}");
            assert!(number(&own["connections"]) <= CONNECTIONS_PER_ADDRESS as u64, "{own}");
        }
        drop(end);
    });
    let (own, _) = ledger(&admin, HONEST, "storedBytes");
    assert_eq!(own["refusals"], 0, "{own}");
    let (own, stored) = ledger(&admin, ATTACKER, "storedBytes");
    assert!(own["refusals"].as_u64().expect("a number") > 10, "{own}");
    // Writes at the same time may each exceed the limit by one message.
    let most = 2 * STORED_BYTES + ATTACKS.len() as u64 * 200_000;
    assert!(own["storedBytes"].as_u64().expect("a number") < most, "{own}");
    assert_eq!(stored["ofAddress"]["limit"], STORED_BYTES);
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_address_that_has_stored_much_begins_nothing_new_and_plays_on() {
    let host = Host::start_with(|settings| {
        public_host(settings);
        settings.limits.requests_per_second = 0;
        settings.limits.writes_per_second = 0;
    });
    let client = host.client().from_address(ATTACKER.into());
    let other = host.client().from_address(HONEST.into());
    let (session, players) = client.create("psi");
    for player in &players {
        client.join(player).ok();
    }
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
    ends_well(&client, &session, &players);
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
