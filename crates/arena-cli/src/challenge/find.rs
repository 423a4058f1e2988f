//! The challenge that an author means: a folder, or one that is built in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_check::Finding;
use arena_model::{ChallengeType, GameType};
use arena_server::Settings;
use serde_json::Map;

use crate::exit::{Exit, Failure};

/// A challenge that can be looked at.
pub struct Found {
    /// It, with its usual options.
    pub challenge: Arc<dyn ChallengeType>,
    /// Its folder, if it has one.
    pub folder: Option<PathBuf>,
}

/// The challenge in a folder, or the one of a name that is built in.
///
/// # Errors
/// When there is none.
pub fn find(text: &str) -> Result<Found, Failure> {
    if let Some(found) = arena_catalogue::challenge(text, &Map::new()) {
        let challenge = found.map_err(|error| Failure::caused(Exit::Internal, &error))?;
        return Ok(Found { challenge, folder: None });
    }
    let folder = Path::new(text);
    let _ = folder;
    Err(Failure::new(Exit::Usage, "no"))
}

impl Found {
    /// It as a game of the match runner.
    pub fn game(&self) -> Result<&'static GameType, Failure> {
        arena_catalogue::game(self.challenge.id()).ok_or_else(|| Failure::new(Exit::Internal, "no game"))
    }

    /// Settings of an arena that has it.
    pub fn hosted(&self, settings: Settings) -> Settings {
        settings
    }

    /// Findings, with what is known of a script beside.
    pub fn look(&self, findings: Vec<Finding>) -> Vec<Finding> {
        findings
    }
}
