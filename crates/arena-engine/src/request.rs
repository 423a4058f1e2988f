//! The engine's requests and errors.

use std::sync::Arc;
use std::time::Duration;

use arena_model::{
    ActError, ChallengeType, Channel, ChatError, ChatMessage, InactivityLimits, InviteCode, OptionsError, Party,
    Rejection, RestoreError, ScriptVersion, Seed, Session, SessionId, SessionPolicy, Status, Timestamp, UserId,
};
use arena_store::{CommitError, StoreError};
use serde_json::{Map, Value};

#[derive(Debug, Clone)]
pub struct Limits {
    pub channel_messages: u64,
    /// The maximum size of a session's chat, in bytes.
    pub chat_bytes: u64,
    /// True if clients without a seat may chat in sessions.
    pub spectators_chat: bool,
    /// True if one user may hold two seats of a session.
    pub self_play: bool,
    /// True if players prove their identities. Games between callers of a queue are rated only then.
    pub proven_players: bool,
    pub inactivity: InactivityLimits,
}

/// The idempotency key of a write. A write with a key happens once, even if a client sends the request twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once {
    /// SHA-256 of the parts that make the client's key unique: route, identity, key.
    pub key: [u8; 32],
    /// SHA-256 of the request's body.
    pub request: [u8; 32],
}

/// The result of a write, from which [`Respond`] builds the response.
pub struct Written<'w> {
    pub session: &'w Session,
    pub challenge: &'w dyn ChallengeType,
    pub messages: &'w [ChatMessage],
}

#[derive(Debug, Clone)]
pub struct Create {
    pub challenge: String,
    /// The options that differ from the challenge's defaults.
    pub options: Map<String, Value>,
    /// True if the session counts on a board when its options are the challenge's. Games against house bots don't.
    pub is_rated: bool,
    /// True if no list shows or counts the session. Such a session counts on no board.
    pub is_unlisted: bool,
    /// The deal of an earlier session. The new session has its seed, and counts on no board.
    pub deal: Option<Deal>,
}

/// The deal of an ended session, or of a day.
#[derive(Debug, Clone)]
pub struct Deal {
    /// The session that had the deal before; `None` for the deal of a day.
    pub(crate) origin: Option<SessionId>,
    pub(crate) seed: Seed,
    /// True if the session is in no list, so that no session with its deal may be in one.
    pub(crate) is_unlisted: bool,
}

impl Deal {
    /// Returns the deal of a session; `None` if the session hasn't ended, because its seed is secret, or has no seed.
    pub fn of(session: &Session) -> Option<Deal> {
        let seed = session.facts.seed.clone().filter(|_| session.status() == Status::Ended);
        let is_unlisted = session.facts.is_unlisted;
        seed.map(|seed| Deal { origin: Some(session.facts.id), seed, is_unlisted })
    }

    /// Returns the deal of a day. Its sessions are unlisted, because the seed of an ended session is public.
    pub fn of_day(seed: Seed) -> Deal {
        Deal { origin: None, seed, is_unlisted: true }
    }
}

#[derive(Debug, Clone)]
pub struct Join {
    pub invite: InviteCode,
    pub user: Option<UserId>,
}

#[derive(Debug, Clone)]
pub struct Act {
    pub session: SessionId,
    /// The sender; only players can act.
    pub from: Party,
    pub method: Option<String>,
    pub content: String,
}

