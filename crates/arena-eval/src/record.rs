//! The records of a run: finished games, void games, calls and transcripts. Each record is a JSON line.

use arena_llm::{Reply, Retry, Turn, Usage};
use arena_players::{Cause, GameEnd, Measured};
use serde::{Deserialize, Serialize};

use crate::RunFile;

/// The version of the files that this code writes and reads.
pub const VERSION: u32 = 1;

/// A line of `journal.jsonl`. The first line is a [`JournalLine::Start`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JournalLine {
    Start {
        /// The version of the files.
        arena_eval: u32,
        /// The time in milliseconds since 1970.
        time: i64,
        file: Box<RunFile>,
        /// The identities of the challenges and agents, by name.
        identities: Vec<(String, String)>,
    },
    /// The continuation of the run, with the file if it has changed.
    Resume {
        /// The time in milliseconds since 1970.
        time: i64,
        /// The new run file, if it differs from the earlier one.
        file: Option<Box<RunFile>>,
        /// The identities of the challenges and agents, by name.
        identities: Vec<(String, String)>,
    },
    /// A changed prompt, option or rules version that the user accepted.
    Change(ChangeRecord),
    Game(Box<GameRecord>),
    /// A game that was given up without a fault of a player. It counts for no one and is played again.
    Void(VoidRecord),
}

/// A change that the user accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The agent or challenge that has changed.
    pub name: String,
    /// Its identity before the change.
    pub before: String,
    /// Its identity after the change.
    pub after: String,
    /// The time in milliseconds since 1970.
    pub time: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameRecord {
    /// The id: 12 hexadecimal digits.
    pub game: String,
    /// The label of the challenge.
    pub challenge: String,
    /// The number of the seed, from 0.
    pub seed: usize,
    pub seats: Vec<SeatRecord>,
    pub end: GameEnd,
    /// The attributions: causing seat, affected seat, kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributions: Vec<(usize, usize, String)>,
    /// The result as a sentence.
    pub told: String,
    pub rounds: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeatRecord {
    pub agent: String,
    pub cause: Cause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub security: f64,
    pub utility: f64,
    /// The numbers that depend on the endpoint and the clock.
    pub measured: Measured,
}

/// A game that was given up without a fault of a player.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoidRecord {
    /// The id of the game.
    pub game: String,
    /// The agent whose endpoint failed, if any.
    pub agent: Option<String>,
    /// The class of the fault, as [`arena_llm::FaultClass::name`], or `host`.
    pub class: String,
    pub why: String,
    /// The time in milliseconds since 1970.
    pub time: i64,
}

/// A line of `calls.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CallLine {
    /// A text that calls refer to by its hash: a system prompt, or the tools as JSON.
    Text {
        sha256: String,
        text: String,
    },
    Call(Box<CallRecord>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The key: the SHA-256 of endpoint, API, request and sample, in hexadecimal.
    pub key: String,
    /// The id of the game.
    pub game: String,
    /// The seat, from 0; `None` for a judge of an earlier program.
    pub seat: Option<usize>,
    /// The number of the seat's call, from 1.
    pub number: u32,
    /// The name of the agent.
    pub agent: String,
    /// The name of the model at the endpoint.
    pub model: String,
    /// The hash of the harness.
    pub harness: String,
    /// The hash of the system prompt.
    pub system: String,
    /// The hash of the tools.
    pub tools: String,
    /// The turns since the seat's last call. Turns that were left out of the request stay in earlier lines.
    pub new: Vec<Turn>,
    pub reply: Reply,
    /// The tokens that the endpoint counted, if they can't be true. Those of the answer are then the highest possible
    /// ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Usage>,
    /// The cost in US dollars, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The time to the first byte in milliseconds.
    pub first_byte_ms: u64,
    /// The time of the call in milliseconds.
    pub ms: u64,
    /// The size of the request in bytes.
    pub request_bytes: usize,
    /// The failed attempts before the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
    /// The time of the answer in milliseconds since 1970.
    pub time: i64,
}

/// A line of `transcripts.jsonl`: all messages of a finished game.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The id of the game.
    pub game: String,
    /// The public names of the players by seat.
    pub players: Vec<String>,
    pub messages: Vec<TranscriptMessage>,
    /// The final state of the rules as JSON text.
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptMessage {
    /// The round, from 0 for messages before the first answer.
    pub round: u32,
    /// True for the chat, false for the operator channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chat: bool,
    /// The sending seat; `None` is the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// The receiving seat; `None` means everyone, or the operator for an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    pub content: String,
    /// The called method, if the message records an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The number of the sender's call that caused the message, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
}
