//! The one writer: a task that commits whatever is waiting as one transaction, on the connection that holds the database.
//!
//! Callers wait for their own commit. While one transaction is on its way the next commits gather, so that its round trips and
//! its fsync are shared by all that wait. If the connection is lost, those under way are told so, the next ones try to take
//! the database again, and what is mirrored in memory is read anew.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arena_model::{ChatMessage, Scoring};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, Error};

use super::batch::{Failure, add_delta, write_batch};
use super::connection::{Holder, Numbers, failed, is_constraint, measure, read_counts};
use super::journal::{self, NOW_MS, News};
use super::plan::{Done, Transition};
use super::url::DatabaseUrl;
use crate::counts::Counts;
use crate::derived::Suspicion;
use crate::import::{ImportedSession, Taken};
use crate::job::Effects;
use crate::nodes::Nodes;
use crate::proof::{Proof, Verdict};
use crate::ranking::Rankings;
use crate::standings::Counting;
use crate::{Commit, CommitError, SessionNo, StoreError};

/// Most transitions in one transaction, and most bytes of text. They bound how long the first of them waits, and how large a
/// statement gets.
const MAX_BATCH: (usize, usize) = (1024, 16 * 1024 * 1024);

/// How often an idle writer looks whether its connection is still there. Without it, nobody holds the database.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How often the size of the store is looked at, which takes the database milliseconds.
const MEASURE_AGAIN: Duration = Duration::from_secs(60);

/// How often old entries of the journal are removed, and how old they are then, in milliseconds. A node that has heard nothing for
/// as long reads everything anew.
const FORGET_AGAIN: Duration = Duration::from_secs(60);
const REMEMBER_MS: i64 = 10 * 60 * 1000;

/// Longest time that transitions gather. Batches that had to wait for other nodes' would wait again: what gathers meanwhile is
/// written with them, and the nodes' batches are fewer, each of which costs the database most of a millisecond. By and by about three
/// times as long as the last ones waited; then they hardly wait any more. Alone, not at all.
const LONGEST_GATHER: Duration = Duration::from_millis(5);

/// Transitions of a batch from which on it is worthwhile to gather more.
const FEW: usize = 4;

/// How long a batch may take until the database counts as lost: longer than it lets a statement run.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same for what isn't a batch: removing a session counts all games of its players again.
const LONG_PATIENCE: Duration = Duration::from_secs(120);

/// What waits to be written.
enum Waiting {
    /// Beside others, in one transaction.
    Transition(Queued),
    /// By itself.
    Other(Box<dyn Job>),
}

/// A transition that waits to be written, with whoever waits for it.
enum Queued {
    Commit { commit: Box<Commit>, reply: oneshot::Sender<Result<(SessionNo, Box<Commit>), CommitError>> },
    Import { imported: Box<ImportedSession>, reply: oneshot::Sender<Result<Taken, CommitError>> },
}

/// A handle to the writer. When the last one is gone, the writer finishes what it was given, and lets go of the database.
pub(crate) struct Writer {
    jobs: mpsc::UnboundedSender<Waiting>,
    proof: Arc<Proof>,
}

/// What the writer keeps true in memory.
#[derive(Clone)]
pub(crate) struct Mirror {
    pub(crate) counts: Arc<RwLock<Counts>>,
    pub(crate) scoring: Arc<Scoring>,
    pub(crate) rankings: Arc<Rankings>,
    pub(crate) suspicion: Arc<Suspicion>,
    /// Evidence that the writer works.
    pub(crate) proof: Arc<Proof>,
    /// True from when an arena that has the database alone has connected again until it was told.
    pub(crate) taken_again: Arc<AtomicBool>,
    /// Why this store can't be used any more, once that is so.
    pub(crate) ended: Arc<RwLock<Option<StoreError>>>,
    /// How large the store is, as last looked.
    pub(crate) bytes: Arc<AtomicU64>,
}

impl Mirror {
    pub(crate) fn of(counts: Counts, scoring: Scoring, rankings: Rankings, suspicion: Arc<Suspicion>) -> Mirror {
        Mirror {
            counts: Arc::new(RwLock::new(counts)),
            scoring: Arc::new(scoring),
            rankings: Arc::new(rankings),
            suspicion,
            proof: Arc::default(),
            taken_again: Arc::default(),
            ended: Arc::default(),
            bytes: Arc::default(),
        }
    }
}

