//! The one writer: a thread that commits whatever is waiting as one transaction.
//!
//! Callers wait for their own commit. While one transaction is on its way to the disk the next commits gather, so the
//! cost of an fsync is shared by all that wait for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arena_model::{Channel, ChatMessage, Phase, Scoring, Session, Status};
use parking_lot::RwLock;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::oneshot;

use crate::counts::{Counts, Delta};
use crate::derived::{self, Suspicion};
use crate::job::{Closure, Effects, Job, WriteError, Writing};
use crate::proof::{Proof, Verdict};
use crate::ranking::Rankings;
use crate::removal::delete_session;
use crate::rows::{
    attributions_text, category_text, channel_number, codes_text, ending_text, players_text, rated_text, seed_bytes,
    to_json, usage_text,
};
use crate::sqlite::{BUSY_TIMEOUT, read_counts};
use crate::standings::{Counting, Ended};
use crate::{Change, Commit, CommitError, NewAnswer, SessionNo, StoreError, StoredAnswer, Timestamp};

/// Most commits in one transaction. Bounds how long the first of them waits.
const MAX_BATCH: usize = 1024;

/// How long commits are gathered while several callers are committing. About what a commit takes: measured with 64
/// connections, 0.2 to 0.4 ms give the most games per second and the shortest p99.
const GATHER: Duration = Duration::from_micros(250);

/// After how many pages in the write-ahead log (4 KiB each) they are carried over into the database file.
const CHECKPOINT_PAGES: i64 = 16_384;

/// What waits to be written, with whoever waits for it. Tried again if the transaction around it was rolled back.
enum Waiting {
    Commit { commit: Box<Commit>, reply: Reply, result: Option<Result<SessionNo, CommitError>> },
    Other(Box<dyn Job>),
}

/// How long until it is tried again to empty the log of what was erased.
const TRY_AGAIN: Duration = Duration::from_secs(1);

type Reply = oneshot::Sender<Result<(SessionNo, Box<Commit>), CommitError>>;

/// A handle to the writer thread. Dropping it lets the thread finish what it was given and end.
pub(crate) struct Writer {
    jobs: Option<Sender<Waiting>>,
    thread: Option<JoinHandle<()>>,
    proof: Arc<Proof>,
}

