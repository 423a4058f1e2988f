//! Denial of service by one address: each attack comes from 127.0.0.2, while games are played from 127.0.0.1.
//!
//! In these tests, the limits also apply to loopback addresses. The server is a separate process, so that its memory
//! can be measured.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arena_testkit::attacks::{ATTACKER, HELD, Target, write_costly_challenge};
use arena_testkit::{Client, known_admin_token, until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The server's limit on unsent bytes for one address.
const OF_ADDRESS: u64 = 8 * MIB;

/// The server's limit on unsent bytes for all addresses together.
const IN_ALL: u64 = 24 * MIB;

/// The memory of a connection: HTTP buffers, and the parts of an answer that the limits don't count.
const OF_CONNECTION: u64 = 128 * KIB;

/// The growth of a debug build's memory without an attack: caches, the store's pages, and the allocator's reserve.
const OTHERWISE: u64 = 96 * MIB;

/// Held during each of these tests, since one attack would disturb the measurements of another.
static ALONE: Mutex<()> = Mutex::new(());

struct AttackFixture {
    server: Running,
    _folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl AttackFixture {
    fn with(limits: &str) -> AttackFixture {
        // The limits of rates are so high that they have no effect on the tests.
        let rates = "requests_per_second = 100000\nrequests_burst = 1000000\nwrites_per_second = 1000\nwrites_burst = 1000\n\
             computing_ms_per_second = 0\n";
        AttackFixture::start(&format!("[limits]\nlimit_loopback = true\n{rates}{limits}"))
    }

    /// Starts a server with these settings, which hosts a costly challenge too.
    fn start(settings: &str) -> AttackFixture {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        AttackFixture::start_in(tempfile::tempdir().unwrap(), alone, settings)
    }

    /// Stops the server and starts another one with its data.
    fn restart(self, settings: &str) -> AttackFixture {
        self.server.stop();
        AttackFixture::start_in(self._folder, self._alone, settings)
    }

    fn start_in(folder: TempDir, alone: MutexGuard<'static, ()>, settings: &str) -> AttackFixture {
        let file = folder.path().join("arena.toml");
        std::fs::write(&file, settings).unwrap();
        let challenges = folder.path().join("challenges");
        write_costly_challenge(&challenges);
        let data = folder.path().join("data");
        let [file, data, challenges] = [&file, &data, &challenges].map(|path| path.to_str().unwrap());
        let args = ["serve", "--listen", "127.0.0.1:0", "--data", data, "--config", file, "--challenges", challenges];
        let server = Running::start_with(&args, &[("ADMIN_TOKEN", known_admin_token().reveal())]);
        AttackFixture { server, _folder: folder, _alone: alone }
    }

    fn client(&self, last: u8) -> Client {
        self.server.client().from_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
    }

    fn gauge(&self, name: &str) -> u64 {
        self.client(9).counter(name)
    }
}

/// Opens connections that send these bytes and never read.
fn connections(client: &Client, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = client.connect().unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    (0..count).map(open).collect()
}

/// Returns the start of an answer, or an empty text if the server has closed the connection without an answer.
fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) => String::from_utf8_lossy(&head[9..]).into_owned(),
        Err(_) => String::new(),
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: arena\r\n\r\n").into_bytes()
}

