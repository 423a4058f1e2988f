//! The sessions that are in use: at most one copy of each in memory, and none for long after its last use.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use arena_model::{Channel, ChatMessage, InviteCode, Session, SessionId, Timestamp};
use arena_store::{Change, Commit, SessionNo, Store, StoreError, StoredSession};
use hashlink::LruCache;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{OnceCell, watch};

use crate::feed::{Tail, TailBytes};
use crate::freshness::{Freshness, Look};

/// Most messages that are read into memory when a channel that somebody watches turns out to have grown elsewhere. Who needs more
/// reads from the store, where they are.
const NEWS: u64 = 512;

/// How many sessions stay in memory although nobody is using them at the moment. A few KiB each.
const KEPT: usize = 2048;

/// Shards of the table, so that sessions don't queue for each other at its lock.
const SHARDS: usize = 16;

/// A session in memory. What it holds is committed; only the transition under way knows more.
pub(crate) struct Live {
    pub(crate) no: SessionNo,
    /// Held from deciding to publishing: one transition at a time.
    pub(crate) deciding: tokio::sync::Mutex<()>,
    pub(crate) committed: RwLock<Committed>,
    /// Counts publications; who waits for one watches this.
    pub(crate) changed: watch::Sender<u64>,
}

/// What is durable of a session.
pub(crate) struct Committed {
    pub(crate) session: Arc<Session>,
    pub(crate) chat: Tail,
    pub(crate) operator: Tail,
    pub(crate) last_activity: Timestamp,
    pub(crate) removed: bool,
}

impl Committed {
    fn of(stored: StoredSession, tails: &TailBytes) -> (SessionNo, Committed) {
        let StoredSession { no, session, chat_len, operator_len, last_activity } = stored;
        let committed = Committed {
            session: Arc::new(session),
            chat: Tail::of_len(chat_len, tails.clone()),
            operator: Tail::of_len(operator_len, tails.clone()),
            last_activity,
            removed: false,
        };
        (no, committed)
    }

    /// The tail of one of the session's channels.
    ///
    /// # Panics
    /// If it is asked for the public channel, which is no session's.
    pub(crate) fn tail(&self, channel: Channel) -> &Tail {
        match channel {
            Channel::Chat(_) => &self.chat,
            Channel::Operator(_) => &self.operator,
            Channel::Invites => unreachable!("the public channel is no session's"),
        }
    }
}

impl Live {
    fn new(stored: StoredSession, tails: &TailBytes) -> Live {
        let (no, committed) = Committed::of(stored, tails);
        Live {
            no,
            deciding: tokio::sync::Mutex::new(()),
            committed: RwLock::new(committed),
            changed: watch::Sender::new(0),
        }
    }

    /// Shows a commit to readers and wakes them.
    pub(crate) fn publish(&self, commit: Commit) {
        let watched = self.changed.receiver_count() > 0;
        {
            let mut committed = self.committed.write();
            match commit.change {
                Change::Stays(_) => {}
                Change::Create(session) | Change::Update(_, session) => committed.session = Arc::new(*session),
                Change::Remove(..) => committed.removed = true,
            }
            // Activity is what is said; that a later time to look was noted is none.
            for message in commit.messages {
                committed.last_activity = committed.last_activity.max(message.at);
                match message.channel {
                    Channel::Chat(_) => committed.chat.push(message, watched),
                    Channel::Operator(_) => committed.operator.push(message, watched),
                    Channel::Invites => {}
                }
            }
        }
        self.wake();
    }

    /// Lets go of the messages in memory, and wakes whoever is watching.
    pub(crate) fn forget_tails(&self) {
        {
            let mut committed = self.committed.write();
            committed.chat.forget();
            committed.operator.forget();
        }
        self.wake();
    }

    /// Shows that the session is gone. The caller holds `deciding`.
    pub(crate) fn show_removed(&self) {
        self.committed.write().removed = true;
        self.wake();
    }

