//! Whole PSI games at a fixed rate, even if the server can't keep up: an open loop. The first latency of a game counts
//! from the game's intended start, so it includes the wait for a slow server (no coordinated omission). Each later
//! latency counts from the preceding answer, because the next request needs that answer.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;

use crate::agenda::Agenda;
use crate::arguments::Arguments;
use crate::client_pool::ClientPool;
use crate::connection::Connection;
use crate::faults::Faults;
use crate::latency::Latencies;
use crate::player_pool::{Mark, MeasuredCost, PlayerPool, Until};
use crate::psi::{self, Players, ServerKind, Step, StepLatencies};
use crate::report::{Goal, Report};
use crate::scenarios::games::latencies_json;
use crate::server::{ArenaFolder, Server};

const NAME: &str = "paced";

/// The share of the rate that must be reached. It is below 1, because the last games end after the last intended start.
const REACHED: f64 = 0.98;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "paced")]
pub struct PacedOptions {
    /// Games started per second
    #[arg(long, value_name = "GAMES/S", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// Duration in seconds [default: 20; 3 if quick]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    paced_seconds: Option<u64>,
    /// Number of connections; games beyond that number wait, and their latencies include the wait
    #[arg(long, value_name = "N", default_value_t = 256)]
    paced_connections: usize,
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or ends.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let PacedOptions { rate, paced_seconds, paced_connections } = arguments.paced;
    let games = rate * arguments.size(paced_seconds, 20, 3);
    let player_pool = arguments.player_pool(paced_connections);
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let arena = folder.start()?;
    let ceiling = Server::start_ceiling(&arguments.work())?;
    player_pool.play(&arena, ServerKind::Arena, Until::Elapsed(arguments.round()? / 5))?;
    // The ceiling's latencies are the contribution of this client and this machine.
    let of_ceiling = play(player_pool, &ceiling, ServerKind::Ceiling, rate, games)?;
    let of_arena = play(player_pool, &arena, ServerKind::Arena, rate, games)?;
    arena.terminate()?;

    let reached = of_arena.games as f64 / of_arena.spent.seconds;
    report
        .row(NAME, format!("games/s reached of {rate}"), reached, "")
        .goal(Goal::AtLeast(rate as f64 * REACHED))
        .note(format!(
            "{:.0} % of the server's time on one core",
            of_arena.spent.server_cpu_us / of_arena.spent.seconds / 1e4
        ));
    let overall = of_arena.latencies.all().summary();
    report.p99(NAME, "all requests", overall).goal(Goal::AtMost(10.0));
    for step in Step::ALL {
        report.p99(NAME, step.name(), of_arena.latencies.of(step).summary());
    }
    report.p99(NAME, "whole game, from its intended start", of_arena.whole.summary());
    report.p99(NAME, "all requests, ceiling", of_ceiling.latencies.all().summary());
    report.row(NAME, "errors", of_arena.faults.count() as f64, "").goal(Goal::AtMost(0.0));
    report.faults("paced", &of_arena.faults);
    report.faults("paced, ceiling", &of_ceiling.faults);
    for (name, paced) in [("arena", &of_arena), ("ceiling", &of_ceiling)] {
        let detail = json!({
            "rate": rate,
            "games": paced.games,
            "seconds": paced.spent.seconds,
            "latencies": latencies_json(&paced.latencies),
            "whole_game": paced.whole.summary(),
            "metronome_late": paced.metronome.summary(),
        });
        report.detail(NAME, name, detail);
    }
    Ok(())
}

/// The results of games at a rate.
pub struct PacedGames {
    /// The number of completed and correct games.
    pub games: u64,
    /// The latencies of the games' steps.
    pub latencies: StepLatencies,
    whole: Latencies,
    metronome: Latencies,
    pub faults: Faults,
    spent: MeasuredCost,
}

/// Plays `games` games, of which `rate` start each second.
///
/// # Errors
/// If the server can't be reached at all. A failed game is not an error, but is counted in the result.
pub fn play(
    player_pool: PlayerPool,
    server: &Server,
    server_kind: ServerKind,
    rate: u64,
    games: u64,
) -> anyhow::Result<PacedGames> {
    let address = server.address();
    let agenda = Arc::new(Agenda::default());
    let players = agenda.clone();
    let limit = Duration::from_secs(games / rate + 60);
    let mut metronome = None;
    let finished = ClientPool { threads: player_pool.threads, workers: player_pool.connections, limit }.run(
        async move |_| Connection::open(address).await,
        async move |_, mut connection| {
            let (mut latencies, mut whole, mut faults) =
                (StepLatencies::default(), Latencies::default(), Faults::default());
            while let Some(intended) = players.next().await {
                let connections = std::slice::from_mut(&mut connection);
                match psi::play(connections, server_kind, Players::Unknown, intended, &mut latencies).await {
                    Ok(()) => whole.record(intended.elapsed()),
                    Err(err) => {
                        faults.add(&err);
                        connection = Connection::open(address).await?;
                    }
                }
            }
            Ok((latencies, whole, faults))
        },
        || {
            // The first mark is taken at the start of the work.
            if metronome.is_none() {
                let (agenda, connections) = (agenda.clone(), player_pool.connections);
                metronome = Some(thread::spawn(move || agenda.fill(rate, games, connections)));
            }
            Mark::take(server.pid())
        },
    )?;
    let metronome = metronome.context("the metronome was never started")?.join();
    let mut paced = PacedGames {
        games: 0,
        latencies: StepLatencies::default(),
        whole: Latencies::default(),
        metronome: metronome.map_err(|_| anyhow::anyhow!("the metronome panicked"))?,
        faults: Faults::default(),
        spent: finished.start.until(&finished.end),
    };
    for (latencies, whole, faults) in finished.results {
        paced.games += whole.summary().count;
        paced.latencies.merge(&latencies);
        paced.whole.merge(&whole);
        paced.faults.merge(faults);
    }
    Ok(paced)
}
