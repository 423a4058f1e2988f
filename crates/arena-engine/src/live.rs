//! The sessions in memory. Each session has at most one copy, which is evicted soon after its last use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use arena_model::{Channel, ChatMessage, InviteCode, Session, SessionId, Status, Timestamp};
use arena_store::{
    Commit, FoundSession, Marks, SessionChange, SessionMark, SessionNews, SessionNo, Store, StoreError, StoredSession,
};
use hashlink::LruCache;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{OnceCell, watch};

use crate::feed::{Posted, Tail, TailBytes};
use crate::stale_marks::StaleMarks;
use crate::transcript::Transcript;
use crate::transitions::SessionQueue;

/// The number of comparisons without a difference after which a session counts as one of this node alone.
const CONTESTED: u8 = 4;

/// The number of unused sessions that stay in memory. Each takes a few KiB.
const KEPT_SESSIONS: usize = 2048;

/// The number of shards of the table, so that sessions don't contend for its lock.
const SHARDS: usize = 16;

/// A session in memory. It contains only committed data; a transition in progress keeps its changes to itself.
pub(crate) struct Live {
    pub(crate) no: SessionNo,
    pub(crate) queue: SessionQueue,
    /// A lock that a transition holds from its decision to its publication, so that transitions run one at a time.
    pub(crate) deciding: tokio::sync::Mutex<()>,
    pub(crate) committed: RwLock<Committed>,
    /// Greater than 0 while other nodes write to the session, so that a decision on memory would often be in vain.
    contested: AtomicU8,
    /// The number of publications. Subscribers wait for the next one.
    pub(crate) changed: watch::Sender<u64>,
}

pub(crate) struct Committed {
    pub(crate) session: Arc<Session>,
    pub(crate) chat: Tail,
    pub(crate) operator: Tail,
    /// All messages, if the session is short and this process has written all of it.
    pub(crate) transcript: Option<Transcript>,
    pub(crate) last_activity: Timestamp,
    /// The size of the chat, in bytes; `None` if only the store knows it.
    pub(crate) chat_bytes: Option<u64>,
    pub(crate) removed: bool,
    /// The number of the stored session's changes that leave its version.
    pub(crate) edits: u64,
}

impl Committed {
    fn mark(&self, no: SessionNo) -> SessionMark {
        let Committed { session, edits, .. } = self;
        let (chat_len, operator_len) = (self.chat.len(), self.operator.len());
        SessionMark { no, version: session.version, edits: *edits, chat_len, operator_len }
    }

    fn of(stored: StoredSession, tails: &TailBytes) -> (SessionNo, Committed) {
        let StoredSession { no, session, chat_len, operator_len, last_activity, edits } = stored;
        let committed = Committed {
            session: Arc::new(session),
            chat: Tail::of_len(chat_len, tails.clone()),
            operator: Tail::of_len(operator_len, tails.clone()),
            transcript: None,
            last_activity,
            chat_bytes: (chat_len == 0).then_some(0),
            removed: false,
            edits,
        };
        (no, committed)
    }

    /// Returns the tail of one of the session's channels.
    ///
    /// # Panics
    /// If `channel` is the public channel, which belongs to no session, or the channel of a session's inputs, which
    /// have no readers.
    pub(crate) fn tail(&self, channel: Channel) -> &Tail {
        match channel {
            Channel::Chat(_) => &self.chat,
            Channel::Operator(_) => &self.operator,
            Channel::Invites => unreachable!("the public channel belongs to no session"),
            Channel::Inputs(_) => unreachable!("inputs have no readers"),
        }
    }
}

impl Live {
    fn new(stored: StoredSession, tails: &TailBytes) -> Live {
        let (no, committed) = Committed::of(stored, tails);
        Live {
            no,
            queue: SessionQueue::default(),
            deciding: tokio::sync::Mutex::new(()),
            committed: RwLock::new(committed),
            contested: AtomicU8::new(1),
            changed: watch::Sender::new(0),
        }
    }

