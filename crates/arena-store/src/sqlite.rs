//! The SQLite store: one file in the data folder, one writer thread, readers beside it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arena_model::{Channel, ChatMessage, InviteCode, Scoring, Session, SessionId, Status, Timestamp};
use parking_lot::{Mutex, RwLock};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::counts::{Counts, Delta};
use crate::derived::{self, Mend, Suspicion, Wrong};
use crate::ranking::Rankings;
use crate::rows::{SESSION_COLUMNS, channel_number, read_message, read_session};
use crate::standings::follow_scoring;
use crate::writer::{self, Writer};
use crate::{Commit, CommitError, Due, Page, SessionFilter, SessionNo, StoreError, StoredAnswer, StoredSession};

/// Migrations in order; the schema version of a store is how many of them it has seen. Forwards only.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/sqlite/0001_sessions.sql"),
    include_str!("../migrations/sqlite/0002_users.sql"),
    include_str!("../migrations/sqlite/0003_leagues.sql"),
    include_str!("../migrations/sqlite/0004_usage.sql"),
    include_str!("../migrations/sqlite/0005_scripts.sql"),
    include_str!("../migrations/sqlite/0006_unattended.sql"),
    include_str!("../migrations/sqlite/0007_ids.sql"),
    include_str!("../migrations/sqlite/0008_rules.sql"),
    include_str!("../migrations/sqlite/0009_boards.sql"),
];

/// The database in the data folder.
const FILE: &str = "arena.sqlite3";

/// How long to wait for somebody else who uses the database, with another program.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a start waits for an arena that is ending in the same folder. Also, whatever the last one was just starting when it ended
/// holds its lock until it has begun.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(1);

/// Most connections that are kept for the next readers; about as many as ever read at the same time.
const IDLE_READERS: usize = 32;

/// Finds a session by its id, `?1`, in the words of its index.
pub(crate) const BY_ID: &str = "substr(id, -12) = substr(?1, -12) AND id = ?1";

/// Finds an invite by its code, `?1`.
pub(crate) const BY_CODE: &str = "made = substr(?1, -12) AND code = ?1";

/// The store of one data folder. Only one process at a time has it open.
pub struct SqliteStore {
    // Fields drop in this order. The writer's is the last connection, which tidies up; then the lock on the folder goes.
    pub(crate) readers: Readers,
    pub(crate) writer: Writer,
    pub(crate) counts: Arc<RwLock<Counts>>,
    pub(crate) scoring: Arc<Scoring>,
    pub(crate) rankings: Arc<Rankings>,
    pub(crate) suspicion: Arc<Suspicion>,
    /// Held by whoever reads a leaderboard into memory.
    pub(crate) loading: tokio::sync::Mutex<()>,
    _lock: FolderLock,
}