impl Writer {
    /// Must be called on a runtime.
    pub(crate) fn start(
        database: DatabaseUrl,
        holder: Holder,
        numbers: Numbers,
        mirror: Mirror,
        nodes: Option<Arc<Nodes>>,
    ) -> Writer {
        let (jobs, waiting) = mpsc::unbounded_channel();
        let proof = Arc::clone(&mirror.proof);
        let name = holder.name.clone();
        let link = Some(Arc::new(holder));
        let state = State {
            database,
            name,
            link,
            numbers,
            mirror,
            nodes,
            measured: None,
            forgotten: None,
            away: false,
            gather: Duration::ZERO,
        };
        tokio::spawn(state.run(waiting));
        Writer { jobs, proof }
    }

    /// Finds out if the store can write.
    pub(crate) async fn check(&self) -> Result<(), CommitError> {
        let write = "INSERT INTO notes AS n (name, value) VALUES ('probe', '1')
             ON CONFLICT (name) DO UPDATE SET value = CASE n.value WHEN '1' THEN '2' ELSE '1' END";
        let begin = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool,
             EXISTS (SELECT FROM notes)";
        self.proof
            .check(|verdict| {
                self.write(move |writing| {
                    async move {
                        if verdict == Verdict::AskToWrite {
                            return Ok(writing.client().execute(write, &[]).await.map(drop)?);
                        }
                        writing.effects.nothing = true;
                        match writing.client().query_one(begin, &[]).await?.try_get(0)? {
                            false => Ok(()),
                            true => Err(StoreError::Database("the database is read-only".to_owned()).into()),
                        }
                    }
                    .boxed()
                })
            })
            .await
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<(SessionNo, Box<Commit>), CommitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Waiting::Transition(Queued::Commit { commit: Box::new(commit), reply }))?;
        // Who gets no answer was with the writer when it failed.
        answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
    }

    /// Imports happen in the order of these calls, whenever what they return is awaited.
    pub(crate) fn import(
        &self,
        imported: ImportedSession,
    ) -> impl Future<Output = Result<Taken, CommitError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Waiting::Transition(Queued::Import { imported: Box::new(imported), reply }));
        async move {
            sent?;
            answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
        }
    }

    /// Runs a write in a transaction of its own. Writes happen in the order of these calls, whenever what they return is
    /// awaited.
    pub(crate) fn write<T, F>(&self, write: F) -> impl Future<Output = Result<T, CommitError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: for<'w> FnOnce(&'w mut Writing) -> BoxFuture<'w, Result<T, WriteError>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let sent = self.send(Waiting::Other(Box::new(Closure { write: Some(write), result: None, reply })));
        async move {
            sent?;
            answer.await.unwrap_or(Err(CommitError::Unavailable(StoreError::Unsure)))
        }
    }

    fn send(&self, job: Waiting) -> Result<(), CommitError> {
        self.jobs.send(job).map_err(|_| CommitError::Unavailable(StoreError::Closed))
    }
}

/// A write under way that is no transition, in a transaction that isn't durable yet.
pub(crate) struct Writing {
    holder: Arc<Holder>,
    pub(crate) numbers: Numbers,
    pub(crate) scoring: Arc<Scoring>,
    pub(crate) effects: Effects,
    /// What other nodes are told, where there are others.
    pub(crate) news: News,
}

impl Writing {
    /// Waits until no other transaction is about to be committed, where there are others. Last of all: behind it, all nodes wait.
    pub(crate) async fn take_turn(&self) -> Result<(), Error> {
        match &self.holder.sharing {
            Some(sharing) => journal::take_turn(self.client(), sharing).await.map(drop),
            None => Ok(()),
        }
    }

    /// Keeps others from changing what these users have done until this is committed, where there are others.
    pub(crate) async fn lock_users(&self, users: &[String]) -> Result<(), Error> {
        match &self.holder.sharing {
            Some(sharing) => self.client().execute(&sharing.lock_users, &[&users]).await.map(drop),
            None => Ok(()),
        }
    }