    /// Wakes subscribers. Returns the session with its transcript if it ends with the commit and has a transcript.
    pub(crate) fn publish(&self, commit: Commit) -> Option<(Arc<Session>, Transcript)> {
        let watched = self.changed.receiver_count() > 0;
        let ended = {
            let mut committed = self.committed.write();
            let committed = &mut *committed;
            match commit.change {
                SessionChange::Stays(_) => {}
                SessionChange::Create(session) | SessionChange::Update { session, .. } => {
                    committed.session = Arc::new(*session)
                }
                SessionChange::Remove(..) => committed.removed = true,
            }
            for message in commit.messages {
                if message.channel == Channel::Invites {
                    continue;
                }
                let (channel, at) = (message.channel, message.at);
                let bytes = message.content.len() as u64;
                let message = Arc::new(Posted::new(message));
                let transcript = committed.transcript.take();
                committed.transcript = transcript.and_then(|transcript| transcript.with(Arc::clone(&message)));
                // Messages count as activity. Inputs don't, such as a change of the wake-up time alone.
                if channel.is_inputs() {
                    continue;
                }
                committed.last_activity = committed.last_activity.max(at);
                match channel {
                    Channel::Chat(_) => {
                        committed.chat_bytes = committed.chat_bytes.map(|chat_bytes| chat_bytes + bytes);
                        committed.chat.push_shared(message, watched);
                    }
                    Channel::Operator(_) => committed.operator.push_shared(message, watched),
                    Channel::Invites | Channel::Inputs(_) => {}
                }
            }
            match committed.session.status() {
                Status::Ended => committed.transcript.take().map(|all| (Arc::clone(&committed.session), all)),
                Status::Open | Status::Active => None,
            }
        };
        self.wake();
        ended
    }

    /// Drops the messages in memory and wakes subscribers.
    pub(crate) fn forget_tails(&self) {
        {
            let mut committed = self.committed.write();
            committed.chat.forget();
            committed.operator.forget();
            committed.transcript = None;
        }
        self.wake();
    }

    /// Publishes the removal of the session. The caller holds `deciding`.
    pub(crate) fn show_removed(&self) {
        self.committed.write().removed = true;
        self.wake();
    }

    pub(crate) fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn is_contested(&self) -> bool {
        self.contested.load(Ordering::Relaxed) > 0
    }

    /// Returns the state that memory has.
    pub(crate) fn mark(&self) -> SessionMark {
        self.committed.read().mark(self.no)
    }

    fn is_watched(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// Reloads the session from the store. `was_stale` is true if messages in memory may differ from the stored ones.
    async fn load(&self, store: &Store, was_stale: bool) -> Result<(), StoreError> {
        let id = self.committed.read().session.facts.id;
        // A session that was imported after a removal may have the same id.
        match store.find_session(id).await?.filter(|stored| stored.no == self.no) {
            Some(stored) => self.replace(stored, Default::default(), was_stale),
            None => self.committed.write().removed = true,
        }
        Ok(())
    }

    /// Replaces the session by the stored one. `messages` follow the known ones of the chat and the operator channel, and
    /// `was_stale` is as for [`Live::load`].
    fn replace(&self, stored: StoredSession, [chat, operator]: [Vec<ChatMessage>; 2], was_stale: bool) {
        let is_watched = self.is_watched();
        let StoredSession { session, chat_len, operator_len, last_activity, edits, .. } = stored;
        let mut committed = self.committed.write();
        committed.session = Arc::new(session);
        committed.transcript = None;
        committed.last_activity = last_activity;
        committed.removed = false;
        let hidden = was_stale || committed.edits != edits;
        committed.edits = edits;
        let is_whole = !hidden && committed.chat.len() + chat.len() as u64 == chat_len;
        let new_bytes = chat.iter().map(|message| message.content.len() as u64).sum::<u64>();
        committed.chat_bytes = committed.chat_bytes.filter(|_| is_whole).map(|bytes| bytes + new_bytes);
        committed.chat.follow(chat_len, chat, hidden, is_watched);
        committed.operator.follow(operator_len, operator, hidden, is_watched);
    }
}

/// A slot for a session in memory, which may still be loading.
struct Slot {
    live: OnceCell<Live>,
    stale: StaleMarks,
}

pub(crate) struct LiveSessions {
    shards: Vec<Mutex<Shard>>,
    /// The sessions of the latest invites, so that joining a new session doesn't query the store.
    invites: Mutex<LruCache<InviteCode, SessionId>>,
    tails: TailBytes,
}

struct Shard {
    /// All sessions in memory, held by references or by `kept`. This table prevents a second copy of a session.
    all: HashMap<SessionId, Weak<Slot>>,
    /// The recently used sessions, which stay in memory without other references.
    kept: LruCache<SessionId, Arc<Slot>>,
    /// The size of `all` at which the shard removes the entries of evicted sessions.
    sweep_at: usize,
}

/// A reference to a session in memory. The session stays in memory while a reference exists.
#[derive(Clone)]
pub(crate) struct LiveRef(Arc<Slot>);

impl std::ops::Deref for LiveRef {
    type Target = Live;

