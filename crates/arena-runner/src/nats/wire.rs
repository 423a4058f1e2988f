//! JSON messages between the dispatcher of a tournament and workers.

use std::collections::BTreeMap;

use arena_match::Dialect;
use arena_model::{AgentId, TimeLimits, hex};
use arena_tournament::GameLine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The maximum length of an id. Ids of matches are the longest: two other ids and a number.
const MAX_ID: usize = 128;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// See [`crate::nats::names::generation`].
    pub generation: String,
    /// The id of the tournament.
    pub tournament: String,
    /// The job's id. Each publication of a match has a new one.
    pub job: String,
    /// The match's id, from [`MatchSetup::id`]: a hash of everything that the match depends on.
    pub match_id: String,
    /// The match's number in the schedule, from 1.
    pub fixture: usize,
    /// The round, from 1.
    pub round: usize,
    #[serde(flatten)]
    pub setup: MatchSetup,
    /// True if the worker must return the logs of agents' stderr.
    pub logs: bool,
}

impl Job {
    /// Parses a job. Returns `None` if it isn't one, or if an id of it can't be a part of a subject or a header: then
    /// it would make the worker write to other subjects of the NATS server.
    pub fn parse(bytes: &[u8]) -> Option<Job> {
        let job: Job = serde_json::from_slice(bytes).ok()?;
        let archives = job.setup.seats.iter().filter_map(|agent| agent.archive.as_ref());
        let is_valid = [&job.tournament, &job.job, &job.match_id].into_iter().chain(archives).all(|id| is_id(id));
        is_valid.then_some(job)
    }
}

/// Returns true if a text has the form of ids: letters, digits and hyphens.
fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Everything that a match depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchSetup {
    pub game: String,
    /// The game's options that differ from the defaults.
    pub options: Map<String, Value>,
    pub limits: TimeLimits,
    /// The seed: 64 hexadecimal digits.
    pub seed: String,
    /// The agents, by seat.
    pub seats: Vec<JobAgent>,
}

impl MatchSetup {
    /// Returns the id of this match in a tournament. The id contains a hash of the setup.
    pub fn id(&self, tournament: &str, fixture: usize) -> String {
        let text = serde_json::to_vec(self).expect("a setup is plain data with string keys");
        let hash = hex::encode(&Sha256::digest(text)[..16]);
        format!("{tournament}-{fixture}-{hash}")
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobAgent {
    pub name: String,
    /// The id in matches, instead of one from the match's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The version in the agent's manifest.
    pub version: Option<String>,
    /// The path, as the user typed it.
    pub path: String,
    pub dialect: Dialect,
    /// The program: a file of the agent, or a name that the worker looks up in `PATH`.
    pub program: CommandWord,
    pub args: Vec<CommandWord>,
    /// The agent's own files, relative to its folder. The sandbox hides them from opponents.
    pub own: Vec<String>,
    /// The hexadecimal SHA-256 of the archive of the agent's folder; `None` if the agent has no files of its own.
    pub archive: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandWord {
    /// A file of the agent, relative to its folder.
    Own(String),
    /// Literal text.
    Text(String),
}

/// The report of a job, as the first line of a message. The gzip-compressed replay follows, unless it is stored as an
/// object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobReport {
    pub tournament: String,
    pub job: String,
    pub match_id: String,
    pub fixture: usize,
    pub worker: WorkerIdentity,
    #[serde(flatten)]
    pub ended: JobEnd,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    Played(Box<PlayedJob>),
    /// The match counts as unplayable. Contains the reason, in one sentence.
    Failed(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlayedJob {
    pub game: GameLine,
    /// The length of the replay, in bytes.
    pub replay_bytes: u64,
    /// The lengths of the logs that follow the replay, by seat, in bytes; empty if the job didn't request logs.
    pub log_bytes: Vec<u64>,
    /// The name of the object that contains replay and logs, if they are too large for a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkerIdentity {
    /// The worker's id. Each start of a worker generates a new id.
    pub id: String,
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerPresence {
    #[serde(flatten)]
    pub worker: WorkerIdentity,
    pub generation: String,
    /// The largest number of concurrent matches.
    pub slots: usize,
    pub sandbox: String,
    /// The number of matches under way, by tournament.
    pub playing: BTreeMap<String, usize>,
    /// True if the worker takes no more jobs.
    pub leaving: bool,
}

/// The dispatcher's announcement of a running tournament.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Announcement {
    /// The id of the tournament.
    pub tournament: String,
    pub generation: String,
}

/// A worker's report that it can't play a match.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlayFailure {
    pub worker: WorkerIdentity,
    pub what: String,
}
