//! The thread that plays queued tournaments, in turns of the addresses that have created them. Matches run on further threads, outside the async runtime.

use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arena_match::cores;
use arena_runner::nats::{NatsExecutor, NatsOptions, PrepareError, Prepared, prepare};
use arena_runner::{Ended, Event, Executor, Journal, JournalError, LocalExecutor, RunError, causes};

use super::facts::Ending;
use super::id::TournamentId;
use super::{LOOK, Tournaments};

pub(super) struct Current {
    pub(super) id: TournamentId,
    began: Instant,
    /// Number of games already played when the tournament started or resumed.
    played_before: usize,
    signals: Arc<Signals>,
}

#[derive(Default)]
struct Signals {
    /// True to cancel the matches that have no result yet.
    end: AtomicBool,
    /// True to stop the tournament permanently.
    permanent: AtomicBool,
    /// True to interrupt the tournament after the running matches, because it is another address's turn.
    turn_over: AtomicBool,
    /// The time limit that the tournament has exceeded, as shown to the user.
    too_long: OnceLock<String>,
}

impl Current {
    /// Returns the number of games per second since the start or resumption; `None` if none were played since.
    pub(super) fn rate(&self, games_played: usize) -> Option<f64> {
        let games = games_played.checked_sub(self.played_before).filter(|games| *games > 0)?;
        Some(games as f64 / self.began.elapsed().as_secs_f64().max(1e-3))
    }

    pub(super) fn stop_for_good(&self) {
        self.signals.stop_for_good();
    }
}

impl Signals {
    fn fail(&self, reason: String) {
        // Only the first reason counts.
        let _ = self.too_long.set(reason);
        self.end.store(true, Ordering::Relaxed);
    }

    fn stop_for_good(&self) {
        self.permanent.store(true, Ordering::Relaxed);
        self.end.store(true, Ordering::Relaxed);
    }
}

/// The runner of tournaments and ladders. Dropping the runner stops its threads and waits for their end.
pub(crate) struct Runner {
    tournaments: Tournaments,
    threads: Vec<JoinHandle<()>>,
}

impl Runner {
    pub(super) fn start(tournaments: Tournaments) -> io::Result<Runner> {
        let mut runner = Runner { tournaments, threads: Vec::new() };
        let worker = runner.tournaments.clone();
        runner.threads.push(thread::Builder::new().name("tournaments".to_owned()).spawn(move || worker.work())?);
        if runner.tournaments.has_ladders() {
            let worker = runner.tournaments.clone();
            runner
                .threads
                .push(thread::Builder::new().name("ladders".to_owned()).spawn(move || worker.play_ladders())?);
        }
        Ok(runner)
    }

    /// Cancels running matches and waits until their processes have ended. The next start plays these matches again.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let mut state = self.tournaments.state();
        state.is_stopping = true;
        if let Some(current) = &state.current {
            current.signals.end.store(true, Ordering::Relaxed);
        }
        drop(state);
        self.tournaments.0.called_off.store(true, Ordering::Relaxed);
        self.tournaments.0.changed.notify_all();
        for thread in self.threads.drain(..) {
            // An error means a panic, which is already logged.
            let _ = thread.join();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.end();
    }
}

