//! The leaves of the log: one line of JSON for each creation, end, removal or exclusion of a session, for keys, and for
//! the deals of days.

use std::fmt;
use std::str::FromStr;

use arena_model::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::handover::HandoverError;
use crate::hash::as_text;
use crate::{EndKind, Hash, KeyHandover, KeyKind, RecordPublicKey};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeafError {
    #[error("not a leaf: {0}")]
    Format(String),
    #[error("the leaf is not in canonical form")]
    Spelling,
    #[error(transparent)]
    Handover(#[from] HandoverError),
    #[error("the handover is to another key than the leaf's")]
    OtherHandover,
}

/// A leaf. `Display` and `FromStr` use its canonical line, without a line end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "leaf", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Leaf {
    Created {
        #[serde(with = "as_text")]
        session: SessionId,
        challenge: String,
        /// The commitment to the seed: SHA-256 of the seed. `None` for sessions without a seed.
        seed_commitment: Option<Hash>,
        /// True if the result changes ratings.
        rated: bool,
        at: Timestamp,
    },
    Ended {
        #[serde(with = "as_text")]
        session: SessionId,
        ending: EndKind,
        /// The hash of the record's last line of the chain, which the record's seal signs.
        record: Hash,
        at: Timestamp,
    },
    Removed {
        #[serde(with = "as_text")]
        session: SessionId,
        reason: String,
        at: Timestamp,
    },
    /// The exclusion of a session from leaderboards and ratings.
    Excluded {
        #[serde(with = "as_text")]
        session: SessionId,
        reason: String,
        at: Timestamp,
    },
    Key {
        /// The public key that signs seals from now on.
        record_key: RecordPublicKey,
        /// The handover by which the key replaced the one before. `None` for the first key, and if the old key was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handover: Option<KeyHandover>,
        at: Timestamp,
    },
    /// The deal that all visitors of a day play. The leaf comes before the seed is shown, so the arena can't choose it
    /// by what they play.
    Deal {
        /// The day in UTC, such as `2026-11-30`.
        day: String,
        challenge: String,
        /// The commitment to the seed: SHA-256 of the seed.
        seed_commitment: Hash,
        at: Timestamp,
    },
}

impl Leaf {
    /// Parses the canonical line of a leaf.
    ///
    /// # Errors
    /// [`LeafError`] for other bytes, other spellings and forged handovers.
    pub fn from_bytes(bytes: &[u8]) -> Result<Leaf, LeafError> {
        let leaf: Leaf = serde_json::from_slice(bytes).map_err(|error| LeafError::Format(error.to_string()))?;
        // Comparison also rejects unknown and doubled fields.
        if leaf.to_string().as_bytes() != bytes {
            return Err(LeafError::Spelling);
        }
        if let Leaf::Key { record_key, handover: Some(handover), .. } = &leaf {
            if handover.kind != KeyKind::Record || handover.new != *record_key {
                return Err(LeafError::OtherHandover);
            }
            handover.check()?;
        }
        Ok(leaf)
    }

    /// Returns the session's id; `None` for leaves about keys and days.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Leaf::Created { session, .. }
            | Leaf::Ended { session, .. }
            | Leaf::Removed { session, .. }
            | Leaf::Excluded { session, .. } => Some(*session),
            Leaf::Key { .. } | Leaf::Deal { .. } => None,
        }
    }

    /// Returns the kind: the value of the field `leaf`.
    pub fn kind(&self) -> &'static str {
        match self {
            Leaf::Created { .. } => "created",
            Leaf::Ended { .. } => "ended",
            Leaf::Removed { .. } => "removed",
            Leaf::Excluded { .. } => "excluded",
            Leaf::Key { .. } => "key",
            Leaf::Deal { .. } => "deal",
        }
    }

    pub fn hash(&self) -> Hash {
        crate::log::leaf_hash(self.to_string().as_bytes())
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Leaf {
    type Err = LeafError;

    fn from_str(line: &str) -> Result<Self, LeafError> {
        Leaf::from_bytes(line.as_bytes())
    }
}
