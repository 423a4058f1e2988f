//! The transitions of a session. Requests wait in the session's queue. One caller or task takes them in order,
//! decides each on the result of the one before, and commits up to [`MAX_GROUP`] of them together. Callers get their
//! answers after the commit, so no answer depends on data that isn't durable.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use arena_model::{After, Channel, ChatMessage, Draft, Session, SessionPolicy, Timestamp, Transition};
use arena_store::{Commit, CommitError, NewAnswer, SessionChange, StoreError};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::oneshot::error::{RecvError, TryRecvError};
use tokio::sync::{MutexGuard, oneshot};

use crate::bans::Actor;
use crate::catalogue::decide_by;
use crate::completion::Completion;
use crate::engine::{Inner, LONGEST_CONTENTION, new_answer, repeat};
use crate::live::LiveRef;
use crate::request::{EngineError, Limits, Moment, Once, Respond, Written};

/// The maximum number of transitions in one commit.
const MAX_GROUP: usize = 256;

/// The maximum time for the decisions of one commit. The first transition waits for the decisions of the others.
const MAX_DECIDING: Duration = Duration::from_millis(2);

/// A function that decides a transition. The engine calls it again after a conflict with another node.
type Decide = Box<dyn Fn(&Moment<'_>) -> Result<Transition, EngineError> + Send>;

/// The result of a request. The outer error is a panic of the rules.
type Outcome = std::thread::Result<Result<String, EngineError>>;

pub(crate) struct Request {
    actor: Actor,
    once: Option<Once>,
    respond: Respond,
    decide: Decide,
    reply: oneshot::Sender<Outcome>,
}

impl Request {
    fn finish(self, outcome: Outcome) {
        // A failure to send means that the caller has stopped waiting. The commit is valid anyway.
        let _ = self.reply.send(outcome);
    }
}

/// The requests that wait at a session. The caller that adds one to an idle queue has all of them executed.
#[derive(Default)]
pub(crate) struct SessionQueue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Request>,
    /// True if a caller or a task is executing the session's transitions.
    running: bool,
}

impl SessionQueue {
    /// Adds a request. Returns true if the caller must have the session's transitions executed.
    fn add(&self, request: Request) -> bool {
        let mut waiting = self.0.lock();
        waiting.requests.push_back(request);
        !std::mem::replace(&mut waiting.running, true)
    }

    /// Takes all requests. Returns `None` if there are none; the execution must then end.
    fn take(&self) -> Option<VecDeque<Request>> {
        let mut waiting = self.0.lock();
        waiting.running = !waiting.requests.is_empty();
        waiting.running.then(|| std::mem::take(&mut waiting.requests))
    }
}

/// The current end of a channel.
#[derive(Clone, Copy)]
struct End {
    len: u64,
    /// The time of its last message.
    at: Timestamp,
}

/// Transitions that are decided and not yet committed, with the resulting state of the session.
struct Group<'g> {
    before: Arc<Session>,
    /// The state after the last change, if there was one.
    after: Option<Box<Session>>,
    removed: bool,
    /// The ends of the chat, operator and public channels, in this order.
    ends: [End; 3],
    last_activity: Timestamp,
    /// The size of the chat in bytes, with `messages`; `None` until the first chat message after a reload.
    chat_bytes: Option<u64>,
    messages: Vec<ChatMessage>,
    answers: Vec<NewAnswer>,
    /// The requests with their results, which their callers get after the commit.
    decided: Vec<(Request, Outcome)>,
    /// The lock of the public channel. Only announcements post to the public channel, so only they take its lock.
    posting: Option<MutexGuard<'g, ()>>,
}