fn post(path: &str, content_length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: arena\r\nContent-Type: application/json\r\nContent-Length: {content_length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Creates a session with messages of the largest allowed size. Each message takes nearly 1 MiB in JSON.
fn long_chat(client: &Client, messages: usize) -> (String, String) {
    let (session, invites) = client.create("psi");
    client.join(&invites[0]).ok();
    // This is the longest text in an allowed request, because each character takes six bytes in JSON.
    let text = "\u{1}".repeat(170_000);
    for _ in 0..messages {
        client.chat(&session, &invites[0], &text).ok();
    }
    (session, invites[0].clone())
}

#[test]
fn unread_answers_and_unfinished_requests_take_bounded_memory() {
    let limits = format!(
        "waiting_bytes = {IN_ALL}\nwaiting_bytes_per_address = {OF_ADDRESS}\nstalled_ms = 3000\nrequest_ms = 5000\n"
    );
    let fixture = AttackFixture::with(&limits);
    let [honest, stranger] = [1, 2].map(|last| fixture.client(last));
    honest.plays_a_game();
    let (session, player) = long_chat(&stranger, 12);
    let before = fixture.server.memory("VmRSS");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "sync", "arguments": { "channel": session, "from": player } },
    });
    let call = call.to_string();
    let attacks = [
        ("syncs", get(&format!("/api/chat/sync?channel={session}"))),
        ("streams", get(&format!("/api/chat/ws/{session}"))),
        ("tool calls", post("/api/chat/mcp", call.len(), call.as_bytes())),
        ("requests", post("/api/chat/send", 1_000_000, &[b' '; 200_000])),
        ("pages", get(&format!("/sessions/{session}"))),
    ];
    let mut held = Vec::new();
    for (name, bytes) in &attacks {
        // Each answer takes megabytes.
        let sockets = connections(&stranger, 100, bytes);
        honest.plays_a_game();
        // A long message of another address is accepted.
        let (theirs, invites) = honest.create("psi");
        honest.join(&invites[0]).ok();
        let said = "x".repeat(200_000);
        honest.chat(&theirs, &invites[0], &said).ok();
        let chat = honest.get(&format!("/api/chat/sync?channel={theirs}")).ok();
        assert_eq!(chat["messages"][0]["content"], said.as_str(), "{name}");
        let waiting = fixture.gauge("arena_waiting_bytes");
        assert!(waiting <= IN_ALL + 2 * MIB, "{name}: {waiting}");
        held.push(sockets);
    }
    let bound = before + OF_ADDRESS + 500 * OF_CONNECTION + OTHERWISE;
    let most = fixture.server.memory("VmHWM");
    assert!(most < bound, "{} MiB, more than the limit of {}", most / MIB, bound / MIB);
    // The server disconnects clients that don't read. The clients keep their sockets open.
    until("slow readers are disconnected", || fixture.gauge("arena_stream_subscribers") == 0);
    until("no bytes are pending", || fixture.gauge("arena_waiting_bytes") < OF_ADDRESS / 4);
    honest.plays_a_game();
    drop(held);
}

#[test]
fn an_answer_waits_for_memory_and_is_complete() {
    let limits = format!("waiting_bytes = {IN_ALL}\nwaiting_bytes_per_address = {}\nstalled_ms = 60000\n", 2 * MIB);
    let fixture = AttackFixture::with(&limits);
    let client = fixture.client(2);
    let (session, _) = long_chat(&client, 6);
    let path = format!("/api/chat/sync?channel={session}");
    // The answers to one address wait for each other, and each reader receives its whole answer.
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..8).map(|_| scope.spawn(|| client.get(&path).ok())).collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert_eq!(answers[0]["count"], 6);
    assert_eq!(answers[0]["messages"].as_array().map(Vec::len), Some(6));
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let mut stream = client.stream(&format!("/api/chat/ws/{session}"), None);
    let (id, initial) = stream.next_event().unwrap();
    assert_eq!((id.as_str(), &initial["messages"]), ("6", &answers[0]["messages"]));
}

#[test]
fn one_address_does_not_take_all_connections() {
    let fixture = AttackFixture::with("connections = 200\n");
    let [honest, stranger, prober] = [1, 2, 3].map(|last| fixture.client(last));
    let mut streams = connections(&stranger, 300, &get("/api/chat/ws/invites"));
    let taken = streams.iter_mut().map(status).filter(|status| status == "200").count();
    assert_eq!(taken, 50, "an address gets a quarter of all connections");
    assert_eq!(prober.get("/health").status, 200);
    honest.plays_a_game();
    assert_eq!(stranger.try_request("GET", "/health", &[], b"").map_or(429, |answer| answer.status), 429);
    drop(streams);
    until("all subscribers have disconnected", || fixture.gauge("arena_stream_subscribers") == 0);
    // For a new connection of an address, the server closes an idle connection of the same address.
    let idle = connections(&stranger, 300, b"");
    assert_eq!(stranger.get("/health").status, 200);
    honest.plays_a_game();
    drop(idle);
}

#[test]
fn many_addresses_leave_the_reserve_to_players() {
    let fixture = AttackFixture::with("connections = 100\n");
    let honest = fixture.client(1);
    let (session, players) = honest.seated("psi");
    until("players' connections are closed", || fixture.gauge("arena_connections") == 1);
    // Strangers from many addresses take all connections that aren't reserved for players.
    let mut streams: Vec<TcpStream> = Vec::new();
    for last in 10..20 {
        streams.extend(connections(&fixture.client(last), 25, &get("/api/chat/ws/invites")));
    }
    // Each has a stream, an error, or was closed.
    streams.retain_mut(|stream| status(stream) == "200");
    // A connection that was accepted, but whose request the server hasn't read yet, may give way to a new one, so the
    // strangers connect again, from other addresses.
    let mut addresses = (20..60).cycle();
    until("strangers have all connections except for the reserve", || {
        let are_taken = fixture.gauge("arena_stream_subscribers") >= 75;
        if !are_taken {
            let last = addresses.next().unwrap();
            streams.extend(connections(&fixture.client(last), 1, &get("/api/chat/ws/invites")));
        }
        are_taken
    });
    // An address without a player gets one answer, and no stream.
    until("refused connections are closed", || fixture.client(3).try_request("GET", "/health", &[], b"").is_ok());
    let health = fixture.client(3).raw(&get("/health")).unwrap();
    assert_eq!((health.status, health.header("connection")), (200, Some("close")));
    let refused = fixture.client(3).get("/api/chat/ws/invites");
    assert_eq!(refused.refusal(), (503, "SERVER_BUSY".to_owned()));
    let path = format!("/api/chat/ws/challenge_{session}?from={}", players[0]);
    let mut stream = honest.stream(&path, None);
    assert_eq!(stream.status, 200);
    assert!(stream.next_event().is_some());
    play_on(&honest, &session, &players);
    assert!(std::iter::from_fn(|| stream.next_event()).any(|(_, event)| event["type"] == "game_ended"));
}

