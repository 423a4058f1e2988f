//! Messages, their channels, senders and recipients.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::{IdError, InviteCode, SessionId, Timestamp, hex};

/// An ordered stream of messages with the indexes 1, 2, 3 … in commit order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// The chat of a session's players: `{uuid}` on the wire.
    Chat(SessionId),
    /// The messages of a session's operator and its players: `challenge_{uuid}` on the wire.
    Operator(SessionId),
    /// The public channel that offers invites: `invites` on the wire.
    Invites,
    /// The inputs of a session that its messages don't show, for its record only. The channel isn't on the wire, and no
    /// viewer may read it. A transition that isn't an action or chat adds one message before its other messages. The
    /// index is the session's version after the transition, and the method is the kind of the input:
    ///
    /// | method | sender | content |
    /// |---|---|---|
    /// | `join` | the joining player | empty |
    /// | `announce` | the future player of the offered invite | empty |
    /// | `usage` | the reporting player | the [`crate::UsageReport`] as JSON |
    /// | `deadline` | the operator | empty |
    /// | `abandon` | the operator | empty; the session was inactive for too long |
    /// | `wake` | the operator | empty; only the time of the next wake-up, or the list of sessions, has changed |
    /// | `failed` | the operator | empty; the rules failed at a deadline |
    ///
    /// The engine adds `created`, a session's first input (`arena-engine/src/inputs.rs`).
    Inputs(SessionId),
}

impl Channel {
    /// True if the channel has the inputs of a session, which no viewer may read.
    pub fn is_inputs(self) -> bool {
        matches!(self, Channel::Inputs(_))
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channel::Chat(session) => session.fmt(f),
            Channel::Operator(session) => write!(f, "challenge_{session}"),
            Channel::Invites => f.write_str("invites"),
            Channel::Inputs(session) => write!(f, "inputs_{session}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Party {
    /// The session's operator, which runs the rules.
    Operator,
    /// A player, by its public name.
    Player(InviteCode),
    /// A spectator, if the arena lets spectators chat, or a name from an imported record.
    Other(Box<str>),
}

impl Party {
    /// Every text is valid: an unknown name becomes [`Party::Other`]. The callers check permissions.
    pub fn from_wire(name: &str) -> Party {
        match name {
            "operator" => Party::Operator,
            _ => match name.parse() {
                Ok(invite) => Party::Player(invite),
                Err(_) => Party::Other(name.into()),
            },
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Operator => f.write_str("operator"),
            Party::Player(invite) => invite.fmt(f),
            Party::Other(name) => f.write_str(name),
        }
    }
}

/// SHA-256 of a message's content. The hash remains after an administrator has hidden the message, so that a reader
/// who kept the content can prove that it is the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Returns the hash of `content` in UTF-8.
    pub fn of(content: &str) -> ContentHash {
        ContentHash::of_bytes(content.as_bytes())
    }

    /// Returns the hash of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> ContentHash {
        ContentHash(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl FromStr for ContentHash {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        hex::decode_canonical(text).map(ContentHash).ok_or(IdError::expected("a SHA-256 (64 lower-case hex digits)"))
    }
}

/// A stored message. It can't be serialized; [`crate::redact`] makes the form that a viewer may see.
///
/// ```compile_fail
/// fn leaves_the_process<T: serde::Serialize>() {}
/// leaves_the_process::<arena_model::ChatMessage>();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    pub channel: Channel,
    /// The position in the channel, from 1. In [`Channel::Inputs`], the session's version after the input.
    pub index: u64,
    pub from: Party,
    /// The recipient; `None` means everyone.
    pub to: Option<Party>,
    /// The text; empty if hidden.
    pub content: String,
    /// The called method, if the message records an action.
    pub method: Option<String>,
    /// The commit time.
    pub at: Timestamp,
    /// The hash of the content, if an administrator has hidden it.
    pub hidden: Option<ContentHash>,
}

/// A message that a transition produces, before the engine assigns the message an index in its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub channel: Channel,
    pub from: Party,
    /// The recipient; `None` means everyone.
    pub to: Option<Party>,
    pub content: String,
    /// The called method, if the message records an action.
    pub method: Option<String>,
}

impl Draft {
    pub fn at(self, index: u64, at: Timestamp) -> ChatMessage {
        let Draft { channel, from, to, content, method } = self;
        ChatMessage { channel, index, from, to, content, method, at, hidden: None }
    }
}