impl Group<'_> {
    fn session(&self) -> &Session {
        self.after.as_deref().unwrap_or(&self.before)
    }

    fn is_empty(&self) -> bool {
        self.after.is_none() && !self.removed && self.messages.is_empty() && self.answers.is_empty()
    }

    fn has_refusals(&self) -> bool {
        self.decided.iter().any(|(_, outcome)| matches!(outcome, Ok(Err(_))))
    }

    /// Returns true if another transition must wait for the next commit.
    fn is_full(&self, limit: usize, begun: Instant) -> bool {
        self.removed || self.posting.is_some() || self.decided.len() >= limit || begun.elapsed() >= MAX_DECIDING
    }

    /// Adds a transition's change and messages.
    fn add(&mut self, after: After, messages: Vec<ChatMessage>, [chat, operator, public]: [End; 3], chat_bytes: u64) {
        match after {
            After::Changed(after) => self.after = Some(after),
            After::Removed => self.removed = true,
            After::Unchanged => {}
        }
        let active = messages.iter().filter(|message| !message.channel.is_inputs());
        let at = active.fold(self.last_activity, |last, message| last.max(message.at));
        self.last_activity = at;
        self.ends = [End { at, ..chat }, End { at, ..operator }, public];
        self.chat_bytes = self.chat_bytes.map(|_| chat_bytes);
        self.messages.extend(messages);
    }

    fn holds_answer(&self, once: Option<Once>) -> bool {
        once.is_some_and(|once| self.answers.iter().any(|answer| answer.key == once.key))
    }
}

impl Inner {
    /// Runs to completion even if the caller is dropped, because each commit must be published.
    pub(crate) async fn request(
        self: &Arc<Self>,
        live: &LiveRef,
        actor: Actor,
        once: Option<Once>,
        respond: Respond,
        decide: Decide,
    ) -> Result<String, EngineError> {
        let (reply, outcome) = oneshot::channel();
        let outcome = match live.queue.add(Request { actor, once, respond, decide, reply }) {
            true => {
                let execution = run(Arc::clone(self), live.clone());
                let is_scripted = live.committed.read().session.facts.script.is_some();
                match self.workers.as_ref().filter(|_| is_scripted) {
                    Some(workers) => {
                        workers.spawn(execution);
                        outcome.await
                    }
                    None => execute_until(Completion::new(execution), outcome).await,
                }
            }
            false => outcome.await,
        };
        match outcome {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            // The task failed during the commit, or the runtime is shutting down.
            Err(_) => Err(EngineError::Unavailable(StoreError::Unsure)),
        }
    }

    async fn execute(&self, live: &LiveRef, mut requests: VecDeque<Request>) {
        let _deciding = live.deciding.lock().await;
        // Without the session's state, no request can be decided.
        if let Err(error) = self.execute_all(live, &mut requests).await {
            fail(requests.into_iter(), &error);
        }
    }

    /// Decides and commits requests until none is left. The caller holds `deciding`.
    async fn execute_all(&self, live: &LiveRef, requests: &mut VecDeque<Request>) -> Result<(), StoreError> {
        let (mut attempt, mut begun, mut limit) = (0, Instant::now(), MAX_GROUP);
        // True if the session in memory is at least as new as the store was when the requests arrived.
        let mut is_current = self.store.nodes().is_none();
        if !is_current && live.is_contested() {
            self.validate(live).await?;
            is_current = true;
        }
        while !requests.is_empty() {
            let group = self.decide(live, requests, limit).await?;
            // A commit checks the guess that the session in memory is current. A refusal and an answer without a commit
            // need another check.
            if !is_current && (group.is_empty() || group.has_refusals()) {
                group.decided.into_iter().rev().for_each(|(request, _)| requests.push_front(request));
                drop(group.posting);
                self.validate(live).await?;
                is_current = true;
                continue;
            }
            if group.is_empty() {
                finish(group.decided);
                continue;
            }
            let Group { before, after, removed, messages, answers, mut decided, posting, .. } = group;
            let is_public = posting.is_some();
            let wake_at = after.as_ref().map_or(before.wake_at, |after| after.wake_at);
            let change = match after {
                Some(after) => SessionChange::Update { no: live.no, before: before.version, session: after },
                None if removed => SessionChange::Remove(live.no, Box::new((*before).clone())),
                None => SessionChange::Stays(live.no),
            };
            match self.store.commit(Commit { change, messages, answers }).await {
                Ok((_, commit)) => {
                    self.publish(live, *commit, wake_at, is_public);
                    finish(decided);
                    (attempt, begun, limit) = (0, Instant::now(), MAX_GROUP);
                }
                Err(CommitError::Answered(answer)) if decided.len() == 1 => {
                    if let Some((request, _)) = decided.pop() {
                        let answer = repeat(answer, request.once);
                        request.finish(Ok(answer));
                    }
                }
                Err(CommitError::Conflict | CommitError::Answered(_)) => {
                    // The next groups have one transition each, so that a conflict concerns only one request.
                    limit = 1;
                    if begun.elapsed() > LONGEST_CONTENTION {
                        decided.into_iter().for_each(|(request, _)| request.finish(Ok(Err(EngineError::Contended))));
                        // The next request has its own time, and is decided on the other node's data.
                        self.mark_stale(live, is_public);
                        (attempt, begun) = (0, Instant::now());
                        continue;
                    }
                    drop(posting);
                    decided.into_iter().rev().for_each(|(request, _)| requests.push_front(request));
                    self.follow_conflict(live, is_public, attempt).await?;
                    is_current = true;
                    attempt += 1;
                }
                Err(CommitError::Unavailable(error)) => {
                    // After a store failure the commit's fate is unknown: reload before the next decision.
                    self.mark_stale(live, is_public);
                    fail(decided.into_iter().map(|(request, _)| request), &error);
                }
            }
        }
        Ok(())
    }

