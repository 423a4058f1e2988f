//! Memory that other nodes of a shared store may make outdated (docs/decisions/0024).
//!
//! A read compares the session in memory with its row, by a query that begins after the request has arrived. A write
//! decides on the session in memory, and the commit fails if its row has changed. Subscribers are woken by events or by a
//! regular query, and bans are up to a second old.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arena_nats::NatsUrl;
use arena_store::{Marks, Nodes, SessionMark, StoreError};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::engine::{Engine, Inner};
use crate::environment::Environment;
use crate::events::{EventCounts, Events};
use crate::live::LiveRef;
use crate::node_state::NodeState;
use crate::request::EngineError;

/// The interval between queries for subscribers.
const POLL: Duration = Duration::from_millis(250);

/// The interval between queries for subscribers while nodes exchange events. They find a commit even if its event was
/// lost.
const POLL_WITH_EVENTS: Duration = Duration::from_secs(1);

/// The interval between reads of rare changes.
const RARE: Duration = Duration::from_secs(1);

/// The minimum pause between queries for subscribers, so that one serves several events.
const GATHER_PAUSE: Duration = Duration::from_millis(1);

/// The number of sessions that are loaded at the same time for subscribers.
const LOADS: usize = 8;

/// The clock difference between this machine and the database above which the engine logs a warning.
const MAX_CLOCK_SKEW_MS: i64 = 1_000;

/// The maximum pause, in milliseconds, before a decision is repeated after a conflict.
const MAX_BACKOFF_MS: u64 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeMetrics {
    /// The number of queries for rows that other nodes may have changed.
    pub checks: u64,
    /// The number of decisions that were repeated because another node committed first.
    pub conflicts: u64,
    /// The lag of this machine's clock behind the database's, in milliseconds.
    pub clock_behind_ms: i64,
    /// Counts of events; `None` if no events are exchanged.
    pub events: Option<EventCounts>,
}

impl Engine {
    /// Drops the data in memory if the store may have lost commits, after a failover, for example.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn catch_up(&self) -> Result<(), EngineError> {
        Ok(self.inner.catch_up().await?)
    }

    /// Reads bans, benchmark models and counts that other nodes have changed.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_changes(&self) -> Result<(), EngineError> {
        Ok(self.inner.read_changes().await?)
    }

    /// Returns this node's metrics, or `None` if the store isn't shared.
    pub fn node_metrics(&self) -> Option<NodeMetrics> {
        let nodes = self.inner.store.nodes()?;
        let NodeState { conflicts, behind_ms, events, .. } = &self.inner.nodes;
        Some(NodeMetrics {
            checks: nodes.checks(),
            conflicts: conflicts.load(Ordering::Relaxed),
            clock_behind_ms: behind_ms.load(Ordering::Relaxed),
            events: events.counts(),
        })
    }

    /// True if this node writes the log.
    pub fn leads(&self) -> bool {
        self.inner.store.leads()
    }

    /// Reads the changes of other nodes: for subscribers, on each NATS event if `nats` is given and at regular intervals,
    /// and rare changes once a second. Runs until the returned future is dropped. If the store isn't shared, the future
    /// does nothing and never completes.
    pub async fn follow_others(&self, nats: Option<&NatsUrl>) {
        let Some(nodes) = self.inner.store.nodes() else { return std::future::pending().await };
        let events = &self.inner.nodes.events;
        let exchange = async {
            if let Some(url) = nats {
                events.exchange(url, nodes).await;
            }
        };
        tokio::join!(exchange, self.inner.poll_changes(nodes), self.inner.poll_subscribed(events));
    }
}

impl Inner {
    pub(crate) async fn catch_up(&self) -> Result<(), StoreError> {
        let losses = self.store.losses();
        if losses == self.nodes.losses.load(Ordering::SeqCst) {
            return Ok(());
        }
        // The lock excludes the time between an administrator's commit and the update of memory.
        let _administering = self.administering.lock().await;
        if losses == self.nodes.losses.load(Ordering::SeqCst) {
            return Ok(());
        }
        tracing::warn!("the database may have lost commits, so all data in memory is read again");
        self.live.mark_all();
        self.ended.clear();
        self.catalogue.forget_kept();
        self.public.mark_stale();
        self.read_administration().await?;
        self.nodes.losses.store(losses, Ordering::SeqCst);
        Ok(())
    }

    /// Reads bans and benchmark models. The caller holds `administering`.
    async fn read_administration(&self) -> Result<(), StoreError> {
        let bans = self.store.list_bans().await?;
        let benchmarks = self.store.list_benchmarks().await?;
        self.bans.replace(bans);
        *self.benchmarks.write() = benchmarks;
        Ok(())
    }

    async fn read_changes(&self) -> Result<(), StoreError> {
        let marks = self.store.marks(&[]).await?;
        self.catch_up().await?;
        let read = marks.administration();
        if read != self.nodes.administration.load(Ordering::SeqCst) {
            let _administering = self.administering.lock().await;
            self.read_administration().await?;
            self.nodes.administration.store(read, Ordering::SeqCst);
        }
        self.store.refresh_counts().await
    }

