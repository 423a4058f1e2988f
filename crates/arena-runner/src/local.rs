//! The executor on this machine: matches are spread over the cores, and each result is kept as soon as its match ends.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use arena_match::{Agent, Contest, Launcher, MatchError, OutputFile, Plan, hold, logs, spread};
use arena_tournament::Pairing;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::competition::{Competition, Ended, Event, Next, Terms};
use crate::entrants::{FileWatch, FilesChanged, agent_of};
use crate::executor::{Executor, RunError};

/// Plays matches on this machine. No result depends on how it is set.
#[derive(Debug, Clone, Copy)]
pub struct LocalExecutor<'a> {
    /// The program that starts agents.
    pub launcher: &'a Launcher,
    /// The number of matches that run at the same time.
    pub concurrency: usize,
    /// The cores that they are spread over; any, if this is empty.
    pub cores: &'a [usize],
    /// The largest replay that is kept, in bytes.
    pub replay_bytes: u64,
    /// No match is begun once this is raised.
    pub stop: &'a AtomicBool,
    /// Matches under way end without a result once this is raised.
    pub called_off: &'a AtomicBool,
}

/// A competition while its matches are played.
struct Run<'r, C, E, F> {
    executor: LocalExecutor<'r>,
    terms: &'r Terms,
    agents: Vec<Agent>,
    files: FileWatch<'r>,
    state: Mutex<State<'r, C, E, F>>,
    /// Notified whenever a match has ended.
    ended: Condvar,
}

struct State<'r, C, E, F> {
    competition: &'r mut C,
    on_event: F,
    failed: Option<RunError<E>>,
    is_stopped: bool,
}

/// Stops the other threads when its own panics: they may be waiting for its match.
struct PanicGuard<'g, 'r, C, E, F>(&'g Run<'r, C, E, F>);

impl<C, E, F> Drop for PanicGuard<'_, '_, C, E, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.state.lock().is_stopped = true;
            self.0.ended.notify_all();
        }
    }
}

/// A match without a result that counts.
enum Missing<E> {
    /// It was called off, or never began.
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
        let terms = competition.terms(self.launcher.clone())?;
        if let Some(path) = &terms.replays {
            fs::create_dir_all(path).map_err(|source| RunError::Write { path: path.clone(), source })?;
        }
        let run = Run {
            executor: self,
            agents: terms.entrants.iter().map(agent_of).collect(),
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

impl<C, E, F> Run<'_, C, E, F>
where
    C: Competition,
    F: FnMut(&C, Event) -> Result<(), E>,
{
    /// Plays one match after the other, until there are no more or one has failed.
    fn work(&self) {
        let _guard = PanicGuard(self);
        let mut state = self.state.lock();
        loop {
            let is_raised = self.is_stopped();
            state.is_stopped |= is_raised;
            if state.failed.is_some() || state.is_stopped {
                break;
            }
            match state.competition.next() {
                Ok(Next::Play(pairing)) => {
                    let played = MutexGuard::unlocked(&mut state, || self.play_match(&pairing));
                    state.take(&pairing, played);
                    self.ended.notify_all();
                }
                // There are matches under way, or there would be something to play.
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

    fn play_match(&self, pairing: &Pairing) -> Result<Contest, Missing<E>> {
        self.check_files(pairing)?;
        let plan = Plan {
            game: self.terms.game,
            options: &self.terms.options,
            seed: pairing.seed.clone(),
            limits: self.terms.limits,
            agents: pairing.agents.iter().map(|agent| &self.agents[*agent]).collect(),
            confinement: &self.terms.confinement,
        };
        let path = self.terms.replays.as_ref().map(|folder| folder.join(format!("{}.jsonl", pairing.number)));
        let cannot = |path: PathBuf, source: io::Error| Missing::Failed(RunError::Write { path, source });
        let create = |path: &PathBuf| OutputFile::create(path).map_err(|error| cannot(path.clone(), error));
        let mut file = path.as_ref().map(create).transpose()?;
        let out = file.as_mut().map(|file| file as &mut (dyn Write + Send));
        let contest = hold(&plan, out, None, self.executor.called_off);
        // Of a match that was called off nothing counts anyway. Missing files are the likeliest reason why an agent couldn't be started.
        if !matches!(contest, Err(MatchError::CalledOff)) {
            self.check_files(pairing)?;
        }
        let contest = match contest {
            Ok(contest) => contest,
            Err(MatchError::CalledOff) => return Err(Missing::Stopped),
            // Ctrl-C reaches all processes of the terminal, and so also one that is just being started. That match hasn't begun.
            Err(MatchError::Start(_)) if self.is_stopped() => return Err(Missing::Stopped),
            Err(source) => return Err(Missing::Failed(RunError::Match { number: pairing.number, source })),
        };
        if let (Some(path), Some(file)) = (path, file) {
            file.keep().map_err(|error| cannot(path.clone(), error))?;
            logs::write(&path, &contest).map_err(|(log, error)| cannot(log, error))?;
            let is_too_large = fs::metadata(&path).map(|data| data.len() > self.executor.replay_bytes);
            if is_too_large.map_err(|error| cannot(path.clone(), error))? {
                fs::remove_file(&path).map_err(|error| cannot(path, error))?;
            }
        }
        Ok(contest)
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
    /// Takes the end of a match.
    fn take(&mut self, pairing: &Pairing, played: Result<Contest, Missing<E>>) {
        let events = match played {
            Ok(contest) => self.competition.record(pairing, contest.result).map(|number| vec![Event::Played(number)]),
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
        let told = events.and_then(|events| {
            let mut each = events.into_iter();
            each.try_for_each(|event| (self.on_event)(self.competition, event)).map_err(RunError::Caller)
        });
        if let Err(error) = told {
            self.fail(error);
        }
    }

    /// Notes the first failure; those after it are most often its consequence.
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
