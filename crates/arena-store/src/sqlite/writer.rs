//! The writer, the only thread that commits. It combines all waiting writes in one transaction.
//!
//! Each caller waits for its own commit. Commits that arrive during an fsync are combined in the next transaction, so
//! that they share the cost of one fsync.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::batch::{Statements, write_delta, write_transitions};
use super::checkpoints::{Checkpoints, checkpoint};
use super::connection::BUSY_TIMEOUT;
use super::mark;
use super::mark::Mark;
use crate::derived::counts::read_counts;
use crate::errors::{Failure, WriteError};
use crate::mirror::{Effects, Mirror, Verdict};
use crate::plan::{BatchItem, BatchOutcome, Counting, Done};
use crate::queue::{Job, JobQueue, Waiting};
use crate::sql::{Db, at_once};
use crate::writing::{Writing, read_numbers};
use crate::{CommitError, StoreError, derived};

/// The maximum number of writes in one transaction. It limits the wait of the first write.
const MAX_BATCH: usize = 1024;

/// The time for which the writer gathers commits if several callers are committing. It is about the duration of a
/// commit. Measured with 64 connections, 0.2 to 0.4 ms give the most games per second and the shortest p99.
const GATHER: Duration = Duration::from_micros(250);

/// The interval between attempts to empty the write-ahead log after content was erased.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A handle to the writer's thread. After it is dropped, the thread finishes the queued writes and ends.
pub(crate) struct SqliteWriter {
    pub(crate) queue: JobQueue,
    thread: Option<JoinHandle<()>>,
    mirror: Mirror,
}

impl SqliteWriter {
    pub(super) fn start(mut db: Db, file: &Path, mirror: Mirror) -> Result<SqliteWriter, StoreError> {
        let numbers = at_once(read_numbers(&mut db))?;
        let Db::Sqlite(mut connection) = db else { return Err(StoreError::Closed) };
        connection.set_prepared_statement_cache_capacity(32);
        let checkpoints = Checkpoints::start(&mut connection, file)?;
        let unusable = |error| StoreError::Database(format!("cannot open the mark of the write-ahead log: {error}"));
        let mark = Mark::open(file).map_err(unusable)?;
        let (jobs, waiting) = channel();
        let writing = Writing {
            db: Db::Sqlite(connection),
            scoring: mirror.scoring(),
            numbers,
            effects: Effects::default(),
            changed: BTreeSet::new(),
            locks: None,
        };
        let (mirror_of_state, statements) = (mirror.clone(), Statements::new());
        let mut state =
            SqliteWriterState { writing, mirror: mirror_of_state, statements, checkpoints, mark, erased: None };
        let thread = std::thread::Builder::new()
            .name("arena-store".to_owned())
            .spawn(move || {
                let _end_guard = state.mirror.health.end_guard();
                state.run(&waiting);
            })
            .map_err(|error| StoreError::Database(format!("the writer's thread cannot be started: {error}")))?;
        Ok(SqliteWriter { queue: JobQueue::Thread(jobs), thread: Some(thread), mirror })
    }

    pub(super) async fn check(&self) -> Result<(), CommitError> {
        const WRITE: &str = "INSERT INTO notes (name, value) VALUES ('probe', '1')
             ON CONFLICT DO UPDATE SET value = CASE value WHEN '1' THEN '2' ELSE '1' END";
        // As large as the largest request by default. The next small write removes it.
        const WRITE_MUCH: &str = "INSERT INTO notes (name, value) VALUES ('probe', hex(zeroblob(524288)))
             ON CONFLICT DO UPDATE SET value = excluded.value";
        // The writer's transactions begin as write transactions, so a read-only file refuses them.
        const BEGIN: &str = "SELECT count(*) FROM notes";
        self.mirror
            .health
            .check(|verdict| {
                self.queue.write(verdict, |verdict, writing| {
                    Box::pin(async move {
                        match verdict {
                            Verdict::AskToWrite => writing.db.execute(WRITE, &[]).await.map(drop)?,
                            Verdict::AskToProve => {
                                // A probe that is there already would change no page.
                                writing.db.execute(WRITE, &[]).await?;
                                writing.db.execute(WRITE_MUCH, &[]).await.map(drop)?;
                            }
                            _ => writing.db.number(BEGIN, &[]).await.map(drop)?,
                        }
                        Ok(())
                    })
                })
            })
            .await
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        self.queue = JobQueue::Closed;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer panicked");
        }
    }
}

struct SqliteWriterState {
    /// The connection with the last assigned numbers.
    writing: Writing,
    mirror: Mirror,
    statements: Statements,
    checkpoints: Checkpoints,
    mark: Mark,
    /// The time of the last failed attempt to empty the write-ahead log after content was erased.
    erased: Option<Instant>,
}

