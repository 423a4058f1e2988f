//! Tournaments over HTTP: authorization, and the time at which data becomes public. The agents are HTTP servers in the
//! test process. Tests of `arena-cli` cover sandboxed agents, since they need its binary as launcher.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use arena_match::Launcher;
use arena_model::Seed;
use arena_server::{Creators, Settings, Uploaders};
use arena_testkit::{Answer, Client, Host, eventually, known_admin_token, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A remote agent that always moves straight ahead, in as many matches as the test allows.
pub(crate) struct Bot {
    pub(crate) url: String,
    /// Number of matches that the agent may begin.
    gate: Arc<(Mutex<usize>, Condvar)>,
    /// True to close connections without an answer.
    pub(crate) is_broken: Arc<AtomicBool>,
}

impl Bot {
    pub(crate) fn start(matches: usize) -> Bot {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/secret-path", listener.local_addr().expect("an address"));
        let gate = Arc::new((Mutex::new(matches), Condvar::new()));
        let is_broken = Arc::<AtomicBool>::default();
        let (open, broken) = (Arc::clone(&gate), Arc::clone(&is_broken));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (open, broken) = (Arc::clone(&open), Arc::clone(&broken));
                thread::spawn(move || converse(&stream, &open, &broken));
            }
        });
        Bot { url, gate, is_broken }
    }

    fn let_all_begin(&self) {
        *self.gate.0.lock().expect("the lock is not poisoned") = usize::MAX;
        self.gate.1.notify_all();
    }
}

