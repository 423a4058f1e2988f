//! The engine's requests and errors.

use std::time::Duration;

use arena_model::{
    ActError, ChallengeType, Channel, ChatError, ChatMessage, InactivityLimits, InviteCode, OptionsError, Party,
    Rejection, RestoreError, ScriptVersion, Session, SessionId, UserId,
};
use arena_store::StoreError;
use serde_json::{Map, Value};

/// The limits and permissions of an engine.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The maximum number of messages in one channel.
    pub channel_messages: u64,
    /// The maximum size of a session's chat, in bytes.
    pub chat_bytes: u64,
    /// True if clients without a seat may chat in sessions.
    pub spectators_chat: bool,
    /// True if one user may hold two seats of a session.
    pub self_play: bool,
    /// True if players prove their identities. Games between callers of a queue are rated only then.
    pub proven_players: bool,
    /// The time limits of inactive sessions.
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
    /// The session after the write.
    pub session: &'w Session,
    /// The session's challenge type.
    pub challenge: &'w dyn ChallengeType,
    /// The messages that the write has added.
    pub messages: &'w [ChatMessage],
}

/// A request to create a session.
#[derive(Debug, Clone)]
pub struct Create {
    /// The challenge type.
    pub challenge: String,
    /// The options that differ from the challenge's defaults.
    pub options: Map<String, Value>,
    /// True if the session counts on a board when its options are the challenge's. Games against house bots don't.
    pub is_rated: bool,
    /// True if no list shows or counts the session. Such a session counts on no board.
    pub is_unlisted: bool,
}

/// A request to join a session.
#[derive(Debug, Clone)]
pub struct Join {
    /// The invite.
    pub invite: InviteCode,
    /// The joining user's id, if the request contains one.
    pub user: Option<UserId>,
}

/// A request to act in a session.
#[derive(Debug, Clone)]
pub struct Act {
    /// The session's id.
    pub session: SessionId,
    /// The sender; only players can act.
    pub from: Party,
    /// The name of the called method.
    pub method: Option<String>,
    /// The content of the action.
    pub content: String,
}

/// A request to post a chat message.
#[derive(Debug, Clone)]
pub struct Chat {
    /// The session's id.
    pub session: SessionId,
    /// The sender.
    pub from: Party,
    /// The recipient; `None` means everyone.
    pub to: Option<Party>,
    /// The text.
    pub content: String,
}

/// An error of the engine: a refused request or a failure.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The arena has no such challenge type.
    #[error("Unknown challenge type: {0}")]
    UnknownChallenge(String),
    /// There is no such session, or it was removed.
    #[error("Challenge not found")]
    UnknownSession,
    /// The session has ended, so it can't be canceled or unlisted.
    #[error("the session has ended")]
    SessionEnded,
    /// A rated game has begun, so its creator can't cancel or unlist it anymore.
    #[error("the game is rated and has begun, so only an administrator can cancel or unlist it")]
    RatedGame,
    /// The session has too many messages for one record.
    #[error("the session has no record, because its messages have more than {} MiB", limit >> 20)]
    RecordTooLong {
        /// The maximum size of all messages, in bytes.
        limit: u64,
    },
    /// No session has such an invite.
    #[error("Challenge not found for invite: {0}")]
    UnknownInvite(String),
    /// The invite was used already.
    #[error("This invite has already been used.")]
    InviteUsed(InviteCode),
    /// The user has a seat already.
    #[error("This user has already joined, and this arena doesn't allow two seats of a session for one user.")]
    SelfPlay,
    /// The user or the address is banned.
    #[error("banned from this arena: {reason}")]
    Banned {
        /// The reason of the ban.
        reason: String,
    },
    /// There is no such message.
    #[error("there is no message {index} in {channel}")]
    UnknownMessage {
        /// The channel.
        channel: Channel,
        /// The index in the channel.
        index: u64,
    },
    /// There is no such user.
    #[error("there is no such user")]
    UnknownUser,
    /// The user has seats in running sessions, so it can't be deleted.
    #[error("the user has a seat in a running session, such as {}; wait for its end or remove it", sessions[0])]
    UserPlays {
        /// The sessions; at least one.
        sessions: Vec<SessionId>,
    },
    /// The signature was used for another change.
    #[error("the signature was already used for another change; sign this change again")]
    SignatureUsed,
    /// The session can't be played with these options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The rules failed or refused when a session was created or joined.
    #[error(transparent)]
    Failed(Rejection),
    /// The engine can't load the version of the script that the session uses.
    #[error("cannot load version {version} of the script {challenge}, which the session needs: {reason}")]
    NoScript {
        /// The challenge.
        challenge: String,
        /// The version of the script.
        version: ScriptVersion,
        /// The reason.
        reason: String,
    },
    /// The action is refused.
    #[error(transparent)]
    Act(ActError),
    /// The chat message is refused.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The channel is full.
    #[error("the channel is full: it holds at most {limit} messages")]
    ChannelFull {
        /// The maximum number of messages.
        limit: u64,
    },
    /// The chat is too long.
    #[error("the chat of this session holds at most {limit} bytes")]
    ChatFull {
        /// The maximum size, in bytes.
        limit: u64,
    },
    /// The idempotency key was used for a different request.
    #[error("the Idempotency-Key was used for a different request")]
    KeyReused,
    /// The queue is full.
    #[error("too many callers wait for opponents; try later")]
    QueueFull,
    /// The network has too many tickets.
    #[error(
        "this address already waits with {limit} tickets; it can wait with another when one of them has an opponent or \
         leaves its queue"
    )]
    TooManyTickets {
        /// The maximum number of its tickets.
        limit: i64,
    },
    /// Too many concurrent changes of the session.
    #[error("the session is changing too fast; try again")]
    Contended,
    /// The store can't be read or written at the moment.
    #[error("the store is unavailable; {}", advice(.0))]
    Unavailable(#[source] StoreError),
    /// A file of the archive can't be read or written.
    #[error("the archive is unavailable; try again later")]
    Archive {
        /// The file and the error of its place.
        reason: String,
    },
    /// The arena has no archive.
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

impl From<RestoreError> for EngineError {
    fn from(error: RestoreError) -> Self {
        EngineError::Damaged(error)
    }
}

/// The functions that format the answer to a write, and that learn the write's cost.
pub struct Respond {
    format: Box<dyn Fn(&Written<'_>) -> String + Send + Sync>,
    computed: Option<Box<dyn Fn(Duration) + Send + Sync>>,
}

impl Respond {
    /// The engine calls `format` before the commit, so that the commit can store the answer.
    pub fn new(format: impl Fn(&Written<'_>) -> String + Send + Sync + 'static) -> Respond {
        Respond { format: Box::new(format), computed: None }
    }

    /// Adds a function that gets the time for which the rules have computed, also if they refuse the write. The engine
    /// calls it for each decision; a conflict with another node leads to a further one.
    pub fn metered(self, computed: impl Fn(Duration) + Send + Sync + 'static) -> Respond {
        Respond { computed: Some(Box::new(computed)), ..self }
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
