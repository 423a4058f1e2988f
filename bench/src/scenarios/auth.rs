//! The cost of authentication: games of players who sign their joins and send session keys, in turn with games of the
//! same number of known users on an arena without authentication. Signature checks are also measured alone.

use std::hint::black_box;
use std::time::Instant;

use arena_identity::{KeyPair, Proof};
use serde_json::json;

use super::flood::AUTHENTICATED;
use super::games::round_json;
use crate::arguments::Arguments;
use crate::latency::median;
use crate::player_pool::{PlayerPool, Round, Until};
use crate::psi::{self, Players, REQUESTS_PER_GAME, SIGNERS, ServerKind};
use crate::report::{Goal, Report};
use crate::server::ArenaFolder;

const NAME: &str = "auth";

/// The numbers of connections of the compared games.
const CONNECTIONS: [usize; 2] = [16, 64];

/// The number of signature checks that are measured alone.
const CHECKS: u32 = 2_000;

/// Runs the scenario.
///
/// # Errors
/// If a server doesn't start or refuses the players.
pub fn run(arguments: &Arguments, report: &mut Report) -> anyhow::Result<()> {
    let plain_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), None)?;
    let signed_folder = ArenaFolder::new(&arguments.arena(), &arguments.work(), Some(AUTHENTICATED))?;
    let (plain, signed) = (plain_folder.start()?, signed_folder.start()?);
    let mut checks = vec![check_us()?];
    for connections in CONNECTIONS {
        let known = PlayerPool { players: Players::Known(SIGNERS.into()), ..arguments.player_pool(connections) };
        let signers = PlayerPool { players: Players::Signed, ..known };
        let (length, rounds) = (arguments.round()?, arguments.rounds());
        known.play(&plain, ServerKind::Arena, Until::Elapsed(length / 5))?;
        signers.play(&signed, ServerKind::Arena, Until::Elapsed(length / 5))?;
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for number in 1..=rounds {
            eprintln!("{NAME}: {connections} connections, round {number} of {rounds}");
            without.push(known.play(&plain, ServerKind::Arena, Until::Elapsed(length))?);
            with.push(signers.play(&signed, ServerKind::Arena, Until::Elapsed(length))?);
            checks.push(check_us()?);
        }
        let cpu = |rounds: &[Round]| median(rounds.iter().map(|round| round.spent.server_cpu_us / round.games as f64));
        let check = median(checks.iter().copied());
        let added = cpu(&with) - cpu(&without);
        let at = format!("{connections} connections");
        report.row(NAME, format!("{at}: server CPU for authentication, per game"), added, "µs").note(format!(
            "{:.0} and {:.0} µs for a whole game; a signature check takes {check:.1} µs",
            cpu(&with),
            cpu(&without)
        ));
        let rest = (added - 2.0 * check) / REQUESTS_PER_GAME as f64;
        report
            .row(
                NAME,
                format!("{at}: server CPU for authentication without the signature checks, per request"),
                rest,
                "µs",
            )
            .goal(Goal::AtMost(2.0));
        for round in with.iter().chain(&without) {
            report.faults(format!("{NAME}, {at}"), &round.faults);
        }
        let json = |rounds: &[Round]| rounds.iter().map(round_json).collect::<Vec<_>>();
        report.detail(NAME, at, json!({ "signed": json(&with), "known": json(&without), "check_us": check }));
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
