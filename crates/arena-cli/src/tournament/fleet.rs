//! Tournaments that workers play: what the user asked for, and what is told of it. The work is `arena-runner`'s.

use std::path::Path;

use arena_runner::nats::{PrepareError, Prepared, prepare as pack};
use arena_tournament::Plan;

use crate::args::{Affinity, FleetArgs, ResumeArgs, Sandbox, TournamentArgs};
use crate::exit::{Exit, Failure};
use crate::matches::settings::search_path;

/// The share of games that two workers play, unless the user says otherwise.
const CROSS_CHECK: f64 = 0.05;

/// A tournament that workers are to play, and the share of its games that two of them play.
pub type Fleet = (Prepared, f64);

/// Refuses what each worker decides for itself.
pub fn check_run(args: &TournamentArgs) -> Result<(), Failure> {
    let (play, sandbox) = (&args.play, &args.play.sandbox);
    let refused = [
        ("--concurrency", play.concurrency != 1),
        ("--affinity", play.affinity != Affinity::Share),
        ("--sandbox", sandbox.sandbox != Sandbox::On),
        ("--memory", sandbox.memory != 1024),
        ("--expose", !sandbox.expose.is_empty()),
    ];
    check(&args.fleet, &refused)
}

/// As [`check_run`], for what is gone on with.
pub fn check_resume(args: &ResumeArgs) -> Result<(), Failure> {
    check(&args.fleet, &[("--concurrency", args.concurrency.is_some())])
}

fn check(args: &FleetArgs, options: &[(&str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given && args.nats_url.is_some()) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(
            Exit::Usage,
            format_args!("{option} is each worker's own decision; with --nats-url it is given to `arena worker`"),
        )),
    }
}

/// Gets ready what the workers need, if they are to play. Nothing is queued yet.
pub fn prepare(args: &FleetArgs, plan: &Plan, folder: &Path) -> Result<Option<Fleet>, Failure> {
    let Some(address) = &args.nats_url else { return Ok(None) };
    let prepared = pack(plan, folder, address, &search_path()).map_err(|error| {
        let exit = match error {
            PrepareError::Rules(_) => Exit::Usage,
            PrepareError::Travel(_) => Exit::NoAgent,
            PrepareError::Nats(_) => Exit::Unreachable,
            PrepareError::System(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    })?;
    Ok(Some((prepared, args.cross_check.unwrap_or(CROSS_CHECK))))
}
