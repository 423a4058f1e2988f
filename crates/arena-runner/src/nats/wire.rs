//! What tournaments and workers say to each other, as JSON.

use std::collections::BTreeMap;

use arena_match::Dialect;
use arena_model::TimeLimits;
use arena_tournament::GameLine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A match to be played.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// See [`crate::nats::names::generation`].
    pub generation: String,
    /// Whose match it is.
    pub tournament: String,
    /// Another one each time that the match is handed out.
    pub job: String,
    /// The match, by all that it comes of.
    pub match_id: String,
    /// Its number in the schedule, from 1.
    pub fixture: usize,
    /// From 1.
    pub round: usize,
    /// What is to be played.
    #[serde(flatten)]
    pub setup: MatchSetup,
    /// Whether what agents write to stderr is wanted.
    pub logs: bool,
}

/// All that a match comes of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchSetup {
    /// The game's name.
    pub game: String,
    /// Keys of its config that differ from the usual.
    pub options: Map<String, Value>,
    /// How long agents may take.
    pub limits: TimeLimits,
    /// 64 hexadecimal digits.
    pub seed: String,
    /// Who sits where.
    pub seats: Vec<Traveller>,
}

impl MatchSetup {
    /// What tells this match of a tournament from all others: equal only for equal content.
    pub fn id(&self, tournament: &str, fixture: usize) -> String {
        let text = serde_json::to_vec(self).expect("a setup is plain data with texts as keys");
        let hash: String = Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{tournament}-{fixture}-{hash}")
    }
}

/// An agent as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traveller {
    /// What it is called in the tournament.
    pub name: String,
    /// Its version, if its manifest says it.
    pub version: Option<String>,
    /// As the user named it.
    pub path: String,
    /// Where it looks for the state.
    pub dialect: Dialect,
    /// What starts it: a file of its own, or the name of a program.
    pub program: Word,
    /// Its arguments.
    pub args: Vec<Word>,
    /// Which of its files are the agent itself, that no opponent may see.
    pub own: Vec<String>,
    /// The SHA-256, in hex, of the archive of its folder; it has none if all of it is on the worker already.
    pub archive: Option<String>,
}

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// A file of the agent's, below its folder.
    Own(String),
    /// As it stands.
    Text(String),
}

/// What came of a job: the first line of a message. Behind it follows what was recorded, as gzip, unless it is an object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobReport {
    /// As in the job; so are the next three.
    pub tournament: String,
    /// See [`Job::job`].
    pub job: String,
    /// See [`Job::match_id`].
    pub match_id: String,
    /// See [`Job::fixture`].
    pub fixture: usize,
    /// Who says so.
    pub worker: Identity,
    /// What came of it.
    #[serde(flatten)]
    pub ended: JobEnd,
}

/// How a job ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// It was played.
    Played(Box<Played>),
    /// It can't be, by any worker so far. A sentence.
    Failed(String),
}

/// A match that was played.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Played {
    /// What came of it, as a journal has it.
    pub game: GameLine,
    /// How long the replay is, in bytes.
    pub replay_bytes: u64,
    /// How long each log behind it is, by seat; none if they weren't wanted.
    pub log_bytes: Vec<u64>,
    /// The object that holds replay and logs, if they are too large for a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// Who a worker is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// Another one with each start.
    pub id: String,
    /// What it is called.
    pub name: String,
}

/// A worker is there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Presence {
    /// Who.
    #[serde(flatten)]
    pub worker: Identity,
    /// See [`crate::nats::names::generation`].
    pub generation: String,
    /// How many matches it plays beside each other.
    pub slots: usize,
    /// How it confines agents.
    pub sandbox: String,
    /// How many matches it is playing, by tournament.
    pub playing: BTreeMap<String, usize>,
    /// Whether it takes no more.
    pub leaving: bool,
}

/// A tournament is being played.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Announcement {
    /// Its id.
    pub tournament: String,
    /// See [`crate::nats::names::generation`].
    pub generation: String,
}

/// Something keeps a worker from playing a match.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trouble {
    /// Whom.
    pub worker: Identity,
    /// What, in a sentence.
    pub what: String,
}

/// A tournament believes a worker no more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refusal {
    /// Which.
    pub tournament: String,
    /// Why, in a sentence.
    pub why: String,
}