    fn publish(&self, live: &LiveRef, commit: Commit, wake_at: Option<Timestamp>, is_public: bool) {
        if is_public {
            self.publish_public(&commit.messages);
        }
        if let Some((session, transcript)) = live.publish(commit) {
            self.ended.add(session, transcript);
        }
        self.reschedule(wake_at);
    }

    fn mark_stale(&self, live: &LiveRef, is_public: bool) {
        live.mark_stale();
        if is_public {
            self.public.mark_stale();
        }
    }

    /// Compares the session in memory with its row, and reads it if it is older. The caller holds `deciding`.
    async fn validate(&self, live: &LiveRef) -> Result<(), StoreError> {
        let marks = self.compare(live).await?;
        live.follow(&self.store, &marks).await
    }

    /// Waits for the commit of another node and reads its data.
    async fn follow_conflict(&self, live: &LiveRef, is_public: bool, attempt: usize) -> Result<(), StoreError> {
        if is_public {
            let _posting = self.public.posting.lock().await;
            self.reload_public().await?;
        }
        self.back_off(attempt).await;
        // The other node's commit may not be visible yet, or memory may be wrong, so later attempts read the session anew.
        match attempt {
            0 if self.store.nodes().is_some() => self.validate(live).await,
            _ => live.reload(&self.store).await,
        }
    }

