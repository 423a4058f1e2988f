//! The queue of a writer. Callers add writes and wait for their results; either backend's writer takes them out.

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::errors::WriteError;
use crate::writing::{Intent, Queued, Waiting, Writing};
use crate::{Commit, CommitError, ImportOutcome, ImportedSession, SessionNo, StoreError};

/// The sending end of a writer's queue.
pub(crate) enum JobQueue {
    /// The queue of the SQLite writer, which is a thread.
    Thread(std::sync::mpsc::Sender<Waiting>),
    /// The queue of the Postgres writer, which is a task.
    Task(tokio::sync::mpsc::UnboundedSender<Waiting>),
    /// A closed queue. The writer finishes the writes that it contained, and ends.
    Closed,
}

impl JobQueue {
    pub(crate) async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Waiting::Item(Queued::Commit { commit: Box::new(commit), reply }))?;
        // Without an answer, the writer failed during this commit, so its result is unknown.
        answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
    }

    /// Imports happen in the order of these calls, regardless of the order in which their results are awaited.
    pub(crate) fn import(
        &self,
        imported: ImportedSession,
    ) -> impl Future<Output = Result<ImportOutcome, CommitError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Waiting::Item(Queued::Import { imported: Box::new(imported), reply }));
        async move {
            sent?;
            answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
        }
    }

    /// Runs a write in a transaction. With SQLite, other writes may share the transaction. The write must not use their
    /// rows, and it must be repeatable, because it runs again after a rollback. Writes happen in the order of these
    /// calls, regardless of the order in which their results are awaited.
    pub(crate) fn write<C, T, F>(
        &self,
        context: C,
        write: F,
    ) -> impl Future<Output = Result<T, CommitError>> + Send + use<C, T, F>
    where
        C: Send + 'static,
        T: Send + 'static,
        F: for<'w> Fn(&'w mut C, &'w mut Writing) -> BoxFuture<'w, Result<T, WriteError>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Waiting::Other(Box::new(Intent { context, write, result: None, reply })));
        async move {
            sent?;
            answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
        }
    }

    fn send(&self, job: Waiting) -> Result<(), CommitError> {
        let is_sent = match self {
            JobQueue::Thread(jobs) => jobs.send(job).is_ok(),
            JobQueue::Task(jobs) => jobs.send(job).is_ok(),
            JobQueue::Closed => false,
        };
        match is_sent {
            true => Ok(()),
            false => Err(CommitError::Unavailable(StoreError::Closed)),
        }
    }
}
