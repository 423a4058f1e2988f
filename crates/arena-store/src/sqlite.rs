//! The SQLite store: one file in the data folder, one writer thread, and connections for readers.

mod batch;
mod checkpoints;
mod mark;
mod writer;

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use arena_model::{Channel, ChatMessage, Scoring, Session, Status};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, params};

use self::batch::{Statements, write_delta, write_transitions};
use self::writer::SqliteWriter;
use crate::derived::counts::{COUNT_SESSIONS, read_counts};
use crate::derived::standings::{counted_by, follow_scoring, note_scoring};
use crate::errors::Failure;
use crate::mirror::Mirror;
use crate::mirror::counts::{Counts, Delta, PagePlan};
use crate::mirror::ranking::Rankings;
use crate::numbers::Numbers;
use crate::plan::BatchItem;
use crate::plan::counting::Counting;
use crate::sql::db::{Db, at_once, each_of_sqlite};
use crate::sql::dialect::{Dialect, columns};
use crate::sql::value::{Columns, Value, count};
use crate::tables::messages::{Messages, channel_number, read_message};
use crate::tables::migrations::SQLITE;
use crate::tables::sessions::{Sessions, read_or_pass_over, read_session};
use crate::{CommitError, SessionFilter, SessionNo, StoreError};

const FILE: &str = "arena.sqlite3";

/// The time to wait for another program that uses the database.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for which a start waits for an arena that is stopping in the same folder. A child process that the other
/// arena has just started also holds the lock until the child executes its program.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(1);

/// The maximum number of idle connections kept for later readers. About that of readers at the highest load.
const IDLE_READERS: usize = 32;

/// The store of one data folder. Only one process at a time can open it.
pub struct SqliteStore {
    // Rust drops the fields in this order. The writer has the last connection, which empties the write-ahead log when
    // it closes. After that, the lock on the folder is released.
    pub(crate) readers: SqliteReaders,
    pub(crate) writer: SqliteWriter,
    pub(crate) mirror: Mirror,
    _lock: FolderLock,
}

/// The lock of this process on a data folder. The system releases it even if the process is killed.
pub struct FolderLock {
    /// The folder itself, so that the removal of a file in it doesn't release the lock.
    _folder: File,
    /// The file that older programs lock, which contains the process id.
    _file: File,
}

/// The name of the file with the process id of the program that uses the folder.
const LOCK: &str = "arena.lock";

/// A pool of connections for reading. Clones share the pool.
#[derive(Clone)]
pub(crate) struct SqliteReaders(Arc<Pool>);

struct Pool {
    idle: Mutex<Vec<Connection>>,
    file: PathBuf,
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
        mirror.set_counts((read_or_mend_counts(&mut db)?, true));
        count(&mut db, &mirror)?;
        let writer = SqliteWriter::start(db, &file, mirror.clone())?;
        let readers = SqliteReaders(Arc::new(Pool { idle: Mutex::new(Vec::new()), file }));
        Ok(SqliteStore { readers, writer, mirror, _lock: lock })
    }

    pub(crate) fn bytes(&self) -> u64 {
        let file = &self.readers.0.file;
        let log = file.with_extension("sqlite3-wal");
        [file, &log].into_iter().filter_map(|file| fs::metadata(file).ok()).map(|data| data.len()).sum()
    }

    pub(crate) async fn check_writing(&self) -> Result<(), CommitError> {
        let lost = mark::lost_file(&self.readers.0.file);
        if lost.exists() {
            return Err(StoreError::Lost { file: lost.display().to_string() }.into());
        }
        self.writer.check().await
    }

    pub(crate) fn list<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        self.readers.list(sql, values, read)
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
        self.read(|connection| {
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
        self.read(|connection| {
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

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.readers.read(read)
    }
}

impl SqliteReaders {
    /// Runs a read on a connection of its own. Most reads are short (an index lookup and a page) and run on the
    /// calling thread; long reads belong on a thread for blocking work.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = self.take()?;
        let result = read(&connection);
        self.give_back(connection);
        result
    }

    pub(crate) fn list<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut list = Vec::new();
        self.read(|connection| {
            Ok(each_of_sqlite(connection, &Dialect::Sqlite.sql(sql), values, &mut |row| {
                list.push(read(row)?);
                Ok(())
            })?)
        })?;
        Ok(list)
    }

    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.0.idle.lock().pop();
        idle.map_or_else(|| self.open(), Ok)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.0.idle.lock();
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
    }

    fn open(&self) -> Result<Connection, StoreError> {
        // The connection needs no mutex: only one caller at a time uses it, after taking it from the list.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.0.file, flags)?;
        configure(&connection)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }
}

