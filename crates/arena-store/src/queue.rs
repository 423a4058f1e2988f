//! The queue of a writer. Callers add writes and wait for their results; either backend's writer takes them out. A write
//! is a transition of a session, which the writer decides in batches, or any other write, which is rare.

use arena_model::ChatMessage;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::errors::WriteError;
use crate::plan::{BatchItem, Done};
use crate::writing::Writing;
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

/// A write in the writer's queue.
pub(crate) enum Waiting {
    /// A transition of a session. The writer decides and writes it in one transaction with other transitions.
    Item(Queued),
    /// Any other write.
    Other(Box<dyn Job>),
}

/// A transition in the queue, with the channel for its result.
pub(crate) enum Queued {
    Commit { commit: Box<Commit>, reply: oneshot::Sender<Result<(SessionNo, Box<Commit>), CommitError>> },
    Import { imported: Box<ImportedSession>, reply: oneshot::Sender<Result<ImportOutcome, CommitError>> },
}

impl Queued {
    pub(crate) fn transition(&self) -> BatchItem<'_> {
        match self {
            Queued::Commit { commit, .. } => BatchItem::Commit(commit),
            Queued::Import { imported, .. } => BatchItem::Import(imported),
        }
    }

    /// Returns the approximate size of the text that the transition writes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let said = |messages: &[ChatMessage]| messages.iter().map(|message| message.content.len()).sum::<usize>();
        match self {
            Queued::Commit { commit, .. } => {
                said(&commit.messages) + commit.answers.iter().map(|answer| answer.body.len()).sum::<usize>()
            }
            Queued::Import { imported, .. } => said(&imported.messages) + imported.session.state.len(),
        }
    }

    /// Sends the result to the caller: after the commit, or with the reason why there was none.
    pub(crate) fn finish(self, outcome: Result<Done, CommitError>) {
        // A failure to send means that the caller has stopped waiting. The commit is valid anyway.
        match (self, outcome) {
            (Queued::Commit { commit, reply }, Ok(Done::Committed(no))) => drop(reply.send(Ok((no, commit)))),
            (Queued::Commit { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
            (Queued::Import { reply, .. }, Ok(Done::Imported(taken))) => drop(reply.send(Ok(taken))),
            (Queued::Import { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
            // This case can't occur: a commit has the result of a commit, and an import the result of an import. The
            // caller of a dropped transition learns that the result is unknown.
            (_, Ok(_)) => {}
        }
    }
}

/// A write that isn't a transition. SQLite runs the write again after its transaction was rolled back.
pub(crate) trait Job: Send {
    fn apply<'w>(&'w mut self, writing: &'w mut Writing) -> BoxFuture<'w, Result<(), WriteError>>;

    /// Sends the result to the caller: after the commit, or with the reason why there was none.
    fn finish(self: Box<Self>, outcome: Result<(), CommitError>);
}

/// A [`Job`] made of a function, its context and the channel for its result.
struct Intent<C, T, F> {
    context: C,
    write: F,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, CommitError>>,
}

impl<C, T, F> Job for Intent<C, T, F>
where
    C: Send,
    T: Send,
    F: for<'w> Fn(&'w mut C, &'w mut Writing) -> BoxFuture<'w, Result<T, WriteError>> + Send,
{
    fn apply<'w>(&'w mut self, writing: &'w mut Writing) -> BoxFuture<'w, Result<(), WriteError>> {
        let written = (self.write)(&mut self.context, writing);
        let result = &mut self.result;
        Box::pin(async move {
            *result = Some(written.await?);
            Ok(())
        })
    }

    fn finish(self: Box<Self>, outcome: Result<(), CommitError>) {
        let Intent { result, reply, .. } = *self;
        // A durable write always has a result. Without one, the caller must not assume that nothing has changed.
        let result = outcome.and_then(|()| result.ok_or(CommitError::Unavailable(StoreError::Unsure)));
        // A failure to send means that the caller has stopped waiting. The write is valid anyway.
        let _ = reply.send(result);
    }
}
