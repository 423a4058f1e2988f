//! The cost of scoring: games of known users on an arena with scoring, in turn with games of anonymous players on an
//! arena without scoring. Then leaderboards of many users, at the start, the middle and the end.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::json;

use super::games::round_json;
use super::lists::ask;
use crate::arguments::Arguments;
use crate::client_pool;
use crate::connection::Connection;
use crate::latency::median;
use crate::player_pool::{PlayerPool, Until};
use crate::psi::{Players, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

const NAME: &str = "scoring";

/// The configuration of an arena without scoring.
const UNSCORED: &str = "[scoring]\n\n[[challenges]]\nname = \"psi\"\n";

/// The number of users on a page.
const PAGE: u64 = 50;

/// The number of connections that fill the leaderboards.
const FILLERS: usize = 128;

/// The leaderboards that are requested at several offsets.
const BOARDS: &[&str] = &[
    "/api/scoring?limit=50",
    "/api/scoring/psi?strategy=average&limit=50",
    "/api/scoring/psi?strategy=win-rate&sort=win-rate:utility&limit=50",
];

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "scoring")]
pub struct ScoringOptions {
    /// Number of users on the leaderboards [default: 100000; 5000 if quick]
    #[arg(long, value_name = "N")]
    players: Option<u64>,
    /// Numbers of connections for the compared games; one row per number
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "64,256", id = "scoring_connections")]
    scoring_connections: Vec<usize>,
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or refuses, or a leaderboard has a wrong number of users.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let players = arguments.size(arguments.scoring.players, 100_000, 5_000);
    let plain_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(UNSCORED))?;
    let scored_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let (plain, scored) = (plain_folder.start()?, scored_folder.start()?);

    eprintln!("scoring: first games of {players} players");
    let fillers = PlayerPool { players: Players::Known(players), ..arguments.player_pool(FILLERS) };
    let round = fillers.play(&scored, ServerKind::Arena, Until::Games(players / 2))?;
    report.faults("scoring, first games", &round.faults);
    for &connections in &arguments.scoring.scoring_connections {
        compare(arguments, report, [&plain, &scored], connections, players)?;
    }
    measure_boards(report, &scored, players)?;
    report.row(NAME, "server memory, boards in use", scored.usage()?.rss_kib as f64 / 1024.0, "MiB");
    plain.terminate()?;
    scored.terminate()?;
    Ok(())
}

fn compare(
    arguments: &Arguments,
    report: &mut Report,
    [plain, scored]: [&Server; 2],
    connections: usize,
    players: u64,
) -> anyhow::Result<()> {
    let nobody = arguments.player_pool(connections);
    let known = PlayerPool { players: Players::Known(players), ..nobody };
    let (length, rounds) = (arguments.round()?, arguments.rounds());
    nobody.play(plain, ServerKind::Arena, Until::Elapsed(length / 5))?;
    known.play(scored, ServerKind::Arena, Until::Elapsed(length / 5))?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        eprintln!("scoring: {connections} connections, round {number} of {rounds}");
        without.push(nobody.play(plain, ServerKind::Arena, Until::Elapsed(length))?);
        with.push(known.play(scored, ServerKind::Arena, Until::Elapsed(length))?);
    }
    // Each share is computed within one pair of rounds, in which the state of the machine is the same for both arenas.
    let share = median(with.iter().zip(&without).map(|(with, without)| with.rate() / without.rate()));
    let at = format!("{connections} connections");
    let games = |rounds: &[crate::player_pool::Round]| {
        median(rounds.iter().map(|round| round.games as f64 / round.spent.seconds))
    };
    report
        .row(NAME, format!("{at}: games/s, scored / not scored"), share * 100.0, "%")
        .goal(Goal::AtLeast(90.0))
        .note(format!("{:.0} and {:.0} games/s", games(&with), games(&without)));
    let cpu = |rounds: &[crate::player_pool::Round]| {
        median(rounds.iter().map(|round| round.spent.server_cpu_us / round.games as f64))
    };
    report.row(NAME, format!("{at}: server CPU for scoring a game"), cpu(&with) - cpu(&without), "µs").note(format!(
        "{:.0} and {:.0} µs for a whole game",
        cpu(&with),
        cpu(&without)
    ));
    for round in with.iter().chain(&without) {
        report.faults(format!("scoring, {at}"), &round.faults);
    }
    let json = |rounds: &[crate::player_pool::Round]| rounds.iter().map(round_json).collect::<Vec<_>>();
    report.detail(NAME, at, json!({ "scored": json(&with), "not_scored": json(&without) }));
    Ok(())
}

fn measure_boards(report: &mut Report, arena: &Server, players: u64) -> anyhow::Result<()> {
    client_pool::alone(async {
        let mut connection = Connection::open(arena.address()).await?;
        let mut worst: f64 = 0.0;
        for &board in BOARDS {
            let first = Instant::now();
            connection.get(board).await?.ok(board)?;
            let first = first.elapsed().as_secs_f64() * 1e3;
            report.row(NAME, format!("{board}: first read"), first, "ms");
            let last = players.saturating_sub(PAGE);
            for offset in [0, last / 2, last] {
                let target = format!("{board}&offset={offset}");
                check(&mut connection, &target).await?;
                let summary = ask(&mut connection, &target).await?;
                worst = worst.max(summary.p99_us);
                report
                    .row(NAME, format!("{board}, offset {offset}, p50"), summary.p50_us / 1e3, "ms")
                    .goal(Goal::AtMost(1.0))
                    .note(format!("p99 {:.2} ms, n = {}", summary.p99_us / 1e3, summary.count));
            }
        }
        report.row(NAME, "worst p99 of all boards", worst / 1e3, "ms").goal(Goal::AtMost(10.0));
        Ok(())
    })
}

/// Checks that a page of a leaderboard is full.
async fn check(connection: &mut Connection, target: &str) -> anyhow::Result<()> {
    let body = connection.get(target).await?.ok(target)?;
    let page: serde_json::Value = serde_json::from_slice(&body).context("a leaderboard is not JSON")?;
    let entries = match &page {
        serde_json::Value::Object(boards) => boards.values().next(),
        list => Some(list),
    };
    let len = entries.and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    ensure!(len as u64 == PAGE, "{target} has {len} players instead of {PAGE}");
    Ok(())
}
