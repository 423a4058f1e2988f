//! What happens unasked: deadlines pass, sessions go stale, old answers are forgotten, idle sessions leave memory.
//!
//! What is due stands in the store in the order of time, so a restart misses nothing. Here is only the waiting.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arena_model::{SessionId, Timestamp};

use crate::engine::Engine;
use crate::request::EngineError;

/// How long answers to idempotent requests are remembered.
const REMEMBER_ANSWERS_MS: i64 = 24 * 60 * 60 * 1000;

/// How many due sessions are looked at before the store is asked again.
const AT_ONCE: usize = 256;

/// The longest wait without looking: heals a clock that was set.
const LONGEST_WAIT_MS: i64 = 30_000;

/// The same where other nodes may set deadlines, of which nobody here is told, and may die before they see to them.
const LONGEST_WAIT_AMONG_NODES_MS: i64 = 1_000;

/// Bounds of the pause between two comparisons of derived tables.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const CHECK_AGAIN: Duration = Duration::from_secs(60);

/// Shortest pause before due sessions are searched again, where the search failed; up to twice as long.
const RETRY_SEARCH_MS: i64 = 500;

/// How long a session that can't be woken is left alone.
const RETRY_MS: i64 = 60_000;

impl Engine {
    /// Wakes every session that is due, and says when the next one will be.
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
            let mut due = self.inner.store.list_due(now, AT_ONCE + failing.len()).await?;
            due.retain(|due| !failing.contains_key(&due.id));
            if due.is_empty() {
                let retry = failing.values().min().copied();
                // Those that can't be woken are overdue; behind them, others still have their time.
                let next = self.inner.store.list_due(Timestamp(i64::MAX), 1 + failing.len()).await?;
                let next = next.into_iter().find(|due| !failing.contains_key(&due.id)).map(|due| due.at);
                return Ok(match (next, retry) {
                    (Some(next), Some(retry)) => Some(next.min(retry)),
                    (next, retry) => next.or(retry),
                });
            }
            // Beside each other, so that their commits share an fsync.
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
                tracing::error!(session = %id, "session {id} could not be woken: {failure}");
                failing.insert(id, now.plus_ms(RETRY_MS));
            }
        }
    }

    /// Does what is due until it is dropped. Run it beside whatever serves requests.
    pub async fn keep_time(&self) {
        let mut failing = HashMap::new();
        let mut away = false;
        let longest_ms = match self.inner.store.nodes() {
            Some(_) => LONGEST_WAIT_AMONG_NODES_MS,
            None => LONGEST_WAIT_MS,
        };
        loop {
            // Whatever is committed while the store is asked wakes this loop again.
            self.inner.next_look.store(i64::MAX, Ordering::SeqCst);
            let wait_ms = match self.wake_due_but(&mut failing).await {
                Ok(next) => {
                    if std::mem::take(&mut away) {
                        tracing::info!("due sessions are found again");
                    }
                    next.map_or(longest_ms, |next| (next.0 - self.now().0).clamp(1, longest_ms))
                }
                Err(error) => {
                    if !std::mem::replace(&mut away, true) {
                        tracing::error!(%error, "due sessions can't be found: {error}; the search goes on and is told when it succeeds");
                    }
                    // Not at the same moment as other nodes.
                    RETRY_SEARCH_MS + self.inner.environment.draw_below(RETRY_SEARCH_MS.unsigned_abs()).cast_signed()
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

    /// Compares the store's derived tables with its sessions, at once and whenever one turns out to be wrong, until it is dropped.
    pub async fn keep_derived(&self) {
        loop {
            let begun = Instant::now();
            let checked = self.inner.store.check_derived().await;
            // A tenth of the time at most, whatever keeps raising the suspicion.
            let pause = (begun.elapsed() * 10).clamp(SHORTEST_PAUSE, CHECK_AGAIN);
            if let Err(error) = checked {
                tracing::warn!(%error, "derived tables can't be compared with the sessions now: {error}");
                tokio::time::sleep(CHECK_AGAIN).await;
                continue;
            }
            tokio::time::sleep(pause).await;
            self.inner.store.suspected().await;
        }
    }

    /// Lets sessions leave memory that nobody has used for a minute, and forgets old answers, until it is dropped.
    pub async fn keep_house(&self) {
        for round in 0_u64.. {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let idle_since = self.now().plus_ms(-60_000);
            self.inner.live.forget_idle(|live| live.committed.read().last_activity > idle_since);
            if round % 10 == 0 {
                self.inner.store.forget_idle_boards();
                let before = self.now().plus_ms(-REMEMBER_ANSWERS_MS);
                if let Err(error) = self.inner.store.forget_answers(before).await {
                    tracing::warn!(%error, "old answers could not be forgotten: {error}");
                }
            }
        }
    }
}
