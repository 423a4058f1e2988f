//! The writer, the only task that commits. It combines waiting transitions in one transaction, on the connection that
//! holds the lock on the database.
//!
//! Each caller waits for its own commit. Commits that arrive during a transaction are combined in the next one, so that
//! they share its round trips and its fsync. If the connection is lost, the commits in progress fail with
//! [`StoreError::Unsure`], the next write reconnects, and the mirrored data is read again.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use parking_lot::RwLock;
use tokio::sync::mpsc;

use super::batch::{add_delta, result_of, write_batch};
use super::connection::{Primary, Reach, server_start};
use super::holder::Holder;
use super::schema::measure;
use super::statements::Sharing;
use crate::derived::counts::read_counts;
use crate::errors::{Failure, WriteError};
use crate::mirror::{Counts, Effects, Mirror, Verdict};
use crate::numbers::Numbers;
use crate::plan::{BatchItem, Counting, Done};
use crate::queue::{Job, JobQueue, Queued, Waiting};
use crate::writing::{Writing, read_numbers};
use crate::{CommitError, DatabaseUrl, Nodes, SessionChange, StoreError, derived};

/// The maximum size of a batch: the number of transitions, and the bytes of text. These limits bound the wait of the
/// first transition and the size of statements.
const MAX_BATCH: (usize, usize) = (1024, 16 * 1024 * 1024);

/// An idle writer checks its connection, since a lost one no longer holds the lock on the database.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// The interval between measurements of the store's size. Each measurement takes the database some milliseconds.
const MEASURE_AGAIN: Duration = Duration::from_secs(60);

/// The interval between attempts of a node to become the one that leads. It is below the database's time limit
/// for idle connections.
const LEAD_AGAIN: Duration = Duration::from_secs(1);

/// The time limit for a batch. It is longer than the database's own time limit for statements. If a connection exceeds
/// it, the connection is lost.
const BATCH_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit for other writes. It is long because the removal of a session recounts all games of its players.
const LONG_WRITE_TIMEOUT: Duration = Duration::from_secs(120);

/// After the last handle is dropped, the writer finishes the queued writes and releases the database.
pub(crate) struct PostgresWriter {
    pub(crate) queue: JobQueue,
    mirror: Mirror,
}

impl PostgresWriter {
    /// Starts the writer. This must be called within a Tokio runtime.
    pub(crate) fn start(
        database: DatabaseUrl,
        holder: Holder,
        numbers: Numbers,
        mirror: Mirror,
        reach: Reach,
        nodes: Option<Arc<Nodes>>,
    ) -> PostgresWriter {
        let (jobs, waiting) = mpsc::unbounded_channel();
        let handle = mirror.clone();
        let (name, primary) = (holder.name.clone(), holder.primary);
        let link = Some(Arc::new(holder));
        let state = PostgresWriterState {
            database,
            name,
            primary,
            link,
            numbers,
            mirror,
            reach,
            nodes,
            measured: None,
            tried_to_lead: None,
            away: false,
        };
        tokio::spawn(state.run(waiting));
        PostgresWriter { queue: JobQueue::Task(jobs), mirror: handle }
    }

    pub(crate) async fn check(&self) -> Result<(), CommitError> {
        let write = "INSERT INTO notes AS n (name, value) VALUES ('probe', '1')
             ON CONFLICT (name) DO UPDATE SET value = CASE n.value WHEN '1' THEN '2' ELSE '1' END";
        let begin = "SELECT (pg_is_in_recovery() OR current_setting('transaction_read_only')::bool)::int::bigint,
             EXISTS (SELECT FROM notes)";
        self.mirror
            .health
            .check(|verdict| {
                self.queue.write(verdict, move |verdict, writing| {
                    Box::pin(async move {
                        if matches!(verdict, Verdict::AskToWrite | Verdict::AskToProve) {
                            return Ok(writing.db.execute(write, &[]).await.map(drop)?);
                        }
                        writing.effects.nothing = true;
                        match writing.db.number(begin, &[]).await? {
                            0 => Ok(()),
                            _ => Err(StoreError::Database("the database is read-only".to_owned()).into()),
                        }
                    })
                })
            })
            .await
    }
}

