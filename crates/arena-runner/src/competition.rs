//! The [`Competition`] trait: the interface through which executors play tournaments and leagues.

use std::borrow::Cow;
use std::path::PathBuf;

use arena_match::{Confinement, Launcher, SeatedAgent};
use arena_model::{Adjudication, GameType, MatchResult, StartLimits, TimeControl, TimeLimits};
use arena_tournament::{Entrant, Pairing};
use serde_json::{Map, Value};

use crate::entrants::FilesChanged;
use crate::executor::RunError;

/// A tournament or a league that an executor plays. The competition returns the next pairing and records results. Only
/// one executor at a time may use it.
pub trait Competition {
    /// Returns the properties that all matches of the competition have in common. An executor calls this method once,
    /// before the first [`Competition::next`].
    ///
    /// # Errors
    /// If the competition can't be played.
    fn terms<E>(&mut self, launcher: Launcher) -> Result<CompetitionTerms, RunError<E>>;

    /// Returns the next pairing to play. The pairing is under way until the executor passes it to
    /// [`Competition::record`], [`Competition::give_back`] or [`Competition::exclude`].
    ///
    /// # Errors
    /// If no pairing can be chosen.
    fn next<E>(&mut self) -> Result<Next, RunError<E>>;

    /// Records a result durably. Returns the number of the match.
    ///
    /// # Errors
    /// If the result can't be written.
    fn record<E>(&mut self, pairing: &Pairing, result: MatchResult<SeatedAgent>) -> Result<usize, RunError<E>>;

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
}

/// The properties that all matches of a competition have in common.
#[derive(Clone)]
pub struct CompetitionTerms {
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