#[derive(Debug, Clone)]
pub struct Chat {
    pub session: SessionId,
    pub from: Party,
    /// The recipient; `None` means everyone.
    pub to: Option<Party>,
    pub content: String,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("Unknown challenge type: {0}")]
    UnknownChallenge(String),
    /// There is no such session, or it was removed.
    #[error("Challenge not found")]
    UnknownSession,
    /// The session has ended, so it can't be canceled or unlisted.
    #[error("the session has ended")]
    SessionEnded,
    #[error("the game is rated and has begun, so only an administrator can cancel or unlist it")]
    RatedGame,
    #[error("the session has no record, because its messages have more than {} MiB", limit >> 20)]
    RecordTooLong {
        /// The maximum size of all messages, in bytes.
        limit: u64,
    },
    #[error("Challenge not found for invite: {0}")]
    UnknownInvite(String),
    #[error("This invite has already been used.")]
    InviteUsed(InviteCode),
    #[error("This user has already joined, and this arena doesn't allow two seats of a session for one user.")]
    SelfPlay,
    /// The user or the address is banned.
    #[error("banned from this arena: {reason}")]
    Banned { reason: String },
    #[error("there is no message {index} in {channel}")]
    UnknownMessage { channel: Channel, index: u64 },
    #[error("there is no such user")]
    UnknownUser,
    #[error("the user has a seat in a running session, such as {}; wait for its end or remove it", sessions[0])]
    UserPlays {
        /// The sessions; at least one.
        sessions: Vec<SessionId>,
    },
    #[error("the signature was already used for another change; sign this change again")]
    SignatureUsed,
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The rules failed or refused when a session was created or joined.
    #[error(transparent)]
    Failed(Rejection),
    #[error("cannot load version {version} of the script {challenge}, which the session needs: {reason}")]
    NoScript { challenge: String, version: ScriptVersion, reason: String },
    #[error(transparent)]
    Act(ActError),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error("the channel is full: it holds at most {limit} messages")]
    ChannelFull { limit: u64 },
    #[error("the chat of this session holds at most {limit} bytes")]
    ChatFull {
        /// The maximum size, in bytes.
        limit: u64,
    },
    #[error("the Idempotency-Key was used for a different request")]
    KeyReused,
    #[error("too many callers wait for opponents; try later")]
    QueueFull,
    #[error(
        "this address already waits with {limit} tickets; it can wait with another when one of them has an opponent or \
         leaves its queue"
    )]
    TooManyTickets { limit: i64 },
    #[error("the session is changing too fast; try again")]
    Contended,
    #[error("the store is unavailable; {}", advice(.0))]
    Unavailable(#[source] StoreError),
    #[error("the archive is unavailable; try again later")]
    Archive {
        /// The file and the error of its place.
        reason: String,
    },
    #[error("this arena has no archive: nodes that share a database need retention.folder")]
    NoArchive,
    /// The stored state of the session can't be read.
    #[error("the session cannot be continued")]
    Damaged(#[source] RestoreError),
}

/// Returns advice about a failure of the store, for the caller.
fn advice(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unsure => "check if the change was made, or repeat the request with the same Idempotency-Key",
        _ => "nothing was changed",
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        EngineError::Unavailable(error)
    }
}

/// Converts the store's error for a write that isn't a transition of a session.
pub(crate) fn unwritten(error: CommitError) -> EngineError {
    match error {
        CommitError::Unavailable(error) => error.into(),
        CommitError::Conflict | CommitError::Answered(_) => EngineError::Contended,
    }
}

impl From<RestoreError> for EngineError {
    fn from(error: RestoreError) -> Self {
        EngineError::Damaged(error)
    }
}

/// The input of a decision.
pub(crate) struct Moment<'m> {
    pub(crate) session: &'m Session,
    pub(crate) challenge: &'m dyn ChallengeType,
    pub(crate) policy: &'m SessionPolicy<'m>,
    /// The time of the session's last message.
    pub(crate) last_activity: Timestamp,
    pub(crate) now: Timestamp,
}

/// The functions that format the answer to a write, and that learn the write's cost.
#[derive(Clone)]
pub struct Respond {
    format: Arc<dyn Fn(&Written<'_>) -> String + Send + Sync>,
    computed: Option<Arc<dyn Fn(Duration) + Send + Sync>>,
}

impl Respond {
    /// The engine calls `format` before the commit, so that the commit can store the answer.
    pub fn new(format: impl Fn(&Written<'_>) -> String + Send + Sync + 'static) -> Respond {
        Respond { format: Arc::new(format), computed: None }
    }

    /// Adds a function that gets the time for which the rules have computed, also if they refuse the write. The engine
    /// calls it for each decision; a conflict with another node leads to a further one.
    pub fn metered(self, computed: impl Fn(Duration) + Send + Sync + 'static) -> Respond {
        Respond { computed: Some(Arc::new(computed)), ..self }
    }

    pub(crate) fn is_metered(&self) -> bool {
        self.computed.is_some()
    }

    pub(crate) fn format(&self, written: &Written<'_>) -> String {
        (self.format)(written)
    }

    pub(crate) fn count(&self, computed: Duration) {
        if let Some(count) = &self.computed {
            count(computed);
        }
    }
}
