//! The result of a match: made once, when the match ends, and passed on unchanged to journals, stores, queues, reports and clients.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Score, Seed, Verdict};

/// The winner of a match that is void: it counts for no agent, not even as a draw.
pub const VOID: &str = "VOID";

/// The result of a match. `A` identifies an agent: by its name in a tournament, by its number in the store in a league.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchResult<A = String> {
    /// One entry per seat, in the order of the seats.
    pub seats: Vec<SeatResult<A>>,
    /// The termination and the winner.
    pub outcome: MatchOutcome,
    /// The seed of the match.
    pub seed: Seed,
    /// The number of epochs played.
    pub epochs: u64,
    /// The fingerprint of the moves. Older journals and the store have none.
    pub moves: Option<Moves>,
    /// The time from the start of the agents to their end, in milliseconds.
    pub took_ms: f64,
}

/// One agent's part of a [`MatchResult`].
#[derive(Debug, Clone, PartialEq)]
pub struct SeatResult<A = String> {
    /// The agent on this seat.
    pub agent: A,
    /// From 1 for the best; equal ranks are a draw.
    pub rank: usize,
    /// The game's score; that of a disqualified agent is lower than any game's.
    pub score: f64,
    /// Utility and security, in a challenge that was settled; the disqualified have none.
    pub challenge_score: Option<Score>,
    /// The reason of a disqualification.
    pub verdict: Option<Verdict>,
    /// The same in a sentence.
    pub detail: Option<String>,
    /// The number of other mistakes in the protocol.
    pub faults: u32,
    /// The total time that the match waited for the agent, in milliseconds.
    pub waited_ms: f64,
    /// The longest single wait, in milliseconds.
    pub longest_step_ms: f64,
}

/// The end of a match: its termination and the winner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchOutcome {
    /// The game's word for it, such as `CHECKMATE`, or `TAINTED`.
    pub termination: Cow<'static, str>,
    /// The winner: the side where the game names sides (`WHITE`), else the agent's id; or `DRAW`; or [`VOID`].
    pub winner: String,
    /// For two agents: `1-0`, `0-1` or `1/2-1/2`, from White's side, or else from the first seat's. Absent if the match is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'static, str>>,
    /// The verdict on the first disqualified agent, by seat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted_reason: Option<Verdict>,
}

/// The fingerprint of a match's moves. Two games with the same agents, counted from the first seat on, and the same fingerprint went
/// the same way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moves {
    /// The seat from which agents are counted: that of White, or else seat 0.
    pub first: usize,
    /// 64 hexadecimal digits.
    pub sha256: String,
}

impl<A> MatchResult<A> {
    /// The ranks, by seat.
    pub fn ranks(&self) -> Vec<usize> {
        self.seats.iter().map(|seat| seat.rank).collect()
    }

    /// The scores, by seat.
    pub fn scores(&self) -> Vec<f64> {
        self.seats.iter().map(|seat| seat.score).collect()
    }

    /// The same result with its agents identified in another way. `agent` is called with each seat, in order.
    pub fn with_agents<B>(self, mut agent: impl FnMut(usize, A) -> B) -> MatchResult<B> {
        let seats = self.seats.into_iter().enumerate().map(|(number, seat)| SeatResult {
            agent: agent(number, seat.agent),
            rank: seat.rank,
            score: seat.score,
            challenge_score: seat.challenge_score,
            verdict: seat.verdict,
            detail: seat.detail,
            faults: seat.faults,
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
    /// The names of the agents, by seat.
    pub fn names(&self) -> Vec<&str> {
        self.seats.iter().map(|seat| seat.agent.as_str()).collect()
    }

    /// True if both results are equal, times aside.
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
    /// True if the match counts for no agent.
    pub fn is_void(&self) -> bool {
        self.winner == VOID
    }

    /// The termination, and the verdict behind it if there is one: `TAINTED, CRASHED`.
    pub fn describe(&self) -> String {
        match self.tainted_reason {
            Some(reason) => format!("{}, {reason}", self.termination),
            None => self.termination.to_string(),
        }
    }
}
