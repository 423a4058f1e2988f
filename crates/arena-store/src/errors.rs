//! Errors of reads and writes, and their conversions from the errors of both databases.

use tokio_postgres::error::SqlState;

use crate::StoredAnswer;

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
    /// This node's schema, scoring or [`NodeTerms`](crate::NodeTerms) differ from those of the nodes that share the database.
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

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        CommitError::Unavailable(error)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::Database(error.to_string())
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> StoreError {
        StoreError::Database(reason(&error))
    }
}

/// A failure of a transaction, or a transaction with an unknown result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A unique constraint was violated, or two transactions conflicted. Nothing has changed.
    Constraint,
    /// The database reported an error. Nothing has changed.
    Failed(StoreError),
    /// The connection or the disk failed during the commit, so its result is unknown.
    Unsure,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Failed(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        let code = error.sqlite_error().map(|error| error.extended_code);
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation) => Failure::Constraint,
            // The commit is in the write-ahead log, but the fsync failed. The commit may reappear after a crash.
            _ if code == Some(rusqlite::ffi::SQLITE_IOERR_FSYNC) => Failure::Unsure,
            _ => Failure::Failed(error.into()),
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Failure {
        if is_constraint(&error) { Failure::Constraint } else { Failure::Failed(error.into()) }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> StoreError {
        match failure {
            Failure::Constraint => StoreError::Database("a row violates a unique constraint".to_owned()),
            Failure::Failed(error) => error,
            Failure::Unsure => StoreError::Unsure,
        }
    }
}

pub(crate) enum WriteError {
    /// The database failed. The whole transaction must be rolled back.
    Failed(Failure),
    /// The write was refused. Only this write's part of the transaction must be rolled back.
    Refused(CommitError),
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> WriteError {
        match failure {
            // Other writes in the transaction don't read the damaged row.
            Failure::Failed(error @ StoreError::Damaged { .. }) => WriteError::Refused(error.into()),
            failure => WriteError::Failed(failure),
        }
    }
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> WriteError {
        WriteError::Failed(error.into())
    }
}

impl From<tokio_postgres::Error> for WriteError {
    fn from(error: tokio_postgres::Error) -> WriteError {
        WriteError::Failed(error.into())
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> WriteError {
        WriteError::Refused(error.into())
    }
}

impl From<CommitError> for WriteError {
    fn from(error: CommitError) -> WriteError {
        WriteError::Refused(error)
    }
}

/// Returns the cause of an error, as reported by the database, the system or the driver.
pub(crate) fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let source = std::error::Error::source(error).map(ToString::to_string);
    source.unwrap_or_else(|| error.to_string())
}

/// True for a violated unique constraint or a conflict. Nothing was written, and another attempt may succeed.
fn is_constraint(error: &tokio_postgres::Error) -> bool {
    const STATES: [SqlState; 3] =
        [SqlState::UNIQUE_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.code().is_some_and(|code| STATES.contains(code))
}
