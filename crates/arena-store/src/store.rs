//! The interface of the store, for either of the two backends.
//!
//! Statements that both databases understand run with [`Store::list`], [`Store::aside`] and [`Store::write`], here and
//! in the other modules. Methods that match on the backend have separate statements for the two databases.

pub(crate) mod archives;
pub(crate) mod audit;
pub(crate) mod bans;
pub(crate) mod copy;
pub(crate) mod deletion;
mod export;
mod hiding;
mod import;
pub(crate) mod log;
mod removal;
mod scripts;
pub(crate) mod strategies;
pub(crate) mod tickets;
pub(crate) mod users;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arena_model::{
    Channel, ChatMessage, ContentHash, InviteCode, Scoring, ScriptedStrategy, Session, SessionId, Timestamp,
};
use futures_util::future::BoxFuture;

use crate::errors::{Failure, WriteError};
use crate::mirror::Mirror;
use crate::queue::JobQueue;
use crate::sql::db::{Db, at_once};
use crate::sql::dialect::{Dialect, Table, columns};
use crate::sql::value::{Columns, Value, count};
use crate::tables::messages::{Messages, channel_number, read_commitment, read_message, session_channel};
use crate::tables::read_answer;
use crate::tables::sessions::{Sessions, read_id, read_session};
use crate::writing::Writing;
use crate::{
    Commit, CommitError, DatabaseUrl, ImportOutcome, ImportedSession, Marks, NodeTerms, Nodes, PostgresStore,
    SessionFilter, SessionMark, SessionNo, SqliteStore, StoreError, StoredAnswer, StoredSession,
};

/// The number of bytes of text after which a read of messages stops. It limits the memory of one reader.
const READ_BYTES: usize = 1024 * 1024;

/// A page of a list, and the length of the whole list.
#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: u64,
}

