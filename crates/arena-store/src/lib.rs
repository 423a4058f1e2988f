//! The store of sessions, messages, and users, in the model's types.
//!
//! A [`Commit`] contains all changes of one transition. It is stored as a whole or not at all, and [`Store::commit`]
//! returns only when the commit would survive a power failure. Concurrent commits of several sessions share one fsync.
//!
//! [`Store`] has two backends: SQLite in the data folder, and Postgres over a network. Both use the same code to decide
//! commits (docs/decisions/0070).

mod archives;
mod audit;
mod bans;
mod boards;
mod copy;
mod counts;
mod db;
mod deletion;
mod derived;
mod dialect;
mod export;
mod hiding;
mod import;
mod job;
mod log;
mod mirror;
mod nodes;
mod plan;
mod postgres;
mod queue;
mod ranking;
mod removal;
mod scripts;
mod sqlite;
mod standings;
mod store;
mod strategies;
mod tables;
mod tickets;
mod users;
mod value;
mod writer_health;

use arena_model::{ChatMessage, Session, SessionId, Status, Timestamp};

pub use archives::{ArchivedChannel, ArchivedFile, ArchivedMessage, NewArchive};
pub use audit::{AuditEntry, AuditNo};
pub use bans::{AddressRange, AddressRangeError, Ban, BanSubject};

pub use boards::BoardFacts;
pub use copy::{CopiedRows, CopyError, StorePlace, copy_store};
pub use deletion::{DeletionOutcome, UserDeletion};
pub use export::EndingNo;
pub use import::{ImportOutcome, ImportedSession};
pub use log::{CreatedSession, EndedSession, LogCursor, NewLeaf, RemovedSession, StoredLeaf};
pub use nodes::{NodeTerms, Nodes};
pub use postgres::{DatabaseUrl, DatabaseUrlError, FoundSession, Marks, PostgresStore, SessionMark, SessionNews};
pub use sqlite::{FolderLock, SqliteStore};
pub use store::Store;
pub use strategies::{StrategyRun, StrategyState};
pub use tickets::{QueueLimits, QueuedTicket, TicketRefusal};
pub use users::{ProfileWrite, Recount, Totals};

/// Internal numbers are small and follow the order of creation. The default is before all sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SessionNo(pub(crate) i64);

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

#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// The required challenge type; `None` matches every type.
    pub challenge: Option<String>,
    /// The required status; `None` matches every status.
    pub status: Option<Status>,
}

/// A page of a list, and the length of the whole list.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: u64,
}

/// The error of a commit. The store contains no part of a failed commit, except possibly after [`StoreError::Unsure`].
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Another commit changed the session first. The caller should load the session again and repeat its decision.
    #[error("the session has changed since it was loaded")]
    Conflict,
    #[error("a request with this idempotency key was answered before")]
    Answered(StoredAnswer),
    #[error("the store cannot write")]
    Unavailable(#[source] StoreError),
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("the data folder {folder} is in use by another arena (process {holder})")]
    InUse {
        folder: String,
        /// The process id of the other arena, or `unknown`.
        holder: String,
    },
    #[error(
        "the store has schema version {found}, and this program supports versions up to {known}; use the newer arena that created the store"
    )]
    Newer {
        /// Schema version of the store.
        found: i64,
        /// Newest schema version that this program supports.
        known: i64,
    },
    #[error("the data folder {folder} cannot be used: {reason}")]
    Folder { folder: String, reason: String },
    /// A start has found fewer commits than were acknowledged.
    #[error("acknowledged commits are lost: read {file}, and remove it to go on with what is left")]
    Lost { file: String },
    /// The database doesn't answer, or the server isn't a Postgres server.
    #[error("the database {database} cannot be reached: {reason}")]
    Unreachable {
        /// The database, without secrets.
        database: String,
        reason: String,
    },
    /// The database refuses access, or can't contain a store.
    #[error("the database {database} cannot be used: {reason}")]
    Refused { database: String, reason: String },
    #[error("{place} has an unfinished copy of another store; delete it and copy again")]
    Unfinished { place: String },
    #[error("the database {database} is in use by another arena ({holder}); only one arena at a time can use it")]
    Taken {
        database: String,
        /// The address of the other arena, if known.
        holder: String,
    },
    /// Other nodes share the database, and this arena requires exclusive use.
    #[error(
        "the database {database} is shared by other nodes ({holder}): start this arena with --shared or --nats-url too, or stop those \
         nodes first"
    )]
    TakenByNodes {
        database: String,
        /// The address of one of the nodes.
        holder: String,
    },
    /// Another arena uses the database exclusively, but this arena was started to share the database.
    #[error(
        "another arena has exclusive use of the database {database} ({holder}): stop it first, or start all arenas that share the \
         database with --shared or --nats-url"
    )]
    TakenAlone { database: String, holder: String },
    /// This node's schema, scoring or [`NodeTerms`] differ from those of the nodes that share the database.
    #[error(
        "the nodes that share the database {database} have a different {what}; use the same on all nodes, or stop the \
         other nodes first"
    )]
    Differs {
        database: String,
        /// The term that differs.
        what: String,
    },
    #[error("another arena has used the database {database} since the connection was lost; restart this arena")]
    Superseded { database: String },
    /// The connection, a disk or the writer failed during a commit. It is unknown if the commit was stored.
    #[error("the store failed during a commit; it is unknown if the commit was stored")]
    Unsure,
    /// The database reported an error, such as a full disk, a damaged file or a missing permission.
    #[error("the database failed: {0}")]
    Database(String),
    /// A row has invalid content, because it is damaged or was edited by hand.
    #[error("{what} cannot be read: {reason}")]
    Damaged {
        /// The row, such as `session` and its id.
        what: String,
        reason: String,
    },
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Returns the error for a damaged row. `what` names the row, such as `session` and its id.
    pub(crate) fn damaged(what: impl Into<String>, reason: impl ToString) -> StoreError {
        StoreError::Damaged { what: what.into(), reason: reason.to_string() }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error.to_string())
    }
}

/// A session with its wake-up time, from the list of due sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub id: SessionId,
    pub at: Timestamp,
}