/// Serves one connection until it is closed.
fn converse(mut stream: &TcpStream, gate: &(Mutex<usize>, Condvar), is_broken: &AtomicBool) {
    let mut reader = BufReader::new(stream);
    let mut me = Value::Null;
    while let Some(message) = request(&mut reader).filter(|_| !is_broken.load(Ordering::Relaxed)) {
        if message.get("ping").is_some() {
            let mut begun = gate
                .1
                .wait_while(gate.0.lock().expect("the lock is not poisoned"), |left| *left == 0)
                .expect("likewise");
            *begun -= 1;
        }
        if let Some(id) = message.get("set_agent_id") {
            me = id.clone();
        }
        let answer = match (message.get("ping"), message.get("world_state")) {
            (Some(_), _) => json!({"pong": "pong"}),
            (_, Some(_)) => json!({"agent_id": me, "actions": [{"action": "move", "move": "UP"}]}),
            _ => json!({"agent_id": me}),
        };
        let answer = answer.to_string();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn request(reader: &mut BufReader<&TcpStream>) -> Option<Value> {
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim_end().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

pub(crate) struct TournamentFixture {
    host: Host,
    pub(crate) client: Client,
}

impl TournamentFixture {
    /// Starts a server on which all clients may create tournaments, with agents at private addresses.
    fn open() -> TournamentFixture {
        TournamentFixture::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> TournamentFixture {
        let host = Host::start_with(|settings| {
            settings.admin_token = Some(known_admin_token());
            let tournaments = &mut settings.tournaments;
            tournaments.enabled = true;
            tournaments.create = Creators::Anyone;
            tournaments.upload = Uploaders::Anyone;
            tournaments.urls = true;
            tournaments.private_urls = true;
            tournaments.launcher = Some(Launcher { program: "/no/such/launcher".into(), args: Vec::new() });
            change(settings);
        });
        let client = host.client();
        TournamentFixture { host, client }
    }

    /// Adds a remote agent; returns its id and its owner's key.
    fn add(&self, name: &str, bot: &Bot) -> (String, String) {
        made(&self.client.post("/api/agents", &json!({ "url": bot.url, "name": name })))
    }

    /// Creates a tournament of short games of snake between these agents. Returns its id and its owner's key.
    fn create(&self, agents: &[&String], more: Value) -> (String, String) {
        made(&self.client.post("/api/tournaments", &order(agents, more)))
    }

    fn find(&self, id: &str) -> Value {
        self.client.get(&format!("/api/tournaments/{id}")).ok()
    }

    /// Waits until a tournament satisfies `is_such`. Returns the tournament.
    #[track_caller]
    fn wait(&self, id: &str, is_such: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("tournament {id} is as expected"), || Some(self.find(id)).filter(|view| is_such(view)))
    }

    pub(crate) fn ask(&self, method: &str, path: &str, key: &str) -> Answer {
        let bearer = format!("Bearer {key}");
        self.client.request(method, path, &[("Authorization", &bearer)], b"")
    }

    fn audited(&self) -> Vec<String> {
        let page = self.ask("GET", "/api/admin/audit?limit=100", known_admin_token().reveal()).ok();
        let entries = page["entries"].as_array().expect("a list").iter().rev();
        entries.map(|entry| format!("{} {}", entry["action"].as_str().expect("a word"), entry["detail"])).collect()
    }
}

fn order(agents: &[&String], more: Value) -> Value {
    let mut order = json!({ "game": "snake", "agents": agents, "options": { "n_epochs": 5 } });
    order.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    order
}

#[track_caller]
pub(crate) fn made(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 201, "{}", answer.text());
    let view = answer.json();
    let text = |name: &str| view[name].as_str().expect("a text").to_owned();
    (text("id"), text("ownerKey"))
}

/// Returns the expected seed commitment of a finished tournament.
fn commitment(view: &Value) -> String {
    let bytes = |name: &str| Seed::from_revealed(view[name].as_str().expect("a text")).expect("64 digits").0;
    let hash = Sha256::new().chain_update(bytes("seed")).chain_update(bytes("seedNonce")).finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is(state: &str) -> impl Fn(&Value) -> bool {
    move |view| view["state"] == state
}

#[test]
fn without_being_asked_for_there_are_none() {
    let host = Host::start();
    let client = host.client();
    for path in ["/api/games", "/api/v1/agents", "/api/tournaments/x/standings"] {
        let answer = client.get(path);
        assert_eq!(answer.refusal(), (404, "NOT_FOUND".to_owned()));
        assert!(answer.text().contains("arena serve --tournaments"), "{}", answer.text());
    }
    assert!(!client.get("/openapi.json").text().contains("/api/tournaments"));
    assert!(!host.folder().join("tournaments").exists() && !host.folder().join("auth.secret").exists());
}

#[test]
fn an_address_has_a_number_of_agents_and_of_unfinished_tournaments() {
    let fixture = TournamentFixture::with(|settings| {
        settings.limits.limit_loopback = true;
        settings.tournaments.agents_per_address = 2;
        settings.tournaments.max_tournaments_per_address = 1;
    });
    let bot = Bot::start(0);
    let [ada, bob] = ["ada", "bob"].map(|name| fixture.add(name, &bot).0);
    let third = json!({ "url": bot.url, "name": "cid" });
    let refused = |answer: &Answer, code: &str, setting: &str| {
        assert_eq!(answer.refusal(), (429, code.to_owned()));
        assert!(answer.header("retry-after").is_some() && answer.text().contains(setting), "{}", answer.text());
    };
    refused(&fixture.client.post("/api/agents", &third), "TOO_MANY_OWN_AGENTS", "(tournaments.agents_per_address)");
    let (id, key) = fixture.create(&[&ada, &bob], json!({}));
    let again = || fixture.client.post("/api/tournaments", &order(&[&ada, &bob], json!({})));
    refused(&again(), "TOO_MANY_OWN_TOURNAMENTS", "(tournaments.max_tournaments_per_address)");
    // Another address has limits of its own, and the administrator has none.
    let other = fixture.host.client().from_address([127, 0, 0, 2].into());
    made(&other.post("/api/agents", &third));
    let bearer = format!("Bearer {}", known_admin_token().reveal());
    let token = [("Authorization", bearer.as_str())];
    made(&fixture.client.request("POST", "/api/agents", &token, third.to_string().as_bytes()));
    let page = fixture.ask("GET", "/api/admin/budgets", known_admin_token().reveal()).ok();
    let rows = page["addresses"].as_array().expect("a list");
    let own = rows.iter().find(|row| row["address"] == "127.0.0.1").expect("a row");
    assert_eq!((&own["used"]["agents"], &own["used"]["tournaments"]), (&json!(2), &json!(1)));

    assert_eq!(fixture.ask("POST", &format!("/api/tournaments/{id}/stop"), &key).status, 200);
    bot.let_all_begin();
    made(&again());
}

#[test]
fn a_tournament_is_played_and_reported() {
    let fixture = TournamentFixture::open();
    let bot = Bot::start(usize::MAX);
    let [(ada, ada_key), (bob, bob_key)] = ["ada", "bob"].map(|name| fixture.add(name, &bot));
    let view = fixture.client.get(&format!("/api/agents/{ada}"));
    assert_eq!((&view.ok()["name"], &view.ok()["kind"]), (&json!("ada"), &json!("url")));
    let listed = fixture.client.get("/api/agents?limit=1").ok();
    assert_eq!((&listed["total"], &listed["agents"][0]["name"]), (&json!(2), &json!("bob")));
    assert!(!view.text().contains("secret-path") && !listed.to_string().contains("secret-path"));

    let (id, _) = fixture.create(&[&ada, &bob], json!({ "name": "cup", "rounds": 2, "seed": 7 }));
    let view = fixture.wait(&id, is("complete"));
    assert_eq!((&view["gamesPlayed"], &view["games"], &view["name"]), (&json!(4), &json!(4), &json!("cup")));
    let seed = Seed::from_number(7);
    assert_eq!((&view["seed"], &view["seedCommitment"]), (&json!(seed.reveal()), &json!(commitment(&view))));
    assert!(view["endedAt"].as_i64() >= view["createdAt"].as_i64());
    assert_eq!(fixture.client.get("/api/tournaments?state=complete").ok()["tournaments"], json!([view]));
    assert_eq!(fixture.client.get("/api/tournaments?state=queued").ok()["total"], 0);

    let base = format!("/api/tournaments/{id}");
    let standings = fixture.client.get(&format!("{base}/standings")).ok();
    assert_eq!((&standings["complete"], &standings["games_played"]), (&json!(true), &json!(4)));
    for (name, field) in [("seed", "seed"), ("seed_nonce", "seedNonce"), ("seed_commitment", "seedCommitment")] {
        assert_eq!(standings[name], view[field]);
    }
    assert_eq!(fixture.client.get(&format!("{base}/standings?format=json")).ok(), standings);
    let unknown = fixture.client.get(&format!("{base}/standings?format=xyz"));
    assert_eq!(unknown.refusal(), (400, "INVALID_FIELD".to_owned()));
    assert_eq!(unknown.json()["error"], "format must be one of json, csv, markdown, html, pgn");
    assert_eq!(standings["standings"].as_array().expect("a list").len(), 2);
    for (format, kind, begins) in [
        ("csv", "text/csv; charset=utf-8", "rank,"),
        ("markdown", "text/markdown; charset=utf-8", "snake: round-robin"),
        ("html", "text/html; charset=utf-8", "<!DOCTYPE html>"),
        ("pgn", "application/vnd.chess-pgn", "[Event "),
    ] {
        let answer = fixture.client.get(&format!("{base}/standings?format={format}"));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)));
        assert!(answer.text().starts_with(begins), "{}", answer.text());
        assert!(!answer.text().contains("secret-path"));
    }

    let page = fixture.client.get(&format!("/tournaments/{id}"));
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for part in
        ["cup", "ada", "bob", "is-complete", "<svg", &format!("/tournaments/{id}/matches/4/replay"), "tournament.js"]
    {
        assert!(page.text().contains(part), "no {part}: {}", page.text());
    }
    assert!(!page.text().contains("secret-path") && page.body.len() < 100_000);
    // The games of two agents, and of agents that don't exist.
    for (pair, replays) in [("0-1", 4), ("1-0", 4), ("0-9", 4), ("x", 4), ("0-0", 4)] {
        let page = fixture.client.get(&format!("/tournaments/{id}?pair={pair}"));
        assert_eq!((page.status, page.text().matches("/replay\"").count()), (200, replays), "{pair}");
    }
    for (path, part) in [("/tournaments", "cup"), ("/agents", "bob")] {
        let page = fixture.client.get(path);
        assert!(page.text().contains(part) && !page.text().contains("secret-path"), "{path}: {}", page.text());
    }
    assert_eq!(fixture.client.get("/tournaments/x").status, 404);
    can_be_watched(&fixture, &id);
    let page = fixture.client.get(&format!("/agents/{ada}"));
    assert_eq!(page.status, 200, "{}", page.text());
    for part in ["cup", "bob", "<svg", &format!("/agents/{ada}/rating.svg")] {
        assert!(page.text().contains(part), "no {part}: {}", page.text());
    }
    assert!(!page.text().contains("secret-path"));
    for picture in [format!("/agents/{ada}/rating.svg"), format!("/tournaments/{id}/standings.svg")] {
        let answer = fixture.client.get(&picture);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("image/svg+xml")), "{picture}");
        assert!(answer.text().contains("Elo"), "{picture}");
    }

    let matches = fixture.client.get(&format!("{base}/matches?limit=3&offset=1")).ok();
    assert_eq!((&matches["total"], matches["matches"].as_array().map(Vec::len)), (&json!(4), Some(3)));
    assert_eq!(matches["matches"][0], fixture.client.get(&format!("{base}/matches/2")).ok());
    assert!(matches["matches"][0]["epochs"].as_u64() > Some(0));
    let replay = fixture.client.get(&format!("{base}/matches/2/replay"));
    assert_eq!(replay.header("content-type"), Some("application/x-ndjson"));
    let verified = arena_match::verify(BufReader::new(replay.text().as_bytes()));
    let sealed_by = verified.unwrap_or_else(|error| panic!("{error}")).sealed_by.map(|key| key.to_string());
    let published = fixture.client.get("/.well-known/arena.json").ok();
    // A replay whose contents were redacted has no seal.
    assert!(sealed_by.is_none_or(|key| published["recordKey"] == json!(key)));
    for (path, code) in
        [("/matches/5", "MATCH_NOT_FOUND"), ("/matches/0", "MATCH_NOT_FOUND"), ("/matches/x/replay", "MATCH_NOT_FOUND")]
    {
        assert_eq!(fixture.client.get(&format!("{base}{path}")).refusal(), (404, code.to_owned()));
    }

    // An agent's log is visible to its owner, but not to the opponent's owner or the tournament's creator.
    let seats = fixture.client.get(&format!("{base}/matches/1")).ok()["agents"].clone();
    let of = |name: &str| seats.as_array().expect("a list").iter().position(|seat| seat == name).expect("a seat");
    let log = |name: &str| format!("{base}/matches/1/logs/{}", of(name));
    assert_eq!(fixture.client.get(&log("ada")).refusal().0, 401);
    for (name, key, status) in
        [("ada", &ada_key, 200), ("bob", &bob_key, 200), ("ada", &bob_key, 401), ("bob", &ada_key, 401)]
    {
        assert_eq!(fixture.ask("GET", &log(name), key).status, status, "{name}");
    }
    assert_eq!(fixture.ask("GET", &log("ada"), known_admin_token().reveal()).status, 200);
    assert_eq!(fixture.ask("GET", &format!("{base}/matches/9/logs/0"), &ada_key).refusal().0, 401);
    assert_eq!(fixture.ask("GET", &format!("{base}/matches/9/logs/0"), known_admin_token().reveal()).refusal().0, 404);
}

