//! Scheduled work: deadlines, abandoned sessions, stored answers that have expired, and idle sessions in memory.
//!
//! The store contains the wake-up time of each session, so a restart misses none. This module only waits for the next
//! wake-up time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arena_model::{SessionId, Timestamp};

use crate::engine::Engine;
use crate::request::EngineError;

/// The time for which the store keeps the answer to a request with an idempotency key.
const REMEMBER_ANSWERS_MS: i64 = 24 * 60 * 60 * 1000;

/// The maximum number of due sessions that one query returns.
const BATCH: usize = 256;

/// The longest wait between two queries for due sessions. It limits the delay after a change of the system clock.
const LONGEST_WAIT_MS: i64 = 30_000;

/// The longest wait between two queries in a shared store. Another node may set a deadline without a notification, and
/// may crash before it handles the deadline.
const LONGEST_WAIT_AMONG_NODES_MS: i64 = 1_000;

/// The shortest pause between two comparisons of derived tables.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The minimum pause before the engine repeats a failed query. A random part of at most the same length is added.
const RETRY_QUERY_MS: i64 = 500;

/// The pause before the engine wakes a session again after a failure.
const RETRY_WAKE_MS: i64 = 60_000;

impl Engine {
    /// Wakes all due sessions and returns the wake-up time of the next session.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn wake_due(&self) -> Result<Option<Timestamp>, EngineError> {
        self.wake_due_but(&mut HashMap::new()).await
    }

    async fn wake_due_but(
        &self,
        failing: &mut HashMap<SessionId, Timestamp>,
    ) -> Result<Option<Timestamp>, EngineError> {
        loop {
            self.catch_up().await?;
            let now = self.now();
            failing.retain(|_, retry_at| *retry_at > now);
            let mut due = self.inner.store.list_due(now, BATCH + failing.len()).await?;
            due.retain(|due| !failing.contains_key(&due.id));
            if due.is_empty() {
                let retry = failing.values().min().copied();
                // Sessions that failed to wake are overdue, so they come first in the list. The next due session
                // follows them.
                let next = self.inner.store.list_due(Timestamp(i64::MAX), 1 + failing.len()).await?;
                let next = next.into_iter().find(|due| !failing.contains_key(&due.id)).map(|due| due.at);
                return Ok(match (next, retry) {
                    (Some(next), Some(retry)) => Some(next.min(retry)),
                    (next, retry) => next.or(retry),
                });
            }
            // The sessions are woken concurrently, so that their commits share an fsync.
            let waking: Vec<_> = due
                .into_iter()
                .map(|due| {
                    let inner = Arc::clone(&self.inner);
                    (due.id, tokio::spawn(async move { inner.wake_session(due.id).await }))
                })
                .collect();
            for (id, task) in waking {
                let failure = match task.await {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => error.to_string(),
                    Err(error) => error.to_string(),
                };
                tracing::error!(session = %id, "cannot wake session {id}: {failure}");
                failing.insert(id, now.plus_ms(RETRY_WAKE_MS));
            }
        }
    }

    /// Handles due sessions until the returned future is dropped. A server runs this future beside its listener.
    pub async fn run_deadlines(&self) {
        let mut failing = HashMap::new();
        let mut away = false;
        let longest_ms = match self.inner.store.nodes() {
            Some(_) => LONGEST_WAIT_AMONG_NODES_MS,
            None => LONGEST_WAIT_MS,
        };
        loop {
            // A commit during the query wakes this loop again.
            self.inner.next_look.store(i64::MAX, Ordering::SeqCst);
            let wait_ms = match self.wake_due_but(&mut failing).await {
                Ok(next) => {
                    if std::mem::take(&mut away) {
                        tracing::info!("the query for due sessions works again");
                    }
                    next.map_or(longest_ms, |next| (next.0 - self.now().0).clamp(1, longest_ms))
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true) {
                        tracing::error!(%error, "cannot query due sessions: {error}; retrying, a message follows on success");
                    }
                    // The random part prevents nodes from querying at the same time.
                    RETRY_QUERY_MS + self.inner.environment.draw_below(RETRY_QUERY_MS.unsigned_abs()).cast_signed()
                }
            };
            self.inner.next_look.store(self.now().plus_ms(wait_ms).0, Ordering::SeqCst);
            let sleep = Duration::from_millis(wait_ms.unsigned_abs());
            tokio::select! {
                () = tokio::time::sleep(sleep) => {}
                () = self.inner.rescheduled.notified() => {}
            }
        }
    }

    /// Compares the store's derived tables with its sessions, and repairs them: once at the start, and again whenever
    /// the store finds a wrong value. Runs until the returned future is dropped.
    pub async fn keep_derived(&self) {
        loop {
            let begun = Instant::now();
            let checked = self.inner.store.check_derived().await;
            // Comparisons take at most a tenth of the time, even if the store finds wrong values continually.
            let pause = (begun.elapsed() * 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            if let Err(error) = checked {
                tracing::warn!(%error, "cannot compare derived tables with the sessions: {error}");
                tokio::time::sleep(LONGEST_PAUSE).await;
                continue;
            }
            tokio::time::sleep(pause).await;
            self.inner.store.suspected().await;
        }
    }

    /// Evicts sessions after an idle minute, and deletes expired answers. Runs until the returned future is dropped.
    pub async fn run_eviction(&self) {
        for round in 0_u64.. {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let idle_since = self.now().plus_ms(-60_000);
            self.inner.live.forget_idle(|live| live.committed.read().last_activity > idle_since);
            if round % 10 == 0 {
                self.inner.store.forget_idle_boards();
                let before = self.now().plus_ms(-REMEMBER_ANSWERS_MS);
                if let Err(error) = self.inner.store.forget_answers(before).await {
                    tracing::warn!(%error, "cannot delete expired answers: {error}");
                }
            }
        }
    }
}
