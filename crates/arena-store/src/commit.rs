//! Commits: transitions of sessions, imports, and the answers that are stored with them.

use arena_model::{ChatMessage, Session, Timestamp};

use crate::{AuditNo, SessionNo};

/// The changes of one or several transitions of a session.
#[derive(Debug)]
pub struct Commit {
    pub change: SessionChange,
    /// New messages. Each message has the next index of its channel, and an input the session's version after it.
    pub messages: Vec<ChatMessage>,
    /// The answers to store under the requests' idempotency keys.
    pub answers: Vec<NewAnswer>,
}

#[derive(Debug)]
pub enum SessionChange {
    Create(Box<Session>),
    /// A new state of an existing session. The store must have the version `before`.
    Update {
        no: SessionNo,
        before: u64,
        /// The state after the transitions.
        session: Box<Session>,
    },
    /// The session doesn't change; the commit only adds messages.
    Stays(SessionNo),
    /// A session to remove with its messages and invites. The store must have this version of the session.
    Remove(SessionNo, Box<Session>),
}

impl SessionChange {
    /// Returns the number of an existing session; `None` for a new one.
    pub(crate) fn no(&self) -> Option<SessionNo> {
        match self {
            SessionChange::Create(_) => None,
            SessionChange::Update { no, .. } | SessionChange::Stays(no) | SessionChange::Remove(no, _) => Some(*no),
        }
    }
}

/// An answer to store under an idempotency key.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// SHA-256 of route, identity and the client's key, which together are unique.
    pub key: [u8; 32],
    /// SHA-256 of the request's body. It distinguishes a repeated request from a different one with the same key.
    pub request: [u8; 32],
    pub body: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// SHA-256 of the body of the answered request.
    pub request: [u8; 32],
    pub body: String,
}

#[derive(Debug)]
pub struct ImportedSession {
    pub session: Session,
    /// The session's messages, with indexes 1, 2, 3 … in each channel.
    pub messages: Vec<ChatMessage>,
    pub import: AuditNo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    New,
    /// The session or user exists already, and stays unchanged.
    Known,
    /// An invite of the session belongs to another session, so the session wasn't imported.
    ForeignInvite,
}
