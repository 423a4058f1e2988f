//! The sessions that are in use: at most one copy of each in memory, and none for long after its last use.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use arena_model::{Channel, InviteCode, Session, SessionId, Timestamp};
use arena_store::{Change, Commit, SessionNo, Store, StoreError, StoredSession};
use hashlink::LruCache;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{OnceCell, watch};

use crate::feed::Tail;

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
    /// A commit failed in a way that leaves open what the store holds: read again before deciding.
    pub(crate) stale: bool,
}

impl Committed {
    fn of(stored: StoredSession) -> (SessionNo, Committed) {
        let StoredSession { no, session, chat_len, operator_len, last_activity } = stored;
        let committed = Committed {
            session: Arc::new(session),
            chat: Tail::of_len(chat_len),
            operator: Tail::of_len(operator_len),
            last_activity,
            removed: false,
            stale: false,
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
    pub(crate) fn new(stored: StoredSession) -> Live {
        let (no, committed) = Committed::of(stored);
        Live {
            no,
            deciding: tokio::sync::Mutex::new(()),
            committed: RwLock::new(committed),
            changed: watch::Sender::new(0),
        }
    }

    /// Shows a commit to readers and wakes them.
    pub(crate) fn publish(&self, commit: Commit, now: Timestamp) {
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
                committed.last_activity = now;
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

    /// Reads the session from the store again. The caller holds `deciding`.
    pub(crate) async fn reload(&self, store: &Store) -> Result<(), StoreError> {
        let id = self.committed.read().session.facts.id;
        let found = store.find_session(id).await?;
        {
            let mut committed = self.committed.write();
            match found {
                Some(stored) => *committed = Committed::of(stored).1,
                None => committed.removed = true,
            }
        }
        self.wake();
        Ok(())
    }
}

type Slot = OnceCell<Live>;

/// The sessions in memory, by id.
pub(crate) struct LiveSessions {
    shards: Vec<Mutex<Shard>>,
    /// Whose invites the latest ones are, so that joining a new session doesn't ask the store.
    invites: Mutex<LruCache<InviteCode, SessionId>>,
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
        self.0.get().expect("a LiveRef is only made of a slot that is filled")
    }
}

impl LiveSessions {
    pub(crate) fn new() -> LiveSessions {
        let shard = || Mutex::new(Shard { all: HashMap::new(), kept: LruCache::new(KEPT / SHARDS), sweep_at: KEPT });
        let invites = Mutex::new(LruCache::new(2 * KEPT));
        LiveSessions { shards: (0..SHARDS).map(|_| shard()).collect(), invites }
    }

    fn shard(&self, id: SessionId) -> &Mutex<Shard> {
        // The last byte of an id is random.
        &self.shards[usize::from(id.0.as_bytes()[15]) % SHARDS]
    }

    /// The session, from memory or else from the store; `None` if there is none.
    pub(crate) async fn find(&self, id: SessionId, store: &Store) -> Result<Option<LiveRef>, StoreError> {
        let slot = self.shard(id).lock().slot(id);
        let loaded = slot.get_or_try_init(|| async {
            let stored = store.find_session(id).await.map_err(Some)?;
            stored.map(Live::new).ok_or(None)
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

    /// Takes a session in that was just created.
    pub(crate) fn insert(&self, id: SessionId, live: Live) {
        {
            let mut invites = self.invites.lock();
            for &invite in &live.committed.read().session.facts.invites {
                invites.insert(invite, id);
            }
        }
        let slot = self.shard(id).lock().slot(id);
        // Somebody may have read it from the store in the meantime: the same then.
        let _ = slot.set(live);
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
                .filter(|(_, slot)| Arc::strong_count(slot) == 1 && !slot.get().is_some_and(&keep))
                .map(|(id, _)| *id)
                .collect();
            for id in idle {
                shard.kept.remove(&id);
            }
            shard.sweep();
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
            let slot = Arc::new(Slot::new());
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