    /// Decides requests, in order, until a commit is due.
    async fn decide(
        &self,
        live: &LiveRef,
        requests: &mut VecDeque<Request>,
        limit: usize,
    ) -> Result<Group<'_>, StoreError> {
        self.catch_up().await?;
        if live.is_stale() {
            live.reload(&self.store).await?;
        }
        let (mut group, is_removed) = {
            let committed = live.committed.read();
            let last_activity = committed.last_activity;
            let end = |len| End { len, at: last_activity };
            let group = Group {
                before: Arc::clone(&committed.session),
                after: None,
                removed: false,
                ends: [end(committed.chat.len()), end(committed.operator.len()), end(0)],
                last_activity,
                chat_bytes: committed.chat_bytes,
                messages: Vec::new(),
                answers: Vec::new(),
                decided: Vec::new(),
                posting: None,
            };
            (group, committed.removed)
        };
        let begun = Instant::now();
        while !group.is_full(limit, begun)
            && let Some(request) = requests.pop_front()
        {
            // The same request was decided before in this group. Its answer is stored by the commit.
            if group.holds_answer(request.once) {
                requests.push_front(request);
                break;
            }
            match self.answered(request.once).await {
                Ok(None) if is_removed => group.decided.push((request, Ok(Err(EngineError::UnknownSession)))),
                Ok(None) => {
                    if let Some(request) = self.decide_one(live, &mut group, request).await {
                        requests.push_front(request);
                        break;
                    }
                }
                Ok(Some(answer)) => request.finish(Ok(Ok(answer))),
                Err(error) => request.finish(Ok(Err(error))),
            }
        }
        Ok(group)
    }

    /// Returns the request if it must wait for the group's commit.
    async fn decide_one<'g>(&'g self, live: &LiveRef, group: &mut Group<'g>, request: Request) -> Option<Request> {
        // The rules see the time that the messages get, so that the messages suffice to repeat the transition.
        let now = self.environment.now().max(group.last_activity);
        let challenge = match self.bans.admit(&request.actor, group.session()) {
            Ok(()) => self.catalogue.of(&group.before.facts, &self.store).await,
            Err(banned) => Err(banned),
        };
        let challenge = match challenge {
            Ok(challenge) => challenge,
            Err(refusal) => return self.refuse(group, request, refusal).await,
        };
        let Limits { inactivity, self_play, .. } = self.limits;
        let place = self.place_to_compute(&*challenge, Some(&request.respond)).await;
        let begun = Instant::now();
        let decided = catch_unwind(AssertUnwindSafe(|| {
            decide_by(&*challenge, || {
                let benchmarks = self.benchmarks.read();
                let policy = SessionPolicy { inactivity, self_play, benchmarks: &benchmarks };
                let (session, last_activity) = (group.session(), group.last_activity);
                (request.decide)(&Moment { session, challenge: &*challenge, policy: &policy, last_activity, now })
            })
        }));
        request.respond.count(begun.elapsed());
        drop(place);
        let Transition { after, drafts } = match decided {
            Ok(Ok(transition)) => transition,
            Ok(Err(refusal)) => return self.refuse(group, request, refusal).await,
            Err(panic) => {
                group.decided.push((request, Err(panic)));
                return None;
            }
        };
        let is_public = drafts.iter().any(|draft| draft.channel == Channel::Invites);
        if (is_public || after == After::Removed) && !group.is_empty() {
            return Some(request);
        }
        if let Err(error) = self.find_ends(live, group, &drafts, is_public).await {
            return self.refuse(group, request, error.into()).await;
        }
        let (mut ends, mut chat_bytes) = (group.ends, group.chat_bytes.unwrap_or_default());
        let messages = match self.number_messages(drafts, &after, &mut chat_bytes, &mut ends, now) {
            Ok(messages) => messages,
            Err(refusal) => return self.refuse(group, request, refusal).await,
        };
        let session = match &after {
            After::Changed(after) => after,
            After::Unchanged | After::Removed => group.session(),
        };
        // The input of a transition comes first. No caller may see it.
        let inputs = messages.first().is_some_and(|first| first.channel.is_inputs());
        let shown = &messages[usize::from(inputs)..];
        let written = Written { session, challenge: &*challenge, messages: shown };
        let body = match catch_unwind(AssertUnwindSafe(|| request.respond.format(&written))) {
            Ok(body) => body,
            Err(panic) => {
                group.decided.push((request, Err(panic)));
                return None;
            }
        };
        group.add(after, messages, ends, chat_bytes);
        group.answers.extend(request.once.map(|once| new_answer(once, &body, now)));
        group.decided.push((request, Ok(Ok(body))));
        None
    }

    /// Completes the ends of the channels for the drafts: that of the public channel, with its lock, and the size of the
    /// chat. Moves don't wait for these queries.
    async fn find_ends<'g>(
        &'g self,
        live: &LiveRef,
        group: &mut Group<'g>,
        drafts: &[Draft],
        is_public: bool,
    ) -> Result<(), StoreError> {
        if is_public {
            let posting = self.public.posting.lock().await;
            if self.public.stale.is_stale() {
                self.reload_public().await?;
            }
            group.posting = Some(posting);
            let at = Timestamp(self.public.last_at.load(Ordering::SeqCst));
            group.ends[2] = End { len: self.public.tail.read().len(), at };
        }
        if group.chat_bytes.is_none() && drafts.iter().any(|draft| matches!(draft.channel, Channel::Chat(_))) {
            let stored = self.store.chat_bytes(live.no).await?;
            live.committed.write().chat_bytes = Some(stored);
            group.chat_bytes = Some(stored);
        }
        Ok(())
    }

    /// Adds a refused request to the group, or returns the stored answer if another node has executed the same request.
    /// In that case the first execution may be the reason for the refusal.
    async fn refuse(&self, group: &mut Group<'_>, request: Request, refusal: EngineError) -> Option<Request> {
        let result = match self.store.nodes() {
            Some(_) => self.answered(request.once).await.and_then(|answer| answer.ok_or(refusal)),
            None => Err(refusal),
        };
        group.decided.push((request, Ok(result)));
        None
    }

    /// Converts drafts to messages. Each message gets the next index of its channel; an input gets the version of the
    /// session after the transition. The time of a message is never before the channel's last message, even if the
    /// clock was set back. `ends` has the ends of the chat, operator and public
    /// channels, in this order; the messages move them.
    ///
    /// A full channel refuses drafts that come without a state change of the session, such as chat. So does a chat that
    /// is too long; the messages add to `chat_bytes`, its size. A state change can
    /// always add its messages, so that a game can end in a full channel. The number of such messages is limited by the
    /// players' actions, and by [`arena_model::InactivityLimits`] if players don't act.
    fn number_messages(
        &self,
        drafts: Vec<Draft>,
        after: &After,
        chat_bytes: &mut u64,
        ends: &mut [End; 3],
        now: Timestamp,
    ) -> Result<Vec<ChatMessage>, EngineError> {
        let Limits { channel_messages: limit, chat_bytes: most, .. } = self.limits;
        let mut messages = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let end = match draft.channel {
                Channel::Chat(_) => &mut ends[0],
                Channel::Operator(_) => &mut ends[1],
                Channel::Invites => &mut ends[2],
                Channel::Inputs(_) => {
                    if let After::Changed(session) = after {
                        messages.push(draft.at(session.version, now));
                    }
                    continue;
                }
            };
            let is_state_change = *after != After::Unchanged;
            if end.len >= limit && !is_state_change {
                return Err(EngineError::ChannelFull { limit });
            }
            *end = End { len: end.len + 1, at: now.max(end.at) };
            let message = draft.at(end.len, end.at);
            if matches!(message.channel, Channel::Chat(_)) {
                *chat_bytes += message.content.len() as u64;
                if *chat_bytes > most && !is_state_change {
                    return Err(EngineError::ChatFull { limit: most });
                }
            }
            messages.push(message);
        }
        Ok(messages)
    }
}

