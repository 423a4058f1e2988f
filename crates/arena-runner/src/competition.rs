//! The [`Competition`] trait: the interface through which executors play tournaments and leagues.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use arena_match::{Confinement, Launcher};
use arena_model::{Adjudication, GameType, MatchResult, StartLimits, TimeControl, TimeLimits};
use arena_tournament::{Entrant, JournalLine, Pairing, SpreadLine, TournamentPlan, WorkerPart};
use serde_json::{Map, Value};

use crate::entrants::FilesChanged;
use crate::executor::RunError;
use crate::journal::{JournalError, REPLAYS, private_from};

/// A tournament or a league that an executor plays, with its journal. Only one executor at a time may use it.
pub trait Competition {
    fn plan(&self) -> &TournamentPlan;

    /// Returns the folder with the journal.
    fn folder(&self) -> &Path;

    /// Returns the agents, by number. During a run, the list only grows.
    fn entrants(&self) -> Vec<&Entrant>;

    /// Begins a run. An executor calls this method once, before the first [`Competition::next`].
    fn begin(&mut self);

    /// Returns the next pairing to play. The pairing is under way until the executor passes it to
    /// [`Competition::record`], [`Competition::give_back`] or [`Competition::exclude`].
    ///
    /// # Errors
    /// If no pairing can be chosen.
    fn next<E>(&mut self) -> Result<Next, RunError<E>>;

    /// Records a result durably. `worker` is the worker that played the match; `None` for this machine.
    ///
    /// # Errors
    /// If the result can't be written.
    fn record<A>(
        &mut self,
        pairing: &Pairing,
        result: MatchResult<A>,
        worker: Option<WorkerPart>,
    ) -> Result<(), JournalError>;

    /// Takes back a pairing after its match ended without a result, so that it can be played again.
    fn give_back(&mut self, _pairing: &Pairing) {}

    /// Takes back a pairing because the files of these agents (by number) have changed, and excludes the agents from
    /// play. Returns the agents that weren't excluded before.
    ///
    /// # Errors
    /// If the competition can't continue with changed agents.
    fn exclude(&mut self, pairing: &Pairing, agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged>;

    /// Returns true if no match is left to play.
    fn is_complete(&self) -> bool;

    /// Returns the pairing with this number; `None` if the competition has no such pairing.
    fn pairing(&self, number: usize) -> Option<Pairing>;

    /// Returns true if the match with this number has a result.
    fn has_result(&self, number: usize) -> bool;

    /// Returns the largest number of jobs for workers that may be on the queue or being played, if all workers together
    /// can play `slots` matches at once.
    fn most_open(&self, slots: usize) -> usize;

    /// Returns the first start of execution by workers.
    fn spread(&self) -> Option<&SpreadLine>;

    /// Appends a line durably.
    ///
    /// # Errors
    /// [`JournalError`] if the line contradicts the journal, or can't be written.
    fn append(&mut self, line: JournalLine) -> Result<(), JournalError>;
}

/// The properties that all matches of a competition have in common.
#[derive(Clone)]
pub(crate) struct CompetitionTerms {
    pub game: &'static GameType,
    /// The game's options that differ from the defaults.
    pub options: Map<String, Value>,
    pub limits: TimeLimits,
    /// The time control of the agents without one of their own.
    pub time_control: Option<TimeControl>,
    /// The limits of the first answers of agents without limits of their own.
    pub start_limits: StartLimits,
    /// The initial positions of chess games as FEN, by meeting.
    pub openings: Vec<String>,
    pub adjudication: Option<Adjudication>,
    /// The agents, by number.
    pub entrants: Vec<Entrant>,
    pub confinement: Confinement,
    /// The competition's folder. Agents' fingerprints leave it out.
    pub folder: PathBuf,
    /// The folder for replays and logs, if they are kept.
    pub replays: Option<PathBuf>,
}

impl CompetitionTerms {
    /// Returns the terms of a competition on this machine.
    ///
    /// # Errors
    /// If the competition can't be played.
    pub(crate) fn of<E>(competition: &impl Competition, launcher: Launcher) -> Result<CompetitionTerms, RunError<E>> {
        let (plan, folder) = (competition.plan(), competition.folder());
        let entrants: Vec<Entrant> = competition.entrants().into_iter().cloned().collect();
        Ok(CompetitionTerms {
            game: plan.game()?,
            options: plan.options.clone(),
            limits: plan.limits,
            time_control: plan.time_control,
            start_limits: plan.start_limits,
            openings: plan.openings.as_ref().map_or(Vec::new(), |openings| openings.positions.clone()),
            adjudication: plan.adjudication,
            confinement: Confinement {
                launcher,
                mode: plan.sandbox,
                limits: plan.sandbox_limits,
                expose: plan.expose.clone(),
                private: private_from(&entrants, plan, folder)?,
                public_only: plan.public_only,
            },
            entrants,
            folder: folder.to_owned(),
            replays: plan.replays.then(|| folder.join(REPLAYS)),
        })
    }

    /// Returns the options of the game of a pairing, with its opening.
    pub fn options_of(&self, pairing: &Pairing) -> Cow<'_, Map<String, Value>> {
        let meeting = usize::try_from(pairing.meeting.saturating_sub(1)).unwrap_or(0);
        let opening = meeting.checked_rem(self.openings.len()).map(|at| &self.openings[at]);
        match opening {
            None => Cow::Borrowed(&self.options),
            Some(fen) => {
                let mut options = self.options.clone();
                options.insert("fen".to_owned(), fen.as_str().into());
                Cow::Owned(options)
            }
        }
    }
}

#[derive(Debug)]
pub enum Next {
    Play(Pairing),
    /// The next pairing can't be chosen until a match under way has ended.
    Wait,
    /// The competition has no further pairings in this run.
    Nothing,
}

#[derive(Debug)]
pub enum Event {
    /// The match with this number begins on this machine.
    Begun(usize),
    /// The result of the match with this number was recorded.
    Played(usize),
    /// The files of the agent with this number have changed. It is excluded from play.
    Changed(usize),
    /// A remark for the user, in one sentence.
    Note(String),
    Workers {
        /// The number of workers that accept jobs.
        workers: usize,
        /// The number of this competition's matches under way.
        playing: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Complete,
    /// The run was stopped and can be resumed.
    Stopped,
}
