//! Tournaments and leagues on workers: options and messages. `arena-runner` does the work.

use std::path::Path;

use arena_runner::nats::{self, CROSS_CHECK, PrepareError, Prepared};
use arena_tournament::TournamentPlan;

use crate::args::{Affinity, ResumeArgs, Sandbox, TournamentArgs, WorkerPoolArgs};
use crate::exit::{Exit, Failure};
use crate::matches::settings::search_path;

/// A competition that is prepared for workers, and the fraction of its games that two workers play for comparison.
pub type WorkerPool = (Prepared, f64);

/// Refuses options that each worker sets for itself.
pub fn check_run(args: &TournamentArgs) -> Result<(), Failure> {
    let (play, sandbox) = (&args.play, &args.play.sandbox);
    let refused = [
        ("--concurrency", play.concurrency != 1),
        ("--affinity", play.affinity != Affinity::Share),
        ("--sandbox", sandbox.sandbox != Sandbox::On),
        ("--memory", sandbox.memory != 1024),
        ("--expose", !sandbox.expose.is_empty()),
    ];
    let here = [
        ("--tc", play.tc.is_some()),
        ("--st", play.st.is_some()),
        ("--startup-ms", play.startup_ms.is_some()),
        ("--ping-ms", play.ping_ms.is_some()),
        ("--openings", !args.openings.is_empty()),
        ("--draw", !args.draw.is_empty()),
        ("--resign", !args.resign.is_empty()),
    ];
    if let Some((option, _)) = here.iter().find(|(_, is_given)| *is_given && args.pool.nats_url.is_some()) {
        let sentence = format!("{option} is for tournaments on this machine; workers don't support it");
        return Err(Failure::new(Exit::Usage, sentence));
    }
    check(&args.pool, &refused)
}

/// Refuses the options of a resumed tournament that each worker sets for itself.
pub fn check_resume(args: &ResumeArgs) -> Result<(), Failure> {
    check(&args.pool, &[("--concurrency", args.concurrency.is_some())])
}

fn check(args: &WorkerPoolArgs, options: &[(&str, bool)]) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given && args.nats_url.is_some()) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(
            Exit::Usage,
            format_args!("{option} is an option of each worker; with --nats-url give it to `arena worker`"),
        )),
    }
}

/// Prepares a tournament's files for the workers, but queues no games yet.
pub fn prepare(args: &WorkerPoolArgs, plan: &TournamentPlan, folder: &Path) -> Result<Option<WorkerPool>, Failure> {
    let Some(address) = &args.nats_url else { return Ok(None) };
    pool(args, nats::prepare(plan, folder, address, &search_path())).map(Some)
}

/// Returns a prepared competition with the options of the workers.
pub fn pool(args: &WorkerPoolArgs, prepared: Result<Prepared, PrepareError>) -> Result<WorkerPool, Failure> {
    let prepared = prepared.map_err(|error| {
        let exit = match error {
            PrepareError::Rules(_) => Exit::Usage,
            PrepareError::Travel(_) => Exit::NoAgent,
            PrepareError::Nats(_) => Exit::Unreachable,
            PrepareError::System(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    })?;
    Ok((prepared, args.cross_check.unwrap_or(CROSS_CHECK)))
}