    pub(crate) fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn is_watched(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// Reads the session from the store again, and of what was said since then what watchers will want.
    async fn load(&self, store: &Store, look: Look) -> Result<(), StoreError> {
        let id = self.committed.read().session.facts.id;
        let found = store.find_session(id).await?;
        let Some(StoredSession { session, chat_len, operator_len, last_activity, .. }) = found else {
            self.committed.write().removed = true;
            return Ok(());
        };
        let chat = self.read_news(store, Channel::Chat(id), chat_len).await?;
        let operator = self.read_news(store, Channel::Operator(id), operator_len).await?;
        let mut committed = self.committed.write();
        committed.session = Arc::new(session);
        committed.last_activity = last_activity;
        committed.removed = false;
        committed.chat.follow(chat_len, chat, look.hidden);
        committed.operator.follow(operator_len, operator, look.hidden);
        Ok(())
    }

    /// What a channel of this length has that isn't in memory, if somebody watches and it isn't too much.
    async fn read_news(&self, store: &Store, channel: Channel, len: u64) -> Result<Vec<ChatMessage>, StoreError> {
        let known = self.committed.read().tail(channel).len();
        if !self.is_watched() || len <= known || len - known > NEWS {
            return Ok(Vec::new());
        }
        // As many as fit into a usize, being few.
        store.list_messages(Some(self.no), channel, known + 1, (len - known) as usize).await
    }
}

/// A place for a session in memory: it may still be on its way from the store.
struct Slot {
    live: OnceCell<Live>,
    freshness: Freshness,
}

/// The sessions in memory, by id.
pub(crate) struct LiveSessions {
    shards: Vec<Mutex<Shard>>,
    /// Whose invites the latest ones are, so that joining a new session doesn't ask the store.
    invites: Mutex<LruCache<InviteCode, SessionId>>,
    tails: TailBytes,
}

struct Shard {
    /// Every session that somebody holds or that is kept, so that there is never a second copy of one.
    all: HashMap<SessionId, Weak<Slot>>,
    /// The lately used ones, which stay.
    kept: LruCache<SessionId, Arc<Slot>>,
    /// The size of `all` at which entries of sessions that have left are taken out.
    sweep_at: usize,
}

/// A session in memory, held. Others see it as long as one of these exists.
#[derive(Clone)]
pub(crate) struct LiveRef(Arc<Slot>);

impl std::ops::Deref for LiveRef {
    type Target = Live;

    fn deref(&self) -> &Live {
        self.0.live.get().expect("a LiveRef is only made of a slot that is filled")
    }
}

impl LiveRef {
    /// Whether the store may hold something else by now.
    pub(crate) fn is_stale(&self) -> bool {
        self.0.freshness.is_stale()
    }

    /// Notes that the store may hold something else by now.
    pub(crate) fn mark_stale(&self) {
        self.0.freshness.mark();
    }

    /// Reads the session from the store again. The caller holds `deciding`.
    pub(crate) async fn reload(&self, store: &Store) -> Result<(), StoreError> {
        let look = self.0.freshness.look();
        self.load(store, look).await?;
        self.0.freshness.seen(look);
        self.wake();
        Ok(())
    }

    /// Reads the session from the store again if it may hold something else by now.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        if self.is_stale() {
            let _deciding = self.deciding.lock().await;
            // Somebody else may have done it meanwhile.
            if self.is_stale() {
                self.reload(store).await?;
            }
        }
        Ok(())
    }
}

impl LiveSessions {
    pub(crate) fn new() -> LiveSessions {
        let shard = || Mutex::new(Shard { all: HashMap::new(), kept: LruCache::new(KEPT / SHARDS), sweep_at: KEPT });
        let invites = Mutex::new(LruCache::new(2 * KEPT));
        LiveSessions { shards: (0..SHARDS).map(|_| shard()).collect(), invites, tails: TailBytes::default() }
    }

    /// The count of what tails take in memory.
    pub(crate) fn tails(&self) -> &TailBytes {
        &self.tails
    }

    fn shard(&self, id: SessionId) -> &Mutex<Shard> {
        // This byte of an id is random, of those that begin with a time as well.
        &self.shards[usize::from(id.0.as_bytes()[7]) % SHARDS]
    }

