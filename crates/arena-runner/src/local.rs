//! The executor for this machine. It distributes matches over the cores, and records each result as soon as the match
//! ends.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use arena_match::{
    Agent, KeptEngines, Launcher, MatchError, MatchPlan, OutputFile, PlayedMatch, logs, play_keeping, seal_line, spread,
};
use arena_record::RecordKey;
use arena_tournament::{Entrant, Pairing};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::competition::{Competition, CompetitionTerms, Ended, Event, Next};
use crate::entrants::{FileWatch, FilesChanged, agent_of};
use crate::executor::{Executor, RunError};

/// An executor that plays matches on this machine. The settings don't affect results.
#[derive(Clone, Copy)]
pub struct LocalExecutor<'a> {
    /// The program that starts agents.
    pub launcher: &'a Launcher,
    pub concurrency: usize,
    /// The cores on which matches run. If empty, matches run on any core.
    pub cores: &'a [usize],
    /// The largest size of a replay that is kept, in bytes.
    pub replay_bytes: u64,
    /// A flag: once true, the executor starts no further matches.
    pub stop: &'a AtomicBool,
    /// A flag: once true, the executor ends the matches under way without a result.
    pub called_off: &'a AtomicBool,
    /// The key that signs the replays.
    pub sign_key: Option<&'a RecordKey>,
}

/// The shared data of the threads that play a competition's matches.
struct Run<'r, C, E, F> {
    executor: LocalExecutor<'r>,
    terms: &'r CompetitionTerms,
    agents: Vec<Agent>,
    files: FileWatch<'r>,
    state: Mutex<State<'r, C, E, F>>,
    /// The condition variable that is notified when a match has ended.
    ended: Condvar,
}

struct State<'r, C, E, F> {
    competition: &'r mut C,
    on_event: F,
    failed: Option<RunError<E>>,
    is_stopped: bool,
}

/// A guard that stops the other threads if its own thread panics. They may be waiting for the end of that thread's
/// match.
struct PanicGuard<'g, 'r, C, E, F>(&'g Run<'r, C, E, F>);

impl<C, E, F> Drop for PanicGuard<'_, '_, C, E, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.lock().is_stopped = true;
            self.0.ended.notify_all();
        }
    }
}

/// The reason that a match has no valid result.
enum Missing<E> {
    /// The match was called off, or never started.
    Stopped,
    /// The files of these agents, by number, have changed.
    Changed(Vec<usize>),
    Failed(RunError<E>),
}

impl<C: Competition + Send> Executor<C> for LocalExecutor<'_> {
    fn play<E: Send>(
        self,
        competition: &mut C,
        on_event: impl FnMut(&C, Event) -> Result<(), E> + Send,
    ) -> Result<Ended, RunError<E>> {
        let terms = CompetitionTerms::of(competition, self.launcher.clone())?;
        competition.begin();
        if let Some(path) = &terms.replays {
            fs::create_dir_all(path).map_err(|source| RunError::Write { path: path.clone(), source })?;
        }
        let run = Run {
            executor: self,
            agents: terms.entrants.iter().map(|entrant| seated(entrant, &terms)).collect(),
            files: FileWatch::new(&terms.entrants, &terms.folder),
            terms: &terms,
            state: Mutex::new(State { competition, on_event, failed: None, is_stopped: false }),
            ended: Condvar::new(),
        };
        spread(self.concurrency, self.concurrency, self.cores, |_| run.work(), |_, ()| true);
        let State { competition, failed, is_stopped, .. } = run.state.into_inner();
        match failed {
            Some(error) => Err(error),
            None if is_stopped && !competition.is_complete() => Ok(Ended::Stopped),
            None => Ok(Ended::Complete),
        }
    }
}

/// Returns the agent of an entrant, with the time limits of the competition unless it has its own.
fn seated(entrant: &Entrant, terms: &CompetitionTerms) -> Agent {
    let agent = agent_of(entrant);
    let start_limits = agent.start_limits.or(terms.start_limits);
    Agent { time_control: agent.time_control.or(terms.time_control), start_limits, ..agent }
}