/// Checks the replay of match 2 as a browser reads it: the page, the summary, and ranges of the replay by its index.
fn can_be_watched(fixture: &TournamentFixture, id: &str) {
    let path = format!("/tournaments/{id}/matches/2/replay");
    let page = fixture.client.get(&path);
    assert_eq!(page.status, 200, "{}", page.text());
    for part in ["Match 2: ", "ada", "/viewer.js\"", "/viewer.css\"", &format!("data-replay=\"{path}.jsonl\"")] {
        assert!(page.text().contains(part), "no {part}: {}", page.text());
    }
    let range = |extension: &str, first: u64, behind: u64| {
        let range = format!("bytes={first}-{}", behind - 1);
        let answer = fixture.client.request("GET", &format!("{path}.{extension}"), &[("range", &range)], b"");
        assert_eq!(answer.status, 206, "{}", answer.text());
        assert!(answer.header("content-range").is_some_and(|view| view.starts_with(&format!("bytes {first}-"))));
        answer.body
    };
    let summary = fixture.client.get(&format!("{path}.json")).ok();
    let frames = summary["frames"].as_u64().expect("a number");
    assert!(frames > 1 && summary["result"].is_object(), "{summary}");
    let ends = |frame: u64| {
        let entries = range("index", 8 * frame, 8 * frame + 16);
        let offset =
            |at: usize| u64::from_le_bytes(entries[at..at + 8].try_into().expect("eight bytes")) & 0xffff_ffff_ffff;
        (offset(0), offset(8))
    };
    for frame in [0, frames - 1] {
        let (begin, end) = ends(frame);
        let line: Value = serde_json::from_slice(&range("jsonl", begin, end)).expect("a line");
        assert_eq!(line.get("result").is_some(), frame == frames - 1, "{line}");
    }
    let whole = fixture.client.get(&format!("{path}.jsonl"));
    assert_eq!(whole.text(), fixture.client.get(&format!("/api{path}")).text());
    assert!(!whole.text().contains("secret-path"));
    for missing in ["9", "0", "x"] {
        let path = format!("/tournaments/{id}/matches/{missing}/replay");
        assert_eq!(fixture.client.get(&path).status, 404, "{path}");
    }
}