/// A data folder that is this process's, for as long as this lives. The system lets go of it at any death.
pub struct FolderLock(#[expect(dead_code, reason = "held, not used")] File);

/// Connections to read with. Clones are handles to the same ones.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Pool>);

struct Pool {
    idle: Mutex<Vec<Connection>>,
    file: PathBuf,
}

impl SqliteStore {
    /// Opens the store of a data folder, and makes both if need be. `scoring` says what ended games count for; if it isn't
    /// the one that they were counted by, they are counted anew first.
    ///
    /// # Errors
    /// If the folder can't be used, another process uses it, or a newer program made it.
    pub fn open(folder: &Path, scoring: Scoring) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_counted(folder, scoring, follow_scoring)
    }

    /// Opens the store as [`Store::open`] does, and leaves what ended games count for as it is: for those who neither end
    /// sessions nor look at standings, and so needn't know by what they are counted.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_as_counted(folder: &Path) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_counted(folder, Scoring::default(), |_, _| Ok(()))
    }

    fn open_counted(
        folder: &Path,
        scoring: Scoring,
        count: impl FnOnce(&mut Connection, &Scoring) -> Result<(), StoreError>,
    ) -> Result<SqliteStore, StoreError> {
        let lock = FolderLock::take(folder)?;
        let file = folder.join(FILE);
        let mut connection = open_writable(&file).map_err(|error| StoreError::Folder {
            folder: folder.display().to_string(),
            reason: format!("{FILE}: {error}"),
        })?;
        migrate(&mut connection)?;
        let counts = Arc::new(RwLock::new(read_or_mend_counts(&mut connection)?));
        count(&mut connection, &scoring)?;
        let (scoring, rankings) = (Arc::new(scoring), Arc::new(Rankings::default()));
        let suspicion = Arc::<Suspicion>::default();
        let writer = Writer::start(
            connection,
            Arc::clone(&counts),
            Arc::clone(&scoring),
            Arc::clone(&rankings),
            Arc::clone(&suspicion),
        )?;
        let readers = Readers(Arc::new(Pool { idle: Mutex::new(Vec::new()), file }));
        Ok(SqliteStore {
            readers,
            writer,
            counts,
            scoring,
            rankings,
            suspicion,
            loading: tokio::sync::Mutex::new(()),
            _lock: lock,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        let file = &self.readers.0.file;
        let log = file.with_extension("sqlite3-wal");
        [file, &log].into_iter().filter_map(|file| fs::metadata(file).ok()).map(|data| data.len()).sum()
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        self.writer.commit(commit).await
    }

    pub(crate) async fn check_writing(&self) -> Result<(), CommitError> {
        self.writer.check().await
    }

    pub(crate) async fn forget_answers(&self, before: Timestamp) -> Result<(), CommitError> {
        while self.writer.write(move |writing| Ok(writer::forget_answers(writing.connection, before)?)).await? {}
        Ok(())
    }

    pub(crate) async fn find_answer(&self, key: &[u8; 32]) -> Result<Option<StoredAnswer>, StoreError> {
        self.read(|connection| Ok(writer::find_answer(connection, key)?))
    }

    pub(crate) async fn find_session(&self, id: SessionId) -> Result<Option<StoredSession>, StoreError> {
        let sql = format!("SELECT {SESSION_COLUMNS} FROM sessions WHERE {BY_ID}");
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([id.to_string()])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            let (no, session) = read_session(row)?;
            let mut last_activity = session.facts.created_at;
            let mut len = |channel: Channel| -> Result<u64, StoreError> {
                let last: Option<(i64, i64)> = connection
                    .prepare_cached(
                        "SELECT idx, at FROM messages WHERE session = ?1 AND channel = ?2 ORDER BY idx DESC LIMIT 1",
                    )?
                    .query_row(params![no.0, channel_number(channel)], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()?;
                let (index, at) = last.unwrap_or((0, last_activity.0));
                last_activity = last_activity.max(Timestamp(at));
                Ok(index.unsigned_abs())
            };
            let (chat_len, operator_len) = (len(Channel::Chat(id))?, len(Channel::Operator(id))?);
            Ok(Some(StoredSession { no, session, chat_len, operator_len, last_activity }))
        })
    }

    pub(crate) async fn find_invite(&self, invite: InviteCode) -> Result<Option<SessionId>, StoreError> {
        self.read(|connection| {
            let sql = format!("SELECT (SELECT id FROM sessions WHERE no = session) FROM invites WHERE {BY_CODE}");
            let id: Option<String> =
                connection.prepare_cached(&sql)?.query_row([invite.to_string()], |row| row.get(0)).optional()?;
            id.map(|id| id.parse().map_err(|error| StoreError::damaged(&id, error))).transpose()
        })
    }

    pub(crate) async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT idx, at, sender, recipient, method, content, hidden FROM messages
                 WHERE session = ?1 AND channel = ?2 AND idx >= ?3 ORDER BY idx LIMIT ?4",
            )?;
            let from = i64::try_from(from).unwrap_or(i64::MAX);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut rows = statement.query(params![no.map_or(0, |no| no.0), channel_number(channel), from, limit])?;
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

    pub(crate) async fn public_len(&self) -> Result<u64, StoreError> {
        self.read(|connection| {
            let last: Option<i64> = connection.query_row(
                "SELECT max(idx) FROM messages WHERE session = 0 AND channel = ?1",
                [channel_number(Channel::Invites)],
                |row| row.get(0),
            )?;
            Ok(last.unwrap_or(0).unsigned_abs())
        })
    }

    pub(crate) async fn list_sessions(
        &self,
        filter: &SessionFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Page<Session>, StoreError> {
        let plan = self.counts.read().find_page(filter, offset, limit);
        let mut skip = i64::try_from(plan.skip).unwrap_or(i64::MAX);
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE no BETWEEN ?1 AND ?2 {} {} ORDER BY no DESC LIMIT ?3 OFFSET ?4",
            if filter.challenge.is_some() { "AND type = ?5" } else { "AND ?5 IS NULL" },
            if filter.status.is_some() { "AND status = ?6" } else { "AND ?6 IS NULL" },
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut items = Vec::with_capacity(limit.min(128));
            for range in &plan.ranges {
                let wanted = i64::try_from(limit - items.len()).unwrap_or(i64::MAX);
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
            Ok(Page { items, total: plan.total })
        })
    }

    pub(crate) fn count_sessions(&self, filter: &SessionFilter) -> u64 {
        self.counts.read().find_page(filter, 0, 0).total
    }

    pub(crate) async fn list_due(&self, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, wake_at FROM sessions WHERE wake_at IS NOT NULL AND wake_at <= ?1 ORDER BY wake_at LIMIT ?2",
            )?;
            let mut rows = statement.query(params![now.0, i64::try_from(limit).unwrap_or(i64::MAX)])?;
            let mut due = Vec::new();
            while let Some(row) = rows.next()? {
                let id: String = row.get(0)?;
                let id = id.parse().map_err(|error| StoreError::damaged(&id, error))?;
                due.push(Due { id, at: Timestamp(row.get(1)?) });
            }
            Ok(due)
        })
    }

    pub(crate) async fn find_next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection| {
            let at: Option<i64> = connection
                .prepare_cached("SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL")?
                .query_row([], |row| row.get(0))?;
            Ok(at.map(Timestamp))
        })
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.readers.read(read)
    }
}

