//! The engine: each write is load → decide → commit → publish, and each read returns committed data.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arena_model::{
    ActError, ChallengeType, Channel, ChatMessage, InviteCode, JoinError, Party, Script, Seed, Session, SessionFacts,
    SessionId, Timestamp, Transition, UserId,
};
use arena_store::{
    Commit, CommitError, DealResult, Marks, NewAnswer, Page, SessionChange, SessionFilter, Store, StoreError,
    StoredAnswer, StoredSession,
};
use parking_lot::RwLock;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};

use crate::archive::Archive;
use crate::bans::{Actor, Bans};
use crate::catalogue::{Catalogue, Hosted, Revive, decide_by, workers};
use crate::completion::Completion;
use crate::environment::Environment;
use crate::feed::{Posted, Tail};
use crate::inputs::{CommitContent, created_input};
use crate::live::{LiveRef, LiveSessions};
use crate::node_state::NodeState;
use crate::request::{Act, Chat, Create, Deal, EngineError, Join, Limits, Moment, Once, Respond, Written, unwritten};
use crate::stale_marks::StaleMarks;
use crate::transcript::{EndedTranscripts, Transcript};

/// The maximum time for which the engine repeats a decision after conflicts with other nodes. After that, the caller
/// gets an error. A stalled commit of another node may take about as long.
pub(crate) const LONGEST_CONTENTION: Duration = Duration::from_secs(5);

/// The maximum number of public messages that one read loads into memory for subscribers.
const MAX_PUBLIC_MESSAGES: u64 = 512;

/// The engine of an arena, which runs its sessions. Clones are handles to the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) catalogue: Catalogue,
    pub(crate) limits: Limits,
    /// In memory, because the engine needs them at the end of each game, and they are few.
    pub(crate) benchmarks: RwLock<BTreeSet<UserId>>,
    pub(crate) bans: Bans,
    /// A lock that an administrator's change holds while it updates both the store and memory, so that both get changes
    /// in the same order.
    pub(crate) administering: tokio::sync::Mutex<()>,
    pub(crate) environment: Environment,
    pub(crate) live: LiveSessions,
    pub(crate) public: PublicChannel,
    /// The state of following other nodes of a shared store.
    pub(crate) nodes: NodeState,
    /// The time of the next query for due sessions, in milliseconds since the epoch.
    pub(crate) next_look: AtomicI64,
    /// A notification that a session becomes due before `next_look`.
    pub(crate) rescheduled: Notify,
    /// A lock that a task of this node holds while it matches tickets. Other nodes may match at the same time.
    pub(crate) matching: tokio::sync::Mutex<()>,
    /// The ended sessions that the arena's log doesn't have yet.
    pub(crate) ended: EndedTranscripts,
    /// The function for the commitments of hidden messages, if the arena keeps records.
    pub(crate) commit: OnceLock<Arc<CommitContent>>,
    pub(crate) archive: OnceLock<Archive>,
    /// The runtime on which scripts decide, if it has several threads.
    pub(crate) workers: Option<Handle>,
    /// The places for slow challenges that decide at the same time, one for each core.
    pub(crate) computing: Semaphore,
}

/// Players offer invites on this channel. Transitions that post nothing on it don't take the `posting` lock.
pub(crate) struct PublicChannel {
    pub(crate) posting: tokio::sync::Mutex<()>,
    pub(crate) tail: RwLock<Tail>,
    /// The time of the last message.
    pub(crate) last_at: AtomicI64,
    pub(crate) stale: StaleMarks,
    /// The number of hidden messages that memory shows as such.
    pub(crate) edits: AtomicI64,
    pub(crate) changed: watch::Sender<u64>,
}

impl PublicChannel {
    pub(crate) fn mark_stale(&self) {
        self.stale.set();
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// Returns true if the channel in memory is older than `marks`, or must be read again.
    pub(crate) fn is_outdated(&self, marks: &Marks) -> bool {
        self.stale.is_stale()
            || self.tail.read().len() < marks.public_len
            || self.edits.load(Ordering::SeqCst) < marks.public_edits()
    }
}

impl Engine {
    /// Creates an engine over a store, with its challenge types.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn new(
        store: Store,
        challenges: impl IntoIterator<Item = Arc<dyn ChallengeType>>,
        limits: Limits,
        environment: Environment,
    ) -> Result<Engine, StoreError> {
        let revive: Box<Revive> = Box::new(|_, _| Err("this arena runs no scripts".to_owned()));
        Engine::with_scripts(store, challenges, revive, limits, environment).await
    }