    async fn poll_changes(&self, nodes: &Nodes) {
        let own_clock = Environment::system();
        let (mut has_warned_of_clock, mut away) = (false, false);
        loop {
            match self.read_changes().await {
                Ok(()) => away = false,
                Err(error) if !away => {
                    away = true;
                    tracing::warn!(%error, "cannot read the changes of other nodes: {error}");
                }
                Err(_) => {}
            }
            let behind_ms = nodes.now().0 - own_clock.now().0;
            self.nodes.behind_ms.store(behind_ms, Ordering::Relaxed);
            let is_off = behind_ms.abs() > MAX_CLOCK_SKEW_MS;
            if is_off && !has_warned_of_clock {
                let (ms, way) = (behind_ms.abs(), if behind_ms > 0 { "behind" } else { "ahead of" });
                tracing::warn!(
                    behind_ms,
                    "this machine's clock is {ms} ms {way} the database's, which is authoritative"
                );
            }
            has_warned_of_clock = is_off;
            tokio::time::sleep(RARE).await;
        }
    }

    async fn poll_subscribed(&self, events: &Events) {
        loop {
            let begun = Instant::now();
            if let Err(error) = self.refresh_subscribed().await {
                tracing::debug!(%error, "cannot read for subscribers: {error}");
            }
            // With many subscribers, queries take at most half of the time.
            let pause = begun.elapsed().max(GATHER_PAUSE);
            let poll_at = begun + if events.are_flowing() { POLL_WITH_EVENTS } else { POLL };
            // Without an event in time, the next poll is due.
            let _ = tokio::time::timeout_at(poll_at, events.came.notified()).await;
            tokio::time::sleep(pause).await;
        }
    }

    /// Loads the subscribed sessions and messages that other nodes have changed, and wakes their subscribers.
    async fn refresh_subscribed(&self) -> Result<(), StoreError> {
        let subscribed = self.live.subscribed();
        if subscribed.is_empty() && !self.public.is_watched() {
            return Ok(());
        }
        let known: Vec<SessionMark> = subscribed.iter().map(|live| live.mark()).collect();
        let marks = self.store.marks(&known).await?;
        self.catch_up().await?;
        if self.public.is_watched() {
            self.follow_public(&marks).await?;
        }
        let follow = async |live: LiveRef| self.follow(&live, &marks).await;
        let mut followed = stream::iter(subscribed).map(follow).buffer_unordered(LOADS);
        while let Some(result) = followed.next().await {
            result?;
        }
        Ok(())
    }

    /// Reads the state of a session's row at a time after the call, and the session if its row has changed. Does nothing
    /// if the store isn't shared.
    pub(crate) async fn compare_with_row(&self, live: &LiveRef) -> Result<(), StoreError> {
        if self.store.nodes().is_none() {
            return live.reload_if_stale(&self.store).await;
        }
        let marks = self.compare(live).await?;
        self.follow(live, &marks).await
    }

    /// Reads what the session in memory lacks, at a time after the call.
    pub(crate) async fn compare(&self, live: &LiveRef) -> Result<Arc<Marks>, StoreError> {
        let marks = self.store.marks(&[live.mark()]).await?;
        self.catch_up().await?;
        Ok(marks)
    }

    async fn follow(&self, live: &LiveRef, marks: &Marks) -> Result<(), StoreError> {
        if !live.is_outdated(marks) {
            return Ok(());
        }
        let _deciding = live.deciding.lock().await;
        // Another task may have loaded the session in the meantime.
        if live.is_outdated(marks) { live.follow(&self.store, marks).await } else { Ok(()) }
    }

    /// Reads the state of the public channel at a time after the call, and the channel if it has changed.
    pub(crate) async fn refresh_public(&self) -> Result<(), StoreError> {
        let marks = self.store.marks(&[]).await?;
        self.catch_up().await?;
        self.follow_public(&marks).await
    }

    async fn follow_public(&self, marks: &Arc<Marks>) -> Result<(), StoreError> {
        if self.public.is_outdated(marks) {
            let _posting = self.public.posting.lock().await;
            if self.public.is_outdated(marks) {
                self.reload_public().await?;
            }
        }
        Ok(())
    }

    /// Counts a conflict, and waits a short time until the other node's commit becomes visible.
    pub(crate) async fn back_off(&self, attempt: usize) {
        self.nodes.conflicts.fetch_add(1, Ordering::Relaxed);
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
    async fn a_loss_of_commits_is_followed_in_exclusive_use() {
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
        // The state after a lost connection, or after a failed read of the bans.
        engine.inner.nodes.losses.store(1, Ordering::SeqCst);
        engine.catch_up().await.expect("the store can be read");
        assert!(engine.inner.bans.admit_user(&ada).is_ok());
        assert_eq!(engine.inner.nodes.losses.load(Ordering::SeqCst), 0);
    }
}
