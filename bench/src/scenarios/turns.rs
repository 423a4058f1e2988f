//! Moves in many concurrent games of chess at a fixed rate: an open loop over HTTP. Every game has a deadline for its
//! next move, which each move resets. A latency counts from the intended time of the move to the answer, which means
//! that the move is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use memchr::memmem;
use serde_json::json;

use crate::agenda::Agenda;
use crate::arguments::Arguments;
use crate::client_pool::{ClientPool, alone};
use crate::connection::Connection;
use crate::faults::Faults;
use crate::latency::Latencies;
use crate::player_pool::Mark;
use crate::psi::{self, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "turns";

/// The moves of every game: Morphy's game at the opera, up to the move before mate.
pub const GAME: [&str; 32] = [
    "e2e4", "e7e5", "g1f3", "d7d6", "d2d4", "c8g4", "d4e5", "g4f3", "d1f3", "d6e5", "f1c4", "g8f6", "f3b3", "d8e7",
    "b1c3", "c7c6", "c1g5", "b7b5", "c3b5", "c6b5", "c4b5", "b8d7", "e1c1", "a8d8", "d1d7", "d8d7", "h1d1", "e7e6",
    "b5d7", "f6d7", "b3b8", "d7b8",
];

/// The share of the rate that must be reached. It is below 1, because the last moves end after their intended start.
const REACHED: f64 = 0.98;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "turns")]
pub struct TurnsOptions {
    /// Number of concurrent games of chess [default: 1000; 100 if quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    turns_games: Option<u64>,
    /// Moves per second, in all games together
    #[arg(long, value_name = "MOVES/S", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    turns_rate: u64,
}

/// A running game.
pub struct Table {
    session: String,
    /// The invites of White and Black.
    invites: [String; 2],
}

/// Runs the scenario.
///
/// # Errors
/// If the server doesn't start or ends, or a game doesn't start.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let TurnsOptions { turns_games, turns_rate: rate } = arguments.turns;
    let games = arguments.size(turns_games, 1_000, 100);
    let seconds = arguments.size(None, 20, 2);
    let moves = (rate * seconds).min(games * GAME.len() as u64);
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let server = folder.start()?;
    let tables = Arc::new(open(&server, games)?);
    let player_pool = arguments.player_pool(64);
    let agenda = Arc::new(Agenda::default());
    let next = Arc::new(AtomicUsize::new(0));
    let address = server.address();
    let players = agenda.clone();
    let mut metronome = None;
    let limit = Duration::from_secs(moves / rate + 60);
    let finished = ClientPool { threads: player_pool.threads, workers: player_pool.connections, limit }.run(
        async move |_| Connection::open(address).await,
        async move |_, mut connection| {
            let (mut latencies, mut faults) = (Latencies::default(), Faults::default());
            while let Some(intended) = players.next().await {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let (table, ply) = (&tables[number % tables.len()], number / tables.len());
                match play(&mut connection, table, ply).await {
                    Ok(()) => latencies.record(intended.elapsed()),
                    Err(err) => {
                        faults.add(&err);
                        connection = Connection::open(address).await?;
                    }
                }
            }
            Ok((latencies, faults))
        },
        || {
            // The first mark is taken at the start of the work.
            if metronome.is_none() {
                let (agenda, workers) = (agenda.clone(), player_pool.connections);
                metronome = Some(thread::spawn(move || agenda.fill(rate, moves, workers)));
            }
            Mark::take(server.pid())
        },
    )?;
    let late = metronome.context("the metronome was never started")?.join();
    let late = late.map_err(|_| anyhow::anyhow!("the metronome panicked"))?;
    let spent = finished.start.until(&finished.end);
    server.terminate()?;

    let (mut latencies, mut faults) = (Latencies::default(), Faults::default());
    for (of_worker, of_its) in finished.results {
        latencies.merge(&of_worker);
        faults.merge(of_its);
    }
    let summary = latencies.summary();
    let reached = summary.count as f64 / spent.seconds;
    report
        .row(NAME, format!("moves/s reached of {rate}, in {games} games at once"), reached, "")
        .goal(Goal::AtLeast(rate as f64 * REACHED))
        .note(format!("{:.0} % of the server's time on one core", spent.server_cpu_us / spent.seconds / 1e4));
    report.p99(NAME, "a move, from its intended time", summary).goal(Goal::AtMost(20.0));
    report.row(NAME, "errors", faults.count() as f64, "").goal(Goal::AtMost(0.0));
    report.faults(NAME, &faults);
    report.detail(
        NAME,
        "moves",
        json!({"rate": rate, "games": games, "latencies": summary, "metronome_late": late.summary()}),
    );
    Ok(())
}

/// Creates this number of games. Reads from each game which invite plays White.
pub fn open(server: &Server, games: u64) -> anyhow::Result<Vec<Table>> {
    let address = server.address();
    alone(async move {
        let mut connection = Connection::open(address).await?;
        let mut tables = Vec::new();
        for _ in 0..games {
            let psi::Invited { id, mut invites } = psi::create_of("chess", &mut connection, ServerKind::Arena).await?;
            for invite in &invites {
                psi::join(&mut connection, invite).await?;
            }
            let seen = psi::sync(&mut connection, &id, &invites[0]).await?;
            if memmem::find(&seen, br#"\"side\":\"WHITE\""#).is_none() {
                ensure!(memmem::find(&seen, br#"\"side\":\"BLACK\""#).is_some(), "a player did not receive its color");
                invites.swap(0, 1);
            }
            let invites = <[String; 2]>::try_from(invites)
                .map_err(|_| anyhow::anyhow!("a session of chess does not have two invites"))?;
            tables.push(Table { session: id, invites });
        }
        Ok(tables)
    })
}

pub async fn play(connection: &mut Connection, table: &Table, ply: usize) -> anyhow::Result<()> {
    let Table { session, invites } = table;
    let (step, from) = (GAME[ply], &invites[ply % 2]);
    let body = format!(r#"{{"challengeId":"{session}","messageType":"move","content":"{step}","from":"{from}"}}"#);
    connection.post("/api/arena/message", body).await?.ok("a move").map(drop)
}
