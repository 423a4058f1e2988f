//! Attacks on a server from one address, for tests in which others play at the same time.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Client;

/// The local address of the attacker.
pub const ATTACKER: [u8; 4] = [127, 0, 0, 66];

/// The number of connections that an attack opens at once.
pub const HELD: usize = 60;

/// The built-in challenge of the attacks.
pub const CHALLENGE: &str = "millionaire";

/// The scripted challenge of [`write_costly_challenge`].
pub const COSTLY: &str = "costly";

/// The target of the attacks, and the answers so far.
pub struct Target {
    /// Returns a client of the server, or of any of its nodes.
    client: Box<dyn Fn() -> Client + Send + Sync>,
    /// A session with a long channel, and the invite of a seat that the attacker holds.
    session: String,
    invite: String,
    /// All paths of the API description, with their methods.
    routes: Vec<(String, String)>,
    /// True if the server hosts [`COSTLY`].
    has_scripts: bool,
    number: AtomicUsize,
    refusals: Mutex<BTreeMap<String, Refused>>,
}

/// The refusals with one code.
#[derive(Debug, Clone)]
pub struct Refused {
    pub status: u16,
    /// The sentence of the last refusal.
    pub error: String,
    pub count: usize,
}

/// An attack: one round of it. Rounds are repeated while others play.
type Attack = fn(&Target);

const ATTACKS: [(&str, Attack); 15] = [
    ("answers that nobody reads", unread_answers),
    ("connections without requests", idle_connections),
    ("heads that arrive byte by byte", slow_heads),
    ("bodies that don't arrive", missing_bodies),
    ("streams", streams),
    ("new sessions", new_sessions),
    ("tickets in queues", tickets),
    ("joins with wrong invites", joins),
    ("keys of requests", keys),
    ("deep and large JSON", deep_json),
    ("long messages", long_messages),
    ("costly scripts", costly_scripts),
    ("uploads", uploads),
    ("tournaments", tournaments),
    ("nonsense to all routes", all_routes),
];

/// Writes a scripted challenge whose actions compute for long, below the folder.
///
/// # Panics
/// If the files can't be written.
pub fn write_costly_challenge(folder: &Path) {
    let description = json!({
        "name": "Costly",
        "description": "Each action computes for long.",
        "players": 1,
        "prompt": "Call `compute`.",
        "methods": [{ "name": "compute", "description": "any text" }],
    });
    let rules = r#"
export async function createChallenge(challengeId, options, { messaging }) {
  return {
    state: { status: "open", scores: [{ security: 0, utility: 0 }], players: [], playerIdentities: {} },
    gameState: {},
    async join(invite, userId) {
      this.state.players.push(invite);
      this.state.playerIdentities[invite] = userId;
      this.state.status = "active";
    },
    async message() {
      let sum = 0;
      for (let n = 0; n < 2000000; n += 1) sum += n % 7;
      await messaging.sendChallengeMessage(challengeId, "operator", `${sum}`);
    },
    serialize() { return { state: this.state, gameState: this.gameState }; },
    restore({ state, gameState }) { this.state = state; this.gameState = gameState; },
  };
}
"#;
    let folder = folder.join(COSTLY);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    std::fs::write(folder.join("challenge.json"), description.to_string()).expect("the file can be written");
    std::fs::write(folder.join("index.js"), rules).expect("the file can be written");
}

