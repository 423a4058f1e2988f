//! Players' latencies in authentication mode, with and without a flood of invalid joins. The server must check the
//! signature of each join.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use arena_identity::KeyPair;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::client_pool::{self, ClientPool};
use crate::connection::Connection;
use crate::latency::{Latencies, LatencySummary, median};
use crate::psi::{self, Invited, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "flood";

/// The configuration of an arena with authentication.
pub(super) const AUTHENTICATED: &str = "[auth]\nenabled = true\n";

/// The number of connections that send invalid joins in sequence.
const FLOODERS: usize = 8;

/// The floods, and the pause of each connection between two joins. A thousand joins a second is ten times the limit of
/// an address. Without a pause, client and server need more than the available cores, so all processes wait for CPU
/// time.
const FLOODS: [(&str, Option<Duration>); 2] =
    [("1,000 bad joins/s", Some(Duration::from_millis(8))), ("bad joins flat out", None)];

/// The number of players' connections, and the pause between two requests on each: 400 requests a second in total.
const PLAYERS: usize = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start, or refuses the players.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(AUTHENTICATED))?;
    let arena = folder.start()?;
    let game = begin(&arena)?;
    let length = arguments.round()?;
    for (what, pause) in FLOODS {
        let (mut calm, mut flooded, mut rates) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1..=arguments.rounds() {
            eprintln!("flood: {what}, round {number} of {}", arguments.rounds());
            calm.push(play(arguments, &arena, &game, length)?.summary());
            let stop = Arc::new(AtomicBool::new(false));
            let flood = start_flood(&arena, &game, pause, stop.clone());
            let played = play(arguments, &arena, &game, length);
            stop.store(true, Ordering::Relaxed);
            let joins = flood.join().map_err(|_| anyhow!("the flood panicked"))??;
            flooded.push(played?.summary());
            rates.push(joins as f64 / length.as_secs_f64());
        }
        let mid =
            |summaries: &[LatencySummary], value: fn(&LatencySummary) -> f64| median(summaries.iter().map(value)) / 1e3;
        let row = report.row(NAME, format!("{what}: players' requests, p99"), mid(&flooded, |one| one.p99_us), "ms");
        row.note(format!(
            "without them {:.2} ms; p50 {:.2} and {:.2} ms; {:.0} refused a second",
            mid(&calm, |one| one.p99_us),
            mid(&flooded, |one| one.p50_us),
            mid(&calm, |one| one.p50_us),
            median(rates),
        ));
        if pause.is_some() {
            row.goal(Goal::AtMost(10.0));
        }
        report.detail(NAME, what, json!({ "calm": calm, "flooded": flooded }));
    }
    arena.terminate()?;
    Ok(())
}

/// A running game, and an unused invite.
#[derive(Clone)]
struct FloodedGame {
    id: String,
    key: String,
    free: String,
}

fn begin(arena: &Server) -> anyhow::Result<FloodedGame> {
    client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let Invited { id, invites } = psi::create(&mut connection, ServerKind::Arena).await?;
        let mut keys = Vec::new();
        for (seat, invite) in (1..).zip(&invites) {
            let body = psi::signed_join(&KeyPair::from_random([seat; 32]), invite)?;
            let joined: Value = serde_json::from_slice(&connection.post("/api/arena/join", body).await?.ok("join")?)?;
            keys.push(joined["sessionKey"].as_str().context("the answer to a join has no sessionKey")?.to_owned());
        }
        let open = psi::create(&mut connection, ServerKind::Arena).await?;
        let (Some(key), Some(free)) = (keys.into_iter().next(), open.invites.into_iter().next()) else {
            return Err(anyhow!("the created session has no seats"));
        };
        Ok(FloodedGame { id, key, free })
    })
}

/// Sends chat messages and reads the latest messages, repeatedly.
fn play(arguments: &Arguments, arena: &Server, game: &FloodedGame, length: Duration) -> anyhow::Result<Latencies> {
    let address = arena.address();
    let game = game.clone();
    let client_pool =
        ClientPool { threads: arguments.threads(), workers: PLAYERS, limit: length + Duration::from_secs(60) };
    let finished = client_pool.run(
        async move |_| Connection::open(address).await,
        async move |_, mut connection| {
            let (mut latencies, start) = (Latencies::default(), Instant::now());
            let say = format!("/api/chat/send?key={}", game.key);
            let words = json!({ "channel": game.id, "content": "still there?" }).to_string();
            let read = format!("/api/arena/sync?channel={}&key={}", game.id, game.key);
            while start.elapsed() < length {
                let sent = Instant::now();
                connection.post(&say, words.clone()).await?.ok("chat")?;
                latencies.record(sent.elapsed());
                tokio::time::sleep(PAUSE).await;
                let sent = Instant::now();
                connection.get(&read).await?.ok("sync")?;
                latencies.record(sent.elapsed());
                tokio::time::sleep(PAUSE).await;
            }
            Ok(latencies)
        },
        || Ok(()),
    )?;
    let mut all = Latencies::default();
    for latencies in finished.results {
        all.merge(&latencies);
    }
    Ok(all)
}

/// Starts a thread that sends joins until `stop` is true, and returns their number. The joins are well-formed and
/// current, but signed for another invite.
fn start_flood(
    arena: &Server,
    game: &FloodedGame,
    pause: Option<Duration>,
    stop: Arc<AtomicBool>,
) -> thread::JoinHandle<anyhow::Result<u64>> {
    let (address, free) = (arena.address(), game.free.clone());
    thread::spawn(move || {
        let sent = Arc::new(AtomicU64::new(0));
        let counted = sent.clone();
        let client_pool = ClientPool { threads: 1, workers: FLOODERS, limit: Duration::from_secs(600) };
        client_pool.run(
            async move |_| Connection::open(address).await,
            async move |worker, mut connection| {
                let pair = KeyPair::from_random([100 + worker as u8; 32]);
                let other = "inv_00000000-0000-7000-8000-000000000000";
                let body = psi::signed_join(&pair, other)?.replace(other, &free);
                while !stop.load(Ordering::Relaxed) {
                    let answer = connection.post("/api/arena/join", body.clone()).await?;
                    anyhow::ensure!(
                        [401, 503].contains(&answer.status.as_u16()),
                        "an invalid join got {}",
                        answer.status
                    );
                    counted.fetch_add(1, Ordering::Relaxed);
                    if let Some(pause) = pause {
                        tokio::time::sleep(pause).await;
                    }
                }
                Ok(())
            },
            || Ok(()),
        )?;
        Ok(sent.load(Ordering::Relaxed))
    })
}
