//! The result of a match. It is created once, at the end of the match, and passed unchanged to journals,
//! stores, queues, reports and clients.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Score, Seed, Verdict};

/// The value of [`MatchOutcome::winner`] for a void match. A void match counts for no agent, not even as a draw.
pub const VOID: &str = "VOID";

/// The result of a match. `A` identifies an agent, by default by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchResult<A = String> {
    /// One entry per seat, in the order of the seats.
    pub seats: Vec<SeatResult<A>>,
    pub outcome: MatchOutcome,
    pub seed: Seed,
    pub epochs: u64,
    /// The fingerprint of the moves. Older journals have none.
    pub moves: Option<Moves>,
    /// The time from the start of the agents to their end, in milliseconds.
    pub took_ms: f64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeatResult<A = String> {
    pub agent: A,
    /// The rank, from 1 for the best; equal ranks are a draw.
    pub rank: usize,
    /// The game's score, or [`TAINTED_SCORE`](crate::TAINTED_SCORE) for a disqualified agent.
    pub score: f64,
    /// The utility and security in a challenge that ended by its rules; `None` for a disqualified agent.
    pub challenge_score: Option<Score>,
    pub verdict: Option<Verdict>,
    pub detail: Option<String>,
    /// The number of faults in the protocol.
    pub faults: u32,
    /// The number of other answers with refused actions. Older journals have none.
    pub refused: u32,
    /// The total time that the match waited for the agent, in milliseconds.
    pub waited_ms: f64,
    /// The longest single wait, in milliseconds.
    pub longest_step_ms: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchOutcome {
    /// The game's termination code, such as `CHECKMATE`, or `TAINTED`.
    pub termination: Cow<'static, str>,
    /// The winner: the side, such as `WHITE`, if the game names sides, or else the agent's id; `DRAW`; or
    /// [`VOID`].
    pub winner: String,
    /// For two agents: `1-0`, `0-1` or `1/2-1/2`, with the points of White, or else of seat 0, first. Absent if the
    /// match is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'static, str>>,
    /// The verdict of the first disqualified agent, by seat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted_reason: Option<Verdict>,
}

/// The fingerprint of a match's moves. Two matches of the same agents had the same moves if their fingerprints are
/// equal and the agents have the same order, counted from the seat `first`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    /// The seat from which agents are counted: White's, or else seat 0.
    pub first: usize,
    /// The SHA-256 of the moves, as 64 hexadecimal digits.
    pub sha256: String,
}

impl<A> MatchResult<A> {
    /// Returns the ranks, by seat.
    pub fn ranks(&self) -> Vec<usize> {
        self.seats.iter().map(|seat| seat.rank).collect()
    }

    /// Returns the scores, by seat.
    pub fn scores(&self) -> Vec<f64> {
        self.seats.iter().map(|seat| seat.score).collect()
    }

    /// Returns the same result with its agents identified in another way. `agent` is called with each seat,
    /// in order.
    pub fn with_agents<B>(self, mut agent: impl FnMut(usize, A) -> B) -> MatchResult<B> {
        let seats = self.seats.into_iter().enumerate().map(|(number, seat)| SeatResult {
            agent: agent(number, seat.agent),
            rank: seat.rank,
            score: seat.score,
            challenge_score: seat.challenge_score,
            verdict: seat.verdict,
            detail: seat.detail,
            faults: seat.faults,
            refused: seat.refused,
            waited_ms: seat.waited_ms,
            longest_step_ms: seat.longest_step_ms,
        });
        MatchResult {
            seats: seats.collect(),
            outcome: self.outcome,
            seed: self.seed,
            epochs: self.epochs,
            moves: self.moves,
            took_ms: self.took_ms,
        }
    }
}

impl MatchResult {
    /// Returns the names of the agents, by seat.
    pub fn names(&self) -> Vec<&str> {
        self.seats.iter().map(|seat| seat.agent.as_str()).collect()
    }

    /// Returns true if both results are equal except for their times.
    pub fn is_same(&self, other: &MatchResult) -> bool {
        let timeless = |result: &MatchResult| {
            let mut result = MatchResult { took_ms: 0.0, ..result.clone() };
            result.seats.iter_mut().for_each(|seat| (seat.waited_ms, seat.longest_step_ms) = (0.0, 0.0));
            result
        };
        timeless(self) == timeless(other)
    }
}

impl MatchOutcome {
    /// Returns true if the match counts for no agent.
    pub fn is_void(&self) -> bool {
        self.winner == VOID
    }

    /// Returns the termination and its verdict, if there is one, such as `TAINTED, CRASHED`.
    pub fn describe(&self) -> String {
        match self.tainted_reason {
            Some(reason) => format!("{}, {reason}", self.termination),
            None => self.termination.to_string(),
        }
    }
}