    /// Creates an engine like [`Engine::new`], with `revive` to restore challenge types from stored scripts. A running
    /// session needs its old script version if the script has changed since the session's start.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn with_scripts(
        store: Store,
        challenges: impl IntoIterator<Item = Arc<dyn ChallengeType>>,
        revive: Box<Revive>,
        limits: Limits,
        environment: Environment,
    ) -> Result<Engine, StoreError> {
        let public_len = store.public_len().await?;
        let last = store.list_messages(None, Channel::Invites, public_len.max(1), 1).await?;
        let live = LiveSessions::new();
        let public = PublicChannel {
            posting: tokio::sync::Mutex::new(()),
            tail: RwLock::new(Tail::of_len(public_len, live.tails().clone())),
            last_at: AtomicI64::new(last.last().map_or(0, |last| last.at.0)),
            stale: StaleMarks::default(),
            // The first request compares this number with the store's.
            edits: AtomicI64::new(0),
            changed: watch::Sender::new(0),
        };
        match store.forget_scripts().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "deleted {count} script versions that no session uses"),
            Err(error) => tracing::warn!(%error, "cannot delete unused script versions from the store: {error}"),
        }
        let benchmarks = RwLock::new(store.list_benchmarks().await?);
        let bans = Bans::of(store.list_bans().await?);
        let inner = Inner {
            benchmarks,
            bans,
            administering: tokio::sync::Mutex::new(()),
            store,
            catalogue: Catalogue::new(challenges, revive),
            limits,
            environment,
            live,
            public,
            nodes: NodeState::default(),
            next_look: AtomicI64::new(i64::MAX),
            rescheduled: Notify::new(),
            matching: tokio::sync::Mutex::new(()),
            ended: EndedTranscripts::new(),
            commit: OnceLock::new(),
            archive: OnceLock::new(),
            workers: workers(),
            computing: Semaphore::new(std::thread::available_parallelism().map_or(2, usize::from)),
        };
        Ok(Engine { inner: Arc::new(inner) })
    }

    pub fn challenges(&self) -> Arc<Hosted> {
        self.inner.catalogue.hosted()
    }

    /// Adds a challenge type, or replaces the one with the same name. Running sessions of a script keep the script
    /// version of their start.
    pub fn host(&self, challenge: Arc<dyn ChallengeType>) {
        self.inner.catalogue.change(|hosted| drop(hosted.insert(challenge.id().to_owned(), challenge)));
    }

    /// Removes a challenge type for new sessions. Running sessions of a script go on.
    pub fn drop_challenge(&self, id: &str) {
        self.inner.catalogue.change(|hosted| drop(hosted.remove(id)));
    }

    /// True if other nodes share the store.
    pub fn is_shared(&self) -> bool {
        self.inner.store.nodes().is_some()
    }

    pub fn now(&self) -> Timestamp {
        self.inner.environment.now()
    }

    /// An unpredictable UUID for data outside of sessions, such as tournaments. Later ids are greater.
    pub fn draw_id(&self) -> uuid::Uuid {
        self.inner.environment.uuid(self.now())
    }

    pub fn draw_seed(&self) -> Seed {
        self.inner.environment.seed()
    }

    /// Creates a session. Returns the answer from `respond`, or the stored answer if `once` identifies a repeated
    /// request.
    ///
    /// # Errors
    /// If the type is unknown, the options are invalid, or the store can't write.
    pub async fn create(&self, request: Create, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move { inner.create(request, once, respond).await }).await
    }

    /// Seats a player.
    ///
    /// # Errors
    /// If the invite is unknown or already used, the user is banned, or the store can't write.
    pub async fn join(&self, request: Join, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        let Join { invite, user } = request;
        let joiner = Actor::Joiner(user.clone());
        self.write_invited(invite, joiner, once, respond, move |moment| {
            let Moment { session, challenge, policy, now, .. } = *moment;
            arena_model::join(session, challenge, policy, invite, user.clone(), now)
        })
        .await
    }

    /// Handles a player's action.
    ///
    /// # Errors
    /// If there is no such session, the sender has no seat or is banned, the rules refuse, or the store can't write.
    pub async fn act(&self, request: Act, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        let Act { session: id, from, method, content } = request;
        self.write(id, Actor::Speaker(from.clone()), once, respond, move |moment| {
            let Moment { session, challenge, policy, now, .. } = *moment;
            let Party::Player(from) = from else { return Err(EngineError::Act(ActError::NotAPlayer)) };
            arena_model::act(session, challenge, policy, from, method.as_deref(), &content, now)
                .map_err(EngineError::Act)
        })
        .await
    }

    /// Posts a chat message.
    ///
    /// # Errors
    /// If there is no such session, sender or recipient have no seat, the sender is banned, or the store can't write.
    pub async fn chat(&self, request: Chat, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        let Chat { session: id, from, to, content } = request;
        let spectators = self.inner.limits.spectators_chat;
        self.write(id, Actor::Speaker(from.clone()), once, respond, move |moment| {
            Ok(arena_model::chat(moment.session, spectators, from.clone(), to.clone(), &content)?)
        })
        .await
    }

    /// Returns the stored answer to a request that was executed before.
    ///
    /// # Errors
    /// If the key was used for another request, or the store can't be read.
    pub async fn find_answer(&self, once: Option<Once>) -> Result<Option<String>, EngineError> {
        self.inner.answered(once).await
    }

    /// Offers an invite on the public channel.
    ///
    /// # Errors
    /// If the invite is unknown, already used or already offered, or the store can't write.
    pub async fn announce(
        &self,
        invite: InviteCode,
        once: Option<Once>,
        respond: Respond,
    ) -> Result<String, EngineError> {
        self.write_invited(invite, Actor::Unidentified, once, respond, move |moment| {
            arena_model::announce(moment.session, invite)
        })
        .await
    }

    /// Runs [`Engine::write`] on the session of an invite.
    async fn write_invited<D>(
        &self,
        invite: InviteCode,
        actor: Actor,
        once: Option<Once>,
        respond: Respond,
        decide: D,
    ) -> Result<String, EngineError>
    where
        D: Fn(&Moment<'_>) -> Result<Transition, JoinError> + Send + Sync + 'static,
    {
        let unknown = move || EngineError::UnknownInvite(invite.to_string());
        let id = self.inner.live.find_invite(invite, &self.inner.store).await?.ok_or_else(unknown)?;
        let written = self.write(id, actor, once, respond, move |moment| {
            decide(moment).map_err(|error| match error {
                JoinError::NotInvited => unknown(),
                JoinError::AlreadyUsed => EngineError::InviteUsed(invite),
                JoinError::SelfPlay => EngineError::SelfPlay,
                JoinError::Rejected(rejection) => EngineError::Failed(rejection),
                JoinError::Restore(error) => error.into(),
            })
        });
        // An administrator removed the session between the lookup of the invite and the write.
        written.await.map_err(|error| if matches!(error, EngineError::UnknownSession) { unknown() } else { error })
    }

    async fn write<D>(
        &self,
        id: SessionId,
        actor: Actor,
        once: Option<Once>,
        respond: Respond,
        decide: D,
    ) -> Result<String, EngineError>
    where
        D: Fn(&Moment<'_>) -> Result<Transition, EngineError> + Send + Sync + 'static,
    {
        let decide = Arc::new(decide);
        loop {
            let live = self.inner.live.find(id, &self.inner.store).await?.ok_or(EngineError::UnknownSession)?;
            let decide = Arc::clone(&decide);
            let decide = Box::new(move |moment: &Moment<'_>| decide(moment));
            match self.inner.request(&live, actor.clone(), once, respond.clone(), decide).await {
                // A later session, such as an imported one, may have the same id.
                Err(EngineError::UnknownSession) => self.inner.live.evict(id, &live),
                written => return written,
            }
        }
    }

    /// Returns those of these sessions that exist, each with true if it has ended.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_ended(&self, sessions: Vec<SessionId>) -> Result<Vec<(SessionId, bool)>, EngineError> {
        Ok(self.inner.store.find_ended(&sessions).await?)
    }

    /// Returns the last committed state of a session.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_session(&self, id: SessionId) -> Result<Option<Arc<Session>>, EngineError> {
        let Some(live) = self.current(id).await? else { return Ok(None) };
        let committed = live.committed.read();
        Ok((!committed.removed).then(|| Arc::clone(&committed.session)))
    }

    /// Returns the session of an invite.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_invited(&self, invite: InviteCode) -> Result<Option<Arc<Session>>, EngineError> {
        match self.inner.live.find_invite(invite, &self.inner.store).await? {
            Some(id) => self.find_session(id).await,
            None => Ok(None),
        }
    }

    /// Returns the sessions that match a filter, newest first.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_sessions(
        &self,
        filter: &SessionFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Page<Session>, EngineError> {
        Ok(self.inner.store.list_sessions(filter, offset, limit).await?)
    }

    pub fn count_sessions(&self, filter: &SessionFilter) -> u64 {
        self.inner.store.count_sessions(filter)
    }

    /// Returns the results of the unlisted sessions with this seed that ended before a time.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn count_results(&self, seed: &Seed, before: Timestamp) -> Result<Vec<DealResult>, EngineError> {
        Ok(self.inner.store.count_results(seed, before).await?)
    }

    /// Returns the size of the store on disk, in bytes.
    pub fn store_bytes(&self) -> u64 {
        self.inner.store.bytes()
    }

    /// Checks that the store can be read and written.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn check(&self) -> Result<(), EngineError> {
        self.inner.store.marks(&[]).await?;
        self.inner.store.find_next_due().await?;
        self.inner.store.check_writing().await.map_err(unwritten)
    }

    /// Returns the session from memory or the store, up to date with the store.
    pub(crate) async fn current(&self, id: SessionId) -> Result<Option<LiveRef>, EngineError> {
        let Inner { live, store, .. } = &*self.inner;
        loop {
            let Some((found, is_new)) = live.find_or_load(id, store).await? else { return Ok(None) };
            if !is_new {
                self.inner.compare_with_row(&found).await?;
            }
            if !found.committed.read().removed {
                return Ok(Some(found));
            }
            // A later session, such as an imported one, may have the same id.
            live.evict(id, &found);
        }
    }
}

