//! Synchronization with the other nodes of a shared store. The engine reads their commits from the store's change
//! journal before it uses data in memory for an answer or a decision. It also wakes subscribers.
//!
//! An answer is at least as new as the store was when the request arrived, because each request first reads the journal
//! ([`Engine::catch_up`]). Concurrent requests share one read. Between requests, [`Engine::follow_others`] reads the
//! journal for subscribers, on an event or at the next poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arena_nats::NatsUrl;
use arena_store::{Changes, Nodes, StoreError};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::{Engine, Inner};
use crate::environment::Environment;
use crate::events::{EventCounts, Events};
use crate::request::EngineError;

/// The interval between reads of the journal for subscribers.
const POLL: Duration = Duration::from_millis(250);

/// The interval between reads of the journal while nodes exchange events. The reads find a commit even if its event was
/// lost.
const POLL_WITH_EVENTS: Duration = Duration::from_secs(1);

/// The pause between an event and the read of the journal, so that one read serves several events.
const GATHER_PAUSE: Duration = Duration::from_millis(1);

/// The pause after a failed read of the journal. All requests that need the journal wait during this pause.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The clock difference between this machine and the database above which the engine logs a warning.
const MAX_CLOCK_SKEW_MS: i64 = 1_000;

/// The maximum pause, in milliseconds, before a decision is repeated after a conflict.
const MAX_BACKOFF_MS: u64 = 32;

/// The progress of reading other nodes' commits.
pub(crate) struct Following {
    /// A lock that is held during a read of the journal.
    turn: tokio::sync::Mutex<()>,
    /// The number of reads of the journal that have begun.
    begun: AtomicU64,
    /// The number and result of the last completed read.
    last: Mutex<(u64, Result<(), StoreError>)>,
    /// True if bans or benchmark models in the store may differ from those in memory, so that this node must read them
    /// again: another node has changed them, or the store may have lost commits.
    administration: AtomicBool,
    /// The number of decisions that another node's commit invalidated.
    conflicts: AtomicU64,
    /// The lag of this machine's clock behind the database's at the last read, in milliseconds.
    behind_ms: AtomicI64,
    events: Events,
    /// The number of subscriptions. Without any, events don't cause reads of the journal.
    subscriptions: watch::Sender<usize>,
}

/// A sign that a subscription exists.
pub(crate) struct SubscriptionSign(Arc<Inner>);

impl SubscriptionSign {
    pub(crate) fn new(inner: &Arc<Inner>) -> SubscriptionSign {
        inner.following.subscriptions.send_modify(|count| *count += 1);
        SubscriptionSign(Arc::clone(inner))
    }
}

impl Drop for SubscriptionSign {
    fn drop(&mut self) {
        self.0.following.subscriptions.send_modify(|count| *count -= 1);
    }
}

