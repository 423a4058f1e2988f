//! Messages, their channels, and who speaks in them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::{IdError, InviteCode, SessionId, Timestamp, hex};

/// An ordered stream of messages. Indexes in it are 1, 2, 3 … in commit order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// The players of a session among themselves: `{uuid}` on the wire.
    Chat(SessionId),
    /// The operator of a session and its players: `challenge_{uuid}` on the wire.
    Operator(SessionId),
    /// The public channel on which invites are offered to whoever wants to play: `invites` on the wire.
    Invites,
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channel::Chat(session) => session.fmt(f),
            Channel::Operator(session) => write!(f, "challenge_{session}"),
            Channel::Invites => f.write_str("invites"),
        }
    }
}

/// Who speaks, or is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Party {
    /// The rules of the session.
    Operator,
    /// A player, by the name that the others know.
    Player(InviteCode),
    /// A spectator, where an arena lets spectators chat; or a name from an imported record.
    Other(Box<str>),
}

impl Party {
    /// Reads a name as the wire writes it. Every text is some party; whether it may speak is asked elsewhere.
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

/// SHA-256 of a message's content: what stays of it when an administrator has hidden the message, so that whoever still
/// has the content can show what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// The hash of a content, taken over its UTF-8.
    pub fn of(content: &str) -> ContentHash {
        ContentHash(Sha256::digest(content).into())
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

/// A stored message. It can't be serialised; [`crate::redact`] makes what a viewer may see.
///
/// ```compile_fail
/// fn leaves_the_process<T: serde::Serialize>() {}
/// leaves_the_process::<arena_model::ChatMessage>();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Where it stands.
    pub channel: Channel,
    /// Its place in the channel, from 1.
    pub index: u64,
    /// Who sent it.
    pub from: Party,
    /// Whom it is for; nobody in particular means everybody.
    pub to: Option<Party>,
    /// The text; nothing if it is hidden.
    pub content: String,
    /// The method that it called, if it records an action.
    pub method: Option<String>,
    /// When it was committed.
    pub at: Timestamp,
    /// What stays of the content, if an administrator has hidden it.
    pub hidden: Option<ContentHash>,
}

/// A message that a transition has caused, before it has a place in its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where it will stand.
    pub channel: Channel,
    /// Who sends it.
    pub from: Party,
    /// Whom it is for; nobody in particular means everybody.
    pub to: Option<Party>,
    /// The text.
    pub content: String,
    /// The method that it called, if it records an action.
    pub method: Option<String>,
}

impl Draft {
    /// The message that this becomes at `index` of its channel.
    pub fn at(self, index: u64, at: Timestamp) -> ChatMessage {
        let Draft { channel, from, to, content, method } = self;
        ChatMessage { channel, index, from, to, content, method, at, hidden: None }
    }
}
