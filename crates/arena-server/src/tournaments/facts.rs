//! The facts of agents and tournaments. The facts of each are stored in a file of their own, and in memory for lists.

use std::path::PathBuf;

use arena_engine::Once;
use arena_model::{Seed, TimeLimits, hex};
use arena_tournament::Format;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::id::{AgentId, TournamentId};

/// The facts of an agent. No response contains its files or its URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentFacts {
    pub(crate) id: AgentId,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) home: Home,
    /// The ladder that the agent joins. The ladder's journal has the agent once the ladder's player has read this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ladder: Option<LadderEntry>,
    pub(super) once: Option<OnceFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LadderEntry {
    /// The name of the game.
    pub(crate) game: String,
    /// The agent of which this one is the next version.
    pub(crate) replaces: Option<AgentId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Home {
    /// Files on this server, run as a process.
    Files {
        /// The path of the agent's file or folder, relative to the folder of files.
        agent: PathBuf,
        /// SHA-256 of the upload, in hexadecimal digits.
        sha256: String,
        /// Total size of the unpacked files, in bytes.
        bytes: u64,
        /// Number of the unpacked files.
        files: usize,
    },
    /// The URL of a remote server.
    Url(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TournamentFacts {
    pub(crate) id: TournamentId,
    pub(crate) name: Option<String>,
    /// Time of creation, in milliseconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) game: String,
    pub(crate) options: Map<String, Value>,
    pub(crate) limits: TimeLimits,
    pub(crate) format: Format,
    pub(crate) rounds: usize,
    pub(crate) seats: usize,
    pub(crate) paired: bool,
    /// The seed, in 64 hexadecimal digits. Secret until the tournament is over.
    pub(super) seed: String,
    /// The random nonce of the commitment, in 64 hexadecimal digits. Without a nonce, a search through small seeds
    /// would find the seed of a commitment.
    pub(super) seed_nonce: String,
    pub(crate) agents: Vec<Entered>,
    pub(super) once: Option<OnceFacts>,
    /// The end of the tournament; `None` for a queued or running tournament.
    pub(crate) ended: Option<Ended>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entered {
    pub(crate) id: AgentId,
    /// The agent's unique name in the tournament.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ended {
    pub(crate) how: Ending,
    /// Time of the end, in milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) games_played: usize,
    pub(crate) games: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    Complete,
    /// The administrator or the owner stopped the tournament.
    Stopped,
    /// An error ended the tournament; the reason.
    Failed(String),
}

/// The request that created an agent or a tournament, stored to recognize a repetition of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnceFacts {
    /// The idempotency key, in hexadecimal digits.
    pub(super) key: String,
    /// SHA-256 of the request's body, in hexadecimal digits.
    pub(super) request: String,
}

impl OnceFacts {
    pub(super) fn of(once: &Once) -> OnceFacts {
        OnceFacts { key: hex::encode(&once.key), request: hex::encode(&once.request) }
    }
}

impl TournamentFacts {
    /// Returns the seed and the nonce of the commitment; `None` before the tournament is over.
    pub(crate) fn revealed_seed(&self) -> Option<(&str, &str)> {
        self.ended.as_ref().map(|_| (self.seed.as_str(), self.seed_nonce.as_str()))
    }

    /// Returns the public commitment to the seed: SHA-256 of the bytes of seed and nonce, in hexadecimal digits.
    pub(crate) fn seed_commitment(&self) -> String {
        let mut hash = Sha256::new();
        for Seed(bytes) in [&self.seed, &self.seed_nonce].into_iter().filter_map(|text| Seed::from_revealed(text)) {
            hash.update(bytes);
        }
        hex::encode(&hash.finalize())
    }
}
