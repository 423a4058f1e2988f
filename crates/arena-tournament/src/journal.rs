//! Line types of a tournament's journal. The first line is the plan ([`crate::TournamentPlan`]); the types here are all
//! later lines.

use arena_model::{MatchOutcome, MatchResult, Moves, Score, SeatResult, Seed, Verdict};
use serde::{Deserialize, Serialize};

use crate::plan::Entrant;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JournalLine {
    /// The result of a match.
    Game(Box<GameLine>),
    /// A change of an agent's files that the user accepted.
    Changed(ChangedLine),
    Spread(SpreadLine),
    /// A second play of a match, by another worker.
    Checked(CheckedLine),
    /// The quarantine of a worker, in journals of earlier programs. Matches that only this worker has played don't count.
    Quarantined(QuarantinedLine),
    /// An agent that joins a league or returns to it. A version of the same name that is in the league leaves.
    Added(Box<Entrant>),
    /// An agent that leaves a league. Its results stay.
    Removed(RemovedLine),
    /// An agent of a league that doesn't play until it is added again.
    Suspended(SuspendedLine),
    /// The end of a league's season, and the rules of the next one.
    SeasonClosed(SeasonClosedLine),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Columns", into = "Columns")]
pub struct GameLine {
    /// The pairing's number in the schedule, from 1.
    pub number: usize,
    /// The round, from 1.
    pub round: usize,
    /// The result, with the agents' names in the tournament. Only the times in the result depend on the clock.
    pub result: MatchResult,
    /// The numbers of the agents' versions, by seat; empty in a tournament with an end, whose agents have one version.
    pub generations: Vec<u32>,
    /// The worker that played the match; `None` for a match on the runner's machine.
    pub worker: Option<WorkerPart>,
}

/// The serialized form of a [`GameLine`]: for each property of the result, a list of its values by seat.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Columns {
    pub fixture: usize,
    pub round: usize,
    pub agents: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    generations: Vec<u32>,
    ranks: Vec<usize>,
    scores: Vec<f64>,
    verdicts: Vec<Option<Verdict>>,
    details: Vec<Option<String>>,
    faults: Vec<u32>,
    /// The numbers of other answers with refused actions, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<u32>,
    pub seed: String,
    epochs: u64,
    outcome: MatchOutcome,
    /// The challenge scores; older journals have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    challenge_scores: Option<Vec<Option<Score>>>,
    /// The fingerprint of the moves; older journals have none.
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
        let refused = if columns.refused.is_empty() { vec![0; agents.len()] } else { columns.refused };
        let lengths = [ranks.len(), scores.len(), verdicts.len(), details.len(), faults.len(), refused.len()];
        let times = [waited_ms.len(), longest_step_ms.len()];
        if lengths.iter().chain(&times).any(|length| *length != agents.len()) {
            return Err(format!("game {number} has {} seats, but one of its lists has another length", agents.len()));
        }
        if challenge_scores.len() != agents.len() {
            return Err(format!(
                "game {number} has {} seats, but its list of challenge scores has another length",
                agents.len()
            ));
        }
        if moves.as_ref().is_some_and(|moves| moves.first >= agents.len()) {
            return Err(format!(
                "game {number} has {} seats, but its first move belongs to a seat beyond them",
                agents.len()
            ));
        }
        let seed = Seed::from_revealed(&seed)
            .ok_or_else(|| format!("the seed of game {number} isn't 64 hexadecimal digits"))?;
        let (mut verdicts, mut details) = (verdicts.into_iter(), details.into_iter());
        let seats = agents.into_iter().enumerate().map(|(seat, agent)| SeatResult {
            agent,
            rank: ranks[seat],
            score: scores[seat],
            challenge_score: challenge_scores[seat],
            verdict: verdicts.next().flatten(),
            detail: details.next().flatten(),
            faults: faults[seat],
            refused: refused[seat],
            waited_ms: waited_ms[seat],
            longest_step_ms: longest_step_ms[seat],
        });
        let (seats, outcome, epochs) = (seats.collect(), columns.outcome, columns.epochs);
        let result = MatchResult { seats, outcome, seed, epochs, moves, took_ms };
        Ok(GameLine { number, round, result, generations: columns.generations, worker: columns.worker })
    }
}

impl From<GameLine> for Columns {
    fn from(GameLine { number, round, result, generations, worker }: GameLine) -> Columns {
        fn list<T>(seats: &[SeatResult], part: impl FnMut(&SeatResult) -> T) -> Vec<T> {
            seats.iter().map(part).collect()
        }
        let seats = &result.seats;
        let challenge_scores = list(seats, |seat| seat.challenge_score);
        let refused = list(seats, |seat| seat.refused);
        Columns {
            fixture: number,
            round,
            agents: list(seats, |seat| seat.agent.clone()),
            generations,
            ranks: result.ranks(),
            scores: result.scores(),
            verdicts: list(seats, |seat| seat.verdict),
            details: list(seats, |seat| seat.detail.clone()),
            faults: list(seats, |seat| seat.faults),
            refused: if refused.iter().any(|count| *count > 0) { refused } else { Vec::new() },
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerPart {
    pub name: String,
    /// The worker's id. Each start of a worker generates a new id.
    pub id: String,
    /// The SHA-256, in hexadecimal, of the replay without its times. Matches of deterministic agents have the same hash
    /// on all workers.
    pub played: String,
}

/// The start of execution by NATS workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadLine {
    /// The tournament's id in messages to workers.
    pub id: String,
}

/// A second play of a match, by another worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckedLine {
    /// The match's number in the schedule, from 1.
    pub fixture: usize,
    /// The name of the other worker.
    pub worker: String,
    pub id: String,
    /// True if the other worker played the match differently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub differs: bool,
}

/// The quarantine of a worker, in journals of earlier programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantinedLine {
    /// The worker's name.
    pub worker: String,
    pub id: String,
    /// The evidence, in one sentence.
    pub why: String,
    /// The numbers of the earlier matches that don't count: the matches that only this worker has played, and the
    /// matches whose pairings depend on them.
    pub void: Vec<usize>,
}

/// A change of an agent's files that the user accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedLine {
    pub agent: String,
    /// The SHA-256 of the agent's files in the matches after this line.
    pub sha256: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedLine {
    pub agent: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuspendedLine {
    pub agent: String,
    /// The reason, in one sentence.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeasonClosedLine {
    /// The version of the game's rules in the next season.
    pub rules_version: u32,
    /// The hash of the challenge's texts in the next season; see [`crate::TournamentPlan::texts`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<String>,
}
