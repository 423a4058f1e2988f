//! The writer's work: transitions of sessions, which the writer decides in batches, and all other writes, which are
//! rare.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{ChatMessage, Scoring};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::errors::{Failure, WriteError};
use crate::mirror::counts::Delta;
use crate::mirror::ranking::{Move, Ranked};
use crate::numbers::Numbers;
use crate::plan::{BatchItem, Done};
use crate::postgres::connection::Sharing;
use crate::sql::db::Db;
use crate::sql::value::Value;
use crate::{Commit, CommitError, ImportOutcome, ImportedSession, SessionNo, StoreError};

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

/// The context of writes in a transaction that isn't durable yet.
pub(crate) struct Writing {
    pub(crate) db: Db,
    pub(crate) scoring: Arc<Scoring>,
    pub(crate) numbers: Numbers,
    pub(crate) effects: Effects,
    /// The kinds of rare changes in this transaction, for other nodes of a shared database.
    pub(crate) changed: BTreeSet<&'static str>,
    /// The additional statements, if the database is shared.
    pub(crate) sharing: Option<Arc<Sharing>>,
}

impl Writing {
    /// Locks the last number of a kind of rows against other nodes until the commit, so that rows are numbered in the order
    /// of commits. Transactions lock [`AUDIT`](crate::tables::AUDIT), `REMOVED`, `COUNTS` and `ENDINGS` in this order, so
    /// that nodes can't deadlock, and last, because other nodes wait.
    pub(crate) async fn lock_number(&mut self, kind: &str) -> Result<(), Failure> {
        if let (Some(sharing), Db::Postgres(client)) = (&self.sharing, &self.db) {
            client.execute(&sharing.lock_number, &[&kind]).await?;
        }
        Ok(())
    }

    /// Counts a change of a session that leaves its version, for other nodes. The caller changes the session's other rows
    /// later, as removals do.
    pub(crate) async fn count_edit(&mut self, no: i64) -> Result<(), Failure> {
        if self.sharing.is_some() {
            self.db.execute("UPDATE sessions SET edits = edits + 1 WHERE no = $1", &[no.into()]).await?;
        }
        Ok(())
    }

    /// Locks the careers and profiles of these users against other nodes until the commit.
    pub(crate) async fn lock_users<'u>(&mut self, users: impl IntoIterator<Item = &'u str>) -> Result<(), Failure> {
        if let (Some(sharing), Db::Postgres(client)) = (&self.sharing, &self.db) {
            let users: Vec<Value<'_>> = users.into_iter().map(Value::prose).collect();
            client.execute(&sharing.lock_users, &[&users]).await?;
        }
        Ok(())
    }

    /// Returns the number of a user, and adds the user if it is unknown.
    pub(crate) async fn user_no(&mut self, id: &str) -> Result<i64, Failure> {
        let (find, id) = ("SELECT no FROM users WHERE id = $1", [Value::prose(id)]);
        if let Some(no) = self.db.find(find, &id, |row| row.integer(0)).await? {
            return Ok(no);
        }
        if let (Some(sharing), Db::Postgres(client)) = (&self.sharing, &self.db) {
            // Another node may have added the user in the meantime.
            client.execute(&sharing.lock_numbers_of_users, &[]).await?;
            client.execute(&sharing.number_users, &[&&id[..]]).await?;
            return self.db.number(find, &id).await;
        }
        self.numbers.user += 1;
        let [id] = id;
        self.db.execute("INSERT INTO users (no, id) VALUES ($1, $2)", &[self.numbers.user.into(), id]).await?;
        Ok(self.numbers.user)
    }
}

/// The effects of a durable write on the data that is mirrored in memory.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) delta: Delta,
    pub(crate) moves: Vec<(Ranked, Move)>,
    /// True if standings were recomputed, which makes all rankings in memory outdated.
    pub(crate) recounted: bool,
    /// True if content was erased. SQLite must then remove the content from its write-ahead log, too.
    pub(crate) erased: bool,
    /// True if wrong derived tables are to be recomputed after all other writes.
    pub(crate) mend: bool,
    /// True if nothing was written, which is no evidence that the store can write. Only Postgres uses this field.
    pub(crate) nothing: bool,
    /// A description of an impossible value that the write found in a derived table.
    pub(crate) suspect: Option<&'static str>,
}

impl Effects {
    pub(crate) fn merge(&mut self, other: Effects) {
        self.delta.merge(other.delta);
        self.moves.extend(other.moves);
        self.recounted |= other.recounted;
        self.erased |= other.erased;
        self.mend |= other.mend;
        self.suspect = self.suspect.or(other.suspect);
    }
}

/// A write that isn't a transition. SQLite runs the write again after its transaction was rolled back.
pub(crate) trait Job: Send {
    fn apply<'w>(&'w mut self, writing: &'w mut Writing) -> BoxFuture<'w, Result<(), WriteError>>;

    /// Sends the result to the caller: after the commit, or with the reason why there was none.
    fn finish(self: Box<Self>, outcome: Result<(), CommitError>);
}

/// A [`Job`] made of a function, its context and the channel for its result.
pub(crate) struct Intent<C, T, F> {
    pub(crate) context: C,
    pub(crate) write: F,
    pub(crate) result: Option<T>,
    pub(crate) reply: oneshot::Sender<Result<T, CommitError>>,
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