impl Readers {
    /// Of the store in a folder, which another process may have open and write to meanwhile. `None` if there is no store, or
    /// an older program made it and nobody has opened it since.
    ///
    /// # Errors
    /// If it can't be read, or a newer program made it.
    pub(crate) fn beside_others(folder: &Path) -> Result<Option<Readers>, StoreError> {
        let file = folder.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        let readers = Readers(Arc::new(Pool { idle: Mutex::new(Vec::new()), file }));
        let (found, known) = (readers.read(read_version)?, MIGRATIONS.len() as i64);
        match found.cmp(&known) {
            Ordering::Less => Ok(None),
            Ordering::Equal => Ok(Some(readers)),
            Ordering::Greater => Err(StoreError::Newer { found, known }),
        }
    }

    /// Runs a read on a connection of its own. Most are short (an index look-up and a page), and run where they are
    /// called; long ones belong on a thread for blocking work.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.0.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let result = read(&connection);
        let mut idle = self.0.idle.lock();
        if idle.len() < IDLE_READERS {
            idle.push(connection);
        }
        result
    }

    fn open(&self) -> Result<Connection, StoreError> {
        // Without its own mutex: a connection is only ever used by whoever took it out of the list.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.0.file, flags)?;
        configure(&connection)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }
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
    // Plans that don't look at bound values: compiling a statement at each binding costs more than running it (docs/decisions/0010).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

impl FolderLock {
    /// Takes a data folder for this process, and makes it if need be.
    ///
    /// # Errors
    /// If the folder can't be used, or another process uses it.
    pub fn take(folder: &Path) -> Result<FolderLock, StoreError> {
        let refuse = |error: std::io::Error| StoreError::Folder {
            folder: folder.display().to_string(),
            reason: error.to_string(),
        };
        // For its owner only: seeds, and what players hold in games that go on, are in there.
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refuse)?;
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(folder.join("arena.lock"))
            .map_err(refuse)?;
        let until = Instant::now() + WAIT_FOR_LOCK;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    let _ = lock.read_to_string(&mut holder);
                    let holder = if holder.trim().is_empty() { "unknown".to_owned() } else { holder.trim().to_owned() };
                    return Err(StoreError::InUse { folder: folder.display().to_string(), holder });
                }
                Err(TryLockError::Error(error)) => return Err(refuse(error)),
            }
        }
        lock.set_len(0).map_err(refuse)?;
        lock.rewind().map_err(refuse)?;
        writeln!(lock, "{}", std::process::id()).map_err(refuse)?;
        Ok(FolderLock(lock))
    }
}

/// How many migrations a database has seen.
fn read_version(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = read_version(connection)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    // An index of a large table is sorted in files rather than in memory.
    connection.pragma_update(None, "temp_store", "FILE")?;
    for (done, migration) in MIGRATIONS.iter().enumerate().skip(found.unsigned_abs() as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", done as i64 + 1)?;
        transaction.commit()?;
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// The counts as stored, as far as they can be counts. Also if all of them can.
pub(crate) fn read_counts(connection: &Connection) -> Result<(Counts, bool), StoreError> {
    let mut sessions = BTreeMap::new();
    let mut possible = true;
    let mut statement = connection.prepare("SELECT block, type, status, n FROM session_counts WHERE n <> 0")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = || -> Option<_> {
            let status = Status::from_wire(row.get_ref(2).ok()?.as_str().ok()?)?;
            Some(((row.get(0).ok()?, row.get(1).ok()?, status), row.get(3).ok()?))
        };
        match key() {
            Some((key, n)) => drop(sessions.insert(key, n)),
            None => possible = false,
        }
    }
    let mut counts = Counts::default();
    possible &= counts.apply(&Delta { sessions, ..Delta::default() });
    Ok((counts, possible))
}

/// The counts as stored, or made again if they can't be right: whatever their types and states, together they are the number of
/// sessions, which an index tells in milliseconds.
fn read_or_mend_counts(connection: &mut Connection) -> Result<Counts, StoreError> {
    let (counts, possible) = read_counts(connection)?;
    let sessions: i64 = connection.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))?;
    if possible && counts.all() == sessions.unsigned_abs() {
        return Ok(counts);
    }
    let transaction = connection.transaction()?;
    derived::mend(&transaction, &Scoring::default(), &Mend::Counts)?;
    transaction.commit()?;
    Wrong { counts: true, ..Wrong::default() }.tell();
    Ok(read_counts(connection)?.0)
}