impl Tournaments {
    /// Plays queued tournaments until the server stops.
    fn work(&self) {
        while let Some((id, signals)) = self.next() {
            tracing::info!(tournament = %id, "playing tournament {id}");
            let mut journal = None;
            let play = Play { tournaments: self, id, signals: &signals };
            let played = catch_unwind(AssertUnwindSafe(|| play.play(&mut journal)));
            let ending = match played {
                Ok(Ok(ending)) => ending,
                Ok(Err(error)) => Some(Ending::Failed(self.redaction().redacted(&error).into_owned())),
                Err(_) => Some(Ending::Failed("internal error of the server".to_owned())),
            };
            let is_over = ending.is_some();
            if let Some(ending) = ending {
                let (facts, written) = self.end(id, ending);
                // If the end can't be written, the next start resumes the tournament.
                if let Err(error) = written {
                    tracing::error!(%error, tournament = %id, "cannot write the end of tournament {id}: {error}");
                }
                self.note_end(id, facts);
            }
            // Until the end is written, no other node may play on.
            drop(journal);
            let mut state = self.state();
            state.current = None;
            let is_unfinished = state.tournaments.get(&id).is_some_and(|entry| entry.facts.ended.is_none());
            let is_interrupted = signals.turn_over.load(Ordering::Relaxed);
            if !is_over && is_unfinished && !state.queue.contains(&id) {
                // At the next turn of its address, an interrupted tournament goes on before others begin.
                if is_interrupted { state.queue.push_front(id) } else { state.queue.push_back(id) }
            }
            self.0.changed.notify_all();
            // Another node plays it or has ended it, or its folder can't be read now.
            if !is_over && !is_interrupted && !state.is_stopping {
                self.0.changed.wait_for(&mut state, LOOK);
            }
        }
    }

    /// Waits for the next tournament; `None` when the server stops.
    fn next(&self) -> Option<(TournamentId, Arc<Signals>)> {
        loop {
            if self.is_shared() {
                self.try_read_changes();
            }
            let mut state = self.state();
            if state.is_stopping {
                return None;
            }
            if self.0.engine.leads()
                && let Some(id) = state.take_next()
            {
                let signals = Arc::<Signals>::default();
                let played_before = state.tournaments.get(&id).map_or(0, |entry| entry.games_played);
                state.current =
                    Some(Current { id, began: Instant::now(), played_before, signals: Arc::clone(&signals) });
                return Some((id, signals));
            }
            // Nothing announces the changes of other nodes.
            match self.is_shared() {
                true => drop(self.0.changed.wait_for(&mut state, LOOK)),
                false => self.0.changed.wait(&mut state),
            }
        }
    }
}

/// A tournament that this node plays.
struct Play<'t> {
    tournaments: &'t Tournaments,
    id: TournamentId,
    signals: &'t Signals,
}