    /// The session, from memory or else from the store; `None` if there is none.
    pub(crate) async fn find(&self, id: SessionId, store: &Store) -> Result<Option<LiveRef>, StoreError> {
        let slot = self.shard(id).lock().slot(id);
        let loaded = slot.live.get_or_try_init(|| async {
            let stored = store.find_session(id).await.map_err(Some)?;
            stored.map(|stored| Live::new(stored, &self.tails)).ok_or(None)
        });
        match loaded.await {
            Ok(_) => Ok(Some(LiveRef(slot))),
            Err(error) => {
                self.forget(id);
                error.map_or(Ok(None), Err)
            }
        }
    }

    /// The session that an invite belongs to, from memory or else from the store.
    pub(crate) async fn find_invite(&self, invite: InviteCode, store: &Store) -> Result<Option<SessionId>, StoreError> {
        // An invite belongs to one session for good, so what is remembered can't be wrong; the session may be gone.
        let known = self.invites.lock().get(&invite).copied();
        match known {
            Some(id) => Ok(Some(id)),
            None => store.find_invite(invite).await,
        }
    }

    /// Keeps a place for a session that is just being created, for as long as what is returned lives: so that what other nodes do with
    /// it as soon as they can is noted there.
    pub(crate) fn reserve(&self, id: SessionId) -> Reserved {
        Reserved { _slot: self.shard(id).lock().slot(id) }
    }

    /// Takes a session in that was just created.
    pub(crate) fn insert(&self, id: SessionId, stored: StoredSession) {
        let live = Live::new(stored, &self.tails);
        {
            let mut invites = self.invites.lock();
            for &invite in &live.committed.read().session.facts.invites {
                invites.insert(invite, id);
            }
        }
        let slot = self.shard(id).lock().slot(id);
        // Somebody may have read it from the store in the meantime: the same then.
        let _ = slot.live.set(live);
    }

    /// Notes that the store may hold something else of a session by now, if it is in memory or on its way; `hidden` says whether a
    /// message may have lost its content. Who watches it looks again.
    pub(crate) fn mark(&self, id: SessionId, hidden: bool) {
        let held = self.shard(id).lock().all.get(&id).and_then(Weak::upgrade);
        if let Some(slot) = held {
            slot.mark(hidden);
        }
    }

    /// The same of all sessions.
    pub(crate) fn mark_all(&self) {
        for shard in &self.shards {
            let held: Vec<Arc<Slot>> = shard.lock().all.values().filter_map(Weak::upgrade).collect();
            for slot in held {
                slot.mark(true);
            }
        }
    }

    /// Lets go of a session: it leaves memory when nobody holds it any more.
    pub(crate) fn forget(&self, id: SessionId) {
        self.shard(id).lock().kept.remove(&id);
    }

    /// Lets go of a session that has been removed, so that another one may be found by its id. Whoever holds it goes on
    /// seeing that it was removed.
    pub(crate) fn evict(&self, id: SessionId) {
        let mut shard = self.shard(id).lock();
        shard.kept.remove(&id);
        shard.all.remove(&id);
    }

    /// Lets go of all sessions that nobody has used since the last call but one.
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

/// A place that is kept for a session.
pub(crate) struct Reserved {
    _slot: Arc<Slot>,
}

impl Slot {
    fn mark(&self, hidden: bool) {
        if hidden {
            self.freshness.mark_hidden();
        } else {
            self.freshness.mark();
        }
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
            let slot = Arc::new(Slot { live: OnceCell::new(), freshness: Freshness::default() });
            self.all.insert(id, Arc::downgrade(&slot));
            slot
        });
        self.kept.insert(id, Arc::clone(&slot));
        slot
    }

    fn sweep(&mut self) {
        self.all.retain(|_, slot| slot.strong_count() > 0);
        self.all.shrink_to_fit();
        // Twice what is alive, so that sweeping costs each newcomer a constant.
        self.sweep_at = (2 * self.all.len()).max(KEPT / SHARDS * 4);
    }
}
