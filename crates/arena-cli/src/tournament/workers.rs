//! Tournaments and leagues on workers: options and messages. `arena-runner` does the work.

use std::path::Path;

use arena_nats::NatsUrl;
use arena_runner::nats::{self, CROSS_CHECK, PrepareError, Prepared};
use arena_tournament::TournamentPlan;
use clap::Args;

use super::args::{ResumeArgs, TournamentArgs};
use crate::command_line::{NatsUrlParser, first_given};
use crate::exit::{Exit, Failure};
use crate::matches::options::{Affinity, Sandbox};
use crate::matches::settings::search_path;

/// Workers that play a tournament or league.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workers")]
pub struct WorkerPoolArgs {
    /// Let workers play the games, through this NATS server: nats://host or tls://user:password@host.
    #[arg(long, value_name = "URL", env = "ARENA_NATS_URL", hide_env_values = true, value_parser = NatsUrlParser)]
    pub nats_url: Option<NatsUrl>,
    /// Share of games played by two workers, whose differences are listed, from 0 to 1 [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "nats_url")]
    pub cross_check: Option<f64>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 (no game) to 1 (all games)".to_owned())
}

/// A competition that is prepared for workers, and the fraction of its games that two workers play for comparison.
pub type WorkerPool = (Prepared, f64);

/// Refuses options that each worker sets for itself.
pub fn check_run(args: &TournamentArgs) -> Result<(), Failure> {
    let (play, sandbox) = (&args.play, &args.play.sandbox);
    let of_workers = [
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
    if let Some(option) = first_given(&here).filter(|_| args.pool.nats_url.is_some()) {
        let sentence = format!("{option} is for tournaments on this machine; workers don't support it");
        return Err(Failure::usage(sentence));
    }
    refuse_given(&args.pool, &of_workers)
}

/// Refuses the options of a resumed tournament that each worker sets for itself.
pub fn check_resume(args: &ResumeArgs) -> Result<(), Failure> {
    refuse_given(&args.pool, &[("--concurrency", args.concurrency.is_some())])
}

fn refuse_given(pool: &WorkerPoolArgs, options: &[(&'static str, bool)]) -> Result<(), Failure> {
    match first_given(options).filter(|_| pool.nats_url.is_some()) {
        None => Ok(()),
        Some(option) => Err(Failure::usage(format_args!(
            "{option} is an option of each worker; with --nats-url give it to `arena worker`"
        ))),
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
            PrepareError::Rules(_) | PrepareError::LocalOnly(_) => Exit::Usage,
            PrepareError::Travel(_) => Exit::NoAgent,
            PrepareError::Nats(_) => Exit::Unreachable,
            PrepareError::System(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    })?;
    Ok((prepared, args.cross_check.unwrap_or(CROSS_CHECK)))
}
