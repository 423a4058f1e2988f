//! Reads of channels, and subscriptions to channels.

use std::sync::Arc;

use arena_model::Channel;
use parking_lot::RwLockReadGuard;
use tokio::sync::watch;

use crate::engine::Engine;
use crate::feed::{Posted, Snapshot, Tail};
use crate::live::{Committed, LiveRef};
use crate::request::EngineError;

/// The default limit of a read from the store, in bytes of message text.
const READ_BYTES: usize = 1024 * 1024;

/// A subscription to a channel. The subscription keeps the channel's session in memory.
pub struct Subscription {
    engine: Engine,
    channel: Channel,
    /// The channel's session; `None` for the public channel.
    live: Option<LiveRef>,
    changed: watch::Receiver<u64>,
}

impl Engine {
    /// Returns at most `limit` messages of a channel, from index `from` on. For an unknown session, and for the inputs of
    /// a session, the snapshot has no messages and is marked as removed.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read(&self, channel: Channel, from: u64, limit: usize) -> Result<Snapshot, EngineError> {
        self.read_within(channel, from, limit, READ_BYTES).await
    }

    /// Reads like [`Engine::read`], with a size limit for reads from the store: the read ends with the message at which
    /// the total size of the texts reaches `most_bytes`.
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
            Channel::Invites => {
                self.inner.refresh_public().await?;
                self.read_from(None, channel, from, limit, most_bytes).await
            }
            Channel::Chat(id) | Channel::Operator(id) => match self.current(id).await? {
                Some(live) => self.read_from(Some(&live), channel, from, limit, most_bytes).await,
                None => Ok(Snapshot { messages: Vec::new(), len: 0, session: None, removed: true }),
            },
            Channel::Inputs(_) => Ok(Snapshot { messages: Vec::new(), len: 0, session: None, removed: true }),
        }
    }

    /// Subscribes to a channel. Returns `None` if its session is unknown, or for the inputs of a session.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn subscribe(&self, channel: Channel) -> Result<Option<Subscription>, EngineError> {
        let (live, changed) = match channel {
            Channel::Invites => {
                let changed = self.inner.public.changed.subscribe();
                self.inner.refresh_public().await?;
                (None, changed)
            }
            Channel::Chat(id) | Channel::Operator(id) => {
                let Some(live) = self.current(id).await? else { return Ok(None) };
                let changed = live.changed.subscribe();
                (Some(live), changed)
            }
            Channel::Inputs(_) => return Ok(None),
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
            Some(live) => live.reload_if_stale(&self.inner.store).await?,
            None if self.inner.public.stale.is_stale() => self.inner.refresh_public().await?,
            None => {}
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
                // The store may have messages that are newer than the snapshot. The limit excludes them.
                let limit = limit.min(usize::try_from(snapshot.len + 1 - from.max(1)).unwrap_or(usize::MAX));
                let no = live.map(|live| live.no);
                let messages = self.inner.list_messages(no, channel, from, limit, most_bytes).await?;
                messages.into_iter().map(|message| Arc::new(Posted::new(message))).collect()
            }
        };
        Ok(Snapshot { messages, ..snapshot })
    }
}

/// A separate function, so that the lock guard is dropped before the caller waits for the store.
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
    /// Returns at most `limit` messages, from index `from` on.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read(&self, from: u64, limit: usize) -> Result<Snapshot, EngineError> {
        self.read_within(from, limit, READ_BYTES).await
    }

    /// Reads like [`Subscription::read`], with a size limit for reads from the store: the read ends with the message at
    /// which the total size of the texts reaches `most_bytes`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn read_within(&self, from: u64, limit: usize, most_bytes: usize) -> Result<Snapshot, EngineError> {
        self.engine.read_from(self.live.as_ref(), self.channel, from, limit, most_bytes).await
    }

    /// Returns the number of subscriptions to the session, or to the public channel, including this one. A client that
    /// subscribes to both channels of a session counts twice.
    pub fn watchers(&self) -> usize {
        let changed = self.live.as_ref().map_or(&self.engine.inner.public.changed, |live| &live.changed);
        changed.receiver_count()
    }

    /// Waits until the channel or its session may have changed since the subscription or the last call. A read between
    /// two calls misses nothing.
    pub async fn changed(&mut self) {
        // `changed` fails only after the sender is dropped, and this subscription keeps the sender alive.
        let _ = self.changed.changed().await;
    }
}