/// Executes the requests of a session until its queue is empty.
async fn run(inner: Arc<Inner>, live: LiveRef) {
    while let Some(requests) = live.queue.take() {
        if AssertUnwindSafe(inner.execute(&live, requests)).catch_unwind().await.is_err() {
            // The callers get the error of a dropped request. The commit's fate is unknown.
            live.mark_stale();
            inner.public.mark_stale();
            tracing::error!("the transitions of a session panicked; the session will be reloaded from the store");
        }
    }
}

/// Executes requests in the task of a caller until `outcome` has a value. A task executes the requests that are left.
async fn execute_until<T>(mut requests: Completion<()>, mut outcome: oneshot::Receiver<T>) -> Result<T, RecvError> {
    poll_fn(|context| {
        if !requests.is_over() && Pin::new(&mut requests).poll(context).is_pending() {
            return match outcome.try_recv() {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(TryRecvError::Empty) => Poll::Pending,
                Err(TryRecvError::Closed) => Pin::new(&mut outcome).poll(context),
            };
        }
        Pin::new(&mut outcome).poll(context)
    })
    .await
}

fn finish(decided: Vec<(Request, Outcome)>) {
    decided.into_iter().for_each(|(request, outcome)| request.finish(outcome));
}

fn fail(requests: impl Iterator<Item = Request>, error: &StoreError) {
    requests.for_each(|request| request.finish(Ok(Err(error.clone().into()))));
}