impl Play<'_> {
    /// Plays or resumes the tournament. Returns `None` if it isn't over: the server stops, the turn is over, NATS can't be
    /// reached, or another node has it.
    ///
    /// The opened journal is in `opened` after the call. Its lock keeps other nodes away.
    ///
    /// # Errors
    /// The error that ends the tournament.
    fn play(&self, opened: &mut Option<Journal>) -> Result<Option<Ending>, String> {
        let id = self.id;
        let Some(journal) = self.open(opened)? else { return Ok(None) };
        let settings = self.tournaments.settings();
        let workers = match &settings.nats_url {
            Some(url) => {
                let (plan, folder) = (&journal.record().plan, self.tournaments.folder_of(id));
                match prepare(plan, &folder, url, &std::env::var("PATH").unwrap_or_default()) {
                    Ok(prepared) => Some(prepared),
                    Err(PrepareError::Nats(error)) => {
                        tracing::warn!(tournament = %id, %error, "tournament {id} waits: {error}");
                        return Ok(None);
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
            None => None,
        };
        // Workers' computing time isn't this server's.
        let used = if workers.is_some() { 0 } else { settings.concurrency.get().into() };
        let played = thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            scope.spawn(move || self.keep_time(used, &is_done));
            let played = self.execute(journal, workers);
            drop(done);
            played
        });
        match played {
            Ok(Ended::Complete) => Ok(Some(Ending::Complete)),
            Ok(Ended::Stopped) if self.signals.permanent.load(Ordering::Relaxed) => Ok(Some(Ending::Stopped)),
            Ok(Ended::Stopped) => self.signals.too_long.get().map_or(Ok(None), |reason| Err(reason.clone())),
            Err(RunError::Nats(error)) => {
                tracing::warn!(tournament = %id, %error, "tournament {id} is interrupted: {error}");
                Ok(None)
            }
            Err(RunError::Match { number, source }) => Err(format!("game {number}: {}", causes(&source))),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Opens the journal. Returns `None` if another node plays the tournament or has ended it.
    fn open<'j>(&self, opened: &'j mut Option<Journal>) -> Result<Option<&'j mut Journal>, String> {
        let tournaments = self.tournaments;
        let journal = match Journal::open(&tournaments.folder_of(self.id)) {
            Ok(_) if tournaments.has_ended_elsewhere(self.id) => return Ok(None),
            Ok(journal) => opened.insert(journal),
            Err(JournalError::Locked(_) | JournalError::Absent(_)) if tournaments.is_shared() => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let changed = journal.changed().map_err(|error| error.to_string())?;
        let changed: Vec<String> = changed.into_iter().map(|changed| changed.agent).collect();
        if changed.is_empty() {
            return Ok(Some(journal));
        }
        Err(format!("the files of {} have changed since the tournament was created", changed.join(" and ")))
    }

    /// Plays the remaining matches, on this server or by workers.
    fn execute(&self, journal: &mut Journal, workers: Option<Prepared>) -> Result<Ended, RunError<Infallible>> {
        let shared = &*self.tournaments.0;
        let (stop, called_off) = (&self.signals.turn_over, &self.signals.end);
        let replay_bytes = shared.settings.replay_bytes;
        let sign_key = Some(&shared.sign_key);
        let id = self.id;
        let on_event = |journal: &Journal, event| -> Result<(), Infallible> {
            if let Event::Note(note) = event {
                tracing::info!(tournament = %id, "tournament {id}: {note}");
            }
            let schedule = &journal.record().schedule;
            if let Some(entry) = shared.state.lock().tournaments.get_mut(&id) {
                (entry.games_played, entry.games) = (schedule.games_played(), schedule.games());
            }
            Ok(())
        };
        match workers {
            Some(prepared) => {
                let check = shared.settings.cross_check;
                let options = NatsOptions { check, stop, called_off, replay_bytes, sign_key };
                NatsExecutor { prepared, options }.play(journal, on_event)
            }
            None => {
                let (launcher, cores) = (&shared.launcher, cores());
                let concurrency = shared.settings.concurrency.get().into();
                LocalExecutor { launcher, concurrency, cores: &cores, replay_bytes, stop, called_off, sign_key }
                    .play(journal, on_event)
            }
        }
    }

    /// Counts the computing time of the matches, on `used` cores, and signals the ends of time limits and turns, until
    /// the other side of `is_done` is dropped.
    fn keep_time(&self, used: u32, is_done: &mpsc::Receiver<()>) {
        let (tournaments, signals) = (self.tournaments, self.signals);
        let settings = tournaments.settings();
        let (before, maker) = {
            let state = tournaments.state();
            (state.played.get(&self.id).copied().unwrap_or_default(), state.maker_of(self.id))
        };
        let [most, turn] = [settings.max_seconds, settings.turn_seconds].map(Duration::from_secs);
        let look = [most, turn].into_iter().filter(|time| !time.is_zero()).fold(LOOK, Duration::min);
        let began = Instant::now();
        let mut charged = began;
        // The time for which matches occupy cores counts against the maker's limits, also while the agents sleep.
        let mut charge = || {
            let computed = charged.elapsed().saturating_mul(used);
            tournaments.0.ledger.charge_matches(maker, computed);
            charged = Instant::now();
        };
        while is_done.recv_timeout(look) == Err(mpsc::RecvTimeoutError::Timeout) {
            charge();
            if tournaments.is_stop_requested(self.id) {
                signals.stop_for_good();
            }
            let played = began.elapsed();
            if before + played >= most {
                let seconds = most.as_secs();
                signals.fail(format!("the tournament took longer than {seconds} s (tournaments.max_seconds)"));
            }
            if turn.is_zero() || played < turn || !tournaments.state().others_wait(maker) {
                continue;
            }
            signals.turn_over.store(true, Ordering::Relaxed);
            if maker.is_some() && played >= turn * 2 {
                let seconds = turn.as_secs();
                signals.fail(format!(
                    "a match took longer than {seconds} s while the tournaments of others waited \
                     (tournaments.turn_seconds)"
                ));
            }
        }
        charge();
        tournaments.state().played.insert(self.id, before + began.elapsed());
    }
}