    /// Enters a user who isn't known. Where there are others, they may have done it just now.
    pub(crate) async fn number_user(&mut self, id: &str) -> Result<(), Error> {
        let client = &self.holder.client;
        match &self.holder.sharing {
            Some(sharing) => {
                client.execute(&sharing.lock_numbers_of_users, &[]).await?;
                client.execute(&sharing.number_users, &[&&[id][..]]).await.map(drop)
            }
            None => {
                self.numbers.user += 1;
                client.execute("INSERT INTO users (no, id) VALUES ($1, $2)", &[&self.numbers.user, &id]).await.map(drop)
            }
        }
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.holder.sharing.is_some()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.holder.client
    }
}

/// Why a write doesn't happen.
pub(crate) enum WriteError {
    /// The database failed.
    Failed(Error),
    /// The write itself refuses.
    Refused(CommitError),
}

impl From<Error> for WriteError {
    fn from(error: Error) -> WriteError {
        WriteError::Failed(error)
    }
}

impl From<CommitError> for WriteError {
    fn from(error: CommitError) -> WriteError {
        WriteError::Refused(error)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> WriteError {
        WriteError::Refused(error.into())
    }
}

/// A write that waits.
trait Job: Send {
    /// Writes. Called once.
    fn apply<'w>(&'w mut self, writing: &'w mut Writing) -> BoxFuture<'w, Result<(), WriteError>>;

    /// Tells the caller what came of it.
    fn finish(self: Box<Self>, outcome: Result<(), CommitError>);
}

struct Closure<F, T> {
    write: Option<F>,
    result: Option<T>,
    reply: oneshot::Sender<Result<T, CommitError>>,
}

impl<F, T> Job for Closure<F, T>
where
    F: for<'w> FnOnce(&'w mut Writing) -> BoxFuture<'w, Result<T, WriteError>> + Send,
    T: Send,
{
    fn apply<'w>(&'w mut self, writing: &'w mut Writing) -> BoxFuture<'w, Result<(), WriteError>> {
        Box::pin(async move {
            let write = self.write.take().ok_or(CommitError::Unavailable(StoreError::Closed))?;
            self.result = Some(write(writing).await?);
            Ok(())
        })
    }

    fn finish(self: Box<Self>, outcome: Result<(), CommitError>) {
        let Closure { result, reply, .. } = *self;
        let result = outcome.and_then(|()| result.ok_or(CommitError::Unavailable(StoreError::Closed)));
        // Nobody may be waiting any more: the caller has hung up. What was written stands.
        let _ = reply.send(result);
    }
}