/// The files that the replay viewer reads.
const REPLAY_FILES: [&str; 3] = ["/matches/1/replay.jsonl", "/matches/1/replay.index", "/matches/1/replay.json"];

#[test]
fn no_response_reveals_a_seed_before_the_end() {
    let fixture = TournamentFixture::open();
    let bot = Bot::start(1);
    let agents = ["ada", "bob", "eve"].map(|name| fixture.add(name, &bot).0);
    let seed = Seed::from_number(1).derive("nobody guesses it");
    let (id, key) = fixture.create(&agents.each_ref(), json!({ "seed": seed.reveal(), "rounds": 2 }));
    // The first match needs two permits of the agents. The remaining permit isn't enough for the second match.
    fixture.wait(&id, is("running"));
    *bot.gate.0.lock().expect("the lock is not poisoned") += 2;
    bot.gate.1.notify_all();
    fixture.wait(&id, |view| view["gamesPlayed"] == 1);
    let (waiting, _) = fixture.create(&agents.each_ref(), json!({ "seed": 77_000_123_000_u64 }));

    let base = format!("/api/tournaments/{id}");
    let secrets: Vec<String> = [seed.reveal(), Seed::from_number(77_000_123_000).reveal()]
        .into_iter()
        .chain(["77000123000".to_owned()])
        .chain((1..=6).map(|meeting| seed.derive(&format!("meeting {meeting}")).reveal()))
        .collect();
    let mut paths: Vec<String> = ["", "/standings", "/standings?format=csv", "/matches", "/matches/1", "/matches/2"]
        .map(|path| format!("{base}{path}"))
        .to_vec();
    let refused =
        ["/standings?format=markdown", "/standings?format=pgn", "/matches/1/replay", "/standings?format=html"]
            .map(|path| format!("{base}{path}"));
    for path in &refused {
        assert_eq!(fixture.client.get(path).refusal(), (409, "TOURNAMENT_NOT_OVER".to_owned()), "{path}");
    }
    paths.extend(refused.clone());
    for part in ["", "/standings.svg", "/matches/1/replay"].into_iter().chain(REPLAY_FILES) {
        paths.push(format!("/tournaments/{id}{part}"));
    }
    for part in REPLAY_FILES {
        assert_eq!(fixture.client.get(&format!("/tournaments/{id}{part}")).status, 409, "{part}");
    }
    assert!(fixture.client.get(&format!("/tournaments/{id}")).text().contains("Current and upcoming games"));
    paths.extend(agents.iter().flat_map(|agent| [format!("/agents/{agent}"), format!("/agents/{agent}/rating.svg")]));
    paths.extend(["/api/tournaments", "/api/agents", "/metrics", "/", "/tournaments", "/agents"].map(str::to_owned));
    paths.push(format!("/api/tournaments/{waiting}"));
    for path in &paths {
        for view in [
            fixture.client.get(path),
            fixture.ask("GET", path, &key),
            fixture.ask("GET", path, known_admin_token().reveal()),
        ] {
            for secret in &secrets {
                assert!(!view.text().contains(secret), "{path}: {}", view.text());
            }
        }
    }
    let view = fixture.find(&id);
    assert!(view["seed"].is_null() && view["seedNonce"].is_null());
    // Without a nonce, a search through small numbers would find the seed by its hash.
    assert_ne!(fixture.find(&waiting)["seedCommitment"], Seed::from_number(77_000_123_000).commitment());
    let committed = view["seedCommitment"].clone();

    bot.let_all_begin();
    let view = fixture.wait(&id, is("complete"));
    assert_eq!((&view["seedCommitment"], &json!(commitment(&view))), (&committed, &committed));
    for path in [&base, &format!("{base}/standings"), &refused[0]] {
        assert!(fixture.client.get(path).text().contains(&seed.reveal()), "{path}");
    }
    for path in [&format!("{base}/matches/1"), &refused[1], &refused[2]] {
        assert!(fixture.client.get(path).text().contains(&secrets[3]), "{path}");
    }
}

