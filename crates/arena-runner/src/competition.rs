//! Competitions: a tournament or a league as executors see it.

use std::path::PathBuf;

use arena_match::{Confinement, Launcher, SeatedAgent};
use arena_model::{GameType, MatchResult, TimeLimits};
use arena_tournament::{Entrant, Pairing};
use serde_json::{Map, Value};

use crate::entrants::FilesChanged;
use crate::executor::RunError;

/// A tournament or a league: names the next pairing and takes results. One executor at a time plays it.
pub trait Competition {
    /// The properties that all its matches have in common. Called once by an executor, before it asks for a pairing.
    ///
    /// # Errors
    /// If it can't be played.
    fn terms<E>(&mut self, launcher: Launcher) -> Result<Terms, RunError<E>>;

    /// The next pairing to play. It counts as under way until it is recorded, given back, or its agents have changed.
    ///
    /// # Errors
    /// If no pairing can be chosen.
    fn next<E>(&mut self) -> Result<Next, RunError<E>>;

    /// Keeps a result durably. Returns the number of the match.
    ///
    /// # Errors
    /// If it can't be kept.
    fn record<E>(&mut self, pairing: &Pairing, result: MatchResult<SeatedAgent>) -> Result<usize, RunError<E>>;

    /// Takes back a pairing whose match ended without a result.
    fn give_back(&mut self, _pairing: &Pairing) {}

    /// Takes back a pairing because the files of these agents, by number, aren't what they were. Returns those of them that play no
    /// more for now, and weren't known to have changed.
    ///
    /// # Errors
    /// If the competition can't go on with changed agents.
    fn exclude(&mut self, pairing: &Pairing, agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged>;

    /// True if no match is left to be played.
    fn is_complete(&self) -> bool;
}

/// The properties that all matches of a competition have in common.
#[derive(Clone)]
pub struct Terms {
    /// The game.
    pub game: &'static GameType,
    /// Keys of its config that differ from the usual.
    pub options: Map<String, Value>,
    /// The time limits of agents.
    pub limits: TimeLimits,
    /// The agents, by number.
    pub entrants: Vec<Entrant>,
    /// The confinement of their processes.
    pub confinement: Confinement,
    /// The competition's own folder, which belongs to no agent.
    pub folder: PathBuf,
    /// The folder for replays and logs, if they are kept.
    pub replays: Option<PathBuf>,
}

/// An answer to the question for the next pairing.
#[derive(Debug)]
pub enum Next {
    /// This pairing.
    Play(Pairing),
    /// It depends on matches that are under way.
    Wait,
    /// No further match is wanted, or can be played.
    Nothing,
}

/// An event while a competition is played.
#[derive(Debug)]
pub enum Event {
    /// The result of the match of this number was kept.
    Played(usize),
    /// The files of the agent of this number have changed. It plays no more for now.
    Changed(usize),
    /// A remark: a sentence.
    Note(String),
    /// The state of the worker pool.
    Workers {
        /// The number of workers that take matches.
        workers: usize,
        /// The number of matches of this competition that they play.
        playing: usize,
    },
}

/// The way in which playing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything was played that is wanted.
    Complete,
    /// It was stopped, and can be resumed.
    Stopped,
}