impl Queued {
    fn transition(&self) -> Transition<'_> {
        match self {
            Queued::Commit { commit, .. } => Transition::Commit(commit),
            Queued::Import { imported, .. } => Transition::Import(imported),
        }
    }

    /// About how many bytes of text it writes.
    fn bytes(&self) -> usize {
        let said = |messages: &[ChatMessage]| messages.iter().map(|message| message.content.len()).sum::<usize>();
        match self {
            Queued::Commit { commit, .. } => {
                said(&commit.messages) + commit.answer.as_ref().map_or(0, |answer| answer.body.len())
            }
            Queued::Import { imported, .. } => said(&imported.messages) + imported.session.state.len(),
        }
    }

    /// Tells the caller that the transaction is durable, or why there was none.
    fn finish(self, outcome: Result<Done, CommitError>) {
        // Nobody may be waiting any more: the caller has hung up. The commit stands.
        match (self, outcome) {
            (Queued::Commit { commit, reply }, Ok(Done::Committed(no))) => drop(reply.send(Ok((no, commit)))),
            (Queued::Commit { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
            (Queued::Import { reply, .. }, Ok(Done::Imported(taken))) => drop(reply.send(Ok(taken))),
            (Queued::Import { reply, .. }, Err(error)) => drop(reply.send(Err(error))),
            // Something was written, but not what was asked for, which doesn't happen: commits are committed, and imports imported.
            (Queued::Commit { reply, .. }, Ok(_)) => drop(reply.send(Err(StoreError::Unsure.into()))),
            (Queued::Import { reply, .. }, Ok(_)) => drop(reply.send(Err(StoreError::Unsure.into()))),
        }
    }
}

struct State {
    database: DatabaseUrl,
    name: String,
    /// The connection that holds the database, unless it is lost.
    link: Option<Arc<Holder>>,
    numbers: Numbers,
    mirror: Mirror,
    /// The others, if there are any.
    nodes: Option<Arc<Nodes>>,
    /// When the size of the store was last looked at.
    measured: Option<Instant>,
    /// When old entries of the journal were last removed.
    forgotten: Option<Instant>,
    /// Whether the last attempt to get at the database failed.
    away: bool,
    /// How long transitions gather before a batch begins.
    gather: Duration,
}

impl State {
    async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        loop {
            // A panic drops what was being written, so that its callers are told that nobody knows what became of it.
            let written = AssertUnwindSafe(self.write_next(&mut waiting)).catch_unwind().await;
            self.mirror.proof.rest();
            match written {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    tracing::error!(
                        "the store's writer panicked; it goes on with a new connection and what is in the database"
                    );
                    // With the connection goes its transaction; what is in memory is read again with the next one.
                    self.link = None;
                }
            }
        }
    }

    /// Writes what waits, or looks after the store if nothing does. Returns false when there is nobody left to write for.
    async fn write_next(&mut self, waiting: &mut mpsc::UnboundedReceiver<Waiting>) -> bool {
        {
            let first = match tokio::time::timeout(LOOK_AGAIN, waiting.recv()).await {
                Ok(Some(first)) => first,
                Ok(None) => return false,
                Err(_) => {
                    if let Ok(holder) = self.hold().await {
                        self.look_after(&holder).await;
                    }
                    return true;
                }
            };
            self.mirror.proof.begin();
            let mut batch = Vec::new();
            let mut bytes = 0;
            // Shorter ones a timer can't wait for.
            if self.gather >= Duration::from_millis(1) {
                tokio::time::sleep(self.gather).await;
            }
            let mut next = Some(first);
            while let Some(waits) = next {
                match waits {
                    Waiting::Transition(queued) => {
                        bytes += queued.bytes();
                        batch.push(queued);
                        if batch.len() >= MAX_BATCH.0 || bytes >= MAX_BATCH.1 {
                            break;
                        }
                    }
                    Waiting::Other(job) => {
                        self.commit_batch(std::mem::take(&mut batch)).await;
                        bytes = 0;
                        self.commit_other(job).await;
                    }
                }
                next = waiting.try_recv().ok();
            }
            self.commit_batch(batch).await;
            if let Some(holder) = self.link.clone() {
                self.look_after(&holder).await;
            }
        }
        true
    }

    /// What is to be done now and then.
    async fn look_after(&mut self, holder: &Holder) {
        self.measure(holder).await;
        self.forget_journal(holder).await;
    }

    /// Looks how large the store is, if nobody has for a while.
    async fn measure(&mut self, holder: &Holder) {
        if self.measured.is_some_and(|last| last.elapsed() < MEASURE_AGAIN) {
            return;
        }
        self.measured = Some(Instant::now());
        match measure(&holder.client).await {
            Ok(bytes) => self.mirror.bytes.store(bytes, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "the size of the store is unknown: {error}"),
        }
    }

    /// Removes what stands in the journal for long, if that hasn't been done for a while. The last entry stays, for its number.
    async fn forget_journal(&mut self, holder: &Holder) {
        if holder.sharing.is_none() || self.forgotten.is_some_and(|last| last.elapsed() < FORGET_AGAIN) {
            return;
        }
        self.forgotten = Some(Instant::now());
        let forget = format!(
            "DELETE FROM journal WHERE n < (SELECT max(n) FROM journal) AND n <= (SELECT max(n) FROM
                 (SELECT n, at FROM journal ORDER BY n LIMIT 50000) oldest WHERE at < {NOW_MS} - {REMEMBER_MS})"
        );
        if let Err(error) = holder.client.batch_execute(&forget).await {
            tracing::warn!(%error, "old entries of the journal stay: {error}");
        }
    }

    /// The connection that holds the database; a new one if it was lost.
    async fn hold(&mut self) -> Result<Arc<Holder>, StoreError> {
        if let Some(holder) = self.link.as_ref().filter(|holder| !holder.client.is_closed()) {
            return Ok(Arc::clone(holder));
        }
        self.link = None;
        if let Some(error) = &*self.mirror.ended.read() {
            return Err(error.clone());
        }
        // It is tried again all the time, and told once.
        match self.take_again().await {
            Ok(holder) => {
                self.away = false;
                tracing::info!("the database is back");
                self.link = Some(Arc::clone(&holder));
                Ok(holder)
            }
            Err(error) => {
                if !self.away {
                    tracing::warn!(%error, "the database is out of reach: {error}");
                }
                self.away = true;
                self.mirror.proof.fail();
                Err(error)
            }
        }
    }

    async fn take_again(&mut self) -> Result<Arc<Holder>, StoreError> {
        let node = self.nodes.as_ref().map(|nodes| nodes.node());
        let taken = Holder::take_again(&self.database, &self.name, node).await;
        let holder = taken.inspect_err(|error| {
            if let StoreError::Superseded { .. } = error {
                *self.mirror.ended.write() = Some(error.clone());
            }
        })?;
        // The commit that was under way may have been made or not. Who shares the database hears of it from the journal.
        if self.nodes.is_none() {
            self.numbers = Numbers::read(&holder.client).await?;
            let counts = read_counts(&holder.client, &self.mirror.suspicion).await?;
            *self.mirror.counts.write() = counts;
            self.mirror.rankings.forget_all();
            self.mirror.taken_again.store(true, Ordering::SeqCst);
        }
        Ok(Arc::new(holder))
    }

    async fn commit_batch(&mut self, batch: Vec<Queued>) {
        if batch.is_empty() {
            return;
        }
        match self.try_batch(&batch).await {
            Ok(done) => {
                for (job, done) in batch.into_iter().zip(done) {
                    job.finish(done);
                }
            }
            // One of them hit something that can only be found by trying, such as a place in a channel that is taken.
            // Each for itself, the others don't suffer. Where it was another node that was faster, such as with an answer to the same
            // request, what it has committed is found then.
            Err(Failure::Constraint) => {
                self.read_numbers().await;
                for job in batch {
                    let outcome = match self.try_batch(std::slice::from_ref(&job)).await {
                        Ok(mut done) => done.pop().unwrap_or(Err(CommitError::Conflict)),
                        Err(failure) => Err(self.meant(failure)),
                    };
                    job.finish(outcome);
                }
            }
            Err(failure) => {
                let error = self.meant(failure);
                for job in batch {
                    job.finish(Err(match &error {
                        CommitError::Unavailable(error) => CommitError::Unavailable(error.clone()),
                        CommitError::Conflict | CommitError::Answered(_) => CommitError::Conflict,
                    }));
                }
            }
        }
    }

    /// Reads again which numbers were given, where only this arena gives any: a row that was added by hand may have taken the next.
    async fn read_numbers(&mut self) {
        if let (None, Some(holder)) = (&self.nodes, self.link.clone()) {
            match Numbers::read(&holder.client).await {
                // A number of an ending whose row is gone isn't given again.
                Ok(numbers) => {
                    self.numbers = Numbers { ending: numbers.ending.max(self.numbers.ending), ..numbers };
                }
                Err(error) => tracing::warn!(%error, "the numbers that were given can't be read: {error}"),
            }
        }
    }

    /// What a failure means to those who wait.
    fn meant(&mut self, failure: Failure) -> CommitError {
        match failure {
            Failure::Constraint => CommitError::Conflict,
            Failure::Failed(error) => {
                self.mirror.proof.fail();
                CommitError::Unavailable(error)
            }
            Failure::Unsure => {
                self.mirror.proof.fail();
                // Whatever is still to come on it is of no use to anybody.
                self.link = None;
                CommitError::Unavailable(StoreError::Unsure)
            }
        }
    }

    /// All of them in one transaction. On an error nothing of any of them is stored, unless it says that this isn't known.
    async fn try_batch(&mut self, batch: &[Queued]) -> Result<Vec<Result<Done, CommitError>>, Failure> {
        let holder = self.hold().await.map_err(Failure::Failed)?;
        let transitions: Vec<Transition<'_>> = batch.iter().map(Queued::transition).collect();
        let ranked = if self.nodes.is_some() { Vec::new() } else { self.mirror.rankings.in_use() };
        let scoring = Arc::clone(&self.mirror.scoring);
        let counting = Counting { scoring: &scoring, ranked: &ranked };
        let mirror = self.nodes.is_none().then_some(&*self.mirror.counts);
        let written = write_batch(&holder, &transitions, &counting, self.numbers, mirror);
        let written = tokio::time::timeout(PATIENCE, written).await.unwrap_or(Err(Failure::Unsure))?;
        self.numbers = written.numbers;
        // Who is alone in its batch, or nearly, has nothing to gather.
        let worthwhile = if batch.len() < FEW { Duration::ZERO } else { 3 * written.waited };
        self.gather = ((self.gather + worthwhile) / 2).min(LONGEST_GATHER);
        self.show(written.effects);
        Ok(written.done)
    }

    /// Makes what is in memory follow what is durable. Where others write too, it follows the journal instead, in its order.
    fn show(&self, effects: Effects) {
        self.mirror.proof.succeed(!effects.nothing);
        if let Some(what) = effects.suspect {
            self.mirror.suspicion.raise(what);
        }
        if let Some(nodes) = &self.nodes {
            nodes.committed.send_modify(|count| *count += 1);
            return;
        }
        if !self.mirror.counts.write().apply(&effects.delta) {
            self.mirror.suspicion.raise("a count of sessions");
        }
        if effects.recounted {
            self.mirror.rankings.forget_all();
        } else {
            self.mirror.rankings.apply(&effects.moves);
        }
    }

    async fn commit_other(&mut self, mut job: Box<dyn Job>) {
        let written = async {
            let holder = self.hold().await.map_err(CommitError::Unavailable)?;
            let scoring = Arc::clone(&self.mirror.scoring);
            let effects = Effects::default();
            let news = News::default();
            let mut writing = Writing { holder: Arc::clone(&holder), numbers: self.numbers, scoring, effects, news };
            let patience = tokio::time::timeout(
                LONG_PATIENCE,
                write_other(
                    &holder.client,
                    &mut *job,
                    &mut writing,
                    self.nodes.is_none().then_some(&*self.mirror.counts),
                ),
            );
            match patience.await.unwrap_or(Err(WriteFailure::Failure(Failure::Unsure))) {
                Ok(()) => {
                    self.numbers = writing.numbers;
                    let mended = writing.effects.mend.is_some();
                    self.show(writing.effects);
                    if mended && self.nodes.is_none() {
                        self.read_numbers().await;
                        let counts = read_counts(&holder.client, &self.mirror.suspicion).await;
                        *self.mirror.counts.write() =
                            counts.map_err(|_| CommitError::Unavailable(StoreError::Unsure))?;
                    }
                    Ok(())
                }
                Err(WriteFailure::Refused(error)) => Err(error),
                Err(WriteFailure::Failure(failure)) => Err(self.meant(failure)),
            }
        };
        let outcome = written.await;
        job.finish(outcome);
    }
}

