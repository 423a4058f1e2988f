//! The lines of a journal after the first, which is the plan.

use arena_model::{MatchOutcome, MatchResult, Moves, Score, SeatResult, Seed, Verdict};
use serde::{Deserialize, Serialize};

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

/// A match that was played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Columns", into = "Columns")]
pub struct GameLine {
    /// The pairing's number in the schedule, from 1.
    pub number: usize,
    /// The round, from 1.
    pub round: usize,
    /// The result, with the agents' names in the tournament. Nothing but its times depends on the clock.
    pub result: MatchResult,
    /// The worker that played it, if one did.
    pub worker: Option<WorkerPart>,
}

/// A [`GameLine`] as journals and queues have it: a list by seat for each part of the result.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Columns {
    pub fixture: usize,
    pub round: usize,
    pub agents: Vec<String>,
    ranks: Vec<usize>,
    scores: Vec<f64>,
    verdicts: Vec<Option<Verdict>>,
    details: Vec<Option<String>>,
    faults: Vec<u32>,
    pub seed: String,
    epochs: u64,
    outcome: MatchOutcome,
    /// Older journals haven't any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    challenge_scores: Option<Vec<Option<Score>>>,
    /// Older journals have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moves: Option<Moves>,
    time: TimeColumns,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worker: Option<WorkerPart>,
}

/// The times of a match, in milliseconds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeColumns {
    took_ms: f64,
    waited_ms: Vec<f64>,
    longest_step_ms: Vec<f64>,
}

impl TryFrom<Columns> for GameLine {
    type Error = String;

    fn try_from(columns: Columns) -> Result<GameLine, String> {
        let Columns { fixture: number, round, agents, ranks, scores, verdicts, details, faults, seed, .. } = columns;
        let (TimeColumns { took_ms, waited_ms, longest_step_ms }, moves) = (columns.time, columns.moves);
        let challenge_scores = columns.challenge_scores.unwrap_or_else(|| vec![None; agents.len()]);
        let lengths = [ranks.len(), scores.len(), verdicts.len(), details.len(), faults.len()];
        let times = [waited_ms.len(), longest_step_ms.len()];
        if lengths.iter().chain(&times).any(|length| *length != agents.len()) {
            return Err(format!("game {number} has {} seats, and its lists have others", agents.len()));
        }
        if challenge_scores.len() != agents.len() {
            return Err(format!("game {number} has {} seats, and other utilities and securities", agents.len()));
        }
        if moves.as_ref().is_some_and(|moves| moves.first >= agents.len()) {
            return Err(format!("game {number} has {} seats, and the first of them isn't one", agents.len()));
        }
        let seed = Seed::from_revealed(&seed).ok_or_else(|| format!("the seed of game {number} is none"))?;
        let (mut verdicts, mut details) = (verdicts.into_iter(), details.into_iter());
        let seats = agents.into_iter().enumerate().map(|(seat, agent)| SeatResult {
            agent,
            rank: ranks[seat],
            score: scores[seat],
            challenge_score: challenge_scores[seat],
            verdict: verdicts.next().flatten(),
            detail: details.next().flatten(),
            faults: faults[seat],
            waited_ms: waited_ms[seat],
            longest_step_ms: longest_step_ms[seat],
        });
        let (seats, outcome, epochs) = (seats.collect(), columns.outcome, columns.epochs);
        let result = MatchResult { seats, outcome, seed, epochs, moves, took_ms };
        Ok(GameLine { number, round, result, worker: columns.worker })
    }
}

impl From<GameLine> for Columns {
    fn from(GameLine { number, round, result, worker }: GameLine) -> Columns {
        fn list<T>(seats: &[SeatResult], part: impl FnMut(&SeatResult) -> T) -> Vec<T> {
            seats.iter().map(part).collect()
        }
        let seats = &result.seats;
        let challenge_scores = list(seats, |seat| seat.challenge_score);
        Columns {
            fixture: number,
            round,
            agents: list(seats, |seat| seat.agent.clone()),
            ranks: result.ranks(),
            scores: result.scores(),
            verdicts: list(seats, |seat| seat.verdict),
            details: list(seats, |seat| seat.detail.clone()),
            faults: list(seats, |seat| seat.faults),
            seed: result.seed.reveal(),
            epochs: result.epochs,
            challenge_scores: challenge_scores.iter().any(Option::is_some).then_some(challenge_scores),
            time: TimeColumns {
                took_ms: result.took_ms,
                waited_ms: list(seats, |seat| seat.waited_ms),
                longest_step_ms: list(seats, |seat| seat.longest_step_ms),
            },
            outcome: result.outcome,
            moves: result.moves,
            worker,
        }
    }
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

/// An agent isn't what it was, and the tournament goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedLine {
    /// Its name.
    pub agent: String,
    /// What its files have as SHA-256 from here on.
    pub sha256: Option<String>,
}
