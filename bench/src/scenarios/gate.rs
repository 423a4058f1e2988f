//! Two binaries of the arena, compared by CPU time per operation: an older one, the same older one again, and the one
//! under test, in turn. The comparison of the older binary with itself shows the noise of the machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::json;

use crate::arguments::Arguments;
use crate::chess;
use crate::latency::median;
use crate::player_pool::{PlayerPool, Until};
use crate::psi::{Players, ServerKind};
use crate::quick_agent::QUICK_AGENT;
use crate::report::{Goal, Report};
use crate::scenarios::games::script::ScriptFolder;
use crate::server::{ArenaFolder, Server, check_binary};
use crate::usage::Usage;

const NAME: &str = "gate";

/// The largest accepted ratio of CPU times, in percent, if the two measurements of the older binary differ by less.
const ACCEPTED: f64 = 105.0;

/// Options of this scenario.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "gate")]
pub struct GateOptions {
    /// Older binary of the arena, with which `gate` compares the binary under test
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// Number of rounds for each operation [default: 7; 1 if quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    gate_rounds: Option<u64>,
}

/// A binary under measurement, with its running server.
struct Side {
    binary: PathBuf,
    server: Server,
}

/// A measurement on one side: microseconds of CPU time per operation.
type Measure<'m> = dyn Fn(&Side) -> anyhow::Result<f64> + 'm;

struct Operation<'o> {
    name: &'static str,
    measure: Box<Measure<'o>>,
}

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start, an answer is wrong, or an operation costs too much.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let GateOptions { against, gate_rounds } = &arguments.gate;
    let older = against.as_deref().context("the scenario gate needs --against PATH, the older binary")?;
    check_binary(older)?;
    let newer = arguments.arena();
    let work = arguments.work();
    let script = ScriptFolder::new(&work)?;
    let folder = |binary: &Path| ArenaFolder::new(binary, &work, Some(&script.config()));
    let folders = [folder(older)?, folder(older)?, folder(&newer)?];
    let binaries = [older, older, &newer];
    let mut sides = Vec::new();
    for (folder, binary) in folders.iter().zip(binaries) {
        sides.push(Side { binary: binary.to_owned(), server: folder.start()? });
    }
    let rounds = arguments.size(*gate_rounds, 7, 1);
    let mut slower = Vec::new();
    for operation in operations(arguments)? {
        let ratio = compare(&operation, &sides, rounds, report)?;
        slower.extend(ratio.map(|ratio| format!("{}: {ratio:.1} %", operation.name)));
    }
    for side in sides {
        side.server.terminate()?;
    }
    ensure!(slower.is_empty(), "these operations take more CPU time than before: {}", slower.join(", "));
    Ok(())
}

/// Measures an operation on all sides in turn, and adds a row. Returns the ratio if it is too large.
fn compare(operation: &Operation<'_>, sides: &[Side], rounds: u64, report: &mut Report) -> anyhow::Result<Option<f64>> {
    // The first measurement is a warm-up, which fills caches and prepares statements. Its result is not used.
    for side in sides {
        (operation.measure)(side)?;
    }
    let mut taken = Vec::new();
    for round in 1..=rounds {
        eprintln!("gate: {}, round {round} of {rounds}", operation.name);
        // Every other round runs backwards, so that a drift of the machine cancels out.
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 0 {
            order.reverse();
        }
        let mut round_us = vec![0.0; sides.len()];
        for side in order {
            round_us[side] = (operation.measure)(&sides[side])?;
        }
        taken.push(round_us);
    }
    let percent = |of: fn(&[f64]) -> f64| 100.0 * median(taken.iter().map(|round_us| of(round_us)));
    let ratio = percent(|us| us[2] / ((us[0] + us[1]) / 2.0));
    let same = percent(|us| us[1] / us[0]);
    let spread = taken.iter().map(|us| 100.0 * (us[1] / us[0] - 1.0).abs()).fold(0.0, f64::max);
    let accepted = ACCEPTED.max(100.0 + (same - 100.0).abs());
    report
        .row(NAME, format!("{}: CPU time, newer / older", operation.name), ratio, "%")
        .goal(Goal::AtMost(accepted))
        .note(format!(
            "{:.1} and {:.1} µs; older / older: median {same:.1} %, largest difference of a round {spread:.1} %",
            median(taken.iter().map(|us| us[2])),
            median(taken.iter().map(|us| (us[0] + us[1]) / 2.0)),
        ));
    report.detail(NAME, operation.name, json!({ "rounds_us": taken }));
    Ok((ratio > accepted).then_some(ratio))
}

fn operations(arguments: &Arguments) -> anyhow::Result<Vec<Operation<'_>>> {
    let length = Until::Elapsed(arguments.round()? / 2);
    let games = move |player_pool: PlayerPool, server_kind: ServerKind| {
        Box::new(move |side: &Side| {
            // Scripts run in child processes of the server.
            let before = Usage::cpu_of_family(side.server.pid())?;
            let round = player_pool.play(&side.server, server_kind, length)?;
            let after = Usage::cpu_of_family(side.server.pid())?;
            ensure!(round.faults.count() == 0, "{} games failed", round.faults.count());
            Ok((after - before) as f64 / round.requests() as f64)
        })
    };
    let known = PlayerPool { players: Players::Known(1_000), ..arguments.player_pool(64) };
    Ok(vec![
        Operation {
            name: "a request of a game, 16 connections",
            measure: games(arguments.player_pool(16), ServerKind::Arena),
        },
        Operation {
            name: "a request of a game, 64 connections",
            measure: games(arguments.player_pool(64), ServerKind::Arena),
        },
        Operation { name: "a request of a game of known players", measure: games(known, ServerKind::Arena) },
        Operation {
            name: "a request of a scripted game",
            measure: games(arguments.player_pool(4), ServerKind::Script),
        },
        Operation { name: "a move of chess in a session", measure: Box::new(move |side| chess_move(arguments, side)) },
        Operation { name: "a match of chess", measure: Box::new(move |side| chess_match(arguments, side)) },
    ])
}

/// Plays moves in new sessions of chess.
fn chess_move(arguments: &Arguments, side: &Side) -> anyhow::Result<f64> {
    let games = arguments.size(None, 100, 40);
    let tables = std::sync::Arc::new(chess::open(&side.server, games)?);
    let moves = games * chess::GAME.len() as u64;
    let spent = arguments.player_pool(16).repeat(&side.server, moves, async move |connection, number| {
        let number = number as usize;
        chess::play(connection, &tables[number % tables.len()], number / tables.len()).await
    })?;
    Ok(spent.server_cpu_us / moves as f64)
}

/// Plays matches of chess without a server, between agents that answer at once. The result includes the agents' CPU
/// time, which is the same on all sides.
fn chess_match(arguments: &Arguments, side: &Side) -> anyhow::Result<f64> {
    let games = arguments.size(None, 10, 2);
    let agent = env::current_exe().context("this binary has no path")?;
    let before = Usage::cpu_of_ended_children()?;
    let mut command = Command::new(&side.binary);
    command.args(["match", "run", "chess", "--no-live", "--sandbox", "off", "--seed", "7"]);
    command.args(["--games", &games.to_string()]);
    for _ in 0..2 {
        command.arg("--").arg(&agent).args([QUICK_AGENT, "chess"]);
    }
    let output = command.stdin(Stdio::null()).output().context("could not start the arena")?;
    if !output.status.success() {
        bail!("the matches failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok((Usage::cpu_of_ended_children()? - before) as f64 / games as f64)
}