enum WriteFailure {
    Refused(CommitError),
    Failure(Failure),
}

async fn write_other(
    client: &Client,
    job: &mut dyn Job,
    writing: &mut Writing,
    mirror: Option<&RwLock<Counts>>,
) -> Result<(), WriteFailure> {
    let failed = |error: Error| {
        WriteFailure::Failure(match is_constraint(&error) {
            true => Failure::Constraint,
            false => Failure::Failed(failed(&error)),
        })
    };
    client.batch_execute("BEGIN").await.map_err(failed)?;
    let applied = job.apply(writing).await;
    let added = match applied {
        Ok(()) => tell(writing, mirror).await.map_err(WriteError::Failed),
        Err(error) => Err(error),
    };
    match added {
        Ok(()) => Failure::of(vec![client.batch_execute("COMMIT").await]).map_err(WriteFailure::Failure),
        Err(error) => {
            // Where that fails as well, the connection is gone, and the transaction with it.
            let _ = client.batch_execute("ROLLBACK").await;
            Err(match error {
                WriteError::Refused(error) => WriteFailure::Refused(error),
                WriteError::Failed(error) => failed(error),
            })
        }
    }
}

/// Writes how counts and totals change, and tells other nodes, if there are any.
async fn tell(writing: &mut Writing, mirror: Option<&RwLock<Counts>>) -> Result<(), Error> {
    let (holder, delta) = (&writing.holder, &writing.effects.delta);
    let Some(sharing) = &holder.sharing else {
        let suspect = add_delta(holder, delta, mirror).await?;
        writing.effects.suspect = writing.effects.suspect.or(suspect);
        return Ok(());
    };
    if writing.news.is_empty(delta) && delta.totals.is_empty() {
        return Ok(());
    }
    journal::take_turn(&holder.client, sharing).await?;
    let suspect = add_delta(holder, delta, mirror).await?;
    journal::write(holder, sharing, &writing.news, delta).await?;
    writing.effects.suspect = writing.effects.suspect.or(suspect);
    Ok(())
}