impl Writer {
    pub(crate) fn start(
        connection: Connection,
        counts: Arc<RwLock<Counts>>,
        scoring: Arc<Scoring>,
        rankings: Arc<Rankings>,
        suspicion: Arc<Suspicion>,
    ) -> Result<Writer, StoreError> {
        connection.set_prepared_statement_cache_capacity(32);
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        let last_no: i64 = connection.query_row("SELECT coalesce(max(no), 0) FROM sessions", [], |row| row.get(0))?;
        let (jobs, waiting) = channel();
        let proof = Arc::<Proof>::default();
        let own = Arc::clone(&proof);
        let mut state = State { connection, counts, scoring, rankings, suspicion, proof: own, last_no, erased: None };
        let thread = std::thread::Builder::new()
            .name("arena-store".to_owned())
            .spawn(move || state.run(&waiting))
            .map_err(|error| StoreError::Database(format!("no thread for the writer: {error}")))?;
        Ok(Writer { jobs: Some(jobs), thread: Some(thread), proof })
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Waiting::Commit { commit: Box::new(commit), reply, result: None })?;
        // Who gets no answer was with the writer when it failed.
        answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
    }

    /// Finds out if the store can write.
    pub(crate) async fn check(&self) -> Result<(), CommitError> {
        let write = "INSERT INTO notes (name, value) VALUES ('probe', '1')
             ON CONFLICT DO UPDATE SET value = CASE value WHEN '1' THEN '2' ELSE '1' END";
        // Its transaction has begun as one that writes, which a file that can't be written to refuses.
        let begin = "SELECT count(*) FROM notes";
        self.proof
            .check(|verdict| {
                self.write(move |writing| {
                    match verdict {
                        Verdict::AskToWrite => writing.connection.execute(write, []).map(drop)?,
                        _ => writing.connection.query_row(begin, [], |_| Ok(()))?,
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Runs a write in the next transaction, beside whatever else is written in it. It must leave alone what isn't its
    /// own, and bear to be run again if the transaction is rolled back. Writes happen in the order of these calls, whenever
    /// what they return is awaited.
    pub(crate) fn write<T, F>(&self, write: F) -> impl Future<Output = Result<T, CommitError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnMut(&mut Writing<'_>) -> Result<T, WriteError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Waiting::Other(Box::new(Closure::new(write, reply))));
        async move {
            sent?;
            answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
        }
    }

    fn send(&self, job: Waiting) -> Result<(), CommitError> {
        let jobs = self.jobs.as_ref().ok_or(CommitError::Unavailable(StoreError::Closed))?;
        jobs.send(job).map_err(|_| CommitError::Unavailable(StoreError::Closed))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer panicked");
        }
    }
}

struct State {
    connection: Connection,
    counts: Arc<RwLock<Counts>>,
    scoring: Arc<Scoring>,
    rankings: Arc<Rankings>,
    suspicion: Arc<Suspicion>,
    proof: Arc<Proof>,
    last_no: i64,
    /// When it was last tried in vain to empty the log of what has been erased.
    erased: Option<Instant>,
}

/// What came of one commit inside a transaction that isn't durable yet.
struct Applied {
    no: SessionNo,
    delta: Delta,
    end: Ended,
}

impl State {
    fn run(&mut self, waiting: &Receiver<Waiting>) {
        let mut last_batch = 0;
        loop {
            let first = match self.erased {
                None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(_) => waiting.recv_timeout(TRY_AGAIN),
            };
            if self.erased.is_some_and(|tried| tried.elapsed() >= TRY_AGAIN) {
                self.empty_log();
            }
            let first = match first {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut batch = vec![first];
            // Where several commit at a time, a short wait lets more of them share the fsync: fewer and larger
            // transactions cost everybody less. Who commits alone doesn't wait.
            if last_batch > 1 {
                std::thread::sleep(GATHER);
            }
            while batch.len() < MAX_BATCH
                && let Ok(job) = waiting.try_recv()
            {
                batch.push(job);
            }
            last_batch = batch.len();
            // A panic drops the batch, so that its callers are told that nobody knows what became of it, and rolls the transaction
            // back. What is in memory is read again: the panic may have come between a commit and what follows of it there.
            self.proof.begin();
            if catch_unwind(AssertUnwindSafe(|| self.commit_batch(batch))).is_err() {
                tracing::error!("the store's writer panicked; it goes on with what is in the database");
                self.read_again();
            }
            self.proof.rest();
        }
        // The last one carries the log over, so that the next start has nothing to recover.
        if let Err(error) = self.connection.pragma_update(None, "wal_checkpoint", "TRUNCATE") {
            tracing::warn!(%error, "the write-ahead log could not be carried over at the end: {error}");
        }
    }

    /// Reads what is mirrored in memory from the database.
    fn read_again(&mut self) {
        let last_no = self.connection.query_row("SELECT coalesce(max(no), 0) FROM sessions", [], |row| row.get(0));
        match last_no.map_err(StoreError::from).and_then(|last_no| Ok((last_no, read_counts(&self.connection)?))) {
            Ok((last_no, (counts, possible))) => {
                self.last_no = last_no;
                *self.counts.write() = counts;
                if !possible {
                    self.suspicion.raise("a count of sessions");
                }
            }
            Err(error) => tracing::error!(%error, "the counts of sessions can't be read: {error}"),
        }
        self.rankings.forget_all();
    }

    fn commit_batch(&mut self, mut batch: Vec<Waiting>) {
        match self.try_batch(&mut batch) {
            Ok(()) => {
                for job in batch {
                    job.finish(Ok(()));
                }
            }
            // One of them hit something that can only be found by trying, such as a place in a channel that is taken.
            // Each for itself, the others don't suffer.
            Err(error) if is_constraint(&error) && batch.len() > 1 => {
                for job in batch {
                    self.commit_batch(vec![job]);
                }
            }
            Err(error) => {
                let constraint = is_constraint(&error);
                if !constraint {
                    self.proof.fail();
                }
                // All of it may be in the log, and may be found there after a crash, or not.
                let unsure = is_unsynced(&error);
                let error = if unsure { StoreError::Unsure } else { StoreError::from(error) };
                if unsure {
                    self.read_again();
                }
                for job in batch {
                    let error =
                        if constraint { CommitError::Conflict } else { CommitError::Unavailable(error.clone()) };
                    job.finish(Err(error));
                }
            }
        }
    }

    /// All of them in one transaction. On an error nothing of any of them is stored.
    fn try_batch(&mut self, batch: &mut [Waiting]) -> Result<(), rusqlite::Error> {
        let mut last_no = self.last_no;
        let mut all = Effects::default();
        let ranked = self.rankings.in_use();
        let counting = Counting { scoring: &self.scoring, ranked: &ranked };
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before = transaction.total_changes();
        for job in batch {
            match job {
                Waiting::Other(job) => {
                    let effects = Effects::default();
                    let mut writing = Writing { connection: &transaction, counting: &counting, last_no, effects };
                    job.apply(&mut writing)?;
                    last_no = writing.last_no;
                    all.merge(writing.effects);
                }
                Waiting::Commit { commit, result, .. } => {
                    *result = Some(apply(&transaction, commit, &counting, &mut last_no)?.map(|applied| {
                        all.delta.merge(applied.delta);
                        all.moves.extend(applied.end.moves);
                        all.suspect = all.suspect.or(applied.end.suspect);
                        applied.no
                    }));
                }
            }
        }
        let suspect = write_delta(&transaction, &all.delta, &self.counts.read())?;
        if let Some(mend) = &all.mend {
            derived::mend(&transaction, &self.scoring, mend)?;
        }
        let wrote = transaction.total_changes() > before;
        transaction.commit()?;
        self.proof.succeed(wrote);
        self.last_no = last_no;
        let possible = self.counts.write().apply(&all.delta);
        if all.mend.is_some() {
            self.read_again();
        } else if all.recounted {
            self.rankings.forget_all();
        } else {
            self.rankings.apply(&all.moves);
        }
        let impossible = (!possible).then_some("a count of sessions");
        if let Some(what) = suspect.or(impossible).or(all.suspect).filter(|_| all.mend.is_none()) {
            self.suspicion.raise(what);
        }
        if all.erased {
            self.empty_log();
        }
        Ok(())
    }

    /// Carries the log over and empties it, so that it keeps nothing of what was erased. While somebody is reading an
    /// older state that can't be; then it is tried again.
    fn empty_log(&mut self) {
        let emptied = self.connection.busy_timeout(Duration::ZERO).and_then(|()| {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        });
        match emptied {
            Ok(0) => self.erased = None,
            Ok(_) => self.erased = Some(Instant::now()),
            Err(error) => {
                tracing::warn!(%error, "the log could not be emptied of what was erased: {error}");
                self.erased = Some(Instant::now());
            }
        }
        if let Err(error) = self.connection.busy_timeout(BUSY_TIMEOUT) {
            tracing::warn!(%error, "the time to wait for other users of the database could not be set: {error}");
        }
    }
}

impl Waiting {
    /// Tells the caller that the transaction is durable, or why there was none.
    fn finish(self, outcome: Result<(), CommitError>) {
        match self {
            Waiting::Commit { commit, reply, result } => {
                let result = outcome.and_then(|()| {
                    result.unwrap_or(Err(CommitError::Unavailable(StoreError::Closed))).map(|no| (no, commit))
                });
                // Nobody may be waiting any more: the caller has hung up. The commit stands.
                let _ = reply.send(result);
            }
            Waiting::Other(job) => job.finish(outcome),
        }
    }
}

/// Writes how counts and totals have changed. Names what turns out to be wrong: a count that isn't what was in memory of it, or what
/// can't be a number of anything.
pub(crate) fn write_delta(
    connection: &Connection,
    delta: &Delta,
    before: &Counts,
) -> Result<Option<&'static str>, rusqlite::Error> {
    let mut suspect = None;
    for ((block, challenge, status), n) in delta.sessions.iter().filter(|(_, n)| **n != 0) {
        let after: Option<i64> = connection
            .prepare_cached(
                "INSERT INTO session_counts (block, type, status, n) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n",
            )?
            .query_row(params![block, challenge, status.as_str(), n], |row| row.get_ref(0).map(|n| n.as_i64().ok()))?;
        if after != Some(before.count(*block, challenge, *status) + n) {
            suspect = Some("a count of sessions");
        }
    }
    for (name, n) in delta.totals.iter().filter(|(_, n)| **n != 0) {
        let after: Option<i64> = connection
            .prepare_cached(
                "INSERT INTO totals (name, n) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET n = n + excluded.n RETURNING n",
            )?
            .query_row(params![name, n], |row| row.get_ref(0).map(|n| n.as_i64().ok()))?;
        if after.is_none_or(|n| n < 0) {
            suspect = suspect.or(Some("a total"));
        }
    }
    Ok(suspect)
}

/// Forgets answers that were given before `before`: the oldest, a bounded number at a time. Whether there may be more.
pub(crate) fn forget_answers(connection: &Connection, before: Timestamp) -> Result<bool, rusqlite::Error> {
    let until: Option<i64> = connection
        .query_row(
            "SELECT max(no) FROM (SELECT no, at FROM answers ORDER BY no LIMIT 1000) WHERE at < ?1",
            [before.0],
            |row| row.get(0),
        )
        .optional()?
        .flatten();
    let Some(until) = until else { return Ok(false) };
    connection.execute("DELETE FROM answers WHERE no <= ?1", [until])?;
    Ok(true)
}

/// True if a commit was written to the log and the disk failed to say that it has it.
fn is_unsynced(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_FSYNC)
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Writes one commit. A commit that is refused (the inner error) has written nothing; on the outer error the
/// transaction has to be rolled back.
fn apply(
    connection: &Connection,
    commit: &Commit,
    counting: &Counting<'_>,
    last_no: &mut i64,
) -> Result<Result<Applied, CommitError>, rusqlite::Error> {
    if let Some(answer) = &commit.answer
        && let Some(stored) = remember(connection, answer)?
    {
        return Ok(Err(CommitError::Answered(stored)));
    }
    let (mut delta, mut end) = (Delta::default(), Ended::default());
    let no = match &commit.change {
        Change::Create(session) => {
            *last_no += 1;
            insert_session(connection, *last_no, session)?;
            delta.add(*last_no, &session.facts.challenge, session.status(), 1);
            SessionNo(*last_no)
        }
        Change::Update(no, session) => {
            let Some(before) = update_session(connection, *no, session)? else {
                return refuse(connection, commit);
            };
            if before != session.status() {
                delta.add(no.0, &session.facts.challenge, before, -1);
                delta.add(no.0, &session.facts.challenge, session.status(), 1);
                if session.status() == Status::Ended {
                    end = counting.record_end(connection, *no, session, &mut delta)?;
                }
            }
            *no
        }
        Change::Stays(no) => *no,
        Change::Remove(no, session) => {
            if !delete_session(connection, *no, session, &mut delta)? {
                return refuse(connection, commit);
            }
            *no
        }
    };
    insert_messages(connection, no, &commit.messages)?;
    Ok(Ok(Applied { no, delta, end }))
}

pub(crate) fn insert_messages(
    connection: &Connection,
    no: SessionNo,
    messages: &[ChatMessage],
) -> Result<(), rusqlite::Error> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO messages (session, channel, idx, at, sender, recipient, method, content, hidden)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for message in messages {
        let session = if message.channel == Channel::Invites { 0 } else { no.0 };
        insert.execute(params![
            session,
            channel_number(message.channel),
            message.index.cast_signed(),
            message.at.0,
            message.from.to_string(),
            message.to.as_ref().map(ToString::to_string),
            message.method,
            message.content,
            message.hidden.as_ref().map(ToString::to_string),
        ])?;
    }
    Ok(())
}

/// The commit was decided on a session that has changed since: takes its answer back.
fn refuse(connection: &Connection, commit: &Commit) -> Result<Result<Applied, CommitError>, rusqlite::Error> {
    if let Some(answer) = &commit.answer {
        connection.prepare_cached("DELETE FROM answers WHERE key = ?1")?.execute([answer.key])?;
    }
    Ok(Err(CommitError::Conflict))
}

/// Stores an answer, or finds the one that was given to the same key before.
pub(crate) fn remember(connection: &Connection, answer: &NewAnswer) -> Result<Option<StoredAnswer>, rusqlite::Error> {
    let NewAnswer { key, request, body, at } = answer;
    let stored = connection
        .prepare_cached("INSERT INTO answers (key, request, body, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
        .execute(params![key, request, body, at.0])?;
    if stored == 1 { Ok(None) } else { find_answer(connection, key) }
}

pub(crate) fn find_answer(connection: &Connection, key: &[u8; 32]) -> Result<Option<StoredAnswer>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT request, body FROM answers WHERE key = ?1")?
        .query_row([key], |row| Ok(StoredAnswer { request: row.get(0)?, body: row.get(1)? }))
        .optional()
}

pub(crate) fn insert_session(connection: &Connection, no: i64, session: &Session) -> Result<(), rusqlite::Error> {
    let facts = &*session.facts;
    connection
        .prepare_cached(
            "INSERT INTO sessions (no, status, type, version, wake_at, created_at, deadline, id, seed, options, invites,
                                   announced, players, scores, attributions, state, usage, script, unattended, rated)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
                     ?19, ?20)",
        )?
        .execute(params![
            no,
            session.status().as_str(),
            facts.challenge,
            session.version.cast_signed(),
            session.wake_at.map(|at| at.0),
            facts.created_at.0,
            session.deadline.map(|at| at.0),
            facts.id.to_string(),
            seed_bytes(facts.seed.as_ref()),
            facts.options.to_string(),
            codes_text(&facts.invites),
            codes_text(&session.announced),
            players_text(&session.seats),
            to_json(&session.scores),
            attributions_text(&session.attributions),
            session.state,
            usage_text(&session.usage),
            facts.script.map(|script| script.to_string()),
            session.unattended.cast_signed(),
            rated_text(facts.rated.as_ref()),
        ])?;
    let mut insert =
        connection.prepare_cached("INSERT INTO invites (made, code, session) VALUES (substr(?1, -12), ?1, ?2)")?;
    for invite in &facts.invites {
        insert.execute(params![invite.to_string(), no])?;
    }
    Ok(())
}

/// Writes what may have changed, if the stored version is the one before; the status that was stored, or nothing.
fn update_session(
    connection: &Connection,
    no: SessionNo,
    session: &Session,
) -> Result<Option<Status>, rusqlite::Error> {
    let before: Option<(String, Option<i64>)> = connection
        .prepare_cached("SELECT status, wake_at FROM sessions WHERE no = ?1 AND version = ?2")?
        .query_row(params![no.0, session.version.cast_signed() - 1], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((status, wake_at)) = before else { return Ok(None) };
    let (ended_at, ending, category) = match session.phase {
        Phase::Ended { at, ending, category } => (Some(at.0), Some(ending_text(ending)), Some(category_text(category))),
        Phase::Open | Phase::Active => (None, None, None),
    };
    connection
        .prepare_cached(
            "UPDATE sessions SET status = ?2, version = ?3, ended_at = ?4, ending = ?5, category = ?6, deadline = ?7,
                                 announced = ?8, players = ?9, scores = ?10, attributions = ?11, state = ?12,
                                 usage = ?13, unattended = ?14
             WHERE no = ?1",
        )?
        .execute(params![
            no.0,
            session.status().as_str(),
            session.version.cast_signed(),
            ended_at,
            ending,
            category,
            session.deadline.map(|at| at.0),
            codes_text(&session.announced),
            players_text(&session.seats),
            to_json(&session.scores),
            attributions_text(&session.attributions),
            session.state,
            usage_text(&session.usage),
            session.unattended.cast_signed(),
        ])?;
    // Apart, because naming an indexed column costs an index write even when it stays the same.
    if wake_at != session.wake_at.map(|at| at.0) {
        connection
            .prepare_cached("UPDATE sessions SET wake_at = ?2 WHERE no = ?1")?
            .execute(params![no.0, session.wake_at.map(|at| at.0)])?;
    }
    Ok(Status::from_wire(&status))
}
