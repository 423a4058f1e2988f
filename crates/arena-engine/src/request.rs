//! What the engine is asked to do, and why it doesn't.

use arena_model::{
    ActError, ChallengeType, Channel, ChatError, ChatMessage, InviteCode, OptionsError, Party, Patience, Rejection,
    RestoreError, ScriptVersion, Session, SessionId, UsageRefusal, UsageReport, UsageTotal, UserId,
};
use arena_store::StoreError;
use serde_json::{Map, Value};

/// What an engine allows.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most messages in one channel.
    pub channel_messages: u64,
    /// Whether people without a seat may chat in sessions.
    pub spectators_chat: bool,
    /// Whether one user may hold two seats of a session.
    pub self_play: bool,
    /// When sessions in which nothing happens are removed or ended.
    pub patience: Patience,
}

/// What makes a write happen once although it is asked for twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once {
    /// SHA-256 over what makes the client's key unique: route, identity, key.
    pub key: [u8; 32],
    /// SHA-256 of the request's body.
    pub request: [u8; 32],
}

/// What a write has come to, for whoever words the answer.
pub struct Written<'w> {
    /// The session afterwards.
    pub session: &'w Session,
    /// The session's challenge type.
    pub challenge: &'w dyn ChallengeType,
    /// The messages that were added.
    pub messages: &'w [ChatMessage],
}

impl Written<'_> {
    /// What the reports of a player come to; `None` if it has no seat or has reported nothing.
    pub fn usage_of(&self, player: &Party) -> Option<&UsageTotal> {
        let Party::Player(invite) = player else { return None };
        let seat = self.session.seat_of(*invite)?;
        self.session.usage.get(seat.0).map(|usage| &usage.total)
    }
}

/// A request to create a session.
#[derive(Debug, Clone)]
pub struct Create {
    /// The challenge type.
    pub challenge: String,
    /// Options that differ from the arena's.
    pub options: Map<String, Value>,
}

/// A request to take a seat.
#[derive(Debug, Clone)]
pub struct Join {
    /// The invite.
    pub invite: InviteCode,
    /// Who joins, if the player says so.
    pub user: Option<UserId>,
}

/// A request to act.
#[derive(Debug, Clone)]
pub struct Act {
    /// In which session.
    pub session: SessionId,
    /// Who acts; only players can.
    pub from: Party,
    /// The method that is called.
    pub method: Option<String>,
    /// What it is called with.
    pub content: String,
}

/// A request to say something.
#[derive(Debug, Clone)]
pub struct Chat {
    /// In which session.
    pub session: SessionId,
    /// Who speaks.
    pub from: Party,
    /// To whom, if not to all.
    pub to: Option<Party>,
    /// What is said.
    pub content: String,
}

/// A player's word on what its play has cost.
#[derive(Debug, Clone)]
pub struct ReportUsage {
    /// In which session.
    pub session: SessionId,
    /// Who reports; only players can.
    pub from: Party,
    /// What it has cost, checked. When it came is the engine's to say.
    pub report: UsageReport,
}

/// Why the engine doesn't do what it is asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The arena doesn't host such a challenge.
    #[error("Unknown challenge type: {0}")]
    UnknownChallenge(String),
    /// There is no such session, or no longer.
    #[error("Challenge not found")]
    UnknownSession,
    /// No session has such an invite.
    #[error("Challenge not found for invite: {0}")]
    UnknownInvite(String),
    /// The invite has been used.
    #[error("This invite has already been used.")]
    InviteUsed(InviteCode),
    /// The user has a seat already.
    #[error("This user has already joined, and nobody may hold two seats of a session here.")]
    SelfPlay,
    /// The user or the address isn't let in.
    #[error("banned from this arena: {reason}")]
    Banned {
        /// Why.
        reason: String,
    },
    /// There is no such message.
    #[error("there is no message {index} in {channel}")]
    UnknownMessage {
        /// The channel.
        channel: Channel,
        /// The place in it.
        index: u64,
    },
    /// The signature was good for another change.
    #[error("the signature has been used")]
    SignatureUsed,
    /// The session can't be played with these options.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The rules failed, or refused, when a session was created or a seat taken.
    #[error(transparent)]
    Failed(Rejection),
    /// The session is played by a script that isn't to be had.
    #[error("the session is played by version {version} of the script {challenge}: {reason}")]
    NoScript {
        /// The challenge.
        challenge: String,
        /// Which version.
        version: ScriptVersion,
        /// Why not.
        reason: String,
    },
    /// The action isn't taken.
    #[error(transparent)]
    Act(ActError),
    /// The text isn't said.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// The report isn't taken.
    #[error(transparent)]
    Usage(#[from] UsageRefusal),
    /// The channel can't take more.
    #[error("the channel is full: it holds at most {limit} messages")]
    ChannelFull {
        /// How many it holds at most.
        limit: u64,
    },
    /// The same idempotency key came with another request.
    #[error("the Idempotency-Key was used for another request")]
    KeyReused,
    /// Too many others changed the session at the same time.
    #[error("the session is changing too fast; try again")]
    Contended,
    /// The store can't be read or written now.
    #[error("the store is unavailable; {}", came_of(.0))]
    Unavailable(#[source] StoreError),
    /// The stored state of the session can't be read.
    #[error("the session can't be continued")]
    Damaged(#[source] RestoreError),
}

/// What a failure of the store means for what was asked for.
fn came_of(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unsure => "look whether the change was made, or ask again with the same Idempotency-Key",
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

/// Words the answer to a write. Called before the commit, so that the answer can be stored with it.
pub type Respond = Box<dyn Fn(&Written<'_>) -> String + Send>;
