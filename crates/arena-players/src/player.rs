//! The interface between the driver and the players.

use std::pin::Pin;

use arena_house::Step;
use arena_llm::Usage;
use arena_model::{MemorySession, Seat};
use serde::{Deserialize, Serialize};

use crate::PlayPolicy;

/// The situation of a player that is asked for its next steps.
#[derive(Clone, Copy)]
pub struct Heard<'h> {
    pub session: &'h MemorySession,
    pub seat: Seat,
    /// True if no player has anything else to do, and the game waits for this player.
    pub is_reminded: bool,
    pub policy: &'h PlayPolicy,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The player takes these steps, in order.
    Steps {
        steps: Vec<Step>,
        /// True if the player has nothing to do before there is news.
        waits: bool,
        /// The number of the model's call, from 1.
        call: Option<u32>,
    },
    /// The player doesn't play on.
    Ended(SeatEnd),
}

/// The end of a seat before the end of its game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatEnd {
    pub cause: Cause,
    pub detail: String,
}

impl SeatEnd {
    pub fn new(cause: Cause, detail: impl Into<String>) -> SeatEnd {
        SeatEnd { cause, detail: detail.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The seat played to the end.
    Completed,
    /// The model took longer for an answer than the harness allows, or a program longer than its time limit.
    Timeout,
    Refused,
    /// An answer was cut off at the limit of output tokens.
    Truncated,
    /// The agent gave too many invalid answers.
    Invalid,
    /// The agent stopped acting although the game waited for it.
    Idle,
    /// The limit of turns or of the seat's cost was reached.
    Limit,
    /// The program of the agent ended, or exceeded its memory or output.
    Crashed,
}

impl Cause {
    /// All causes, in the order of tables.
    pub const ALL: [Cause; 8] = [
        Cause::Completed,
        Cause::Timeout,
        Cause::Refused,
        Cause::Truncated,
        Cause::Invalid,
        Cause::Idle,
        Cause::Limit,
        Cause::Crashed,
    ];

    /// Returns the name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Completed => "completed",
            Cause::Timeout => "timeout",
            Cause::Refused => "refused",
            Cause::Truncated => "truncated",
            Cause::Invalid => "invalid",
            Cause::Idle => "idle",
            Cause::Limit => "limit",
            Cause::Crashed => "crashed",
        }
    }
}

/// The numbers of a seat that depend on the endpoint and the clock. Reports without measurements leave them out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The number of answered calls.
    pub calls: u32,
    /// The number of failed attempts.
    pub retries: u32,
    pub invalid: u32,
    pub refusals: u32,
    pub truncated: u32,
    pub usage: Usage,
    /// True if attempts without an answer count at their highest price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_lost: bool,
    /// The cost in US dollars, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The total time of the calls in milliseconds.
    pub ms: u64,
}

/// The reason why a game can't go on. No player caused it.
#[derive(Debug, Clone, PartialEq)]
pub enum Halt {
    /// The endpoint of an agent fails.
    Suspended {
        agent: String,
        /// The name of the fault's class.
        class: String,
        why: String,
    },
    /// A cap of the run is reached, by its key in the run file.
    Budget(&'static str),
    /// The run ends, or a model may not be called any more because its cap is reached.
    Stopped,
    /// The rules or the arena failed.
    Failed(String),
    /// The files of the run can't be written. The run ends.
    Broken(String),
}

/// The result of a player's step: the refusal, if there is one.
pub type StepResult = Result<(), String>;

pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Halt>> + Send + 'a>>;

/// A player at a seat.
pub trait Player: Send {
    /// Returns the next steps. Equal situations give equal steps, whatever time they take.
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a>;

    /// Informs the player of the results of the steps of its last answer, in order. Returns the end of the seat if the
    /// player has made too many mistakes.
    fn learn(&mut self, steps: &[Step], results: &[StepResult]) -> Option<SeatEnd>;

    /// Returns true if answers cost nothing. The driver then asks the player whenever there is news.
    fn is_free(&self) -> bool {
        false
    }

    /// Returns the measured numbers so far.
    fn measured(&self) -> Measured {
        Measured::default()
    }
}
