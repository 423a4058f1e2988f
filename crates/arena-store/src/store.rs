//! The interface of the store, for either of the two backends.
//!
//! Statements that both databases understand run with [`Store::list`], [`Store::aside`] and [`Store::write`], here and in
//! the files of the folder. Methods that match on the backend have separate statements for the two databases.

pub(crate) mod archives;
pub(crate) mod audit;
pub(crate) mod bans;
pub(crate) mod boards;
pub(crate) mod checks;
pub(crate) mod copy;
pub(crate) mod deletion;
mod export;
mod hiding;
mod import;
pub(crate) mod log;
mod messages;
mod removal;
mod scripts;
pub(crate) mod sessions;
pub(crate) mod strategies;
pub(crate) mod tickets;
pub(crate) mod users;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena_model::{Scoring, ScriptedStrategy, Timestamp};
use futures_util::future::BoxFuture;

use crate::errors::{Failure, WriteError};
use crate::mirror::Mirror;
use crate::queue::JobQueue;
use crate::sql::{Columns, Db, Dialect, Value, at_once};
use crate::tables::read_answer;
use crate::writing::Writing;
use crate::{
    Commit, CommitError, DatabaseUrl, ImportOutcome, ImportedSession, Marks, NodeTerms, Nodes, PostgresStore,
    SessionMark, SessionNo, SqliteStore, StoreError, StoredAnswer,
};

/// A page of a list, and the length of the whole list.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: u64,
}

pub enum Store {
    Sqlite(SqliteStore),
    Postgres(Box<PostgresStore>),
}

impl Store {
    /// Opens the store of a data folder, as [`SqliteStore::open`] does.
    ///
    /// # Errors
    /// If the folder can't be used, another process uses it, or a newer program created the store.
    pub fn open(folder: &Path, scoring: Scoring) -> Result<Store, StoreError> {
        let store = Store::Sqlite(SqliteStore::open(folder, scoring)?);
        at_once(store.check_whole(folder.display().to_string()))?;
        Ok(store)
    }

    /// Opens the store in a Postgres database, as [`PostgresStore::connect`] does.
    ///
    /// # Errors
    /// If the database can't be reached or used, another arena uses it, or a newer program created the store in it.
    pub async fn connect(database: DatabaseUrl, scoring: Scoring) -> Result<Store, StoreError> {
        let place = database.to_string();
        let store = Store::Postgres(Box::new(PostgresStore::connect(database, scoring).await?));
        store.check_whole(place).await?;
        Ok(store)
    }

    /// Opens the store in a Postgres database together with other arenas, as [`PostgresStore::join`] does.
    ///
    /// # Errors
    /// As [`Store::connect`]; and if an arena uses the database exclusively, or this node's `terms` differ from those
    /// of the others.
    pub async fn join(database: DatabaseUrl, scoring: Scoring, terms: &NodeTerms) -> Result<Store, StoreError> {
        let place = database.to_string();
        let store = Store::Postgres(Box::new(PostgresStore::join(database, scoring, terms).await?));
        store.check_whole(place).await?;
        Ok(store)
    }