struct PostgresWriterState {
    database: DatabaseUrl,
    name: String,
    /// The primary of the last connection.
    primary: Primary,
    /// The connection that holds the lock on the database; `None` after the connection was lost.
    link: Option<Arc<Holder>>,
    numbers: Numbers,
    mirror: Mirror,
    reach: Reach,
    /// This node's data, if the database is shared.
    nodes: Option<Arc<Nodes>>,
    /// The time of the last measurement of the store's size.
    measured: Option<Instant>,
    /// The time of the last attempt to lead.
    tried_to_lead: Option<Instant>,
    /// True if the last attempt to reach the database failed.
    away: bool,
}

impl PostgresWriterState {
    async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        let _end_guard = self.mirror.health.end_guard();
        loop {
            // A panic drops the writes in progress, so their callers learn that the result is unknown.
            let written = AssertUnwindSafe(self.write_next(&mut waiting)).catch_unwind().await;
            self.mirror.health.rest();
            match written {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    self.mirror.health.fail();
                    tracing::error!(
                        "the store's writer panicked; it continues with a new connection and the database's content"
                    );
                    // Dropping the connection ends its transaction. The next one reads the mirrored data again.
                    self.link = None;
                }
            }
        }
    }

    /// Executes all waiting writes, or does regular maintenance if there are none. Returns false after the last handle
    /// to the writer is dropped.
    async fn write_next(&mut self, waiting: &mut mpsc::UnboundedReceiver<Waiting>) -> bool {
        {
            let first = match tokio::time::timeout(MAINTENANCE_INTERVAL, waiting.recv()).await {
                Ok(Some(first)) => first,
                Ok(None) => return false,
                Err(_) => {
                    if let Ok(holder) = self.hold().await {
                        self.maintain(&holder).await;
                    }
                    return true;
                }
            };
            self.mirror.health.begin();
            let mut batch = Vec::new();
            let mut bytes = 0;
            let mut next = Some(first);
            while let Some(waits) = next {
                match waits {
                    Waiting::Item(queued) => {
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
                self.maintain(&holder).await;
            }
        }
        true
    }

    async fn maintain(&mut self, holder: &Holder) {
        self.measure(holder).await;
        self.try_to_lead(holder).await;
    }

    /// Measures the size of the store if the interval has passed.
    async fn measure(&mut self, holder: &Holder) {
        if self.measured.is_some_and(|last| last.elapsed() < MEASURE_AGAIN) {
            return;
        }
        self.measured = Some(Instant::now());
        match measure(&holder.client).await {
            Ok(bytes) => self.reach.bytes.store(bytes, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "the size of the store cannot be measured: {error}"),
        }
    }

    /// Makes this node the one that writes the log and plays tournaments if there is none. It stays so until its
    /// connection ends, as the connection of a node that stalls does.
    async fn try_to_lead(&mut self, holder: &Holder) {
        let Some((nodes, sharing)) = self.nodes.as_ref().zip(holder.sharing.as_ref()) else { return };
        if self.tried_to_lead.is_some_and(|last| last.elapsed() < LEAD_AGAIN) {
            return;
        }
        self.tried_to_lead = Some(Instant::now());
        let tried = match nodes.leads.load(Ordering::Relaxed) {
            // The database closes idle connections.
            true => holder.client.batch_execute("").await.map(|()| true),
            false => holder.client.query_one(&sharing.try_to_lead, &[]).await.and_then(|row| row.try_get(0)),
        };
        match tried {
            Ok(leads) => nodes.leads.store(leads, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "cannot learn which node leads: {error}"),
        }
    }

    /// Returns the connection that holds the lock on the database, and reconnects if it was lost.
    async fn hold(&mut self) -> Result<Arc<Holder>, StoreError> {
        if let Some(holder) = self.link.as_ref().filter(|holder| !holder.client.is_closed()) {
            return Ok(Arc::clone(holder));
        }
        self.link = None;
        if let Some(error) = &*self.reach.ended.read() {
            return Err(error.clone());
        }
        // The writer retries continually, so it logs only the first failure.
        match self.reconnect().await {
            Ok(holder) => {
                self.away = false;
                tracing::info!("the database is reachable again");
                self.link = Some(Arc::clone(&holder));
                Ok(holder)
            }
            Err(error) => {
                if !self.away {
                    tracing::warn!(%error, "the database is unavailable: {error}");
                }
                self.away = true;
                self.mirror.health.fail();
                Err(error)
            }
        }
    }

    async fn reconnect(&mut self) -> Result<Arc<Holder>, StoreError> {
        if let Some(nodes) = &self.nodes {
            nodes.leads.store(false, Ordering::Relaxed);
        }
        let taken = Holder::reconnect(&self.database, &self.name, self.nodes.is_some(), self.primary).await;
        let holder = taken.inspect_err(|error| {
            if let StoreError::Superseded { .. } = error {
                *self.reach.ended.write() = Some(error.clone());
            }
        })?;
        self.primary = holder.primary;
        // It is unknown if the commit in progress was stored. In a shared database, versions show the result, unless the
        // server has changed and lacks commits.
        let has_lost = match &self.nodes {
            Some(nodes) => nodes.is_new_server(&server_start(&holder.client).await?),
            None => true,
        };
        if has_lost {
            self.reach.losses.fetch_add(1, Ordering::SeqCst);
        }
        self.reach.server.store(holder.primary.server, Ordering::SeqCst);
        if self.nodes.is_none() {
            self.numbers = read_numbers(&mut holder.db()).await?;
            self.mirror.set_counts(read_counts(&mut holder.db()).await?);
            self.mirror.rankings.forget_all();
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
            // One transition has violated a constraint that only the database detects, such as a used index in a
            // channel. The writer now tries each transition alone, so that the others don't fail, too. If another node
            // has committed first, for example an answer to the same request, its commit is now visible.
            Err(Failure::Constraint) => {
                self.read_numbers().await;
                for job in batch {
                    let outcome = match self.try_batch(std::slice::from_ref(&job)).await {
                        Ok(mut done) => done.pop().unwrap_or(Err(CommitError::Conflict)),
                        Err(failure) => Err(self.fail_commit(failure)),
                    };
                    job.finish(outcome);
                }
            }
            Err(failure) => {
                let error = self.fail_commit(failure);
                for job in batch {
                    job.finish(Err(match &error {
                        CommitError::Unavailable(error) => CommitError::Unavailable(error.clone()),
                        CommitError::Conflict | CommitError::Answered(_) => CommitError::Conflict,
                    }));
                }
            }
        }
    }

    /// Reads the last assigned numbers from the database, unless the database is shared. A row that was added by hand
    /// may have the next number.
    async fn read_numbers(&mut self) {
        if let (None, Some(holder)) = (&self.nodes, self.link.clone()) {
            match read_numbers(&mut holder.db()).await {
                Ok(numbers) => self.numbers.read_again(numbers),
                Err(error) => tracing::warn!(%error, "the last assigned numbers cannot be read: {error}"),
            }
        }
    }

    /// Converts a failure of a transaction to the error for the waiting callers.
    fn fail_commit(&mut self, failure: Failure) -> CommitError {
        match failure {
            Failure::Constraint => CommitError::Conflict,
            Failure::Failed(error) => {
                self.mirror.health.fail();
                CommitError::Unavailable(error)
            }
            Failure::Unsure => {
                self.mirror.health.fail();
                // The connection is dropped, because a late result on it would have no receiver.
                self.link = None;
                CommitError::Unavailable(StoreError::Unsure)
            }
        }
    }

    /// After an error, no part of the batch is stored, except possibly after [`Failure::Unsure`].
    async fn try_batch(&mut self, batch: &[Queued]) -> Result<Vec<Result<Done, CommitError>>, Failure> {
        let is_connected = self.link.as_ref().is_some_and(|holder| !holder.client.is_closed());
        let holder = self.hold().await.map_err(Failure::Failed)?;
        // Waiting transitions of sessions were decided on data that the database may have lost. The nodes decide again.
        let is_outdated = |transition: &BatchItem<'_>| match transition {
            BatchItem::Commit(commit) => {
                !is_connected && self.nodes.is_some() && !matches!(commit.change, SessionChange::Create(_))
            }
            BatchItem::Import(_) | BatchItem::Ended(..) => false,
        };
        let outdated: Vec<bool> = batch.iter().map(|queued| is_outdated(&queued.transition())).collect();
        let transitions: Vec<BatchItem<'_>> =
            batch.iter().map(Queued::transition).filter(|one| !is_outdated(one)).collect();
        let ranked = if self.nodes.is_some() { Vec::new() } else { self.mirror.rankings.in_use() };
        let scoring = self.mirror.scoring();
        let counting = Counting { scoring: &scoring, ranked: &ranked };
        let mirror = self.nodes.is_none().then_some(&*self.mirror.counts);
        let written = write_batch(&holder, &transitions, &counting, self.numbers, mirror);
        let written = tokio::time::timeout(BATCH_TIMEOUT, written).await.unwrap_or(Err(Failure::Unsure))?;
        self.numbers = written.numbers;
        self.show(&written.effects);
        let mut done = written.done.into_iter();
        let next = |is_outdated| if is_outdated { None } else { done.next() };
        Ok(outdated.into_iter().map(next).map(|done| done.unwrap_or(Err(CommitError::Conflict))).collect())
    }

    /// Updates the mirror. In a shared database, readers do it instead.
    fn show(&self, effects: &Effects) {
        self.mirror.health.succeed(!effects.nothing);
        match &self.nodes {
            None => self.mirror.show(effects),
            Some(nodes) => {
                if let Some(what) = effects.suspect {
                    self.mirror.suspicion.raise(what);
                }
                nodes.committed.send_modify(|count| *count += 1);
            }
        }
    }

    async fn commit_other(&mut self, mut job: Box<dyn Job>) {
        let outcome = self.try_other(&mut *job).await;
        job.finish(outcome);
    }

    async fn try_other(&mut self, job: &mut dyn Job) -> Result<(), CommitError> {
        let holder = self.hold().await.map_err(CommitError::Unavailable)?;
        let mut writing = Writing {
            db: holder.db(),
            scoring: self.mirror.scoring(),
            numbers: self.numbers,
            effects: Effects::default(),
            changed: BTreeSet::new(),
            locks: holder.sharing.as_ref().map(Sharing::locks),
        };
        let mirror = self.nodes.is_none().then_some(&*self.mirror.counts);
        let written = tokio::time::timeout(LONG_WRITE_TIMEOUT, write_other(&holder, job, &mut writing, mirror));
        match written.await.unwrap_or(Err(WriteError::Failed(Failure::Unsure))) {
            Ok(()) => {
                self.numbers = writing.numbers;
                self.show(&writing.effects);
                if writing.effects.mend && self.nodes.is_none() {
                    self.read_numbers().await;
                    let counts = read_counts(&mut holder.db()).await;
                    self.mirror.set_counts(counts.map_err(|_| CommitError::Unavailable(StoreError::Unsure))?);
                }
                Ok(())
            }
            Err(WriteError::Refused(error)) => Err(error),
            Err(WriteError::Failed(failure)) => Err(self.fail_commit(failure)),
        }
    }
}

async fn write_other(
    holder: &Holder,
    job: &mut dyn Job,
    writing: &mut Writing,
    mirror: Option<&RwLock<Counts>>,
) -> Result<(), WriteError> {
    let client = &holder.client;
    client.batch_execute("BEGIN").await?;
    let written = async {
        job.apply(writing).await?;
        if writing.effects.mend {
            derived::mend(writing).await?;
        }
        let suspect = add_delta(holder, &writing.effects.delta, mirror).await?;
        writing.effects.suspect = writing.effects.suspect.or(suspect);
        if let Some(sharing) = &holder.sharing {
            for kind in &writing.changed {
                client.execute(&sharing.note_change, &[kind]).await?;
            }
        }
        Ok(())
    };
    let written: Result<(), WriteError> = written.await;
    match written {
        Ok(()) => Ok(result_of([client.batch_execute("COMMIT").await])?),
        Err(error) => {
            // If ROLLBACK fails as well, the connection is closed, which ends the transaction.
            let _ = client.batch_execute("ROLLBACK").await;
            Err(error)
        }
    }
}
