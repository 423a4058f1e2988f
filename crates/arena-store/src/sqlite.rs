//! The SQLite store: one file in the data folder, one writer thread, and connections for readers.

mod batch;
mod checkpoints;
mod connection;
pub(crate) mod folder;
mod mark;
mod readers;
mod writer;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use arena_model::{Channel, ChatMessage, Scoring, Session, Status};
use futures_util::future::BoxFuture;
use rusqlite::{Connection, params};

use self::batch::{Statements, write_delta, write_transitions};
use self::connection::{migrate, open_writable};
use self::folder::keep_private;
use self::readers::SqliteReaders;
use self::writer::SqliteWriter;
use crate::derived::counts::{COUNT_SESSIONS, read_counts};
use crate::derived::standings::{counted_by, follow_scoring, note_scoring};
use crate::errors::Failure;
use crate::mirror::{Counts, Delta, Mirror, PagePlan, Rankings};
use crate::numbers::Numbers;
use crate::plan::{BatchItem, Counting};
use crate::sql::{Db, at_once, columns, count};
use crate::tables::{Messages, Sessions, channel_number, read_message, read_or_pass_over, read_session};
use crate::{CommitError, FolderLock, SessionFilter, SessionNo, StoreError};

const FILE: &str = "arena.sqlite3";

/// The store of one data folder. Only one process at a time can open it.
pub struct SqliteStore {
    // Rust drops the fields in this order. The writer has the last connection, which empties the write-ahead log when
    // it closes. After that, the lock on the folder is released.
    pub(crate) readers: SqliteReaders,
    pub(crate) writer: SqliteWriter,
    pub(crate) mirror: Mirror,
    _lock: FolderLock,
}

impl SqliteStore {
    /// Opens the store of a data folder, and creates both if necessary. `scoring` defines how ended games count. If the
    /// stored standings have another scoring, the store recounts all games first.
    ///
    /// # Errors
    /// If the folder can't be used, another process uses it, or a newer program created the store.
    pub fn open(folder: &Path, scoring: Scoring) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_counted(folder, scoring, count_games)
    }

    /// Opens the store like [`Store::open`], but doesn't check the scoring of the stored standings. This is for callers
    /// that neither end sessions nor read standings, and therefore have no scoring.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_as_counted(folder: &Path) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_counted(folder, Scoring::default(), |_, _| Ok(()))
    }

    /// Returns true if the folder has a store.
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    fn open_counted(
        folder: &Path,
        scoring: Scoring,
        count: impl FnOnce(&mut Db, &Mirror) -> Result<(), StoreError>,
    ) -> Result<SqliteStore, StoreError> {
        let lock = FolderLock::take(folder)?;
        let file = folder.join(FILE);
        let refuse = |error: &dyn std::fmt::Display| StoreError::Folder {
            folder: folder.display().to_string(),
            reason: format!("{FILE}: {error}"),
        };
        keep_private(&file).map_err(|error| refuse(&error))?;
        let mut connection = open_writable(&file).map_err(|error| refuse(&error))?;
        mark::check(&file, &connection).map_err(|error| refuse(&error))?;
        migrate(&mut connection)?;
        let mut db = Db::Sqlite(connection);
        let mirror = Mirror::of(scoring, Rankings::default());
        mirror.set_counts(read_or_mend_counts(&mut db)?);
        count(&mut db, &mirror)?;
        let writer = SqliteWriter::start(db, &file, mirror.clone())?;
        Ok(SqliteStore { readers: SqliteReaders::of(file), writer, mirror, _lock: lock })
    }

    pub(crate) fn bytes(&self) -> u64 {
        let file = self.readers.file();
        let log = file.with_extension("sqlite3-wal");
        [file, &*log].into_iter().filter_map(|file| fs::metadata(file).ok()).map(|data| data.len()).sum()
    }

    pub(crate) async fn check_writing(&self) -> Result<(), CommitError> {
        let lost = mark::lost_file(self.readers.file());
        if lost.exists() {
            return Err(StoreError::Lost { file: lost.display().to_string() }.into());
        }
        self.writer.check().await
    }

    /// Runs long reads in one snapshot, on a thread for blocking work.
    pub(crate) async fn aside<C, T, F>(&self, mut context: C, read: F) -> Result<T, StoreError>
    where
        C: Send + 'static,
        T: Send + 'static,
        F: for<'r> FnOnce(&'r mut C, &'r mut Db) -> BoxFuture<'r, Result<T, Failure>> + Send + 'static,
    {
        let readers = self.readers.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut db = Db::Sqlite(readers.take()?);
            at_once(db.batch("BEGIN"))?;
            let result = at_once(read(&mut context, &mut db));
            at_once(db.batch("ROLLBACK"))?;
            if let Db::Sqlite(connection) = db {
                readers.give_back(connection);
            }
            Ok(result?)
        });
        read.await.map_err(|_| StoreError::Closed)?
    }

    pub(crate) async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        static SQL: LazyLock<String> = LazyLock::new(|| {
            let columns = columns::<Messages>("");
            format!(
                "SELECT {columns} FROM messages WHERE session = ?1 AND channel = ?2 AND idx >= ?3 ORDER BY idx LIMIT ?4"
            )
        });
        self.readers.read(|connection| {
            let mut statement = connection.prepare_cached(&SQL)?;
            let (no, limit) = (no.map_or(0, |no| no.0), count(limit as u64));
            let mut rows = statement.query(params![no, channel_number(channel), count(from), limit])?;
            let (mut messages, mut bytes) = (Vec::new(), 0);
            while bytes < most_bytes
                && let Some(row) = rows.next()?
            {
                let message = read_message(row, channel)?;
                bytes += message.content.len();
                messages.push(message);
            }
            Ok(messages)
        })
    }

    pub(crate) async fn list_sessions(
        &self,
        filter: &SessionFilter,
        plan: &PagePlan,
        limit: usize,
    ) -> Result<Vec<Session>, StoreError> {
        let mut skip = count(plan.skip);
        let sql = format!(
            "SELECT {} FROM sessions WHERE no BETWEEN ?1 AND ?2 AND unlisted = 0 {} {}
             ORDER BY no DESC LIMIT ?3 OFFSET ?4",
            columns::<Sessions>(""),
            if filter.challenge.is_some() { "AND type = ?5" } else { "AND ?5 IS NULL" },
            if filter.status.is_some() { "AND status = ?6" } else { "AND ?6 IS NULL" },
        );
        self.readers.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut items = Vec::with_capacity(limit.min(128));
            for range in &plan.ranges {
                let wanted = count((limit - items.len()) as u64);
                let (challenge, status) = (&filter.challenge, filter.status.map(Status::as_str));
                let mut rows = statement.query(params![range.start(), range.end(), wanted, skip, challenge, status])?;
                while let Some(row) = rows.next()? {
                    items.push(read_session(row)?.1);
                }
                skip = 0;
                if items.len() >= limit {
                    break;
                }
            }
            Ok(items)
        })
    }
}