/// Makes the files of a store readable by their owner only, and creates the first of them. SQLite gives the others its
/// permissions.
///
/// # Errors
/// If a file can't be created or changed.
fn keep_private(file: &Path) -> std::io::Result<()> {
    // No connection is open yet: closing a file drops the locks of this process's connections to it.
    match File::options().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        created => return created.map(drop),
    }
    for end in ["sqlite3", "sqlite3-wal", "sqlite3-shm"] {
        let file = file.with_extension(end);
        match fs::metadata(&file) {
            Ok(found) if found.permissions().mode() & 0o077 != 0 => {
                fs::set_permissions(file, Permissions::from_mode(0o600))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn open_writable(file: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open(file)?;
    configure(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -32 * 1024)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    // The query planner must ignore bound values. If it used them, SQLite would compile a statement for each binding,
    // which costs more than its execution (docs/decisions/0010).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

impl FolderLock {
    /// Locks a data folder for this process, and creates the folder if necessary.
    ///
    /// # Errors
    /// If the folder can't be used, or another process uses it.
    pub fn take(folder: &Path) -> Result<FolderLock, StoreError> {
        let refuse = |error: std::io::Error| StoreError::Folder {
            folder: folder.display().to_string(),
            reason: error.to_string(),
        };
        // Only its owner may read the folder: it contains seeds and the hidden information of games in progress.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refuse)?;
        keep_from_writing(folder)?;
        let in_use = || {
            let holder = fs::read_to_string(folder.join(LOCK)).unwrap_or_default();
            let holder = if holder.trim().is_empty() { "unknown" } else { holder.trim() }.to_owned();
            StoreError::InUse { folder: folder.display().to_string(), holder }
        };
        let until = Instant::now() + WAIT_FOR_LOCK;
        let of_folder = File::open(folder).map_err(refuse)?;
        // Some network file systems can't lock folders. The lock of the file is left then.
        if let Ok(false) = lock_until(&of_folder, until) {
            return Err(in_use());
        }
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join(LOCK))
            .map_err(refuse)?;
        if !lock_until(&file, until).map_err(refuse)? {
            return Err(in_use());
        }
        file.set_len(0).map_err(refuse)?;
        writeln!(file, "{}", std::process::id()).map_err(refuse)?;
        Ok(FolderLock { _folder: of_folder, _file: file })
    }
}

/// Locks a file or folder. Returns false if another process has the lock until `until`.
fn lock_until(file: &File, until: Instant) -> std::io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Takes the permission to write in a data folder from all but its owner.
///
/// # Errors
/// If the permissions can't be changed, or the folder is a common one such as `/tmp`.
fn keep_from_writing(folder: &Path) -> Result<(), StoreError> {
    const OTHERS: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let refuse = |why: &dyn std::fmt::Display| StoreError::Folder {
        folder: folder.display().to_string(),
        reason: format!("other users can write in it, {why}; use a new folder inside of it, or run chmod go-w"),
    };
    let found = fs::metadata(folder).map_err(|error| refuse(&error))?;
    let mode = found.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    if mode & STICKY != 0 {
        return Err(refuse(&"and it isn't for the arena only"));
    }
    fs::set_permissions(folder, Permissions::from_mode(mode & !OTHERS))
        .map_err(|error| refuse(&format_args!("and this can't be changed: {error}")))?;
    let folder = folder.display();
    tracing::warn!("other users could write in the data folder {folder}; only its owner can now");
    Ok(())
}

/// Returns the number of migrations that were applied to a database.
fn read_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = read_version(connection)?;
    let known = SQLITE.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    // New indexes of large tables are sorted in files rather than in memory.
    connection.pragma_update(None, "temp_store", "FILE")?;
    for (done, migration) in SQLITE.iter().enumerate().skip(found.unsigned_abs() as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", done as i64 + 1)?;
        transaction.commit()?;
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Reads the stored counts, or recomputes them if they are impossible. Other wrong counts are found by
/// `Store::check_derived`, which a server calls after its start, because it reads all sessions.
fn read_or_mend_counts(db: &mut Db) -> Result<Counts, StoreError> {
    let (counts, possible) = at_once(read_counts(db))?;
    if possible {
        return Ok(counts);
    }
    at_once(db.batch(&format!("BEGIN; {COUNT_SESSIONS}; COMMIT")))?;
    tracing::warn!("the counts of sessions were impossible and were recomputed");
    Ok(at_once(read_counts(db))?.0)
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