impl Inner {
    async fn create(&self, request: Create, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        if let Some(answer) = self.answered(once).await? {
            return Ok(answer);
        }
        let format = |written: &Written<'_>, now| {
            let body = respond.format(written);
            let answers = once.map(|once| new_answer(once, &body, now)).into_iter().collect();
            (body, answers)
        };
        match self.open(request, Some(&respond), format).await? {
            Ok(body) => Ok(body),
            Err(answer) => repeat(answer, once),
        }
    }

    /// Creates a session, together with the answers from `respond`. Returns the value from `respond`, or the stored
    /// answer if there is one under a key of the new answers. The time for which the rules compute counts for `payer`.
    pub(crate) async fn open<T>(
        &self,
        request: Create,
        payer: Option<&Respond>,
        respond: impl FnOnce(&Written<'_>, Timestamp) -> (T, Vec<NewAnswer>),
    ) -> Result<Result<T, StoredAnswer>, EngineError> {
        let challenge = &*self.catalogue.find(&request.challenge)?;
        let options = challenge.resolve(&request.options)?;
        let now = self.environment.now();
        let seats = challenge.seats(&options);
        let is_unlisted = request.is_unlisted || request.deal.as_ref().is_some_and(|deal| deal.is_unlisted);
        let is_counted = request.is_rated && !is_unlisted && request.deal.is_none();
        let (origin, seed) = match request.deal {
            Some(Deal { origin, seed, .. }) => (origin, seed),
            None => (None, self.environment.seed()),
        };
        let rated = self.catalogue.terms_of(&request.challenge, &options).filter(|_| is_counted);
        let facts = SessionFacts {
            id: SessionId(self.environment.uuid(now)),
            challenge: request.challenge,
            script: challenge.script().map(Script::version),
            created_at: now,
            seed: Some(seed),
            rated,
            is_unlisted,
            options,
            invites: (0..seats).map(|_| InviteCode(self.environment.uuid(now))).collect(),
        };
        let inactivity = self.limits.inactivity;
        let place = self.place_to_compute(challenge, payer).await;
        let begun = Instant::now();
        let opened = decide_by(challenge, || arena_model::open(facts, challenge, inactivity));
        if let Some(payer) = payer {
            payer.count(begun.elapsed());
        }
        drop(place);
        let session = opened.map_err(EngineError::Failed)?;
        self.catalogue.keep(challenge, &self.store).await?;
        let (value, answers) = respond(&Written { session: &session, challenge, messages: &[] }, now);
        let (id, wake_at) = (session.facts.id, session.wake_at);
        let messages = vec![created_input(&self.catalogue.all_terms_of(challenge), &session.facts, origin)];
        let change = SessionChange::Create(Box::new(session));
        let _reserved = self.live.reserve(id);
        let committed = self.store.commit(Commit { change, messages, answers }).await;
        if committed.is_err() {
            self.live.forget(id);
        }
        match committed {
            Ok((no, commit)) => {
                let SessionChange::Create(session) = commit.change else {
                    unreachable!("the store returns the same commit")
                };
                let session = *session;
                let stored = StoredSession { no, session, chat_len: 0, operator_len: 0, last_activity: now, edits: 0 };
                let transcript = self.ended.begin();
                let mut created = commit.messages.into_iter().map(|message| Arc::new(Posted::new(message)));
                let transcript = transcript.and_then(|transcript| created.try_fold(transcript, Transcript::with));
                self.live.insert(id, stored, transcript);
                self.reschedule(wake_at);
                Ok(Ok(value))
            }
            Err(CommitError::Answered(answer)) => Ok(Err(answer)),
            Err(CommitError::Conflict) => Err(EngineError::Contended),
            Err(CommitError::Unavailable(error)) => Err(error.into()),
        }
    }

    /// Waits until a slow challenge may decide a metered write. As many decide at once as the machine has cores; the
    /// others wait in the order of their requests. Fast challenges don't wait, and neither do deadlines and matches of
    /// queues, because others wait for these.
    pub(crate) async fn place_to_compute(
        &self,
        challenge: &dyn ChallengeType,
        respond: Option<&Respond>,
    ) -> Option<SemaphorePermit<'_>> {
        let waits = challenge.is_slow() && respond.is_some_and(Respond::is_metered);
        // The semaphore is never closed.
        if waits { self.computing.acquire().await.ok() } else { None }
    }

    pub(crate) fn publish_public(&self, messages: &[ChatMessage]) {
        {
            let mut tail = self.public.tail.write();
            for message in messages.iter().filter(|message| message.channel == Channel::Invites) {
                self.public.last_at.store(message.at.0, Ordering::SeqCst);
                tail.push(message.clone(), self.public.changed.receiver_count() > 0);
            }
        }
        self.public.changed.send_modify(|count| *count += 1);
    }

    /// Reloads the public channel's length and the messages for subscribers. The caller holds `posting`.
    pub(crate) async fn reload_public(&self) -> Result<(), StoreError> {
        let PublicChannel { tail, last_at, edits, stale, changed, .. } = &self.public;
        let (marks, was_stale) = (stale.count(), stale.is_stale());
        let stored_edits = self.store.marks(&[]).await?.public_edits();
        let len = self.store.public_len().await?;
        let known = tail.read().len();
        let is_wanted = changed.receiver_count() > 0 && (1..=MAX_PUBLIC_MESSAGES).contains(&len.saturating_sub(known));
        // The read includes at least the last message, because its time is needed. The number fits in a usize.
        let from = if is_wanted { known + 1 } else { len.max(1) };
        let news = self.store.list_messages(None, Channel::Invites, from, (len + 1 - from.min(len)) as usize).await?;
        if let Some(last) = news.last() {
            last_at.fetch_max(last.at.0, Ordering::SeqCst);
        }
        let has_edits = edits.swap(stored_edits, Ordering::SeqCst) != stored_edits;
        tail.write().follow(len, news, was_stale || has_edits, true);
        stale.clear(marks);
        changed.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Returns the stored answer to this request if the request was executed before.
    pub(crate) async fn answered(&self, once: Option<Once>) -> Result<Option<String>, EngineError> {
        let Some(once) = once else { return Ok(None) };
        match self.store.find_answer(&once.key).await? {
            Some(answer) => repeat(answer, Some(once)).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn reschedule(&self, wake_at: Option<Timestamp>) {
        if wake_at.is_some_and(|at| at.0 < self.next_look.load(Ordering::SeqCst)) {
            self.rescheduled.notify_one();
        }
    }

    /// Wakes a due session: applies its deadline or its time limits.
    pub(crate) async fn wake_session(self: &Arc<Self>, id: SessionId) -> Result<(), EngineError> {
        let Some(live) = self.live.find(id, &self.store).await? else { return Ok(()) };
        let no_answer = Respond::new(|_| String::new());
        let decide = |moment: &Moment<'_>| {
            let Moment { session, challenge, policy, last_activity, now } = *moment;
            Ok(arena_model::wake(session, challenge, policy, last_activity, now)?)
        };
        self.request(&live, Actor::Unidentified, None, no_answer, Box::new(decide)).await.map(drop)
    }
}

pub(crate) fn new_answer(once: Once, body: &str, at: Timestamp) -> NewAnswer {
    NewAnswer { key: once.key, request: once.request, body: body.to_owned(), at }
}

/// Returns the stored answer if it belongs to the same request, or an error if the key was used for another request.
pub(crate) fn repeat(answer: StoredAnswer, once: Option<Once>) -> Result<String, EngineError> {
    match once {
        Some(once) if once.request == answer.request => Ok(answer.body),
        _ => Err(EngineError::KeyReused),
    }
}
