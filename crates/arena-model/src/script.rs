//! Scripts: challenges with rules in files, identified by the hash of those files.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::{IdError, hex};

/// The version of a script: the SHA-256 of its files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptVersion([u8; 32]);

impl fmt::Display for ScriptVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for ScriptVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptVersion({self})")
    }
}

impl Serialize for ScriptVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ScriptVersion {
    type Err = IdError;

    fn from_str(text: &str) -> Result<ScriptVersion, IdError> {
        hex::decode_canonical(text)
            .map(ScriptVersion)
            .ok_or_else(|| IdError::expected("the version of a script (64 hexadecimal digits)"))
    }
}

/// A stored script. It contains all data that is needed to restore its challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    version: ScriptVersion,
    source: Arc<str>,
}

impl Script {
    /// Creates a script from `source`, the text that the script loader wrote.
    pub fn new(source: String) -> Script {
        Script { version: ScriptVersion(Sha256::digest(source.as_bytes()).into()), source: source.into() }
    }

    pub fn version(&self) -> ScriptVersion {
        self.version
    }

    /// Returns the script's files as one text.
    pub fn source(&self) -> &str {
        &self.source
    }
}
