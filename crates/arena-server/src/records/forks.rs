//! Forks on the server: sessions that continue from an event of an ended session.

use std::sync::Arc;

use arena_engine::{DrawnIdentity, Engine, EngineError, Fork, RecordSource};
use arena_model::{Seed, SessionFacts, SessionId};
use arena_record::forks::{ForkIdentity, first_private_chat, ready_fork};
use arena_record::{ForkOf, Hash, ReadLimits, RecordViewer, RecordedRules, read};
use serde::{Deserialize, Serialize};

use super::{RecordFailure, Records, blocking};

/// The origin of a fork, as stored with the session.
#[derive(Serialize, Deserialize)]
struct StoredOrigin {
    fork: ForkOf,
    /// The seed of the original. A reseeded fork plays with a seed that follows from it.
    seed: Hash,
}

/// The wanted fork of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedFork {
    /// The original.
    pub(crate) of: SessionId,
    /// The number of the last common event.
    pub(crate) at: u64,
    /// True for new random numbers after that event.
    pub(crate) is_reseeded: bool,
    /// True if the caller may see private chat messages that aren't public.
    pub(crate) sees_private_chat: bool,
}

/// The reason why a session can't be forked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ForkFailure {
    /// The session can't be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The record of the session can't be written.
    #[error(transparent)]
    Record(#[from] RecordFailure),
    /// The session can't be continued from this event.
    #[error("{0}")]
    Impossible(String),
    /// The session has no such event.
    #[error("at must be at most {0}, the number of the session's last event")]
    NoEvent(u64),
    /// The past has private messages that the caller may not see.
    #[error(
        "event {0} is a private chat message, which only an administrator may copy on this server; fork from an earlier \
         event"
    )]
    PrivateChat(u64),
}

fn stored_origin(source: &RecordSource) -> Option<StoredOrigin> {
    serde_json::from_str(source.origin()?).ok()
}

/// Returns the origin of a fork for its record; `None` for other sessions.
pub(super) fn origin_of(source: &RecordSource) -> Option<ForkOf> {
    stored_origin(source).map(|origin| origin.fork)
}

/// Gives a reseeded fork the seed of its original, which its record contains. Other sessions stay unchanged.
pub(super) fn with_original_seed(mut source: RecordSource) -> RecordSource {
    if let Some(origin) = stored_origin(&source).filter(|origin| origin.fork.reseeded) {
        let mut session = (*source.session).clone();
        let facts = SessionFacts { seed: Some(Seed(origin.seed.0)), ..(*session.facts).clone() };
        session.facts = Arc::new(facts);
        source.session = Arc::new(session);
    }
    source
}

impl Records {
    /// Makes the fork of a session. The caller passes it to [`Engine::fork`].
    ///
    /// # Errors
    /// If the session can't be read, or not be continued from the event.
    pub(crate) async fn make_fork(
        self: &Arc<Records>,
        engine: &Engine,
        wanted: WantedFork,
    ) -> Result<Fork, ForkFailure> {
        let WantedFork { of, at, is_reseeded, sees_private_chat } = wanted;
        let session = engine.find_session(of).await?.ok_or(EngineError::UnknownSession)?;
        if !super::has_ended(&session) {
            let reason = "the session has not ended: its seed is secret until the end";
            return Err(ForkFailure::Impossible(reason.to_owned()));
        }
        let challenge = engine.challenge_of(&session.facts).await?;
        let admit = |_| Ok(None);
        let record =
            self.write(engine, of, RecordViewer::Everything, admit).await?.ok_or(EngineError::UnknownSession)?;
        let DrawnIdentity { id, invites, at: now } = engine.draw_identity(session.facts.invites.len());
        let identity = ForkIdentity { id, invites, at: now };
        let forked = move || {
            let parsed = read(record.as_bytes(), ReadLimits::default())
                .map_err(|error| ForkFailure::Impossible(format!("the session's record is damaged: {error}")))?;
            let last = parsed.events.len() as u64;
            if at > last {
                return Err(ForkFailure::NoEvent(last));
            }
            if let Some(event) = first_private_chat(&parsed, at).filter(|_| !sees_private_chat) {
                return Err(ForkFailure::PrivateChat(event));
            }
            let rules_version = match parsed.header.rules {
                RecordedRules::Builtin { version, .. } => Some(version),
                RecordedRules::Script { .. } => None,
            };
            let ready = ready_fork(parsed, &*challenge, at, is_reseeded, &identity);
            ready.map(|ready| (ready, rules_version)).map_err(ForkFailure::Impossible)
        };
        let (ready, rules_version) = blocking(forked).await?;
        let origin = StoredOrigin { fork: ForkOf { of, at, reseeded: is_reseeded }, seed: Hash(ready.seed.0) };
        let origin = serde_json::to_string(&origin).expect("an origin is JSON");
        Ok(Fork { session: ready.session, messages: ready.messages, origin, rules_version })
    }
}
