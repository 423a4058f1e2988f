//! A session's first input, and the commitments to hidden contents: the engine writes both for records.

use arena_model::{BoardTerms, Channel, ChatMessage, ContentHash, Draft, Party, Seat, SessionFacts, SessionId};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::request::EngineError;

/// A function that returns the commitment to a content as in the session's record: its hash with the salt of its place.
/// Returns `None` for a message that is in no record.
pub type CommitContent = dyn Fn(ContentPlace, &str) -> Option<ContentHash> + Send + Sync;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentPlace {
    Message(Channel, u64),
    User(SessionId, Seat),
}

/// The kind of a session's first input: the release, the rules and the prompt at its creation.
const CREATED: &str = "created";

/// The kind of the first input of a fork, which earlier versions created. Its content describes the origin.
pub(crate) const FORK: &str = "fork";

/// The record takes its header from this input, so a later release of the program writes the same record. `origin` is the
/// session that had the same deal before.
pub(crate) fn created_input(terms: &BoardTerms, facts: &SessionFacts, origin: Option<SessionId>) -> ChatMessage {
    let mut content = json!({ "release": env!("CARGO_PKG_VERSION"), "rules": terms.rules, "prompt": terms.prompt });
    if let Some(origin) = origin {
        content["deal"] = json!(origin.to_string());
    }
    let draft = Draft {
        channel: Channel::Inputs(facts.id),
        from: Party::Operator,
        to: None,
        content: content.to_string(),
        method: Some(CREATED.to_owned()),
    };
    draft.at(1, facts.created_at)
}

/// Maximum size of a session's first input, in bytes.
const CREATED_BYTES: usize = 4096;

impl Engine {
    /// Returns the earlier session whose deal a session has; `None` for a deal of its own.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_origin(&self, id: SessionId) -> Result<Option<SessionId>, EngineError> {
        let Some(live) = self.current(id).await? else { return Ok(None) };
        let first = self.inner.list_messages(Some(live.no), Channel::Inputs(id), 1, 1, CREATED_BYTES).await?;
        let created = first.iter().find(|message| message.method.as_deref() == Some(CREATED));
        let content: Option<Value> = created.and_then(|created| serde_json::from_str(&created.content).ok());
        Ok(content.and_then(|content| content["deal"].as_str()?.parse().ok()))
    }
}
