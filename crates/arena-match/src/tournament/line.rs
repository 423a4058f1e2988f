//! The lines of a journal behind the plan.

use std::time::Duration;

use arena_model::{Score, Verdict};
use serde::{Deserialize, Serialize};

use crate::contest::Contest;
use crate::moves::Moves;
use crate::report::{Outcome, SeatResult};

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// A match was played.
    Game(Box<GameLine>),
    /// An agent isn't what it was, and the tournament goes on with it.
    Changed(ChangedLine),
    /// From here on matches are played by workers.
    Spread(SpreadLine),
    /// A match was played by another worker as well, with the same result.
    Checked(CheckedLine),
    /// A worker plays other matches than those that it was given; what it alone has played doesn't count.
    Quarantined(QuarantinedLine),
}

/// A match that was played. Nothing but `time` and `worker` depends on the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameLine {
    /// Its number in the schedule, from 1.
    pub fixture: usize,
    /// From 1.
    pub round: usize,
    /// The names of the agents, by seat; so are all other lists.
    pub agents: Vec<String>,
    /// From 1 for the best; equal ones are a draw.
    pub ranks: Vec<usize>,
    /// The game's scores.
    pub scores: Vec<f64>,
    /// Why an agent was disqualified, if it was.
    pub verdicts: Vec<Option<Verdict>>,
    /// The same in a sentence.
    pub details: Vec<Option<String>>,
    /// What else each got wrong in the protocol.
    pub faults: Vec<u32>,
    /// What all that was random came of: 64 hexadecimal digits.
    pub seed: String,
    /// How many epochs were played.
    pub epochs: u64,
    /// How it ended and who won.
    pub outcome: Outcome,
    /// Utility and security by seat, of a challenge that was settled; the disqualified have none. Older journals haven't any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge_scores: Option<Vec<Option<Score>>>,
    /// The moves, by which games that repeat each other are found. Older journals have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// What the clock says of it.
    pub time: TimePart,
    /// Who played it, if it was a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerPart>,
}

/// The worker that has played a match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerPart {
    /// What it is called.
    pub name: String,
    /// Another one with each start of it.
    pub id: String,
    /// The SHA-256, in hex, of all in its replay that the clock has no part in; agents that always play alike have the same on all
    /// workers.
    pub played: String,
}

/// From here on matches are played by workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadLine {
    /// By which the workers know the tournament.
    pub id: String,
}

/// A match was played by another worker as well, with the same result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedLine {
    /// The match's number in the schedule, from 1.
    pub fixture: usize,
    /// The name of the other worker.
    pub worker: String,
    /// Its id.
    pub id: String,
}

/// A worker plays other matches than those that it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantinedLine {
    /// Its name, which no other worker is believed under in this tournament.
    pub worker: String,
    /// Its id.
    pub id: String,
    /// What shows it, in a sentence.
    pub why: String,
    /// The matches before this line that don't count: those that it alone has played, and what depends on them.
    pub void: Vec<usize>,
}

/// How long a match took, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimePart {
    /// From the start of the agents to their end.
    pub took_ms: f64,
    /// How long each agent was waited for in all.
    pub waited_ms: Vec<f64>,
    /// How long each was waited for at most.
    pub longest_step_ms: Vec<f64>,
}

/// An agent isn't what it was, and the tournament goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedLine {
    /// Its name.
    pub agent: String,
    /// What its files have as SHA-256 from here on.
    pub sha256: Option<String>,
}

impl GameLine {
    /// What is written of a match of these agents, by seat.
    pub fn of(fixture: usize, round: usize, agents: Vec<String>, contest: &Contest, took: Duration) -> GameLine {
        let result = &contest.result;
        let mut seats: Vec<&SeatResult> = result.scores.iter().collect();
        seats.sort_by_key(|seat| seat.seat);
        GameLine {
            fixture,
            round,
            agents,
            ranks: seats.iter().map(|seat| seat.rank).collect(),
            scores: seats.iter().map(|seat| seat.score).collect(),
            verdicts: seats.iter().map(|seat| seat.tainted_reason).collect(),
            details: seats.iter().map(|seat| seat.tainted_detail.clone()).collect(),
            faults: seats.iter().map(|seat| seat.faults).collect(),
            seed: result.seed.clone(),
            epochs: result.epochs,
            outcome: result.outcome.clone(),
            challenge_scores: seats
                .iter()
                .any(|seat| seat.challenge_score.is_some())
                .then(|| seats.iter().map(|seat| seat.challenge_score).collect()),
            moves: Some(result.moves.clone()),
            time: TimePart {
                took_ms: (took.as_secs_f64() * 1e6).round() / 1e3,
                waited_ms: seats.iter().map(|seat| seat.time_used_ms).collect(),
                longest_step_ms: seats.iter().map(|seat| seat.longest_step_ms).collect(),
            },
            worker: None,
        }
    }

    /// Whether the same came of both, whatever the clock said and whoever played them.
    pub fn is_same(&self, other: &GameLine) -> bool {
        GameLine { time: TimePart::default(), worker: None, ..self.clone() }
            == GameLine { time: TimePart::default(), worker: None, ..other.clone() }
    }
}
