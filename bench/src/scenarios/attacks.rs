//! Whole games from one address during an attack on memory, connections or CPU from another address. The results are
//! the latencies, as multiples of those without the attack, and the server's memory.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use arena_testkit::Client;
use serde_json::json;

use crate::arguments::Arguments;
use crate::latency::{LatencySummary, median};
use crate::player_pool::Until;
use crate::psi::ServerKind;
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "attacks";

/// A configuration in which the limits also apply to loopback addresses, without those of rates and of games. All players
/// have one address.
const CONFIG: &str = "[limits]\nlimit_loopback = true\nrequests_per_second = 0\nwrites_per_second = 0\n\
    running_sessions_per_address = 0\nstreams_per_address = 0\n";

/// The line for attacks that computing time doesn't limit.
const NO_COMPUTING: &str = "computing_ms_per_second = 0\n";

/// The number of connections of honest players.
const PLAYERS: usize = 8;

/// The number of connections of an attack.
const ATTACKERS: usize = 900;

/// The time after which an attack closes its connections and opens new ones.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The number of connections that read long games.
const READERS: usize = 40;

/// The pause after a read. All readers together have the default of `requests_per_second`.
const BETWEEN_READS: Duration = Duration::from_millis(400);

const READS: &str = "reads of long games";

const ATTACKS: [&str; 6] =
    ["unread syncs", "unread streams", "idle connections", "slow requests", "costly sessions", READS];

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start, or refuses the players.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let player_pool = arguments.player_pool(PLAYERS);
    let length = arguments.round()?;
    for attack in ATTACKS {
        let config = format!("{CONFIG}{}", if attack == READS { "" } else { NO_COMPUTING });
        let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(&config))?;
        let arena = folder.start()?;
        let session = long_chat(&arena, attack == READS);
        let (mut quiet, mut attacked, mut most_kib) = (Vec::new(), Vec::new(), 0);
        for number in 1..=arguments.rounds() {
            eprintln!("{NAME}: {attack}, round {number} of {}", arguments.rounds());
            quiet.push(player_pool.play(&arena, ServerKind::Arena, Until::Elapsed(length))?);
            let stop = Arc::new(AtomicBool::new(false));
            let attacking = match attack {
                READS => read_all(&arena, &session, stop.clone()),
                _ => start(attack, &arena, &session, stop.clone()),
            };
            let played = player_pool.play(&arena, ServerKind::Arena, Until::Elapsed(length));
            most_kib = most_kib.max(arena.usage()?.rss_kib);
            stop.store(true, Ordering::Relaxed);
            attacking.join().map_err(|_| anyhow!("the attack panicked"))?;
            attacked.push(played?);
        }
        arena.terminate()?;
        let refused: u64 = attacked.iter().map(|round| round.faults.count()).sum();
        let [quiet, attacked] = [quiet, attacked]
            .map(|rounds| rounds.iter().map(|round| round.latencies.all().summary()).collect::<Vec<_>>());
        let mid = |rounds: &[LatencySummary], value: fn(&LatencySummary) -> f64| median(rounds.iter().map(value));
        for (what, value) in [("p50", (|one| one.p50_us) as fn(&LatencySummary) -> f64), ("p99", |one| one.p99_us)] {
            let (calm, under) = (mid(&quiet, value), mid(&attacked, value));
            let row = report.row(NAME, format!("{attack}: {what} of requests, to that without"), under / calm, "×");
            row.note(format!("{:.2} ms and {:.2} ms without", under / 1e3, calm / 1e3));
            if what == "p99" {
                row.goal(Goal::AtMost(3.0));
            }
        }
        report
            .row(NAME, format!("{attack}: resident memory"), most_kib as f64 / 1024.0, "MiB")
            .goal(Goal::AtMost(512.0));
        report
            .row(NAME, format!("{attack}: games of others that went wrong"), refused as f64, "")
            .goal(Goal::AtMost(0.0));
        report.detail(NAME, attack, json!({ "quiet": quiet, "attacked": attacked }));
    }
    Ok(())
}

fn stranger(arena: &Server) -> Client {
    Client::new(arena.address()).from_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)))
}

/// Creates a session with 4 MB of chat messages, nearly the maximum, and returns its id.
fn long_chat(arena: &Server, ends: bool) -> String {
    let client = stranger(arena);
    let (session, players) = client.seated("psi");
    for _ in 0..4 {
        client.chat(&session, &players[0], &"x".repeat(1_000_000)).ok();
    }
    for player in players.iter().filter(|_| ends) {
        client.act(&session, player, "guess", "1").ok();
    }
    session
}

/// Reads pages and records of an ended session until `stop` is true.
fn read_all(arena: &Server, session: &str, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let client = stranger(arena);
    let paths = [
        format!("/sessions/{session}"),
        format!("/sessions/{session}/replay"),
        format!("/api/v1/sessions/{session}/record"),
        format!("/api/v1/chat/sync?channel={session}"),
    ];
    thread::spawn(move || {
        thread::scope(|scope| {
            for path in (0..READERS).map(|n| &paths[n % paths.len()]) {
                let (client, stop) = (&client, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        // An error means that the server was too busy with this address.
                        drop(client.try_request("GET", path, &[], b""));
                        thread::sleep(BETWEEN_READS);
                    }
                });
            }
        });
    })
}

/// Attacks from one address until `stop` is true.
fn start(attack: &'static str, arena: &Server, session: &str, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let client = stranger(arena);
    let get = |path: String| format!("GET {path} HTTP/1.1\r\nHost: arena\r\n\r\n");
    let bytes = match attack {
        "unread syncs" => get(format!("/api/v1/chat/sync?channel={session}")),
        "unread streams" => get(format!("/api/v1/chat/ws/{session}")),
        "slow requests" => {
            let head = "POST /api/v1/chat/send HTTP/1.1\r\nHost: arena\r\nContent-Length: 1000000\r\n\r\n";
            format!("{head}{}", " ".repeat(100_000))
        }
        _ => String::new(),
    };
    thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            if attack == "costly sessions" {
                let options = json!({ "range": [1, 3000], "setSize": 1000, "intersectionSize": 1000 });
                // An error is ignored, because it means that the server refused the connection.
                drop(client.try_request(
                    "POST",
                    "/api/v1/challenges/psi",
                    &[],
                    json!({ "options": options }).to_string().as_bytes(),
                ));
                continue;
            }
            let open = |_| {
                let mut stream = client.connect().ok()?;
                stream.write_all(bytes.as_bytes()).ok()?;
                Some(stream)
            };
            let held: Vec<TcpStream> = (0..ATTACKERS).filter_map(open).collect();
            thread::sleep(AGAIN_AFTER);
            drop(held);
        }
    })
}