impl SqliteWriterState {
    fn connection(&self) -> &Connection {
        match &self.writing.db {
            Db::Sqlite(connection) => connection,
            Db::Postgres(_) | Db::Reader(_) => unreachable!("this writer only has connections to SQLite"),
        }
    }

    fn run(&mut self, waiting: &Receiver<Waiting>) {
        let mut last_batch = 0;
        loop {
            let wait = self.erased.map(|_| TRY_AGAIN).or(self.mark.is_due().then_some(mark::EVERY));
            let first = match wait {
                None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => waiting.recv_timeout(wait),
            };
            if self.erased.is_some_and(|tried| tried.elapsed() >= TRY_AGAIN) {
                self.empty_log();
            }
            let first = match first {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    self.mark.write();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut batch = vec![first];
            // If several callers commit, a short wait lets more commits share the fsync. Fewer and larger transactions
            // cost less in total. A single caller doesn't wait.
            if last_batch > 1 {
                std::thread::sleep(GATHER);
            }
            while batch.len() < MAX_BATCH
                && let Ok(job) = waiting.try_recv()
            {
                batch.push(job);
            }
            last_batch = batch.len();
            // A panic drops the batch, so its callers learn that the result is unknown. The mirror is read again,
            // since the panic may have occurred between a commit and its effects on the mirror.
            self.mirror.health.begin();
            if catch_unwind(AssertUnwindSafe(|| self.commit_batch(batch, false))).is_err() {
                self.mirror.health.fail();
                tracing::error!("the store's writer panicked; it continues from the database's content");
                self.roll_back();
                self.read_again();
            }
            self.mark.note(self.checkpoints.pages());
            self.advance_checkpoint();
            self.mirror.health.rest();
        }
        self.checkpoints.stop();
        // The final checkpoint empties the write-ahead log, so that the next start has nothing to recover.
        match checkpoint(self.connection(), "TRUNCATE") {
            Ok(is_blocked) if !is_blocked => self.mark.reset(),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the final checkpoint of the write-ahead log failed: {error}"),
        }
    }

    fn advance_checkpoint(&mut self) {
        match &self.writing.db {
            Db::Sqlite(connection) => self.checkpoints.advance(connection),
            Db::Postgres(_) | Db::Reader(_) => unreachable!("this writer only has connections to SQLite"),
        }
    }

    /// Reads the mirrored data and the last assigned numbers from the database.
    fn read_again(&mut self) {
        self.read_numbers();
        match at_once(read_counts(&mut self.writing.db)) {
            Ok(counts) => self.mirror.set_counts(counts),
            Err(error) => tracing::error!(%error, "the counts of sessions cannot be read: {error}"),
        }
        self.mirror.rankings.forget_all();
    }

    /// Reads the last assigned numbers again, because a row that was added by hand may have used the next number.
    fn read_numbers(&mut self) {
        match at_once(read_numbers(&mut self.writing.db)) {
            Ok(numbers) => self.writing.numbers.read_again(numbers),
            Err(error) => tracing::error!(%error, "the last assigned numbers cannot be read: {error}"),
        }
    }

    fn roll_back(&mut self) {
        // SQLite may have rolled back the transaction already.
        if !self.connection().is_autocommit()
            && let Err(error) = self.connection().execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction cannot be rolled back: {error}");
        }
    }

    /// Commits a batch and sends the results to its callers. With `careful`, a violated constraint is final.
    fn commit_batch(&mut self, mut batch: Vec<Waiting>, careful: bool) {
        match self.try_batch(&mut batch, careful) {
            Ok(done) => batch.into_iter().zip(done).for_each(|(waiting, done)| finish(waiting, done)),
            // One write has violated a constraint that only the database detects, such as a used index in a channel, or
            // an answer that is already stored. The writer tries each write alone, so that the others don't fail.
            Err(Failure::Constraint) if !careful => {
                self.read_numbers();
                for waiting in batch {
                    self.commit_batch(vec![waiting], true);
                }
            }
            Err(failure) => {
                if matches!(failure, Failure::Unsure) {
                    self.read_again();
                }
                let error = match failure {
                    Failure::Constraint => None,
                    failure => Some(StoreError::from(failure)),
                };
                if error.is_some() {
                    self.mirror.health.fail();
                }
                for waiting in batch {
                    finish(waiting, Err(error.clone().map_or(CommitError::Conflict, CommitError::Unavailable)));
                }
            }
        }
    }