/// Ends a running game by correct or wrong guesses.
#[track_caller]
fn play_on(client: &Client, session: &str, players: &[String]) {
    for player in players {
        client.act(session, player, "guess", "1").ok();
    }
}

#[test]
fn the_limit_on_open_files_is_raised_at_the_start() {
    let fixture = AttackFixture::with("");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", fixture.server.pid())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let [soft, hard] = [3, 4].map(|column| files.split_whitespace().nth(column).unwrap());
    assert_eq!(soft, hard, "{files}");
}

#[test]
fn sessions_with_the_costliest_options_do_not_disturb_others() {
    let fixture = AttackFixture::with("");
    let [honest, stranger] = [1, 2].map(|last| fixture.client(last));
    let create = |options: Value| stranger.post("/api/challenges/psi", &json!({ "options": options }));
    let refused = create(json!({ "range": [1, 30_000], "setSize": 10_000, "intersectionSize": 10_000 })).refusal();
    assert_eq!(refused, (400, "INVALID_OPTIONS".to_owned()));
    std::thread::scope(|scope| {
        let creating = scope.spawn(|| {
            for _ in 0..20 {
                create(json!({ "range": [1, 3000], "setSize": 1000, "intersectionSize": 1000 })).ok();
            }
        });
        while !creating.is_finished() {
            honest.plays_a_game();
        }
    });
    honest.plays_a_game();
}

/// Returns the 99th percentile of the time that requests of an honest player take while it plays.
fn honest_p99(client: &Client, games: usize) -> Duration {
    let mut took = Vec::new();
    for _ in 0..games {
        let (session, players) = client.seated("psi");
        for n in 0..10 {
            let begun = Instant::now();
            client.chat(&session, &players[n % 2], "good luck").ok();
            took.push(begun.elapsed());
            std::thread::sleep(Duration::from_millis(5));
        }
        play_on(client, &session, &players);
    }
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

#[test]
fn reads_of_long_games_take_bounded_memory_and_leave_time_to_players() {
    let settings = "[limits]\nlimit_loopback = true\nrequests_per_second = 100000\nrequests_burst = 1000000\n\
                    writes_per_second = 1000\nwrites_burst = 1000\ncomputing_burst_ms = 100\ncomputing_ms_per_second = 50\n";
    let fixture = AttackFixture::start(settings);
    let (session, players) = fixture.client(2).seated("psi");
    // The game is as long as the server allows, also after a restart.
    let text = "\u{1}".repeat(170_000);
    while fixture.client(2).chat(&session, &players[0], &text).status == 200 {}
    let fixture = fixture.restart(settings);
    let [honest, stranger] = [1, 2].map(|last| fixture.client(last));
    assert_eq!(stranger.chat(&session, &players[0], &text).refusal(), (413, "CHAT_FULL".to_owned()));
    play_on(&stranger, &session, &players);
    let quiet = honest_p99(&honest, 30);
    let before = fixture.server.memory("VmRSS");
    let over = AtomicBool::new(false);
    let paths =
        ["", "/replay", "/events?offset=0", "/events?offset=20"].map(|rest| format!("/sessions/{session}{rest}"));
    let paths = [&paths[..], &[format!("/api/sessions/{session}/record")]].concat();
    let (attacked, refused) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..40)
            .map(|n| {
                let (path, over, stranger) = (&paths[n % paths.len()], &over, &stranger);
                scope.spawn(move || {
                    let mut refused = 0;
                    while !over.load(Ordering::Relaxed) {
                        // The server may be too busy with this address to answer in time.
                        let Ok(answer) = stranger.try_request("GET", path, &[], b"") else { continue };
                        assert!([200, 429, 503].contains(&answer.status), "{path}: {}", answer.text());
                        refused += usize::from(answer.status == 429);
                    }
                    refused
                })
            })
            .collect();
        let attacked = honest_p99(&honest, 30);
        over.store(true, Ordering::Relaxed);
        (attacked, readers.into_iter().map(|reader| reader.join().unwrap()).sum::<usize>())
    });
    // `arena-bench attacks` measures the time; here, a reader must not stall the player.
    assert!(attacked < 3 * quiet + Duration::from_millis(250), "{attacked:?} instead of {quiet:?}");
    // One record and one page of a transcript for each two processors are made at the same time.
    let made = 2 * std::thread::available_parallelism().unwrap().get().div_ceil(2) as u64;
    let bound = before + 32 * MIB + 40 * OF_CONNECTION + made * 24 * 4 * MIB + OTHERWISE;
    let most = fixture.server.memory("VmHWM");
    assert!(most < bound, "{} MiB, more than the limit of {}", most / MIB, bound / MIB);
    assert!(refused > 0, "reads cost computing time");
    eprintln!(
        "p99 {quiet:?} without and {attacked:?} with reads of long games; {} MiB after {} MiB",
        most / MIB,
        before / MIB
    );
}

