//! Sessions as stored, and marks: the state of the rows that other nodes of a shared database may have changed.

use std::collections::HashMap;

use arena_model::{ChatMessage, Session, Timestamp};

use crate::SessionNo;
use crate::tables::{ADMINISTRATION, PUBLIC};

/// A session with the state of its channels.
#[derive(Debug, Clone)]
pub struct StoredSession {
    pub no: SessionNo,
    pub session: Session,
    /// The number of messages in the session's chat channel.
    pub chat_len: u64,
    /// The number of messages in the session's operator channel.
    pub operator_len: u64,
    /// The time of the last message in either channel. If there are no messages, the time of the session's creation.
    pub last_activity: Timestamp,
    /// The number of changes that leave the session's version, in a shared database: hidden messages, deleted users.
    pub edits: u64,
}

impl StoredSession {
    /// Returns the state of the session, for comparisons with later ones.
    pub fn mark(&self) -> SessionMark {
        let StoredSession { no, session, chat_len, operator_len, edits, .. } = self;
        let (version, chat_len, operator_len) = (session.version, *chat_len, *operator_len);
        SessionMark { no: *no, version, edits: *edits, chat_len, operator_len }
    }
}

/// The state of a session, in memory or in the store. All numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionMark {
    pub no: SessionNo,
    pub version: u64,
    /// The number of changes that leave the version: hidden messages, deleted users.
    pub edits: u64,
    pub chat_len: u64,
    pub operator_len: u64,
}

impl SessionMark {
    /// Returns true if this state has something that `other` lacks.
    pub fn exceeds(&self, other: &SessionMark) -> bool {
        self.version > other.version
            || self.edits > other.edits
            || self.chat_len > other.chat_len
            || self.operator_len > other.operator_len
    }
}

/// A session's row at the time of a query.
#[derive(Debug)]
pub struct FoundSession {
    /// The lengths don't count messages in the archive.
    pub mark: SessionMark,
    /// The whole session, if its row exceeds the mark of a caller.
    pub news: Option<SessionNews>,
}

#[derive(Debug)]
pub struct SessionNews {
    pub stored: StoredSession,
    /// The messages of the chat and the operator channel that follow those of the caller. A channel with many has none.
    pub messages: [Vec<ChatMessage>; 2],
}

/// The state of rows at the time of one query. If the store isn't shared, it has no sessions, and its numbers are 0.
#[derive(Debug, Default)]
pub struct Marks {
    /// Those of the wanted sessions that exist.
    pub sessions: HashMap<SessionNo, FoundSession>,
    pub public_len: u64,
    /// The number of the last ending.
    pub(crate) endings: i64,
    pub(crate) changes: HashMap<String, i64>,
}

impl Marks {
    /// Returns the number of hidden messages of the public channel.
    pub fn public_edits(&self) -> i64 {
        self.change(PUBLIC)
    }

    /// Returns a number that grows with each change of bans and benchmark models.
    pub fn administration(&self) -> i64 {
        self.change(ADMINISTRATION)
    }

    /// Returns the number of changes of a kind.
    pub(crate) fn change(&self, kind: &str) -> i64 {
        self.changes.get(kind).copied().unwrap_or_default()
    }
}
