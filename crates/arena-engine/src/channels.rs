//! Reading channels, once or for as long as somebody watches.

use std::sync::Arc;

use arena_model::Channel;
use parking_lot::RwLockReadGuard;
use tokio::sync::watch;

use crate::engine::Engine;
use crate::feed::{Posted, Snapshot, Tail};
use crate::live::{Committed, LiveRef};
use crate::request::EngineError;

/// Bytes of text after which a read is long enough, where the caller names no other number.
const READ_BYTES: usize = 1024 * 1024;

/// Somebody watching a channel. Keeps the channel's session in memory.
pub struct Subscription {
    engine: Engine,
    channel: Channel,
    /// The channel's session; the public channel has none.
    live: Option<LiveRef>,
    changed: watch::Receiver<u64>,
}

impl Engine {
    /// Messages of a channel from index `from` on, at most `limit`. The channel of an unknown session is empty, and
    /// counts as removed.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read(&self, channel: Channel, from: u64, limit: usize) -> Result<Snapshot, EngineError> {
        self.read_within(channel, from, limit, READ_BYTES).await
    }

    /// [`Engine::read`] up to the message with which their texts come to `most_bytes`, as far as they come from the store.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_within(
        &self,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Snapshot, EngineError> {
        match channel {
            Channel::Invites => self.read_from(None, channel, from, limit, most_bytes).await,
            Channel::Chat(id) | Channel::Operator(id) => match self.current(id).await? {
                Some(live) => self.read_from(Some(&live), channel, from, limit, most_bytes).await,
                None => Ok(Snapshot { messages: Vec::new(), len: 0, session: None, removed: true }),
            },
        }
    }

    /// A watch on a channel; `None` if its session is unknown.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn subscribe(&self, channel: Channel) -> Result<Option<Subscription>, EngineError> {
        let (live, changed) = match channel {
            Channel::Invites => (None, self.inner.public.changed.subscribe()),
            Channel::Chat(id) | Channel::Operator(id) => {
                let Some(live) = self.current(id).await? else { return Ok(None) };
                let changed = live.changed.subscribe();
                (Some(live), changed)
            }
        };
        Ok(Some(Subscription { engine: self.clone(), channel, live, changed }))
    }

    async fn read_from(
        &self,
        live: Option<&LiveRef>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Snapshot, EngineError> {
        match live {
            Some(live) => live.refresh(&self.inner.store).await?,
            None => self.inner.refresh_public().await?,
        }
        let (found, snapshot) = match live {
            Some(live) => read_committed(live.committed.read(), channel, from, limit),
            None => {
                let tail = self.inner.public.tail.read();
                let snapshot = Snapshot { messages: Vec::new(), len: tail.len(), session: None, removed: false };
                (tail.read(from, limit), snapshot)
            }
        };
        let messages = match found {
            Some(messages) => messages,
            None => {
                // The store may know more than the snapshot by now; more than it said would be news from the future.
                let limit = limit.min(usize::try_from(snapshot.len + 1 - from.max(1)).unwrap_or(usize::MAX));
                let no = live.map(|live| live.no);
                let messages = self.inner.store.list_messages_within(no, channel, from, limit, most_bytes).await?;
                messages.into_iter().map(|message| Arc::new(Posted::new(message))).collect()
            }
        };
        Ok(Snapshot { messages, ..snapshot })
    }
}

/// What memory has to say; the guard goes with this function, so that nobody waits for the store while holding it.
fn read_committed(
    committed: RwLockReadGuard<'_, Committed>,
    channel: Channel,
    from: u64,
    limit: usize,
) -> (Option<Vec<Arc<Posted>>>, Snapshot) {
    let tail: &Tail = committed.tail(channel);
    let session = Some(Arc::clone(&committed.session));
    let snapshot = Snapshot { messages: Vec::new(), len: tail.len(), session, removed: committed.removed };
    (tail.read(from, limit), snapshot)
}

impl Subscription {
    /// Messages from index `from` on, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read(&self, from: u64, limit: usize) -> Result<Snapshot, EngineError> {
        self.read_within(from, limit, READ_BYTES).await
    }

    /// [`Subscription::read`] up to the message with which their texts come to `most_bytes`, as far as they come from the store.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_within(&self, from: u64, limit: usize, most_bytes: usize) -> Result<Snapshot, EngineError> {
        self.engine.read_from(self.live.as_ref(), self.channel, from, limit, most_bytes).await
    }

    /// How many watch the session, or the public channel, this one included; each of a session's two channels counts by itself.
    pub fn watchers(&self) -> usize {
        let changed = self.live.as_ref().map_or(&self.engine.inner.public.changed, |live| &live.changed);
        changed.receiver_count()
    }

    /// Waits until the channel may have grown or its session changed since this was taken, or since the last call. Read
    /// between two calls, nothing is missed.
    pub async fn changed(&mut self) {
        // An error would mean that the sender is gone; it lives as long as what this holds.
        let _ = self.changed.changed().await;
    }
}