    fn deref(&self) -> &Live {
        self.0.live.get().expect("a LiveRef is only made from a slot with a loaded session")
    }
}

impl LiveRef {
    pub(crate) fn is_stale(&self) -> bool {
        self.0.stale.is_stale()
    }

    pub(crate) fn mark_stale(&self) {
        self.0.stale.set();
    }

    /// Reloads the session from the store. The caller holds `deciding`.
    pub(crate) async fn reload(&self, store: &Store) -> Result<(), StoreError> {
        let marks = self.0.stale.count();
        self.load(store, self.is_stale()).await?;
        self.0.stale.clear(marks);
        self.wake();
        Ok(())
    }

    /// Returns true if the session in memory is older than in `marks`, or must be read again.
    pub(crate) fn is_outdated(&self, marks: &Marks) -> bool {
        let committed = self.committed.read();
        let is_older = match marks.sessions.get(&self.no) {
            Some(FoundSession { mark, .. }) => committed.removed || mark.exceeds(&committed.mark(self.no)),
            None => !committed.removed,
        };
        is_older || self.is_stale()
    }

    /// Makes the session in memory at least as new as in `marks`. The caller holds `deciding`.
    pub(crate) async fn follow(&self, store: &Store, marks: &Marks) -> Result<(), StoreError> {
        if !self.is_outdated(marks) {
            let _ = self.contested.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
            return Ok(());
        }
        self.contested.store(CONTESTED, Ordering::Relaxed);
        let found = marks.sessions.get(&self.no);
        match found.and_then(|found| found.news.as_ref()) {
            // A commit of this node may have followed the read.
            Some(SessionNews { stored, messages }) if !self.is_stale() && !self.exceeds(stored) => {
                self.replace(stored.clone(), messages.clone(), false);
                self.wake();
                Ok(())
            }
            None if found.is_none() && !self.is_stale() => {
                self.show_removed();
                Ok(())
            }
            _ => self.reload(store).await,
        }
    }

    fn exceeds(&self, stored: &StoredSession) -> bool {
        let committed = self.committed.read();
        committed.removed || committed.mark(self.no).exceeds(&stored.mark())
    }

    pub(crate) async fn reload_if_stale(&self, store: &Store) -> Result<(), StoreError> {
        if self.is_stale() {
            let _deciding = self.deciding.lock().await;
            // Another task may have reloaded the session in the meantime.
            if self.is_stale() {
                self.reload(store).await?;
            }
        }
        Ok(())
    }
}

impl LiveSessions {
    pub(crate) fn new() -> LiveSessions {
        let shard = || {
            Mutex::new(Shard {
                all: HashMap::new(),
                kept: LruCache::new(KEPT_SESSIONS / SHARDS),
                sweep_at: KEPT_SESSIONS,
            })
        };
        let invites = Mutex::new(LruCache::new(2 * KEPT_SESSIONS));
        LiveSessions { shards: (0..SHARDS).map(|_| shard()).collect(), invites, tails: TailBytes::default() }
    }

    pub(crate) fn tails(&self) -> &TailBytes {
        &self.tails
    }

    fn shard(&self, id: SessionId) -> &Mutex<Shard> {
        // This byte is random even in ids that contain a time.
        &self.shards[usize::from(id.0.as_bytes()[7]) % SHARDS]
    }

    pub(crate) async fn find(&self, id: SessionId, store: &Store) -> Result<Option<LiveRef>, StoreError> {
        Ok(self.find_or_load(id, store).await?.map(|(live, _)| live))
    }

    /// Returns a session, and true if it was read from the store after the call.
    pub(crate) async fn find_or_load(
        &self,
        id: SessionId,
        store: &Store,
    ) -> Result<Option<(LiveRef, bool)>, StoreError> {
        let slot = self.shard(id).lock().slot(id);
        let mut is_new = false;
        let loaded = slot.live.get_or_try_init(|| async {
            is_new = true;
            let stored = store.find_session(id).await.map_err(Some)?;
            stored.map(|stored| Live::new(stored, &self.tails)).ok_or(None)
        });
        match loaded.await {
            Ok(_) => Ok(Some((LiveRef(slot), is_new))),
            Err(error) => {
                self.forget(id);
                error.map_or(Ok(None), Err)
            }
        }
    }