impl Default for Following {
    fn default() -> Following {
        Following {
            turn: tokio::sync::Mutex::new(()),
            begun: AtomicU64::new(0),
            last: Mutex::new((0, Ok(()))),
            administration: AtomicBool::new(false),
            conflicts: AtomicU64::new(0),
            behind_ms: AtomicI64::new(0),
            events: Events::default(),
            subscriptions: watch::Sender::new(0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeMetrics {
    /// The number of reads of the nodes' change journal.
    pub looks: u64,
    /// The number of decisions that were repeated because another node committed first.
    pub conflicts: u64,
    /// The lag of this machine's clock behind the database's, in milliseconds.
    pub clock_behind_ms: i64,
    /// Counts of events; `None` if no events are exchanged.
    pub events: Option<EventCounts>,
}

impl Engine {
    /// Reads the commits of other nodes, so that later answers and decisions use data at least as new as the store at
    /// the time of this call. Does nothing if this engine has exclusive use of the store and the store has lost no
    /// commits.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn catch_up(&self) -> Result<(), EngineError> {
        self.inner.catch_up().await
    }

    /// Returns this node's metrics, or `None` if the store isn't shared.
    pub fn node_metrics(&self) -> Option<NodeMetrics> {
        self.inner.store.nodes()?;
        let following = &self.inner.following;
        Some(NodeMetrics {
            looks: following.begun.load(Ordering::Relaxed),
            conflicts: following.conflicts.load(Ordering::Relaxed),
            clock_behind_ms: following.behind_ms.load(Ordering::Relaxed),
            events: following.events.counts(),
        })
    }

    /// Reads the commits of other nodes for subscribers: on each NATS event if `nats` is given, and at regular
    /// intervals. Runs until the returned future is dropped. If the store isn't shared, the future does nothing and
    /// never completes.
    pub async fn follow_others(&self, nats: Option<&NatsUrl>) {
        let Some(nodes) = self.inner.store.nodes() else { return std::future::pending().await };
        let events = &self.inner.following.events;
        let exchange = async {
            if let Some(url) = nats {
                events.exchange(url, nodes).await;
            }
        };
        tokio::join!(exchange, self.poll_changes(nodes, events));
    }

    async fn poll_changes(&self, nodes: &Nodes, events: &Events) {
        let own_clock = Environment::system();
        let following = &self.inner.following;
        let mut subscriptions = following.subscriptions.subscribe();
        let mut has_warned_of_clock = false;
        let mut away = false;
        loop {
            match self.catch_up().await {
                Ok(()) => away = false,
                Err(error) if !away => {
                    away = true;
                    tracing::warn!(%error, "cannot read the changes of other nodes: {error}");
                }
                Err(_) => {}
            }
            let behind_ms = nodes.now().0 - own_clock.now().0;
            following.behind_ms.store(behind_ms, Ordering::Relaxed);
            let is_off = behind_ms.abs() > MAX_CLOCK_SKEW_MS;
            if is_off && !has_warned_of_clock {
                let (ms, way) = (behind_ms.abs(), if behind_ms > 0 { "behind" } else { "ahead of" });
                tracing::warn!(
                    behind_ms,
                    "this machine's clock is {ms} ms {way} the database's, which is authoritative"
                );
            }
            has_warned_of_clock = is_off;
            let poll_at = Instant::now() + if events.are_flowing() { POLL_WITH_EVENTS } else { POLL };
            loop {
                // An event that arrives without subscriptions is kept for the next one.
                let event = async {
                    // An error can't happen, because the engine holds the sender.
                    let _ = subscriptions.wait_for(|count| *count > 0).await;
                    events.came.notified().await;
                };
                if tokio::time::timeout_at(poll_at, event).await.is_err() {
                    break;
                }
                let begun = following.begun.load(Ordering::SeqCst);
                // Events that arrive close together share one read.
                tokio::time::sleep(GATHER_PAUSE).await;
                // A read that a request has begun after the event serves the subscriptions too.
                if following.begun.load(Ordering::SeqCst) == begun {
                    break;
                }
            }
        }
    }
}

impl Inner {
    pub(crate) async fn catch_up(&self) -> Result<(), EngineError> {
        let following = &self.following;
        // If an earlier read of bans and benchmark models failed, this call repeats it.
        let is_unread = following.administration.load(Ordering::SeqCst);
        if self.store.nodes().is_none() && !self.store.is_behind() && !is_unread {
            return Ok(());
        }
        // Waits for a read that begins after this moment, since a read in progress may return an older state.
        let wanted = following.begun.load(Ordering::SeqCst) + 1;
        let _turn = following.turn.lock().await;
        {
            let last = following.last.lock();
            if last.0 >= wanted {
                return Ok(last.1.clone()?);
            }
        }
        let read_number = following.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let came_to = self.read_changes().await;
        if came_to.is_err() {
            // A pause protects a database that is starting up from repeated queries.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        *following.last.lock() = (read_number, came_to.clone());
        Ok(came_to?)
    }

    async fn read_changes(&self) -> Result<(), StoreError> {
        let changes = self.store.follow().await?;
        // There is no await point between the read and the marks, so that a canceled call loses no changes.
        self.note(&changes);
        if self.following.administration.load(Ordering::SeqCst) {
            // The lock excludes the time between an administrator's commit and the update of memory.
            let _administering = self.administering.lock().await;
            let bans = self.store.list_bans().await?;
            let benchmarks = self.store.list_benchmarks().await?;
            self.bans.replace(bans);
            *self.benchmarks.write() = benchmarks;
            self.following.administration.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Marks the data in memory that the changes make stale.
    fn note(&self, changes: &Changes) {
        if changes.is_empty() {
            return;
        }
        let Changes { sessions, hidden, public, public_hidden, administration, everything } = changes;
        for id in sessions {
            self.live.mark(*id, false);
        }
        for id in hidden {
            self.live.mark(*id, true);
        }
        // Their transcripts may lack a message. This follows the marks, because a transition adds a transcript first and
        // then looks at the mark.
        for id in sessions.iter().chain(hidden) {
            self.ended.take(*id);
        }
        if *everything {
            self.live.mark_all();
            self.ended.clear();
            self.catalogue.forget_kept();
        }
        if *public_hidden || *everything {
            self.public.freshness.mark_hidden();
        } else if *public {
            self.public.freshness.mark();
        }
        if *public || *public_hidden || *everything {
            self.public.changed.send_modify(|count| *count += 1);
        }
        if *administration || *everything {
            self.following.administration.store(true, Ordering::SeqCst);
        }
    }

    pub(crate) async fn refresh_public(&self) -> Result<(), StoreError> {
        if self.public.freshness.is_stale() {
            let _posting = self.public.posting.lock().await;
            if self.public.freshness.is_stale() {
                self.reload_public().await?;
            }
        }
        Ok(())
    }

    /// Counts a conflict, and waits a short time until the other node's commit becomes visible.
    pub(crate) async fn back_off(&self, attempt: usize) {
        self.following.conflicts.fetch_add(1, Ordering::Relaxed);
        if self.store.nodes().is_some() {
            let most_ms = MAX_BACKOFF_MS.min(1 << attempt.min(8));
            // The pause is random, so that the nodes don't conflict again.
            let ms = 1 + self.environment.draw_below(most_ms);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use arena_model::{InactivityLimits, Scoring, Timestamp, UserId};
    use arena_store::{Ban, BanSubject, Store};

    use super::*;
    use crate::request::Limits;

    #[tokio::test]
    async fn a_failed_read_of_bans_is_repeated_in_exclusive_use() {
        let folder = tempfile::tempdir().expect("a temp folder");
        let store = Store::open(folder.path(), Scoring::default()).expect("the store opens");
        let limits = Limits {
            self_play: true,
            proven_players: false,
            channel_messages: 9,
            chat_bytes: 1000,
            spectators_chat: false,
            inactivity: InactivityLimits::ENDLESS,
        };
        let engine = Engine::new(store, [], limits, Environment::system()).await.expect("the store can be read");
        let ada: UserId = "ada".parse().expect("an id");
        // A ban that the database has lost is in memory only.
        let ban = Ban { subject: BanSubject::User(ada.clone()), reason: "lost".to_owned(), at: Timestamp(0) };
        engine.inner.bans.add(&ban);
        engine.catch_up().await.expect("the store can be read");
        assert!(engine.inner.bans.admit_user(&ada).is_err());
        // The state after a lost connection and a failed read of the bans.
        engine.inner.following.administration.store(true, Ordering::SeqCst);
        engine.catch_up().await.expect("the store can be read");
        assert!(engine.inner.bans.admit_user(&ada).is_ok());
        assert!(!engine.inner.following.administration.load(Ordering::SeqCst));
    }
}
