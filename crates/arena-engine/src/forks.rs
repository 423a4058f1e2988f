//! Sessions that continue from a moment of another one.

use std::sync::Arc;

use arena_model::{
    BoardTerms, ChallengeType, Channel, ChatMessage, Draft, InviteCode, Party, Session, SessionFacts, SessionId,
    Timestamp,
};
use arena_store::{Commit, CommitError, SessionChange, StoredSession};

use crate::completion::Completion;
use crate::engine::{Engine, Inner, new_answer, repeat};
use crate::records::created_input;
use crate::request::{EngineError, Once, Respond, Written};

/// The kind of the input that describes a fork's origin. It is the first input of the fork, with index 0.
const FORK: &str = "fork";

/// A fork that the engine creates: a session at the moment from which players continue it.
#[derive(Debug)]
pub struct Fork {
    /// The session, with an id and invites from [`Engine::draw_identity`].
    pub session: Session,
    /// The messages of its past, in commit order, with the inputs. No message is later than the identity's time.
    pub messages: Vec<ChatMessage>,
    /// The description of the origin, which [`RecordSource::origin`](crate::RecordSource::origin) returns.
    pub origin: String,
    /// The version of the built-in rules that the session plays by, which may be an older one.
    pub rules_version: Option<u32>,
}

/// A new session's id and invites, with the time at which they were drawn.
#[derive(Debug, Clone)]
pub struct DrawnIdentity {
    /// The id.
    pub id: SessionId,
    /// One invite per seat.
    pub invites: Vec<InviteCode>,
    /// The time.
    pub at: Timestamp,
}

/// Returns the description of a fork's origin, if the message is the one that contains it.
pub(crate) fn origin_of(message: &ChatMessage) -> Option<&str> {
    let is_origin = message.channel.is_inputs() && message.index == 0 && message.method.as_deref() == Some(FORK);
    is_origin.then_some(message.content.as_str())
}

impl Engine {
    /// Draws the id and the invites of a new session.
    pub fn draw_identity(&self, seats: usize) -> DrawnIdentity {
        let inner = &self.inner;
        let at = inner.environment.now();
        let invites = (0..seats).map(|_| inner.draw_invite(at)).collect();
        DrawnIdentity { id: inner.draw_session_id(at), invites, at }
    }

    /// Returns the challenge type of a session, in the version that the session uses.
    ///
    /// # Errors
    /// If the engine can't load the version, or the store can't be read.
    pub async fn challenge_of(&self, facts: &SessionFacts) -> Result<Arc<dyn ChallengeType>, EngineError> {
        self.inner.catalogue.of(facts, &self.inner.store).await
    }

    /// Creates a fork. Returns the answer from `respond`, or the stored answer if `once` identifies a repeated request.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn fork(&self, fork: Fork, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move { inner.create_fork(fork, once, respond).await }).await
    }

    /// Returns the stored answer to a request that was executed before.
    ///
    /// # Errors
    /// If the key was used for another request, or the store can't be read.
    pub async fn find_answer(&self, once: Option<Once>) -> Result<Option<String>, EngineError> {
        self.inner.answered(once).await
    }
}

impl Inner {
    async fn create_fork(&self, fork: Fork, once: Option<Once>, respond: Respond) -> Result<String, EngineError> {
        if let Some(answer) = self.answered(once).await? {
            return Ok(answer);
        }
        let Fork { mut session, messages: past, origin, rules_version } = fork;
        let challenge = self.catalogue.of(&session.facts, &self.store).await?;
        let now = self.environment.now();
        session.wake_at = session.deadline.or(self.limits.inactivity.active_ms.map(|ms| now.plus_ms(ms)));
        let id = session.facts.id;
        let (method, content) = (Some(FORK.to_owned()), origin);
        let draft = Draft { channel: Channel::Inputs(id), from: Party::Operator, to: None, content, method };
        let older = rules_version.and_then(|version| challenge.with_rules(version));
        let terms = older.map_or_else(|| self.catalogue.all_terms_of(&*challenge), |older| BoardTerms::of(&*older));
        let created = created_input(&terms, &session.facts);
        let mut messages = vec![draft.at(0, session.facts.created_at), created];
        messages.extend(past);
        let body = respond.format(&Written { session: &session, challenge: &*challenge, messages: &[] });
        let answers = once.map(|once| new_answer(once, &body, now)).into_iter().collect();
        let count =
            |is_of: fn(Channel) -> bool| messages.iter().filter(|message| is_of(message.channel)).count() as u64;
        let chat_len = count(|channel| matches!(channel, Channel::Chat(_)));
        let operator_len = count(|channel| matches!(channel, Channel::Operator(_)));
        let spoken = messages.iter().filter(|message| !message.channel.is_inputs()).map(|message| message.at);
        let last_activity = spoken.max().unwrap_or(session.facts.created_at);
        let wake_at = session.wake_at;
        let _reserved = self.live.reserve(id);
        let change = SessionChange::Create(Box::new(session));
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
                let stored = StoredSession { no, session, chat_len, operator_len, last_activity };
                self.live.insert(id, stored, None);
                self.reschedule(wake_at);
                Ok(body)
            }
            Err(CommitError::Answered(answer)) => repeat(answer, once),
            Err(CommitError::Conflict) => Err(EngineError::Contended),
            Err(CommitError::Unavailable(error)) => Err(error.into()),
        }
    }
}