#[test]
fn large_urls_count_as_several_requests_and_uploads_as_one() {
    let fixture = TournamentFixture::with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 1;
        settings.limits.requests_burst = 80;
    });
    let long = "x".repeat(512 * 1024);
    let upload = || {
        let head = "POST /api/agents?filename=a.py HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\
                    Content-Type: application/octet-stream\r\n";
        let request = format!("{head}Content-Length: {}\r\n\r\n{long}", long.len());
        fixture.client.raw(request.as_bytes()).expect("an answer").status
    };
    let view: Vec<u16> = (0..4).map(|_| upload()).collect();
    assert!(!view.contains(&429), "{view:?}");
    // Each of these bodies counts as 33 requests.
    let body = json!({ "url": long });
    let view: Vec<u16> = (0..4).map(|_| fixture.client.post("/api/agents", &body).status).collect();
    assert!(view[0] == 400 && view.contains(&429), "{view:?}");
}

#[test]
fn a_visitor_creates_a_tournament_by_a_form() {
    let fixture = TournamentFixture::open();
    let send = |fixture: &TournamentFixture, form: &str| {
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        fixture.client.request("POST", "/tournaments", &kind, form.as_bytes())
    };
    let page = |fixture: &TournamentFixture| fixture.client.get("/tournaments").text().to_owned();
    assert!(page(&fixture).contains("A tournament needs two agents."));
    let bot = Bot::start(usize::MAX);
    let (ada, _) = fixture.add("ada", &bot);
    let (bob, _) = fixture.add("bob", &bot);
    let form = page(&fixture);
    assert!(form.contains(&format!("name=\"agent\" value=\"{ada}\"")) && form.contains("<option>swiss</option>"));
    assert!(!form.contains("<option>league</option>"), "{form}");
    for (wanted, status, text) in [
        ("game=snake".to_owned(), 400, "agents"),
        (format!("game=snake&agent={ada}&agent={bob}&rounds=two"), 400, "rounds must be a whole number"),
        (format!("game=nope&agent={ada}&agent={bob}"), 400, "nope"),
        ("game=snake&agent=x&agent=y".to_owned(), 400, "agent not found"),
    ] {
        let answer = send(&fixture, &wanted);
        assert_eq!(answer.status, status, "{wanted}: {}", answer.text());
        assert!(answer.text().contains(text), "{wanted}: {}", answer.text());
    }
    let created =
        send(&fixture, &format!("game=snake&agent={ada}&agent={bob}&format=round-robin&rounds=1&name=The+cup"));
    assert_eq!(created.status, 200, "{}", created.text());
    let id =
        created.text().split("href=\"/tournaments/").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let key = created.text().split("<code>").nth(1).and_then(|rest| rest.split('<').next()).expect("a key");
    let view = fixture.wait(id, |view| view["state"] == "complete");
    assert_eq!((&view["name"], &view["gamesPlayed"]), (&json!("The cup"), &json!(2)));
    assert_eq!(fixture.ask("DELETE", &format!("/api/tournaments/{id}"), key).status, 200);

    let closed = TournamentFixture::with(|settings| settings.tournaments.create = Creators::Admin);
    assert!(page(&closed).contains("New tournaments need the administrator"));
    assert_eq!(send(&closed, "game=snake&agent=x&agent=y").status, 401);
}

#[test]
fn restricted_routes_need_the_administrators_token_and_are_audited() {
    let fixture = TournamentFixture::with(|settings| {
        settings.tournaments.create = Creators::Admin;
        settings.tournaments.upload = Uploaders::Admin;
    });
    let bot = Bot::start(usize::MAX);
    let by_url = json!({ "url": bot.url, "name": "ada" }).to_string();
    let post = |path: &str, key: Option<&str>, kind: &str, body: &str| {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n",
            body.len()
        );
        head.extend(bearer.map(|bearer| format!("Authorization: {bearer}\r\n")));
        fixture.client.raw(format!("{head}\r\n{body}").as_bytes()).expect("an answer")
    };
    let [json_kind, bytes_kind] = ["application/json", "application/octet-stream"];
    for key in [None, Some("guess"), Some("o_00")] {
        let refused = (401, "AUTHENTICATION_REQUIRED".to_owned());
        assert_eq!(post("/api/agents", key, json_kind, &by_url).refusal(), refused);
        assert_eq!(post("/api/agents?filename=a.py", key, bytes_kind, "x").refusal(), refused);
        assert_eq!(post("/api/tournaments", key, json_kind, "{}").refusal(), refused);
    }
    let token = known_admin_token();
    let (ada, ada_key) = made(&post("/api/agents", Some(token.reveal()), json_kind, &by_url));
    let (bob, _) = made(&post("/api/agents", Some(token.reveal()), json_kind, &by_url));
    // Without a launcher there is no sandbox.
    let refused = post("/api/agents?filename=a.py", Some(token.reveal()), bytes_kind, "x");
    assert_eq!(refused.refusal(), (409, "NO_SANDBOX".to_owned()), "{}", refused.text());
    let body = order(&[&ada, &bob], json!({})).to_string();
    // An owner's key is valid for its own agent or tournament only.
    assert_eq!(post("/api/tournaments", Some(&ada_key), json_kind, &body).refusal().0, 401);
    let (id, key) = made(&post("/api/tournaments", Some(token.reveal()), json_kind, &body));
    fixture.wait(&id, is("complete"));
    for (path, key) in [
        (format!("/api/agents/{bob}"), &ada_key),
        (format!("/api/tournaments/{id}"), &ada_key),
        (format!("/api/agents/{ada}"), &key),
    ] {
        assert_eq!(fixture.ask("DELETE", &path, key).refusal().0, 401);
        assert_eq!(fixture.client.request("DELETE", &path, &[], b"").refusal().0, 401);
    }
    assert_eq!(fixture.ask("DELETE", &format!("/api/agents/{ada}"), &ada_key).ok(), json!({ "removed": true }));
    assert_eq!(
        fixture.ask("DELETE", &format!("/api/tournaments/{id}"), token.reveal()).ok(),
        json!({ "removed": true })
    );
    assert_eq!(
        fixture.client.get(&format!("/api/tournaments/{id}")).refusal(),
        (404, "TOURNAMENT_NOT_FOUND".to_owned())
    );
    let folders = |name: &str| std::fs::read_dir(fixture.host.folder().join(name)).expect("a folder").count();
    assert_eq!((folders("agents"), folders("tournaments")), (1, 0));
    let audited = fixture.audited();
    assert_eq!(
        audited.iter().map(|entry| entry.split(" {").next().expect("a word")).collect::<Vec<_>>(),
        ["add agent", "add agent", "add agent", "create tournament", "remove tournament"]
    );
    assert!(audited[4].contains(&id), "{audited:?}");
}