    pub(crate) fn mirror(&self) -> &Mirror {
        match self {
            Store::Sqlite(store) => &store.mirror,
            Store::Postgres(store) => &store.mirror,
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Store::Sqlite(_) => Dialect::Sqlite,
            Store::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the rows of a statement's result. Parameters are as described for [`Db`].
    pub(crate) async fn list<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        match self {
            Store::Sqlite(store) => store.readers.list(sql, values, read),
            Store::Postgres(store) => store.readers.list(sql, values, read).await,
        }
    }

    pub(crate) async fn find<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.list(sql, values, read).await?.into_iter().next())
    }

    pub(crate) async fn number(&self, sql: &str, values: &[Value<'_>]) -> Result<i64, StoreError> {
        let found = self.find(sql, values, |row| row.integer(0)).await?;
        found.ok_or_else(|| StoreError::Database("a statement returned no row".to_owned()))
    }

    /// Runs long reads in one snapshot, without delaying other reads and writes.
    pub(crate) async fn aside<C, T, F>(&self, context: C, read: F) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
        F: for<'r> FnOnce(&'r mut C, &'r mut Db) -> BoxFuture<'r, Result<T, Failure>> + Send + 'static,
    {
        match self {
            Store::Sqlite(store) => store.aside(context, read).await,
            Store::Postgres(store) => store.aside(context, read).await,
        }
    }

    /// Runs a write in a transaction. The write runs again if the transaction is rolled back. Writes happen in the
    /// order of these calls, regardless of the order in which their results are awaited.
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
        self.queue().write(context, write)
    }

    fn queue(&self) -> &JobQueue {
        match self {
            Store::Sqlite(store) => &store.writer.queue,
            Store::Postgres(store) => &store.writer.queue,
        }
    }

    /// Returns the data of this node if the store is shared; `None` if this process uses the store exclusively.
    pub fn nodes(&self) -> Option<&Arc<Nodes>> {
        match self {
            Store::Sqlite(_) => None,
            Store::Postgres(store) => store.nodes(),
        }
    }

    /// Returns the state of the sessions of `known`, and the numbers of other changes, at a time after the call. `known` is
    /// the caller's state of each session; the result has what the caller lacks. Calls at the same time share a query. If
    /// the store isn't shared, no other node changes it, and the result is empty.
    ///
    /// # Errors
    /// If the database can't be read.
    pub async fn marks(&self, known: &[SessionMark]) -> Result<Arc<Marks>, StoreError> {
        match self {
            Store::Sqlite(_) => Ok(Arc::default()),
            Store::Postgres(store) => store.marks(known).await,
        }
    }

    /// Returns the number of times that the database may have lost commits: after a failover, for example. Data in memory
    /// from before must be read again.
    pub fn losses(&self) -> u64 {
        match self {
            Store::Sqlite(_) => 0,
            Store::Postgres(store) => store.losses(),
        }
    }

    /// True if this process leads: it writes the log, plays tournaments and counts by scripts. It is the only process, or
    /// one of the nodes of a shared database.
    pub fn leads(&self) -> bool {
        self.nodes().is_none_or(|nodes| nodes.leads.load(Ordering::Relaxed))
    }

    /// Reads the counts of sessions that other nodes have changed.
    ///
    /// # Errors
    /// If the database can't be read.
    pub async fn refresh_counts(&self) -> Result<(), StoreError> {
        match self {
            Store::Sqlite(_) => Ok(()),
            Store::Postgres(store) => store.refresh_counts().await,
        }
    }

    /// Returns the size of the store on disk in bytes; 0 if it is unknown. For SQLite the size includes the write-ahead
    /// log. For Postgres it is the size of tables and indexes, at most a minute old.
    pub fn bytes(&self) -> u64 {
        match self {
            Store::Sqlite(store) => store.bytes(),
            Store::Postgres(store) => store.bytes(),
        }
    }

    /// Checks that the store can write. While games are played, the check does no writes: it succeeds if the writer has
    /// completed a transaction within the last second, or has been busy for less than ten seconds. An idle writer begins
    /// an empty transaction for the check. If there was no durable write for a minute, or the last transaction failed,
    /// the writer does a small durable write.
    ///
    /// # Errors
    /// If the store can't write, or has lost commits and the administrator hasn't confirmed that.
    pub async fn check_writing(&self) -> Result<(), CommitError> {
        match self {
            Store::Sqlite(store) => store.check_writing().await,
            Store::Postgres(store) => store.writer.check().await,
        }
    }

    /// Stores a commit as a whole or not at all; on return it is durable. Returns the commit, so that the caller can
    /// use its content.
    ///
    /// # Errors
    /// After a [`CommitError`], no part of the commit is stored, except possibly after [`StoreError::Unsure`].
    pub async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        self.queue().commit(commit).await
    }

    /// Imports a session with its messages and counts it, all in one commit. Imports happen in the order of the
    /// calls, regardless of the order in which their results are awaited.
    ///
    /// # Errors
    /// If the session hasn't ended, or the store can't write.
    pub fn import_session(
        &self,
        imported: ImportedSession,
    ) -> impl Future<Output = Result<ImportOutcome, CommitError>> + Send + use<> {
        self.queue().import(imported)
    }

    /// Deletes the answers to idempotent requests that are older than `before`.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn forget_answers(&self, before: Timestamp) -> Result<(), CommitError> {
        // Each statement deletes a limited number of the oldest answers, so that other writes wait only a short time.
        let forget = || {
            self.write(before, |before, writing| {
                Box::pin(async move {
                    let sql = "DELETE FROM answers WHERE no <= (SELECT max(no) FROM
                         (SELECT no, at FROM answers ORDER BY no LIMIT 1000) oldest WHERE at < $1)";
                    Ok(writing.db.execute(sql, &[before.0.into()]).await?)
                })
            })
        };
        while forget().await? > 0 {}
        Ok(())
    }

    /// Returns the answer stored under an idempotency key.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_answer(&self, key: &[u8; 32]) -> Result<Option<StoredAnswer>, StoreError> {
        let sql = "SELECT request, body FROM answers WHERE key = $1";
        self.find(sql, &[key[..].into()], |row| read_answer(row, 0)).await
    }

    pub fn scoring(&self) -> Arc<Scoring> {
        self.mirror().scoring()
    }

    /// Replaces the scripted strategies of the scoring.
    pub fn set_scripted(&self, scripted: Vec<ScriptedStrategy>) {
        self.mirror().set_scripted(scripted);
    }
}