    /// After an error, no part of the batch is stored, except possibly after [`Failure::Unsure`].
    fn try_batch(&mut self, batch: &mut [Waiting], careful: bool) -> Result<Vec<WriteOutcome>, Failure> {
        let numbers = self.writing.numbers;
        let written = at_once(self.writing.db.execute("BEGIN IMMEDIATE", &[]))
            .and_then(|_| self.write_batch(batch, careful))
            .and_then(|written| at_once(self.writing.db.execute("COMMIT", &[])).map(|_| written));
        let OpenTransaction { done, effects, wrote } = written.inspect_err(|_| {
            self.roll_back();
            self.writing.numbers = numbers;
        })?;
        self.mirror.health.succeed(wrote);
        self.mirror.show(&effects);
        if effects.mend {
            self.read_again();
        }
        if effects.erased {
            self.empty_log();
        }
        Ok(done)
    }

    fn write_batch(&mut self, batch: &mut [Waiting], careful: bool) -> Result<OpenTransaction, Failure> {
        let before = self.connection().total_changes();
        let (mut done, mut all) = (Vec::with_capacity(batch.len()), Effects::default());
        let ranked = self.mirror.rankings.in_use();
        let scoring = self.mirror.scoring();
        let counting = Counting { scoring: &scoring, ranked: &ranked };
        let mut rest = batch;
        while let Some(first) = rest.first_mut() {
            if let Waiting::Other(job) = first {
                done.push(self.write_other(&mut **job, &mut all)?);
                rest = &mut rest[1..];
                continue;
            }
            // Adjacent transitions are decided together.
            let transitions: Vec<BatchItem<'_>> = rest
                .iter()
                .map_while(|waiting| match waiting {
                    Waiting::Item(queued) => Some(queued.transition()),
                    Waiting::Other(_) => None,
                })
                .collect();
            let (connection, numbers) = (self.connection(), self.writing.numbers);
            let applied = write_transitions(connection, &self.statements, &transitions, &counting, numbers, careful)?;
            let BatchOutcome { done: results, numbers, effects } = applied;
            self.writing.numbers = numbers;
            all.merge(effects);
            let len = transitions.len();
            done.extend(results.into_iter().map(|result| result.map(Some)));
            rest = &mut rest[len..];
        }
        let suspect = write_delta(self.connection(), &all.delta, &self.mirror)?;
        all.suspect = suspect.or(all.suspect);
        if all.mend {
            at_once(derived::mend(&mut self.writing))?;
        }
        let wrote = self.connection().total_changes() > before;
        Ok(OpenTransaction { done, effects: all, wrote })
    }

    /// Runs a write that isn't a transition. A savepoint allows a rollback of this write alone.
    fn write_other(&mut self, job: &mut dyn Job, all: &mut Effects) -> Result<WriteOutcome, Failure> {
        let numbers = self.writing.numbers;
        self.connection().execute_batch("SAVEPOINT job")?;
        let applied = at_once(job.apply(&mut self.writing));
        let effects = std::mem::take(&mut self.writing.effects);
        let outcome = match applied {
            Ok(()) => {
                all.merge(effects);
                Ok(None)
            }
            Err(WriteError::Failed(failure)) => return Err(failure),
            Err(WriteError::Refused(error)) => {
                self.connection().execute_batch("ROLLBACK TO job")?;
                self.writing.numbers = numbers;
                Err(error)
            }
        };
        self.connection().execute_batch("RELEASE job")?;
        Ok(outcome)
    }

    /// Moves the write-ahead log to the database file and empties the log, so that the log contains no erased content.
    /// If a reader of an older state prevents this, the writer tries again later.
    fn empty_log(&mut self) {
        let connection = self.connection();
        let is_blocked = connection.busy_timeout(Duration::ZERO).and_then(|()| checkpoint(connection, "TRUNCATE"));
        match is_blocked {
            Ok(false) => {
                self.erased = None;
                self.mark.reset();
            }
            Ok(true) => self.erased = Some(Instant::now()),
            Err(error) => {
                tracing::warn!(%error, "erased content cannot be removed from the write-ahead log yet: {error}; retrying");
                self.erased = Some(Instant::now());
            }
        }
        if let Err(error) = self.connection().busy_timeout(BUSY_TIMEOUT) {
            tracing::warn!(%error, "the database's busy timeout cannot be set: {error}");
        }
    }
}

/// `None` for a write that isn't a transition, because such a write sends its own result.
type WriteOutcome = Result<Option<Done>, CommitError>;

/// A transaction that isn't durable yet.
struct OpenTransaction {
    done: Vec<WriteOutcome>,
    effects: Effects,
    wrote: bool,
}

/// Sends the result of a write to its caller: after the commit, or with the reason why there was none.
fn finish(waiting: Waiting, outcome: WriteOutcome) {
    match waiting {
        Waiting::Item(queued) => {
            queued.finish(outcome.and_then(|done| done.ok_or(CommitError::Unavailable(StoreError::Unsure))));
        }
        Waiting::Other(job) => job.finish(outcome.map(drop)),
    }
}