/// Limits of a small public host on which everybody may upload agents and start tournaments.
const PUBLIC_HOST: &str = r#"
[limits]
limit_loopback = true
connections = 400
connections_per_address = 60
waiting_bytes = 4194304
waiting_bytes_per_address = 1048576
requests_per_second = 200
computing_ms_per_second = 100
computing_burst_ms = 1000
running_sessions_per_address = 100
tickets_per_address = 8
streams_per_address = 20
stalled_ms = 1000

[tournaments]
enabled = true
upload = "anyone"
create = "anyone"
agents_per_address = 3
max_tournaments_per_address = 2
"#;

#[test]
fn all_attacks_at_once_harm_no_honest_player_and_each_refusal_is_explained() {
    let fixture = AttackFixture::start(PUBLIC_HOST);
    let [honest, admin] = [1, 3].map(|last| fixture.client(last));
    let budgets = || admin.get_with(known_admin_token().reveal(), "/api/admin/budgets?limit=100").ok();
    let row = |last: u8| {
        let (budgets, address) = (budgets(), Ipv4Addr::new(127, 0, 0, last).to_string());
        let rows = budgets["addresses"].as_array().unwrap();
        rows.iter().find(|row| row["address"] == address).cloned().unwrap_or_default()
    };
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let attacker = fixture.client(ATTACKER[3]);
    let target = Target::new(move || attacker);
    let before = fixture.server.memory("VmRSS");
    target.attack_during(|| {
        let begun = Instant::now();
        let mut games = 0;
        // Moves of costly games keep the computing time at its limit, so other refusals depend on the order of requests.
        let has_computed = || target.refusals().contains_key("COMPUTING_BUDGET_USED");
        while games < 10 || begun.elapsed() < Duration::from_secs(3) || !has_computed() {
            assert!(begun.elapsed() < Duration::from_secs(120), "{:#?}", target.refusals());
            honest.plays_a_game();
            games += 1;
            // Below the limit of rates.
            std::thread::sleep(Duration::from_millis(150));
            let used = row(ATTACKER[3])["used"].clone();
            assert!(number(&used["connections"]) <= HELD as u64, "{used}");
            assert!(number(&used["waitingBytes"]) <= MIB, "{used}");
            assert!(number(&used["streams"]) <= 20 && number(&used["tickets"]) <= 8, "{used}");
            // Some sessions may be created at once.
            assert!(number(&used["runningSessions"]) <= 100 + HELD as u64, "{used}");
            assert!(number(&used["agents"]) <= 3 && number(&used["tournaments"]) <= 2, "{used}");
        }
    });
    assert_eq!(row(1)["refusals"], 0, "{}", row(1));
    let most = fixture.server.memory("VmHWM");
    assert!(most < before + 4 * MIB + 400 * OF_CONNECTION + OTHERWISE, "{} MiB", most / MIB);
    let refusals = target.refusals();
    let protecting = refusals.iter().filter(|(_, refused)| [413, 429, 507].contains(&refused.status));
    for (code, refused) in protecting.clone() {
        assert!(
            ["(limits.", "(tournaments."].iter().any(|setting| refused.error.contains(setting)),
            "{code}: {refused:?}"
        );
    }
    // The ledger also counts refusals that the attacker didn't read.
    let read: usize = protecting.map(|(_, refused)| refused.count).sum();
    assert!(number(&row(ATTACKER[3])["refusals"]) >= read as u64, "{read} refusals: {}", row(ATTACKER[3]));
}
