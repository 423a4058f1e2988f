//! A session's first input, and the commitments to hidden contents: the engine writes both for records.

use arena_model::{BoardTerms, Channel, ChatMessage, ContentHash, Draft, Party, Seat, SessionFacts, SessionId};
use serde_json::json;

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

/// The record takes its header from this input, so a later release of the program writes the same record.
pub(crate) fn created_input(terms: &BoardTerms, facts: &SessionFacts) -> ChatMessage {
    let content = json!({ "release": env!("CARGO_PKG_VERSION"), "rules": terms.rules, "prompt": terms.prompt });
    let draft = Draft {
        channel: Channel::Inputs(facts.id),
        from: Party::Operator,
        to: None,
        content: content.to_string(),
        method: Some(CREATED.to_owned()),
    };
    draft.at(1, facts.created_at)
}
