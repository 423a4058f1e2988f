//! Writes that aren't transitions: rare, and of many kinds. Each is a closure that the writer runs in a transaction,
//! beside whatever else waits.

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::counts::Delta;
use crate::derived::Mend;
use crate::ranking::{Move, Ranked};
use crate::standings::Counting;
use crate::{CommitError, StoreError};

/// A write under way, in a transaction that isn't durable yet.
pub(crate) struct Writing<'w> {
    pub(crate) connection: &'w Connection,
    pub(crate) counting: &'w Counting<'w>,
    /// The number of the newest session.
    pub(crate) last_no: i64,
    pub(crate) effects: Effects,
}

/// What a write means for what is kept in memory, once it is durable.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) delta: Delta,
    pub(crate) moves: Vec<(Ranked, Move)>,
    /// Standings were counted anew, so that no ranking is right any more.
    pub(crate) recounted: bool,
    /// Something was erased for good: the log shall not keep it either.
    pub(crate) erased: bool,
    /// A derived table that is to be made again, once all else is written.
    pub(crate) mend: Option<Mend>,
    /// Nothing was written: the transaction is no evidence that the store can write. Postgres only.
    pub(crate) nothing: bool,
    /// A derived table that can't be right, if one was met.
    pub(crate) suspect: Option<&'static str>,
}

impl Effects {
    pub(crate) fn merge(&mut self, other: Effects) {
        self.delta.merge(other.delta);
        self.moves.extend(other.moves);
        self.recounted |= other.recounted;
        self.erased |= other.erased;
        self.mend = other.mend.or(self.mend.take());
        self.suspect = self.suspect.or(other.suspect);
    }
}

/// Why a write doesn't happen.
pub(crate) enum WriteError {
    /// The database failed: the transaction has to be rolled back, with all that is in it.
    Failed(rusqlite::Error),
    /// The write itself refuses. What it has written so far is taken back; the others in the transaction don't suffer.
    Refused(CommitError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> WriteError {
        WriteError::Failed(error)
    }
}

impl From<CommitError> for WriteError {
    fn from(error: CommitError) -> WriteError {
        WriteError::Refused(error)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> WriteError {
        WriteError::Refused(error.into())
    }
}

/// A write that waits. It may be run again, if the transaction around it is rolled back.
pub(crate) trait Job: Send {
    /// Writes.
    fn apply(&mut self, writing: &mut Writing<'_>) -> Result<(), rusqlite::Error>;

    /// Tells the caller what came of it.
    fn finish(self: Box<Self>, outcome: Result<(), CommitError>);
}

/// A [`Job`] made of a closure, with whoever waits for what it returns.
pub(crate) struct Closure<F, T> {
    write: F,
    result: Option<Result<T, CommitError>>,
    reply: oneshot::Sender<Result<T, CommitError>>,
}

impl<F, T> Closure<F, T> {
    pub(crate) fn new(write: F, reply: oneshot::Sender<Result<T, CommitError>>) -> Closure<F, T> {
        Closure { write, result: None, reply }
    }
}

impl<F, T> Job for Closure<F, T>
where
    F: FnMut(&mut Writing<'_>) -> Result<T, WriteError> + Send,
    T: Send,
{
    fn apply(&mut self, writing: &mut Writing<'_>) -> Result<(), rusqlite::Error> {
        let last_no = writing.last_no;
        writing.connection.execute_batch("SAVEPOINT job")?;
        self.result = Some(match (self.write)(writing) {
            Ok(value) => Ok(value),
            Err(WriteError::Failed(error)) => return Err(error),
            Err(WriteError::Refused(error)) => {
                writing.connection.execute_batch("ROLLBACK TO job")?;
                writing.last_no = last_no;
                writing.effects = Effects::default();
                Err(error)
            }
        });
        writing.connection.execute_batch("RELEASE job")
    }

    fn finish(self: Box<Self>, outcome: Result<(), CommitError>) {
        let Closure { result, reply, .. } = *self;
        let result = outcome.and_then(|()| result.unwrap_or(Err(CommitError::Unavailable(StoreError::Closed))));
        // Nobody may be waiting any more: the caller has hung up. What was written stands.
        let _ = reply.send(result);
    }
}
