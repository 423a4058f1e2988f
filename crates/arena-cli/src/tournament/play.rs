//! The play of a tournament or league, here or on workers.

use arena_match::cores;
use arena_record::RecordKey;
use arena_runner::nats::{NatsExecutor, NatsOptions};
use arena_runner::{Competition, Ended, Event, Executor, Journal, LocalExecutor, RunError};
use arena_tournament::{Record, TournamentPlan};

use super::failures::{explain_end, stopped};
use super::watch::Watcher;
use super::workers::WorkerPool;
use crate::exit::Failure;
use crate::interrupt;
use crate::matches::settings;
use crate::output::{self, Style};

/// Plays the remaining games, here or on workers, and reports progress and result.
pub fn play(
    mut journal: Journal,
    pool: Option<WorkerPool>,
    table_every: Option<usize>,
    sign_key: Option<&RecordKey>,
    style: Style,
) -> Result<(), Failure> {
    let folder = journal.folder().to_owned();
    let mut watcher = Watcher::new(journal.record(), style, table_every);
    watcher.begin(&folder, journal.record())?;
    let played =
        execute(&mut journal, pool, sign_key, |journal: &Journal, event| watcher.print_event(journal.record(), event));
    let summary = watcher.end(journal.record());
    note_surplus(journal.record());
    match played {
        Ok(Ended::Complete) => summary,
        Ok(Ended::Stopped) => {
            let schedule = &journal.record().schedule;
            let games = format_args!("{} of {} games", schedule.games_played(), schedule.games());
            Err(stopped(games, &folder))
        }
        Err(error) => Err(explain_end(error, &folder)),
    }
}

/// Plays a competition, here or on workers.
pub fn execute<C: Competition + Send>(
    competition: &mut C,
    pool: Option<WorkerPool>,
    sign_key: Option<&RecordKey>,
    on_event: impl FnMut(&C, Event) -> Result<(), Failure> + Send,
) -> Result<Ended, RunError<Failure>> {
    if let Some((prepared, check)) = pool {
        let [stop, called_off] = &interrupt::flags([
            "waiting for the workers' games in progress; press Ctrl-C again to stop at once",
            "stopping; `resume` collects the workers' games in progress",
        ])
        .map_err(RunError::Caller)?;
        let options = NatsOptions { check, stop, called_off, replay_bytes: u64::MAX, sign_key };
        return NatsExecutor { prepared, options }.play(competition, on_event);
    }
    let [stop, called_off] = &interrupt::flags([
        "finishing the games in progress; press Ctrl-C again to stop at once",
        "stopping; the games in progress are lost; press Ctrl-C again to kill this program",
    ])
    .map_err(RunError::Caller)?;
    let plan = competition.plan();
    let (concurrency, cores) = (plan.concurrency, if plan.shares_core { cores() } else { Vec::new() });
    let (launcher, replay_bytes) = (&settings::launcher(), u64::MAX);
    LocalExecutor { launcher, concurrency, cores: &cores, replay_bytes, stop, called_off, sign_key }
        .play(competition, on_event)
}

/// Prints a note about finished games that don't count because the test was already decided. The number of such games
/// depends on the concurrency, so the standings don't contain it.
pub fn note_surplus(record: &Record) {
    match record.schedule.surplus() {
        0 => {}
        1 => output::note("1 game was in progress when the test was decided; it is kept but doesn't count"),
        games => output::note(&format!(
            "{games} games were in progress when the test was decided; they are kept but don't count"
        )),
    }
}

pub fn check_sign_key(sign_key: Option<&RecordKey>, plan: &TournamentPlan) -> Result<(), Failure> {
    match sign_key.is_some() && !plan.replays {
        true => Err(Failure::usage("the tournament keeps no replays, so --sign-key has nothing to sign")),
        false => Ok(()),
    }
}

pub fn note_cut_off(bytes: usize) {
    if bytes > 0 {
        output::note(&format!("dropped the incomplete last line ({bytes} bytes); its game is played again"));
    }
}