impl<C, E, F> Run<'_, C, E, F>
where
    C: Competition,
    F: FnMut(&C, Event) -> Result<(), E>,
{
    /// Plays matches one by one, until none is left or one fails.
    fn work(&self) {
        let _guard = PanicGuard(self);
        // The engines end after the lock is released, because their end takes time.
        let engines = KeptEngines::new(&self.agents);
        let mut state = self.state.lock();
        loop {
            let is_raised = self.is_stopped();
            state.is_stopped |= is_raised;
            if state.failed.is_some() || state.is_stopped {
                break;
            }
            match state.competition.next() {
                Ok(Next::Play(pairing)) => {
                    state.report(Event::Begun(pairing.number));
                    let played = MutexGuard::unlocked(&mut state, || self.play_match(&pairing, &engines));
                    state.take(&pairing, played);
                    self.ended.notify_all();
                }
                // A match is under way; its end wakes this thread.
                Ok(Next::Wait) => self.ended.wait(&mut state),
                Ok(Next::Nothing) => break,
                Err(error) => {
                    state.fail(error);
                    break;
                }
            }
        }
        self.ended.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.executor.stop.load(Ordering::Relaxed) || self.executor.called_off.load(Ordering::Relaxed)
    }

    fn play_match(&self, pairing: &Pairing, engines: &KeptEngines) -> Result<PlayedMatch, Missing<E>> {
        self.check_files(pairing)?;
        let options = self.terms.options_of(pairing);
        let plan = MatchPlan {
            game: self.terms.game,
            options: &options,
            seed: pairing.seed.clone(),
            limits: self.terms.limits,
            agents: pairing.agents.iter().map(|agent| &self.agents[*agent]).collect(),
            confinement: &self.terms.confinement,
            adjudication: self.terms.adjudication,
        };
        let path = self.terms.replays.as_ref().map(|folder| folder.join(format!("{}.jsonl", pairing.number)));
        let cannot = |path: PathBuf, source: io::Error| Missing::Failed(RunError::Write { path, source });
        let create = |path: &PathBuf| OutputFile::create(path).map_err(|error| cannot(path.clone(), error));
        let mut file = path.as_ref().map(create).transpose()?;
        let out = file.as_mut().map(|file| file as &mut (dyn Write + Send));
        let played_match = play_keeping(&plan, out, engines, self.executor.called_off);
        // The files are checked before other errors are handled, because missing files are the most likely reason that
        // an agent doesn't start. A match that was called off needs no check, since it doesn't count.
        if !matches!(played_match, Err(MatchError::CalledOff)) {
            self.check_files(pairing)?;
        }
        let played_match = match played_match {
            Ok(played_match) => played_match,
            Err(MatchError::CalledOff) => return Err(Missing::Stopped),
            // Ctrl-C signals all processes of the terminal, including an agent that is being started. The failed start
            // then counts as a stop.
            Err(MatchError::Start(_)) if self.is_stopped() => return Err(Missing::Stopped),
            Err(source) => return Err(Missing::Failed(RunError::Match { number: pairing.number, source })),
        };
        if let (Some(path), Some(mut file)) = (path, file) {
            if let (Some(key), Some(last)) = (self.executor.sign_key, played_match.replay) {
                file.write_all(seal_line(last, key).as_bytes()).map_err(|error| cannot(path.clone(), error))?;
            }
            file.keep().map_err(|error| cannot(path.clone(), error))?;
            logs::write(&path, &played_match).map_err(|(log, error)| cannot(log, error))?;
            let is_too_large = fs::metadata(&path).map(|data| data.len() > self.executor.replay_bytes);
            if is_too_large.map_err(|error| cannot(path.clone(), error))? {
                fs::remove_file(&path).map_err(|error| cannot(path, error))?;
            }
        }
        Ok(played_match)
    }

    fn check_files(&self, pairing: &Pairing) -> Result<(), Missing<E>> {
        let changed = self.files.changed(&pairing.agents);
        if changed.is_empty() { Ok(()) } else { Err(Missing::Changed(changed)) }
    }
}

impl<C, E, F> State<'_, C, E, F>
where
    C: Competition,
    F: FnMut(&C, Event) -> Result<(), E>,
{
    /// Handles the end of a match: records its result, or handles the reason that there is none.
    fn take(&mut self, pairing: &Pairing, played: Result<PlayedMatch, Missing<E>>) {
        let events = match played {
            Ok(played_match) => {
                let recorded = self.competition.record(pairing, played_match.result, None);
                recorded.map(|()| vec![Event::Played(pairing.number)]).map_err(RunError::from)
            }
            Err(Missing::Changed(agents)) => match self.competition.exclude(pairing, agents) {
                Ok(excluded) => Ok(excluded.into_iter().map(Event::Changed).collect()),
                Err(error) => Err(error.into()),
            },
            Err(Missing::Stopped) => {
                self.competition.give_back(pairing);
                self.is_stopped = true;
                return;
            }
            Err(Missing::Failed(error)) => {
                self.competition.give_back(pairing);
                Err(error)
            }
        };
        match events {
            Ok(events) => events.into_iter().for_each(|event| self.report(event)),
            Err(error) => self.fail(error),
        }
    }

    /// Passes an event to the caller, whose error ends the run.
    fn report(&mut self, event: Event) {
        if let Err(error) = (self.on_event)(self.competition, event) {
            self.fail(RunError::Caller(error));
        }
    }

    /// Keeps the first failure; later ones are usually its consequences.
    fn fail(&mut self, error: RunError<E>) {
        match (&mut self.failed, error) {
            (Some(RunError::Changed(FilesChanged(names))), RunError::Changed(FilesChanged(more))) => {
                names.extend(more);
                names.sort();
                names.dedup();
            }
            (Some(_), _) => {}
            (failed, error) => *failed = Some(error),
        }
    }
}
