//! Where sessions, messages and leagues live. Speaks the model's words (sessions, messages, answers, games), not rows.
//!
//! A [`Commit`] is everything that one transition changes; it is written whole or not at all, and [`Store::commit`]
//! answers only when it would survive a power cut. Commits of many sessions that wait at the same time share one fsync.
//!
//! There are two backends, and [`Store`] is one or the other: SQLite, in the data folder, and Postgres, over a network. Each writes
//! its own SQL; one story is told of both. Leagues are kept in data folders only, by [`SqliteStore`].

mod audit;
mod bans;
mod boards;
mod counts;
mod derived;
mod export;
mod hiding;
mod import;
mod job;
mod leagues;
mod nodes;
mod postgres;
mod proof;
mod ranking;
mod removal;
mod rows;
mod scripts;
mod sqlite;
mod standings;
mod store;
mod users;
mod writer;

use std::fmt::Display;

use arena_model::{ChatMessage, Session, SessionId, Status, Timestamp};

pub use audit::{AuditEntry, AuditNo};
pub use bans::{AddressRange, AddressRangeError, Ban, BanSubject};

pub use boards::BoardFacts;
pub use export::EndingNo;
pub use import::{ImportedSession, Taken};
pub use leagues::{
    League, LeagueAgent, LeagueAgentNo, LeagueGame, LeagueNo, LeagueRules, LeagueSeason, Leagues, NewLeague,
    NewLeagueAgent,
};
pub use nodes::{Nodes, Terms};
pub use postgres::{Changes, DatabaseUrl, DatabaseUrlError, PostgresStore};
pub use sqlite::{FolderLock, SqliteStore};
pub use store::Store;
pub use users::{ProfileWrite, Recount, Totals};

/// The store's own number of a session: small, and in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionNo(pub(crate) i64);

/// What one transition changes.
#[derive(Debug)]
pub struct Commit {
    /// What becomes of the session.
    pub change: Change,
    /// New messages with their places; each is the next in its channel.
    pub messages: Vec<ChatMessage>,
    /// The answer that a repetition of the request shall get.
    pub answer: Option<NewAnswer>,
}

/// What becomes of a session in a [`Commit`].
#[derive(Debug)]
pub enum Change {
    /// It is new.
    Create(Box<Session>),
    /// It was at the version before this one's.
    Update(SessionNo, Box<Session>),
    /// It stays as it is; only messages are added.
    Stays(SessionNo),
    /// It was at this version, and goes with its messages and invites.
    Remove(SessionNo, Box<Session>),
}

/// An answer to be remembered under an idempotency key.
#[derive(Debug, Clone)]
pub struct NewAnswer {
    /// SHA-256 over what makes the key unique: route, identity, the client's key.
    pub key: [u8; 32],
    /// SHA-256 of the request's body, to tell a repetition from a mistake.
    pub request: [u8; 32],
    /// The body of the answer.
    pub body: String,
    /// When it was given.
    pub at: Timestamp,
}

/// An answer that was given before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// SHA-256 of the request's body that it answered.
    pub request: [u8; 32],
    /// The body of the answer.
    pub body: String,
}

/// A session with what its channels need to go on.
#[derive(Debug)]
pub struct StoredSession {
    /// Its number in the store.
    pub no: SessionNo,
    /// The session.
    pub session: Session,
    /// Messages in its chat channel so far.
    pub chat_len: u64,
    /// Messages in its operator channel so far.
    pub operator_len: u64,
    /// When something was last said in either, or its creation.
    pub last_activity: Timestamp,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only of this challenge type.
    pub challenge: Option<String>,
    /// Only with this status.
    pub status: Option<Status>,
}

/// A page of a list, and how long the list is.
#[derive(Debug)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: u64,
}

/// Why a commit didn't happen. Nothing of it is stored then.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Somebody else was faster: load again and decide anew.
    #[error("the session has changed since it was loaded")]
    Conflict,
    /// A request with the same idempotency key was answered before.
    #[error("the request was answered before")]
    Answered(StoredAnswer),
    /// The store can't write now.
    #[error("the store can't write")]
    Unavailable(#[source] StoreError),
}

/// Why the store can't be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another process has it open.
    #[error("the data folder {folder} is in use by another arena (process {holder})")]
    InUse {
        /// The data folder.
        folder: String,
        /// Its process id, as far as known.
        holder: String,
    },
    /// It was made by a newer program.
    #[error("the store has schema {found}, this program knows up to {known}: it was made by a newer arena")]
    Newer {
        /// Schema version of the store.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// The folder can't be created, read or written.
    #[error("the data folder {folder} can't be used: {reason}")]
    Folder {
        /// The data folder.
        folder: String,
        /// What the system says.
        reason: String,
    },
    /// The database isn't there, or what is there is something else.
    #[error("the database {database} can't be reached: {reason}")]
    Unreachable {
        /// Which, without what is nobody's business.
        database: String,
        /// What the system says.
        reason: String,
    },
    /// The database doesn't let us in, or can't hold a store.
    #[error("the database {database} can't be used: {reason}")]
    Refused {
        /// Which.
        database: String,
        /// What it says.
        reason: String,
    },
    /// Another arena has the database.
    #[error("the database {database} is in use by another arena ({holder}); one at a time can have it")]
    Taken {
        /// Which database.
        database: String,
        /// Where the other one is, as far as known.
        holder: String,
    },
    /// Other nodes have the database, and this arena wants it for itself.
    #[error(
        "the database {database} is shared by other nodes ({holder}): start this one as one of them, with --shared or --nats-url, or \
         stop them first"
    )]
    TakenByNodes {
        /// Which database.
        database: String,
        /// Where one of them is.
        holder: String,
    },
    /// Another arena has the database for itself, and this one wants to share it.
    #[error(
        "another arena has the database {database} for itself ({holder}): stop it first; those that share a database are all started \
         with --shared or --nats-url"
    )]
    TakenAlone {
        /// Which database.
        database: String,
        /// Where the other one is.
        holder: String,
    },
    /// The nodes that share the database have agreed in something else.
    #[error(
        "the nodes that share the database {database} have another {what}; give all of them the same, or stop them first"
    )]
    Differs {
        /// Which database.
        database: String,
        /// In what.
        what: String,
    },
    /// While the connection was lost, another arena has had the database: what is in memory here isn't true any more.
    #[error("another arena has used the database {database} meanwhile; start this one again")]
    Superseded {
        /// Which database.
        database: String,
    },
    /// The connection was lost, a disk or the writer failed when a commit was on its way: it may have been made or not.
    #[error("the store failed during a commit, which may have been made or not")]
    Unsure,
    /// The database says no: disk full, file damaged, no permission.
    #[error("the database failed: {0}")]
    Database(String),
    /// A row doesn't hold what it should: changed by hand, or damaged.
    #[error("{what} can't be read: {reason}")]
    Damaged {
        /// What, such as `session` and its id.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// It has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn damaged(session: impl Display, reason: impl ToString) -> StoreError {
        StoreError::Damaged { what: format!("session {session}"), reason: reason.to_string() }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error.to_string())
    }
}

/// A session that is due to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Which.
    pub id: SessionId,
    /// Since when.
    pub at: Timestamp,
}
