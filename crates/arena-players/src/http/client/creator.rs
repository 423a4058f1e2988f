//! Requests of a session's creator. An administrator may send them too.

use serde_json::json;

use super::{Arena, CallError, Credential, HttpAnswer, path};

impl Arena {
    pub fn created_by(self, key: &str) -> Arena {
        Arena { key: Some(key.to_owned()), credential: Credential::Creator, from: None, ..self }
    }

    /// Removes a session that hasn't ended.
    pub fn cancel(&self, session: &str) -> Result<HttpAnswer, CallError> {
        self.post(&of(session, "cancel"), json!({}))
    }

    /// Takes a session that hasn't ended from all lists.
    pub fn unlist(&self, session: &str) -> Result<HttpAnswer, CallError> {
        self.post(&of(session, "unlist"), json!({}))
    }

    pub fn free_invites(&self, session: &str) -> Result<HttpAnswer, CallError> {
        self.get(&of(session, "invites"), &[], None)
    }
}

fn of(session: &str, action: &str) -> String {
    path(&["api", "sessions"], Some(session)) + "/" + action
}
