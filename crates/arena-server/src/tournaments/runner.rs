//! The thread that plays tournaments, one after another. Matches are on threads of their own below it, none on the runtime's.

use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arena_match::cores;
use arena_runner::{Ended, Journal, causes};
use arena_runner::{Executor, LocalExecutor, RunError};

use super::facts::Ending;
use super::id::TournamentId;
use super::{Shared, Tournaments};

/// What is being played.
pub(super) struct Current {
    pub(super) id: TournamentId,
    began: Instant,
    /// Games that had been played when it was begun or gone on with.
    played_before: usize,
    calls: Arc<Calls>,
}

/// What is called out to the tournament that is being played.
#[derive(Default)]
struct Calls {
    /// Its matches shall end, without results.
    end: AtomicBool,
    /// And it isn't gone on with.
    for_good: AtomicBool,
    /// Since it took too long.
    too_long: AtomicBool,
}

impl Current {
    /// Games a second, once there are some.
    pub(super) fn rate(&self, games_played: usize) -> Option<f64> {
        let games = games_played.checked_sub(self.played_before).filter(|games| *games > 0)?;
        Some(games as f64 / self.began.elapsed().as_secs_f64().max(1e-3))
    }

    pub(super) fn stop_for_good(&self) {
        self.calls.for_good.store(true, Ordering::Relaxed);
        self.calls.end.store(true, Ordering::Relaxed);
    }
}

/// The thread. Dropping it has it end, and waits for that.
pub(crate) struct Runner {
    tournaments: Tournaments,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    pub(super) fn start(tournaments: Tournaments) -> io::Result<Runner> {
        let worker = tournaments.clone();
        let thread = thread::Builder::new().name("tournaments".to_owned()).spawn(move || worker.work())?;
        Ok(Runner { tournaments, thread: Some(thread) })
    }

    /// Has matches under way called off, which are played again after the next start; no process of theirs is left when this returns.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let mut state = self.tournaments.state();
        state.is_stopping = true;
        if let Some(current) = &state.current {
            current.calls.end.store(true, Ordering::Relaxed);
        }
        drop(state);
        self.tournaments.0.changed.notify_all();
        // A panic there has been reported by the thread itself.
        let _ = thread.join();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end();
    }
}

impl Tournaments {
    /// Plays what is queued until the server stops.
    fn work(&self) {
        while let Some((id, calls)) = self.next() {
            tracing::info!(tournament = %id, "tournament {id} is played");
            let played = catch_unwind(AssertUnwindSafe(|| self.0.play(self, id, &calls)));
            let ending = played.unwrap_or_else(|_| Some(Ending::Failed("the server is at fault".to_owned())));
            if let Some(ending) = ending {
                let (facts, written) = self.end(id, ending);
                // What can't be written is told to the log, and the next start goes on with it.
                if let Err(error) = written {
                    tracing::error!(%error, tournament = %id, "the end of tournament {id} can't be written: {error}");
                }
                self.note_end(id, facts);
            }
            self.state().current = None;
            self.0.changed.notify_all();
        }
    }

    /// Waits for the next tournament. Nothing when the server stops.
    fn next(&self) -> Option<(TournamentId, Arc<Calls>)> {
        let mut state = self.state();
        loop {
            if state.is_stopping {
                return None;
            }
            if let Some(id) = state.queue.pop_front() {
                let calls = Arc::<Calls>::default();
                let played_before = state.tournaments.get(&id).map_or(0, |entry| entry.games_played);
                state.current = Some(Current { id, began: Instant::now(), played_before, calls: Arc::clone(&calls) });
                return Some((id, calls));
            }
            self.0.changed.wait(&mut state);
        }
    }
}

impl Shared {
    /// Plays a tournament, or goes on with it. Nothing if it was broken off, to be gone on with.
    fn play(&self, tournaments: &Tournaments, id: TournamentId, calls: &Calls) -> Option<Ending> {
        let failed =
            |error: &dyn std::fmt::Display| Some(Ending::Failed(tournaments.redacted(&error.to_string()).into_owned()));
        let folder = tournaments.folder_of(id);
        let mut journal = match Journal::open(&folder) {
            Ok(journal) => journal,
            Err(error) => return failed(&error),
        };
        let changed: Vec<String> = match journal.changed() {
            Ok(changed) => changed.into_iter().map(|changed| changed.agent).collect(),
            Err(error) => return failed(&error),
        };
        if !changed.is_empty() {
            return failed(&format_args!("the files of {} aren't what they were", changed.join(" and ")));
        }
        let (concurrency, cores) = (self.settings.concurrency.get().into(), cores());
        let executor = LocalExecutor {
            launcher: &self.launcher,
            concurrency,
            cores: &cores,
            replay_bytes: self.settings.replay_bytes,
            stop: &calls.end,
            called_off: &calls.end,
        };
        let on_event = |journal: &Journal, _| -> Result<(), Infallible> {
            let schedule = &journal.record().schedule;
            if let Some(entry) = self.state.lock().tournaments.get_mut(&id) {
                (entry.games_played, entry.games) = (schedule.games_played(), schedule.games());
            }
            Ok(())
        };
        let played = thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            let patience = Duration::from_secs(self.settings.max_seconds);
            scope.spawn(move || {
                if is_done.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                    calls.too_long.store(true, Ordering::Relaxed);
                    calls.end.store(true, Ordering::Relaxed);
                }
            });
            let played = executor.play(&mut journal, on_event);
            drop(done);
            played
        });
        match played {
            Ok(Ended::Complete) => Some(Ending::Complete),
            Ok(Ended::Stopped) if calls.for_good.load(Ordering::Relaxed) => Some(Ending::Stopped),
            Ok(Ended::Stopped) if calls.too_long.load(Ordering::Relaxed) => {
                let seconds = self.settings.max_seconds;
                failed(&format_args!("it took longer than {seconds} s (tournaments.max_seconds)"))
            }
            Ok(Ended::Stopped) => None,
            Err(RunError::Match { number, source }) => failed(&format_args!("game {number}: {}", causes(&source))),
            Err(error) => failed(&error),
        }
    }
}