#[test]
fn a_request_that_is_repeated_with_its_key_happens_once() {
    const KEY: &str = "a key that nobody guesses";
    let fixture = TournamentFixture::open();
    let bot = Bot::start(usize::MAX);
    let add = |name: &str| fixture.client.post_once("/api/agents", KEY, &json!({ "url": bot.url, "name": name }));
    let first = add("ada");
    assert_eq!((made(&first), first.text()), (made(&add("ada")), add("ada").text()));
    assert_eq!(add("eve").refusal(), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
    let guessable = (400, "INVALID_IDEMPOTENCY_KEY".to_owned());
    assert_eq!(
        fixture.client.post_once("/api/agents", "1", &json!({ "url": bot.url, "name": "ada" })).refusal(),
        guessable
    );
    // Equal idempotency keys of different clients are independent.
    let bearer = format!("Bearer {}", known_admin_token().reveal());
    let body = json!({ "url": bot.url, "name": "ada" }).to_string();
    let headers = [("Idempotency-Key", KEY), ("Authorization", &bearer)];
    let other = made(&fixture.client.request("POST", "/api/agents", &headers, body.as_bytes()));
    assert_ne!(other, made(&first));
    assert_eq!(made(&fixture.client.request("POST", "/api/agents", &headers, body.as_bytes())), other);
    let (bob, _) = fixture.add("bob", &bot);
    let numbered = fixture.client.post_once("/api/tournaments", "1", &order(&[&made(&first).0, &bob], json!({})));
    assert_eq!(numbered.refusal(), guessable);
    let create = |more| fixture.client.post_once("/api/tournaments", KEY, &order(&[&made(&first).0, &bob], more));
    let created = made(&create(json!({})));
    fixture.wait(&created.0, is("complete"));
    assert_eq!(made(&create(json!({}))), created);
    assert_eq!(create(json!({ "rounds": 2 })).refusal(), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
    assert_eq!(fixture.client.get("/api/tournaments").ok()["total"], 1);
}

#[test]
fn tournaments_wait_for_each_other_and_can_be_stopped() {
    let fixture = TournamentFixture::with(|settings| settings.tournaments.max_tournaments = 2);
    let bot = Bot::start(0);
    let [(ada, ada_key), (bob, _)] = ["ada", "bob"].map(|name| fixture.add(name, &bot));
    let (first, first_key) = fixture.create(&[&ada, &bob], json!({ "rounds": 5 }));
    fixture.wait(&first, is("running"));
    let (second, second_key) = fixture.create(&[&ada, &bob], json!({}));
    assert_eq!(fixture.find(&second)["state"], "queued");
    let full = fixture.client.post("/api/tournaments", &order(&[&ada, &bob], json!({})));
    assert_eq!(full.refusal(), (503, "QUEUE_FULL".to_owned()));
    assert_eq!(full.header("retry-after"), Some("60"));
    assert_eq!(
        fixture.ask("DELETE", &format!("/api/agents/{ada}"), &ada_key).refusal(),
        (409, "AGENT_IN_USE".to_owned())
    );
    let stop = |id: &str, key: &str| fixture.ask("POST", &format!("/api/tournaments/{id}/stop"), key);
    assert_eq!(stop(&first, &second_key).refusal().0, 401);
    let begun = Instant::now();
    let view = stop(&first, &first_key).ok();
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!((&view["state"], &view["gamesPlayed"]), (&json!("stopped"), &json!(0)));
    assert!(view["seed"].is_string());
    fixture.wait(&second, is("running"));
    assert_eq!(stop(&first, &first_key).ok(), view);
    bot.let_all_begin();
    fixture.wait(&second, is("complete"));
    assert_eq!(stop(&second, &second_key).ok()["state"], "complete");
    for (id, key) in [(first, first_key), (second, second_key)] {
        assert_eq!(fixture.ask("DELETE", &format!("/api/tournaments/{id}"), &key).status, 200);
    }
    assert_eq!(fixture.ask("DELETE", &format!("/api/agents/{ada}"), &ada_key).status, 200);
}

#[test]
fn invalid_tournaments_are_refused_with_a_sentence() {
    let fixture = TournamentFixture::with(|settings| {
        settings.tournaments.max_agents = 2;
        settings.tournaments.max_games = 10;
        settings.tournaments.agents = 3;
    });
    let bot = Bot::start(usize::MAX);
    let [a, b, c] = ["a", "b", "c"].map(|name| fixture.add(name, &bot).0);
    let check = |more: Value, code: &str, sentence: &str| {
        let answer = fixture.client.post("/api/tournaments", &order(&[&a, &b], more));
        assert_eq!(answer.refusal(), (400, code.to_owned()), "{}", answer.text());
        assert_eq!(answer.json()["error"], sentence);
    };
    let games: Vec<&str> = arena_games::games().map(|game| game.name).collect();
    let unknown = format!("unknown game `go`; available: {}", games.join(", "));
    check(json!({ "game": "go" }), "UNKNOWN_GAME", &unknown);
    check(json!({ "agents": [] }), "INVALID_TOURNAMENT", "a tournament needs at least 2 agents, but there are none");
    check(json!({ "agents": [a, a] }), "INVALID_TOURNAMENT", &format!("agent {a} is listed twice"));
    check(
        json!({ "agents": [a, b, c] }),
        "INVALID_TOURNAMENT",
        "a tournament may have at most 2 agents (tournaments.max_agents), not 3",
    );
    check(json!({ "agents": [a, "../x"] }), "AGENT_NOT_FOUND", "agent not found: invalid id");
    check(
        json!({ "rounds": 6 }),
        "INVALID_TOURNAMENT",
        "a tournament may have at most 10 games (tournaments.max_games), not 12",
    );
    check(json!({ "rounds": 0 }), "INVALID_FIELD", "rounds must be a whole number from 1 to 100000");
    check(json!({ "seats": 3 }), "INVALID_TOURNAMENT", "games of 3 seats need at least 3 agents, but there are 2");
    check(
        json!({ "format": "cup" }),
        "INVALID_FIELD",
        "format must be one of round-robin, gauntlet, swiss, knockout, adaptive, league",
    );
    check(
        json!({ "format": "league" }),
        "INVALID_TOURNAMENT",
        "the format league has no end, so a server cannot play it as a tournament",
    );
    check(
        json!({ "name": "cup\u{202e}" }),
        "INVALID_FIELD",
        "name must be 1 to 200 characters without control characters",
    );
    check(json!({ "seed": -1 }), "INVALID_FIELD", "seed must be a whole number or 64 hexadecimal digits");
    check(json!({ "limits": { "stepMs": 0 } }), "INVALID_FIELD", "stepMs must be a whole number from 1 to 3600000");
    check(json!({ "options": { "n_epochs": 0 } }), "INVALID_TOURNAMENT", "n_epochs must be 1 to 1000000, not 0");
    let full = fixture.client.post("/api/agents", &json!({ "url": bot.url }));
    assert_eq!(full.refusal(), (409, "TOO_MANY_AGENTS".to_owned()));
    assert_eq!(fixture.client.get("/api/tournaments").ok()["total"], 0);

    let strict = TournamentFixture::with(|settings| {
        settings.tournaments.private_urls = false;
        settings.tournaments.upload = Uploaders::Nobody;
    });
    for url in
        [&*bot.url, "http://localhost/", "http://[::1]:1/", "http://192.168.0.1/", "file:///etc/passwd", "nothing"]
    {
        assert_eq!(
            strict.client.post("/api/agents", &json!({ "url": url })).refusal(),
            (400, "INVALID_URL".to_owned()),
            "{url}"
        );
    }
    let upload = strict
        .client
        .raw(b"POST /api/agents?filename=a HTTP/1.1\r\nHost: arena\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx");
    assert_eq!(upload.expect("an answer").refusal(), (403, "UPLOADS_OFF".to_owned()));
    let closed = TournamentFixture::with(|settings| settings.tournaments.urls = false);
    assert_eq!(closed.client.post("/api/agents", &json!({ "url": bot.url })).refusal(), (403, "URLS_OFF".to_owned()));
}

#[test]
fn a_tournament_that_takes_too_long_fails_and_the_next_one_is_played() {
    let fixture = TournamentFixture::with(|settings| settings.tournaments.max_seconds = 10);
    let (slow, quick) = (Bot::start(0), Bot::start(usize::MAX));
    let [(a, _), (b, _)] = ["a", "b"].map(|name| fixture.add(name, &slow));
    let [(c, _), (d, _)] = ["c", "d"].map(|name| fixture.add(name, &quick));
    let (first, _) = fixture.create(&[&a, &b], json!({ "rounds": 100 }));
    let (second, _) = fixture.create(&[&c, &d], json!({}));
    let view = fixture.wait(&first, is("failed"));
    assert_eq!(view["reason"], "the tournament took longer than 10 s (tournaments.max_seconds)");
    fixture.wait(&second, is("complete"));
}

/// Starts a server on which addresses of this machine have limits. The first client has the address that `fixture` has,
/// and the second has another one.
fn open_with_turns() -> (TournamentFixture, Client) {
    let fixture = TournamentFixture::with(|settings| {
        settings.limits.limit_loopback = true;
        settings.limits.requests_per_second = 0;
        settings.tournaments.turn_seconds = 1;
    });
    let other = fixture.host.client().from_address([127, 0, 0, 2].into());
    (fixture, other)
}

#[test]
fn a_long_tournament_pauses_for_that_of_another_address() {
    let (fixture, other) = open_with_turns();
    let (long, quick) = (Bot::start(0), Bot::start(usize::MAX));
    let [(a, _), (b, _)] = ["a", "b"].map(|name| fixture.add(name, &long));
    let [(c, _), (d, _)] = ["c", "d"].map(|name| fixture.add(name, &quick));
    let (first, key) = fixture.create(&[&a, &b], json!({ "rounds": 1000 }));
    let (second, _) = fixture.create(&[&a, &b], json!({}));
    let (of_other, _) = made(&other.post("/api/tournaments", &order(&[&c, &d], json!({}))));
    long.let_all_begin();
    fixture.wait(&of_other, is("complete"));
    assert_eq!(fixture.find(&second)["gamesPlayed"], 0);
    let view = fixture.wait(&first, is("running"));
    fixture.wait(&first, |now| now["gamesPlayed"].as_u64() > view["gamesPlayed"].as_u64());
    assert_eq!(fixture.ask("POST", &format!("/api/tournaments/{first}/stop"), &key).status, 200);
    fixture.wait(&second, is("complete"));
}

#[test]
fn a_sleeping_agent_costs_computing_time_and_does_not_block_other_addresses() {
    let (fixture, other) = open_with_turns();
    let (asleep, quick) = (Bot::start(0), Bot::start(usize::MAX));
    let [(a, _), (b, _)] = ["a", "b"].map(|name| fixture.add(name, &asleep));
    let [(c, _), (d, _)] = ["c", "d"].map(|name| fixture.add(name, &quick));
    let (first, _) = fixture.create(&[&a, &b], json!({}));
    fixture.wait(&first, is("running"));
    let computed = || {
        let page = fixture.ask("GET", "/api/admin/budgets", known_admin_token().reveal()).ok();
        let rows = page["addresses"].as_array().expect("a list").clone();
        let own = rows.iter().find(|row| row["address"] == "127.0.0.1").expect("a row");
        own["used"]["computingMs"].as_u64().unwrap_or(0)
    };
    until("the sleep has counted as computing", || computed() >= 100);
    let (of_other, _) = made(&other.post("/api/tournaments", &order(&[&c, &d], json!({}))));
    let view = fixture.wait(&first, is("failed"));
    let reason = "a match took longer than 1 s while the tournaments of others waited (tournaments.turn_seconds)";
    assert_eq!(view["reason"], reason);
    fixture.wait(&of_other, is("complete"));
}

#[test]
fn strangers_have_time_limits_that_the_settings_bound() {
    let fixture = TournamentFixture::with(|settings| settings.tournaments.max_bank_ms = 0);
    let bot = Bot::start(usize::MAX);
    let [a, b] = ["a", "b"].map(|name| fixture.add(name, &bot).0);
    let create =
        |limits: Value| fixture.client.post("/api/tournaments", &order(&[&a, &b], json!({ "limits": limits })));
    for (limits, sentence) in [
        (json!({ "stepMs": 10_001 }), "limits.stepMs may be at most 10000 here (tournaments.max_step_ms), not 10001"),
        (json!({ "bankMs": 20_001 }), "limits.bankMs may be at most 20000 here (tournaments.max_bank_ms), not 20001"),
    ] {
        let answer = create(limits.clone());
        assert_eq!(
            (answer.refusal(), answer.json()["error"].as_str()),
            ((400, "INVALID_TOURNAMENT".to_owned()), Some(sentence))
        );
        let body = order(&[&a, &b], json!({ "limits": limits })).to_string();
        let bearer = format!("Bearer {}", known_admin_token().reveal());
        made(&fixture.client.request("POST", "/api/tournaments", &[("Authorization", &bearer)], body.as_bytes()));
    }
    // A game's own limits are always allowed.
    made(&create(json!({ "stepMs": 10_000, "bankMs": 20_000 })));
}

#[test]
fn errors_do_not_reveal_names_of_private_hosts() {
    let fixture = TournamentFixture::with(|settings| settings.tournaments.private_urls = false);
    // The integer is a notation of the IPv4 address 127.0.0.1. A label of 64 letters is too long for a host.
    let unknown = format!("http://{}.example/", "x".repeat(64));
    let [near, none] = ["http://2130706433:1/", &unknown].map(|url| {
        let (id, _) = made(&fixture.client.post("/api/agents", &json!({ "url": url, "name": "bot" })));
        id
    });
    let (id, _) = fixture.create(&[&near, &none], json!({}));
    fixture.wait(&id, is("complete"));
    let base = format!("/api/tournaments/{id}");
    let view = fixture.client.get(&format!("{base}/matches/1")).ok();
    let reason = "can't be reached: its host isn't known, or isn't at a public address";
    assert_eq!(view["details"], json!([reason, reason]));
    for path in ["/matches", "/matches/1/replay", "/standings", "/standings?format=html", "/standings?format=markdown"]
    {
        let answer = fixture.client.get(&format!("{base}{path}"));
        let view = answer.text();
        assert!(!view.contains("a public one") && !view.contains("lookup"), "{path}: {view}");
    }
}
