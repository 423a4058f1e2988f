//! Other nodes on the same store: what they commit is read from the store's journal, before anything that is in memory here is told or
//! decided on; and those who watch something are woken.
//!
//! What one asks here is at least as new as the store was when it was asked, because the asking begins with a look at the journal
//! ([`Engine::catch_up`]). Looks are shared by all who wait for one. Between requests, [`Engine::follow_others`] looks when an event
//! comes or a poll is due, for watchers.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arena_nats::NatsUrl;
use arena_store::{Changes, Nodes, StoreError};
use parking_lot::Mutex;

use crate::engine::{Engine, Inner};
use crate::environment::Environment;
use crate::events::{EventCounts, Events};
use crate::request::EngineError;

/// How often the journal is looked at for those who watch.
const POLL: Duration = Duration::from_millis(250);

/// The same while events come: for those that are lost, and for a server that seems to be there and isn't.
const POLL_BESIDE_EVENTS: Duration = Duration::from_secs(1);

/// Pause between an event and the look that follows.
const GATHER: Duration = Duration::from_millis(1);

/// Pause between two looks of which the first failed. All who wait for a look wait for it.
const AWAY: Duration = Duration::from_millis(100);

/// How far a machine's clock may be from the database's until the log tells.
const TOLERATED_MS: i64 = 1_000;

/// Longest wait, in milliseconds, before a decision is taken anew that another node was faster with.
const LONGEST_WAY_MS: u64 = 32;

/// How far this node has followed the others.
pub(crate) struct Following {
    /// Held by whoever looks.
    turn: tokio::sync::Mutex<()>,
    /// Looks begun so far.
    begun: AtomicU64,
    /// The last look that came to an end, and what it came to.
    last: Mutex<(u64, Result<(), StoreError>)>,
    /// Whether bans and benchmark models have changed elsewhere and haven't been read since.
    administration: AtomicBool,
    /// Decisions for which another node was faster.
    conflicts: AtomicU64,
    /// How far this machine's clock is behind the database's, in milliseconds, as last looked.
    behind_ms: AtomicI64,
    events: Events,
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
        }
    }
}

/// How a node gets on with the others, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    /// Looks at what others have committed.
    pub looks: u64,
    /// Decisions that were taken anew because another node was faster.
    pub conflicts: u64,
    /// How far this machine's clock is behind the database's, in milliseconds.
    pub clock_behind_ms: i64,
    /// How events are doing; `None` where none are to be exchanged.
    pub events: Option<EventCounts>,
}

impl Engine {
    /// Sees to it that whatever is told or decided after this is of a state of the store that is no older than this call, whichever
    /// node has written it. Does nothing where the store is this engine's alone.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn catch_up(&self) -> Result<(), EngineError> {
        self.inner.catch_up().await
    }

    /// How this node gets on with the others; `None` where the store is its own.
    pub fn neighbours(&self) -> Option<Neighbours> {
        self.inner.store.nodes()?;
        let following = &self.inner.following;
        Some(Neighbours {
            looks: following.begun.load(Ordering::Relaxed),
            conflicts: following.conflicts.load(Ordering::Relaxed),
            clock_behind_ms: following.behind_ms.load(Ordering::Relaxed),
            events: following.events.counts(),
        })
    }

    /// Follows what other nodes commit, so that whoever watches here is told, until it is dropped: at once where events are exchanged
    /// over NATS, else at the next poll. Where the store is this engine's alone it waits for ever.
    pub async fn follow_others(&self, nats: Option<&NatsUrl>) {
        let Some(nodes) = self.inner.store.nodes() else { return std::future::pending().await };
        let events = &self.inner.following.events;
        let exchange = async {
            if let Some(url) = nats {
                events.exchange(url, nodes).await;
            }
        };
        tokio::join!(exchange, self.look_again_and_again(nodes, events));
    }

    async fn look_again_and_again(&self, nodes: &Nodes, events: &Events) {
        let own_clock = Environment::system();
        let mut told_of_clock = false;
        let mut away = false;
        loop {
            match self.catch_up().await {
                Ok(()) => away = false,
                Err(error) if !away => {
                    away = true;
                    tracing::warn!(%error, "what other nodes do isn't known at the moment: {error}");
                }
                Err(_) => {}
            }
            let behind_ms = nodes.now().0 - own_clock.now().0;
            self.inner.following.behind_ms.store(behind_ms, Ordering::Relaxed);
            let is_off = behind_ms.abs() > TOLERATED_MS;
            if is_off && !told_of_clock {
                let (ms, way) = (behind_ms.abs(), if behind_ms > 0 { "behind" } else { "ahead of" });
                tracing::warn!(behind_ms, "this machine's clock is {ms} ms {way} the database's, which counts here");
            }
            told_of_clock = is_off;
            let poll = if events.are_flowing() { POLL_BESIDE_EVENTS } else { POLL };
            tokio::select! {
                () = tokio::time::sleep(poll) => {}
                // Those that come close behind each other share a look.
                () = events.came.notified() => tokio::time::sleep(GATHER).await,
            }
        }
    }
}

impl Inner {
    pub(crate) async fn catch_up(&self) -> Result<(), EngineError> {
        if self.store.nodes().is_none() && !self.store.is_behind() {
            return Ok(());
        }
        let following = &self.following;
        // One that begins after this moment; one that is under way may have seen an older state.
        let wanted = following.begun.load(Ordering::SeqCst) + 1;
        let _turn = following.turn.lock().await;
        {
            let last = following.last.lock();
            if last.0 >= wanted {
                return Ok(last.1.clone()?);
            }
        }
        let look = following.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let came_to = self.look().await;
        if came_to.is_err() {
            // A database that is coming back has better things to do than to turn each request away.
            tokio::time::sleep(AWAY).await;
        }
        *following.last.lock() = (look, came_to.clone());
        Ok(came_to?)
    }

    async fn look(&self) -> Result<(), StoreError> {
        let changes = self.store.follow().await?;
        // Nothing is waited for until all is noted, so that who breaks off has lost nothing.
        self.note(&changes);
        if self.following.administration.load(Ordering::SeqCst) {
            // Not between an administrator's commit and what follows of it here.
            let _administering = self.administering.lock().await;
            let bans = self.store.list_bans().await?;
            let benchmarks = self.store.list_benchmarks().await?;
            self.bans.replace(bans);
            *self.benchmarks.write() = benchmarks;
            self.following.administration.store(false, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Notes what isn't in memory any more as it is in the store.
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
        if *everything {
            self.live.mark_all();
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

    /// Reads the public channel again if the store may hold more of it by now.
    pub(crate) async fn refresh_public(&self) -> Result<(), StoreError> {
        if self.public.freshness.is_stale() {
            let _posting = self.public.posting.lock().await;
            if self.public.freshness.is_stale() {
                self.reload_public().await?;
            }
        }
        Ok(())
    }

    /// Counts a decision that another node was faster with, and lets that one finish: what it is just committing can't be read yet.
    pub(crate) async fn give_way(&self, attempt: usize) {
        self.following.conflicts.fetch_add(1, Ordering::Relaxed);
        if self.store.nodes().is_some() {
            let most_ms = LONGEST_WAY_MS.min(1 << attempt.min(8));
            // Not all after the same time, or they would meet again.
            let ms = 1 + self.environment.draw_below(most_ms);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}