impl Target {
    /// Creates a session with a long channel. `client` returns a client of any of the arena's nodes.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn new(client: impl Fn() -> Client + Send + Sync + 'static) -> Target {
        let attacker = client().from_address(ATTACKER.into());
        let (session, invites) = attacker.create(CHALLENGE);
        for invite in &invites {
            attacker.join(invite).ok();
        }
        for _ in 0..5 {
            attacker.chat(&session, &invites[0], &"x".repeat(100_000)).ok();
        }
        let metadata = attacker.get("/api/metadata").ok();
        Target {
            session,
            invite: invites[0].clone(),
            routes: routes_of(&attacker),
            client: Box::new(client),
            has_scripts: metadata.get(COSTLY).is_some(),
            number: AtomicUsize::new(0),
            refusals: Mutex::default(),
        }
    }

    fn client(&self) -> Client {
        (self.client)().from_address(ATTACKER.into()).patient_for(Duration::from_secs(5))
    }

    /// Sends a request that may be refused or cut off.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Value> {
        let answer = self.client().try_request(method, path, headers, body).ok()?;
        let body: Value = serde_json::from_slice(&answer.body).ok()?;
        if answer.status >= 400 {
            let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            let mut refusals = self.refusals.lock();
            let fresh = Refused { status: answer.status, error: String::new(), count: 0 };
            let refused = refusals.entry(text("code")).or_insert(fresh);
            refused.count += 1;
            refused.error = text("error");
        }
        (answer.status < 400).then_some(body)
    }

    fn post(&self, path: &str, body: &Value) -> Option<Value> {
        self.send("POST", path, &[], body.to_string().as_bytes())
    }

    /// Returns a key that no request had before.
    fn fresh_key(&self) -> String {
        format!("a key of the attacker {:020}", self.number.fetch_add(1, Ordering::Relaxed))
    }

    pub fn refusals(&self) -> BTreeMap<String, Refused> {
        self.refusals.lock().clone()
    }

    /// Carries out all attacks at once while `others` runs. Every attack has at least one round.
    ///
    /// # Panics
    /// If a round doesn't end.
    pub fn attack_during<T>(&self, others: impl FnOnce() -> T) -> T {
        let (over, rounds) = (AtomicBool::new(false), ATTACKS.map(|_| AtomicUsize::new(0)));
        thread::scope(|scope| {
            for ((_, attack), rounds) in ATTACKS.iter().zip(&rounds) {
                let over = &over;
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        attack(self);
                        rounds.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            // If the others fail, the attacks end as well.
            let end = EndOnDrop(&over);
            let result = others();
            let begun = Instant::now();
            let waits = |rounds: &AtomicUsize| rounds.load(Ordering::Relaxed) == 0;
            while rounds.iter().any(waits) {
                let names: Vec<&str> = ATTACKS
                    .iter()
                    .zip(&rounds)
                    .filter(|(_, rounds)| waits(rounds))
                    .map(|((name, _), _)| *name)
                    .collect();
                assert!(begun.elapsed() < Duration::from_secs(60), "without a round: {names:?}");
                thread::sleep(Duration::from_millis(20));
            }
            drop(end);
            result
        })
    }
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens connections, sends the beginning of a request on each, and keeps them for a moment.
fn hold(target: &Target, begin: &str) {
    let open = || {
        let mut stream = target.client().connect().ok()?;
        stream.write_all(begin.as_bytes()).ok()?;
        Some(stream)
    };
    let held: Vec<TcpStream> = (0..HELD).filter_map(|_| open()).collect();
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

fn new_sessions(target: &Target) {
    for _ in 0..50 {
        target.post(&format!("/api/challenges/{CHALLENGE}"), &json!({}));
    }
}

fn tickets(target: &Target) {
    for _ in 0..50 {
        target.post(&format!("/api/queue/{CHALLENGE}"), &json!({}));
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
        target.post("/api/arena/join", &body);
    }
}

/// Repeats of requests are stored, so each of these occupies memory and disk.
fn keys(target: &Target) {
    for _ in 0..20 {
        let key = target.fresh_key();
        for _ in 0..2 {
            target.send("POST", &format!("/api/challenges/{CHALLENGE}"), &[("Idempotency-Key", &key)], b"{}");
        }
    }
}

fn deep_json(target: &Target) {
    let deep = "[".repeat(100_000);
    let wide = format!("{{{}\"a\": 1}}", "\"b\": [1, 2, 3, null], ".repeat(40_000));
    for body in [deep, wide] {
        target.send("POST", &format!("/api/challenges/{CHALLENGE}"), &[], body.as_bytes());
    }
}

fn long_messages(target: &Target) {
    let Target { session, invite, .. } = target;
    for _ in 0..10 {
        target.post("/api/chat/send", &json!({ "channel": session, "from": invite, "content": "x".repeat(100_000) }));
    }
}

/// Many sessions compute at once, because the actions of one session follow each other.
fn costly_scripts(target: &Target) {
    if !target.has_scripts {
        return;
    }
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let Some(created) = target.post(&format!("/api/challenges/{COSTLY}"), &json!({})) else { return };
                let (session, invite) = (&created["id"], &created["invites"][0]);
                target.post("/api/arena/join", &json!({ "invite": invite }));
                for _ in 0..5 {
                    let act =
                        json!({ "challengeId": session, "from": invite, "messageType": "compute", "content": "" });
                    target.post("/api/arena/message", &act);
                }
            });
        }
    });
}

fn uploads(target: &Target) {
    let bomb = vec![0; 9 * 1024 * 1024];
    let computes = b"#!/usr/bin/env python3\nwhile True: pass\n";
    for (name, body) in [("noise", &[7; 100_000][..]), ("large", &bomb), ("computes.py", computes)] {
        let key = target.fresh_key();
        let path = format!("/api/agents?name={name}&filename={name}");
        let headers = [("Idempotency-Key", key.as_str()), ("Content-Type", "application/octet-stream")];
        target.send("POST", &path, &headers, body);
    }
}

/// Starts tournaments between its uploaded agents, which never answer.
fn tournaments(target: &Target) {
    let Some(agents) = target.send("GET", "/api/agents?limit=2", &[], b"") else { return };
    let ids: Vec<&Value> = agents["agents"].as_array().into_iter().flatten().map(|agent| &agent["id"]).collect();
    let body = json!({ "game": "snake", "agents": ids, "rounds": 50 }).to_string();
    target.send("POST", "/api/tournaments", &[("Idempotency-Key", &target.fresh_key())], body.as_bytes());
}

fn all_routes(target: &Target) {
    for (method, path) in &target.routes {
        let path = path.replace(['{', '}'], "");
        for path in [path.clone(), format!("{path}?limit=9999999999&offset=9999999999&from=%00&wait=1")] {
            target.send(&method.to_uppercase(), &path, &[], br#"{"content": "\u0000", "limit": -1e999}"#);
        }
    }
}

/// Returns the routes of the API description.
fn routes_of(client: &Client) -> Vec<(String, String)> {
    let description = client.get("/openapi.json").ok();
    let paths = description["paths"].as_object().expect("paths");
    let methods = |(path, item): (&String, &Value)| {
        let methods = item.as_object().expect("methods").keys().cloned();
        methods.map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    // A stream would be read to its end.
    let routes: Vec<_> = paths.iter().flat_map(methods).filter(|(_, path)| !path.contains("/ws/")).collect();
    assert!(routes.len() > 50, "{routes:?}");
    routes
}
