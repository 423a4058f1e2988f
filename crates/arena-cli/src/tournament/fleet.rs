//! Tournaments that workers play: what the user asked for, and what is told of it. The work is `arena-fleet`'s.

use std::path::Path;

use arena_fleet::{FleetError, PrepareError, Prepared, Spread, Told, prepare as pack};
use arena_match::tournament::{Ended, Journal, Plan};

use super::watch::Watcher;
use super::{broken_off, refused, tell_surplus, unplayable};
use crate::args::{Affinity, FleetArgs, ResumeArgs, Sandbox, TournamentArgs};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::matches::cannot_write;
use crate::matches::settings::search_path;
use crate::output::Style;

/// The share of games that two workers play, unless the user says otherwise.
const CROSS_CHECK: f64 = 0.05;

/// Workers that are to play a tournament.
pub struct Fleet {
    prepared: Prepared,
    check: f64,
}

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
    Ok(Some(Fleet { prepared, check: args.cross_check.unwrap_or(CROSS_CHECK) }))
}

impl Fleet {
    /// Has what is left played, and tells how it goes and how it ended.
    pub fn go_on(self, mut journal: Journal, table_every: Option<usize>, style: Style) -> Result<(), Failure> {
        let [stop, called_off] = interrupt::flags([
            "waiting for the games that workers play; once more to stop at once",
            "stopping; what workers still play is taken up by `resume`",
        ])?;
        let how = Spread { check: self.check, stop: &stop, called_off: &called_off };
        let folder = journal.folder().to_owned();
        let mut watcher = Watcher::new(journal.record(), style, table_every);
        watcher.begin(&folder, journal.record())?;
        let played = self.prepared.play(&mut journal, &how, |told| match told {
            Told::Game(journal, number) => watcher.tell(journal.record(), number),
            Told::Note(text) => {
                watcher.note(&text);
                Ok(())
            }
            Told::Workers { workers, playing } => {
                watcher.show_workers(workers, playing);
                Ok(())
            }
        });
        let told = watcher.end(journal.record());
        tell_surplus(journal.record());
        match played {
            Ok(Ended::Complete) => told,
            Ok(Ended::Stopped) => Err(broken_off(&folder, journal.record())),
            Err(FleetError::Told(failure)) => Err(failure),
            Err(FleetError::Nats(error)) => Err(Failure::new(Exit::Unreachable, error)),
            Err(FleetError::Plan(error)) => Err(unplayable(&error)),
            Err(FleetError::Journal(error)) => Err(refused(&error)),
            Err(FleetError::Replay { path, source }) => Err(cannot_write(&path, &source)),
            Err(FleetError::Match { number, what }) => {
                Err(Failure::new(Exit::NoAgent, format_args!("game {number} can't be played by any worker: {what}")))
            }
            Err(FleetError::System(what)) => Err(Failure::new(Exit::Internal, what)),
        }
    }
}
