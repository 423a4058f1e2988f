//! What is known of an agent and of a tournament without looking at its files: what lists show. In memory for each, and a file of each.

use std::path::PathBuf;

use arena_engine::Once;
use arena_model::{Seed, TimeLimits, hex};
use arena_tournament::Format;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::id::{AgentId, TournamentId};

/// An agent that this server keeps. Its files are its owner's secret, and so is where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentFacts {
    pub(crate) id: AgentId,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// In milliseconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) home: Home,
    pub(super) once: Option<OnceFacts>,
}

/// Where an agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Home {
    /// Here, to be run as a process.
    Files {
        /// The file or folder that it is, below that of its files.
        agent: PathBuf,
        /// Of what was uploaded, in hexadecimal digits.
        sha256: String,
        /// As unpacked.
        bytes: u64,
        files: usize,
    },
    /// Somebody's server.
    Url(String),
}

/// A tournament that this server plays or has played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TournamentFacts {
    pub(crate) id: TournamentId,
    pub(crate) name: Option<String>,
    /// In milliseconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) game: String,
    pub(crate) options: Map<String, Value>,
    pub(crate) limits: TimeLimits,
    pub(crate) format: Format,
    pub(crate) rounds: usize,
    pub(crate) seats: usize,
    pub(crate) paired: bool,
    /// Secret until the tournament is over: 64 hexadecimal digits.
    pub(super) seed: String,
    /// Likewise, and never anybody's choice. A seed may be a small number, which its hash alone would tell to whoever tries them all.
    pub(super) seed_nonce: String,
    pub(crate) agents: Vec<Entered>,
    pub(super) once: Option<OnceFacts>,
    /// Absent until it is over.
    pub(crate) ended: Option<Ended>,
}

/// An agent in a tournament.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entered {
    pub(crate) id: AgentId,
    /// What it is called there; nobody else is.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
}

/// How a tournament ended, for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    pub(crate) how: Ending,
    /// In milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) games_played: usize,
    pub(crate) games: usize,
}

/// How a tournament can end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// All games were played.
    Complete,
    /// Somebody who may do so stopped it.
    Stopped,
    /// It couldn't go on, for this reason.
    Failed(String),
}

/// The request that made something, so that a repetition of it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnceFacts {
    /// In hexadecimal digits.
    pub(super) key: String,
    /// The SHA-256 of its body.
    pub(super) request: String,
}

impl OnceFacts {
    pub(super) fn of(once: &Once) -> OnceFacts {
        OnceFacts { key: hex::encode(&once.key), request: hex::encode(&once.request) }
    }
}

impl TournamentFacts {
    /// Its seed and the nonce of the commitment, once nobody can profit from them any more.
    pub(crate) fn revealed_seed(&self) -> Option<(&str, &str)> {
        self.ended.as_ref().map(|_| (self.seed.as_str(), self.seed_nonce.as_str()))
    }

    /// What was told of its seed from the beginning: the SHA-256 of its bytes and those of the nonce, in hexadecimal digits.
    pub(crate) fn seed_commitment(&self) -> String {
        let mut hash = Sha256::new();
        for Seed(bytes) in [&self.seed, &self.seed_nonce].into_iter().filter_map(|text| Seed::from_revealed(text)) {
            hash.update(bytes);
        }
        hex::encode(&hash.finalize())
    }
}
