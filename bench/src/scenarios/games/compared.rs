//! Whole games in two ways, in turn: with and without authentication, by a script and by the built-in rules, with and
//! without the log.

use std::hint::black_box;
use std::time::Instant;

use arena_identity::{KeyPair, Proof};
use serde_json::json;

use super::round_json;
use super::script::ScriptFolder;
use crate::arguments::Arguments;
use crate::latency::median;
use crate::player_pool::{PlayerPool, Round, Until};
use crate::psi::{self, Players, REQUESTS_PER_GAME, SIGNERS, ServerKind};
use crate::report::{Goal, Report};
use crate::server::{ArenaFolder, Server};

/// The configuration of an arena with authentication.
const AUTHENTICATED: &str = "[auth]\nenabled = true\n";

/// The configuration of an arena without the log.
const UNLOGGED: &str = "[records]\nlog = false\n";

/// The number of signature checks that are measured alone.
const CHECKS: u32 = 2_000;

/// One of two ways to play.
#[derive(Clone, Copy)]
struct Contender<'s> {
    server: &'s Server,
    server_kind: ServerKind,
    players: Players,
}

/// Compares players who sign their joins and send session keys with as many known users without authentication.
///
/// # Errors
/// If a server doesn't start or refuses the players.
pub fn auth(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    const NAME: &str = "games with auth";
    let plain_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let signed_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(AUTHENTICATED))?;
    let (plain, signed) = (plain_folder.start()?, signed_folder.start()?);
    let known = Contender { server: &plain, server_kind: ServerKind::Arena, players: Players::Known(SIGNERS.into()) };
    let signers = Contender { server: &signed, players: Players::Signed, ..known };
    for connections in [16, 64] {
        let added = compare(arguments, report, NAME, connections, [known, signers], None)?;
        let check = check_us()?;
        let rest = (added - 2.0 * check) / REQUESTS_PER_GAME as f64;
        report
            .row(
                NAME,
                format!("{connections} connections: server CPU per request without signature checks"),
                rest,
                "µs",
            )
            .goal(Goal::AtMost(2.0))
            .note(format!("a signature check takes {check:.1} µs, a game has two"));
    }
    plain.terminate()?;
    signed.terminate()?;
    Ok(())
}

/// Returns the mean time of a signature check in this process, in microseconds.
fn check_us() -> anyhow::Result<f64> {
    let pair = KeyPair::from_random([7; 32]);
    let (invite, at) = ("inv_00000000-0000-7000-8000-000000000000".parse()?, psi::now()?);
    let (key, signature) = (pair.public_key(), pair.sign_join(invite, at));
    let begun = Instant::now();
    for _ in 0..CHECKS {
        let proof = Proof::parse(black_box(key.as_hex()), black_box(&signature), at, at)?;
        proof.verify_join(invite)?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(CHECKS))
}

/// Compares a script with the built-in rules. Four connections keep all cores busy, and are so few that requests don't
/// wait in queues. With 64, games by the built-in rules share more commits.
///
/// # Errors
/// If the server doesn't start or ends.
pub fn script(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let script = ScriptFolder::new(&arguments.work())?;
    let folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(&script.config()))?;
    let arena = folder.start()?;
    let rules = Contender { server: &arena, server_kind: ServerKind::Arena, players: Players::Unknown };
    let scripted = Contender { server_kind: ServerKind::Script, ..rules };
    for connections in [4, 64] {
        compare(arguments, report, "games with script", connections, [rules, scripted], Some(60.0))?;
    }
    arena.terminate()?;
    Ok(())
}

/// Compares an arena with the log with an arena without it.
///
/// # Errors
/// If a server doesn't start or ends.
pub fn records(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let plain_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(UNLOGGED))?;
    let logged_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let (plain, logged) = (plain_folder.start()?, logged_folder.start()?);
    let without = Contender { server: &plain, server_kind: ServerKind::Arena, players: Players::Unknown };
    let with = Contender { server: &logged, ..without };
    for connections in [16, 64] {
        compare(arguments, report, "games with records", connections, [without, with], Some(98.0))?;
    }
    plain.terminate()?;
    logged.terminate()?;
    Ok(())
}

/// Plays in both ways in turn. `goal` is the least share of games per second, in percent. Returns the CPU time that the
/// second way adds to a game, in microseconds.
fn compare(
    arguments: &Arguments,
    report: &mut Report,
    name: &'static str,
    connections: usize,
    sides: [Contender<'_>; 2],
    goal: Option<f64>,
) -> anyhow::Result<f64> {
    let play = |side: Contender<'_>, until| {
        let pool = PlayerPool { players: side.players, ..arguments.player_pool(connections) };
        pool.play(side.server, side.server_kind, until)
    };
    let at = format!("{connections} connections");
    let length = arguments.round()?;
    for side in sides {
        play(side, Until::Elapsed(length / 5))?;
    }
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for number in 1..=arguments.rounds() {
        eprintln!("{name}: {at}, round {number} of {}", arguments.rounds());
        without.push(play(sides[0], Until::Elapsed(length))?);
        with.push(play(sides[1], Until::Elapsed(length))?);
    }
    // Each share is computed within one pair of rounds, in which the state of the machine is the same for both.
    let share = median(with.iter().zip(&without).map(|(with, without)| with.rate() / without.rate()));
    let games = |rounds: &[Round]| median(rounds.iter().map(|round| round.games as f64 / round.spent.seconds));
    let cpu = |rounds: &[Round]| median(rounds.iter().map(|round| round.spent.server_cpu_us / round.games as f64));
    let row = report.row(name, format!("{at}: games/s, with / without"), share * 100.0, "%");
    row.note(format!("{:.0} and {:.0} games/s", games(&with), games(&without)));
    if let Some(goal) = goal {
        row.goal(Goal::AtLeast(goal));
    }
    let added = cpu(&with) - cpu(&without);
    report.row(name, format!("{at}: additional server CPU per game"), added, "µs").note(format!(
        "{:.0} and {:.0} µs for a whole game",
        cpu(&with),
        cpu(&without)
    ));
    for round in with.iter().chain(&without) {
        report.faults(format!("{name}, {at}"), &round.faults);
    }
    let json = |rounds: &[Round]| rounds.iter().map(round_json).collect::<Vec<_>>();
    report.detail(name, at, json!({ "with": json(&with), "without": json(&without) }));
    Ok(added)
}