    pub(crate) async fn find_invite(&self, invite: InviteCode, store: &Store) -> Result<Option<SessionId>, StoreError> {
        // An invite never changes its session, so the cached id is correct even if the session was removed.
        let known = self.invites.lock().get(&invite).copied();
        match known {
            Some(id) => Ok(Some(id)),
            None => store.find_invite(invite).await,
        }
    }

    /// Reserves a slot for a session before its creation, for the lifetime of the result.
    pub(crate) fn reserve(&self, id: SessionId) -> Reserved {
        Reserved { _slot: self.shard(id).lock().slot(id) }
    }

    /// Inserts a new session, with the transcript up to now.
    pub(crate) fn insert(&self, id: SessionId, stored: StoredSession, transcript: Option<Transcript>) {
        let live = Live::new(stored, &self.tails);
        live.contested.store(0, Ordering::Relaxed);
        live.committed.write().transcript = transcript;
        {
            let mut invites = self.invites.lock();
            for &invite in &live.committed.read().session.facts.invites {
                invites.insert(invite, id);
            }
        }
        let slot = self.shard(id).lock().slot(id);
        // Another task may have loaded the same session from the store in the meantime.
        let _ = slot.live.set(live);
    }

    /// Marks a session as stale if it is in memory or loading, and wakes its subscribers.
    pub(crate) fn mark_stale(&self, id: SessionId) {
        let held = self.shard(id).lock().all.get(&id).and_then(Weak::upgrade);
        if let Some(slot) = held {
            slot.mark();
        }
    }

    /// Returns the sessions with subscribers.
    pub(crate) fn subscribed(&self) -> Vec<LiveRef> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let held: Vec<_> = shard.lock().all.values().filter_map(|slot| Some(LiveRef(slot.upgrade()?))).collect();
            found.extend(held.into_iter().filter(|live| live.0.live.get().is_some_and(Live::is_watched)));
        }
        found
    }

    pub(crate) fn mark_all(&self) {
        for shard in &self.shards {
            let held: Vec<Arc<Slot>> = shard.lock().all.values().filter_map(Weak::upgrade).collect();
            for slot in held {
                slot.mark();
            }
        }
    }

    /// Removes a session from `kept`. The session leaves memory when the last reference to it is dropped.
    pub(crate) fn forget(&self, id: SessionId) {
        self.shard(id).lock().kept.remove(&id);
    }

    /// Evicts a removed session, so that a lookup of its id can find a later session. Existing references still show
    /// the removed session.
    pub(crate) fn evict(&self, id: SessionId, removed: &LiveRef) {
        let mut shard = self.shard(id).lock();
        // Another task may have evicted it before.
        if shard.all.get(&id).is_some_and(|slot| std::ptr::eq(slot.as_ptr(), Arc::as_ptr(&removed.0))) {
            shard.kept.remove(&id);
            shard.all.remove(&id);
        }
    }

    /// Evicts sessions without references, except those for which `keep` returns true.
    pub(crate) fn forget_idle(&self, keep: impl Fn(&Live) -> bool) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let idle: Vec<SessionId> = shard
                .kept
                .iter()
                .filter(|(_, slot)| Arc::strong_count(slot) == 1 && !slot.live.get().is_some_and(&keep))
                .map(|(id, _)| *id)
                .collect();
            for id in idle {
                shard.kept.remove(&id);
            }
            shard.sweep();
        }
    }
}

pub(crate) struct Reserved {
    _slot: Arc<Slot>,
}

impl Slot {
    fn mark(&self) {
        self.stale.set();
        if let Some(live) = self.live.get().filter(|live| live.is_watched()) {
            live.wake();
        }
    }
}

impl Shard {
    fn slot(&mut self, id: SessionId) -> Arc<Slot> {
        if let Some(slot) = self.kept.get(&id) {
            return Arc::clone(slot);
        }
        let slot = self.all.get(&id).and_then(Weak::upgrade).unwrap_or_else(|| {
            if self.all.len() >= self.sweep_at {
                self.sweep();
            }
            let slot = Arc::new(Slot { live: OnceCell::new(), stale: StaleMarks::default() });
            self.all.insert(id, Arc::downgrade(&slot));
            slot
        });
        self.kept.insert(id, Arc::clone(&slot));
        slot
    }

    fn sweep(&mut self) {
        self.all.retain(|_, slot| slot.strong_count() > 0);
        self.all.shrink_to_fit();
        // The threshold is twice the number of remaining entries, so that sweeping costs constant time per new entry.
        self.sweep_at = (2 * self.all.len()).max(KEPT_SESSIONS / SHARDS * 4);
    }
}
