//! Requests of a session's creator. An administrator may send them too.

use std::time::Duration;

use serde_json::json;

use super::{Answer, Arena, CallError, Credential, path};

/// Time limit of a fork. The server may be making other forks first, and each plays a game again.
const FORK: Duration = Duration::from_secs(120);

impl Arena {
    /// Returns a client with the key of a session's creator.
    pub fn created_by(self, key: &str) -> Arena {
        Arena { key: Some(key.to_owned()), credential: Credential::Creator, from: None, ..self }
    }

    /// Continues an ended session from event `at`, with other random numbers if `reseed` is true.
    pub fn fork(&self, session: &str, at: u64, reseed: bool) -> Result<Answer, CallError> {
        Arena { patience: FORK, ..self.clone() }.post(&of(session, "fork"), json!({ "at": at, "reseed": reseed }))
    }

    /// Removes a session that hasn't ended.
    pub fn cancel(&self, session: &str) -> Result<Answer, CallError> {
        self.post(&of(session, "cancel"), json!({}))
    }

    /// Takes a session that hasn't ended from all lists.
    pub fn unlist(&self, session: &str) -> Result<Answer, CallError> {
        self.post(&of(session, "unlist"), json!({}))
    }

    /// Gets the invites of a session's free seats.
    pub fn free_invites(&self, session: &str) -> Result<Answer, CallError> {
        self.get(&of(session, "invites"), &[], None)
    }
}

fn of(session: &str, action: &str) -> String {
    path(&["api", "sessions"], Some(session)) + "/" + action
}