/// Reads the stored counts, or recomputes them if they are impossible. Other wrong counts are found by
/// `Store::check_derived`, which a server calls after its start, because it reads all sessions.
///
/// The flag is true if the counts are possible.
fn read_or_mend_counts(db: &mut Db) -> Result<(Counts, bool), StoreError> {
    let found = at_once(read_counts(db))?;
    if found.1 {
        return Ok(found);
    }
    at_once(db.batch(&format!("BEGIN; {COUNT_SESSIONS}; COMMIT")))?;
    tracing::warn!("the counts of sessions were impossible and were recomputed");
    at_once(read_counts(db))
}

/// Recounts games if the stored standings have another scoring than the arena, or if an older program without scoring
/// created the store.
fn count_games(db: &mut Db, mirror: &Mirror) -> Result<(), StoreError> {
    if at_once(counted_by(db))?.is_none() {
        at_once(db.batch("BEGIN"))?;
        if let Db::Sqlite(connection) = db {
            count_endings(connection, mirror)?;
        }
        at_once(note_scoring(db, &mirror.scoring()))?;
        at_once(db.batch("COMMIT"))?;
    }
    Ok(at_once(follow_scoring(db, &mirror.scoring()))?)
}

/// The number of sessions that one step counts.
const PAGE: usize = 500;

/// Counts every ended session, in the order of the endings. The store must not have counted any of them before.
fn count_endings(connection: &Connection, mirror: &Mirror) -> Result<(), Failure> {
    let scoring = mirror.scoring();
    let (statements, counting) = (Statements::new(), Counting { scoring: &scoring, ranked: &[] });
    let sql = format!("SELECT {} FROM sessions WHERE status = 'ended' ORDER BY ended_at, no", columns::<Sessions>(""));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let (mut all, mut numbers) = (Delta::default(), Numbers::default());
    loop {
        let mut ended = Vec::new();
        while ended.len() < PAGE
            && let Some(row) = rows.next()?
        {
            ended.extend(read_or_pass_over(row)?);
        }
        if ended.is_empty() {
            break;
        }
        let transitions: Vec<BatchItem<'_>> =
            ended.iter().map(|(no, session)| BatchItem::Ended(*no, session)).collect();
        let applied = write_transitions(connection, &statements, &transitions, &counting, numbers, true)?;
        numbers = applied.numbers;
        all.merge(applied.effects.delta);
    }
    write_delta(connection, &all, mirror)?;
    Ok(())
}