/// A session with its wake-up time, from the list of due sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub id: SessionId,
    pub at: Timestamp,
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
            Store::Postgres(store) => store.mirror(),
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
            Store::Sqlite(store) => store.list(sql, values, read),
            Store::Postgres(store) => store.list(sql, values, read).await,
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

    /// Returns a session by id.
    ///
    /// # Errors
    /// If the store can't be read, or the session's row is damaged.
    pub async fn find_session(&self, id: SessionId) -> Result<Option<StoredSession>, StoreError> {
        let edits = match self.dialect() {
            Dialect::Sqlite => "0",
            Dialect::Postgres => "s.edits",
        };
        let sql = format!(
            "SELECT {}, {}, {}, {edits} FROM sessions s WHERE {}",
            columns::<Sessions>("s."),
            last_message(channel_number(Channel::Chat(id)), "chat"),
            last_message(channel_number(Channel::Operator(id)), "operator"),
            self.dialect().by_id(),
        );
        self.find(&sql, &[id.to_string().into()], |row| {
            let (no, session) = read_session(row)?;
            let mut last_activity = session.facts.created_at;
            let mut len = |column: usize| -> Result<u64, StoreError> {
                let Some(last) = row.text_or_null(Sessions::COLUMNS.len() + column)? else { return Ok(0) };
                let read = || last.split_once(' ').and_then(|(idx, at)| Some((idx.parse().ok()?, at.parse().ok()?)));
                let (len, at) = read()
                    .ok_or_else(|| StoreError::damaged(format!("session {id}"), "its last message is invalid"))?;
                last_activity = last_activity.max(Timestamp(at));
                Ok(len)
            };
            let (chat_len, operator_len) = (len(0)?, len(1)?);
            let edits = row.integer(Sessions::COLUMNS.len() + 2)?.unsigned_abs();
            Ok(StoredSession { no, session, chat_len, operator_len, last_activity, edits })
        })
        .await
    }

    /// Returns those of these sessions that exist, each with true if it has ended.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_ended(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, bool)>, StoreError> {
        let ids: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
        let ends = ids.iter().map(|id| Value::from(&id[id.len() - 12..])).collect();
        let sql = format!("SELECT s.id, s.status FROM sessions s WHERE {}", self.dialect().by_ids());
        let ids = ids.iter().map(|id| Value::from(id.as_str())).collect();
        let read = |row: &dyn Columns| Ok((read_id(row, 0)?, row.text(1)? == "ended"));
        self.list(&sql, &[Value::List(ends), Value::List(ids)], read).await
    }

    /// Returns the session of an invite.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_invite(&self, invite: InviteCode) -> Result<Option<SessionId>, StoreError> {
        let by_code = self.dialect().by_code();
        let sql = format!("SELECT s.id FROM invites i JOIN sessions s ON s.no = i.session WHERE {by_code}");
        self.find(&sql, &[invite.to_string().into()], |row| read_id(row, 0)).await
    }

    /// Returns messages of a channel from index `from` on, in order. There are at most `limit` messages, and fewer if
    /// their texts are long, but at least one if the channel has one. `no` is the session's number, or `None` for the
    /// public channel.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        self.list_messages_within(no, channel, from, limit, READ_BYTES).await
    }

    /// Returns the same messages as [`Store::list_messages`], up to the message at which the total size of the texts
    /// reaches `most_bytes`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_messages_within(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        match self {
            Store::Sqlite(store) => store.list_messages(no, channel, from, limit, most_bytes).await,
            Store::Postgres(store) => store.list_messages(no, channel, from, limit, most_bytes).await,
        }
    }

    /// Returns messages of all channels of a session in the order of their commits, with their positions in this order
    /// from 1: at most `limit` messages after position `after`. `no` and `id` belong to the same session. In Postgres,
    /// messages without a number, which older programs wrote, come first, in the order of time.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_session_messages(
        &self,
        no: SessionNo,
        id: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, ChatMessage)>, StoreError> {
        let sql = format!(
            "SELECT {} FROM messages WHERE session = $1 ORDER BY coalesce(no, 0), at, channel, idx LIMIT $2 OFFSET $3",
            columns::<Messages>("")
        );
        let read = |row: &dyn Columns| {
            let channel = session_channel(row.integer(Messages::Channel as usize)?, id)?;
            read_message(row, channel)
        };
        let values = [no.0.into(), count(limit as u64).into(), count(after).into()];
        Ok((after + 1..).zip(self.list(&sql, &values, read).await?).collect())
    }

    /// Returns the size of a session's messages, in bytes: the contents of all channels.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn session_bytes(&self, no: SessionNo) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(coalesce(sum(octet_length(content)), 0) AS BIGINT) FROM messages WHERE session = $1";
        Ok(self.number(sql, &[no.0.into()]).await?.unsigned_abs())
    }

    /// Returns the size of a session's chat, in bytes.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn chat_bytes(&self, no: SessionNo) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(coalesce(sum(octet_length(content)), 0) AS BIGINT) FROM messages \
                   WHERE session = $1 AND channel = 0";
        Ok(self.number(sql, &[no.0.into()]).await?.unsigned_abs())
    }

    /// Returns the stored commitments of a session's hidden messages, by channel and index. `no` and `id` belong to the
    /// same session.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_commitments(
        &self,
        no: SessionNo,
        id: SessionId,
    ) -> Result<Vec<((Channel, u64), ContentHash)>, StoreError> {
        let sql = "SELECT channel, idx, commitment FROM messages WHERE session = $1 AND commitment IS NOT NULL";
        self.list(sql, &[no.0.into()], |row| {
            let place = (session_channel(row.integer(0)?, id)?, row.integer(1)?.unsigned_abs());
            Ok(read_commitment(row, 2, id)?.map(|commitment| (place, commitment)))
        })
        .await
        .map(|found| found.into_iter().flatten().collect())
    }

    /// Returns the number of messages in the public channel.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn public_len(&self) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(max(idx), 0) FROM messages WHERE session = 0 AND channel = $1";
        Ok(self.number(sql, &[channel_number(Channel::Invites).into()]).await?.unsigned_abs())
    }

    /// Returns the sessions that match a filter, newest first: at most `limit` from `offset` on.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn list_sessions(
        &self,
        filter: &SessionFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Page<Session>, StoreError> {
        self.refresh_counts().await?;
        let plan = self.mirror().counts.read().find_page(filter, offset, limit);
        let items = match self {
            Store::Sqlite(store) => store.list_sessions(filter, &plan, limit).await?,
            Store::Postgres(store) => store.list_sessions(filter, &plan, limit).await?,
        };
        Ok(Page { items, total: plan.total })
    }

    /// Returns the number of sessions that match a filter, as of the last [`Store::refresh_counts`].
    pub fn count_sessions(&self, filter: &SessionFilter) -> u64 {
        self.mirror().counts.read().find_page(filter, 0, 0).total
    }

    /// Returns the sessions whose `wake_at` has passed, earliest first, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_due(&self, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
        let sql =
            "SELECT id, wake_at FROM sessions WHERE wake_at IS NOT NULL AND wake_at <= $1 ORDER BY wake_at LIMIT $2";
        let values = [now.0.into(), count(limit as u64).into()];
        self.list(sql, &values, |row| Ok(Due { id: read_id(row, 0)?, at: Timestamp(row.integer(1)?) })).await
    }

    /// Returns the time at which the next session is due.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL";
        let found = self.find(sql, &[], |row| row.integer_or_null(0)).await?;
        Ok(found.flatten().map(Timestamp))
    }

    pub fn scoring(&self) -> Arc<Scoring> {
        self.mirror().scoring()
    }

    /// Replaces the scripted strategies of the scoring.
    pub fn set_scripted(&self, scripted: Vec<ScriptedStrategy>) {
        self.mirror().set_scripted(scripted);
    }
}

/// Returns the expression for index and time of the last message of a channel of the session `s`, as one text, so that a
/// query looks up each channel once. If the store has none, the session may be archived.
fn last_message(channel: i64, archived: &str) -> String {
    format!(
        "coalesce((SELECT m.idx || ' ' || m.at FROM messages m WHERE m.session = s.no AND m.channel = {channel}
             ORDER BY m.idx DESC LIMIT 1),
         (SELECT a.{archived}_len || ' ' || a.{archived}_at FROM archives a
             WHERE a.session = s.no AND a.{archived}_len > 0))"
    )
}
