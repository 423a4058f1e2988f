//! A record of the requests and observations of clients, for comparison with the final state of the arena.
//!
//! This module does no I/O. A test records each request with its time, node and response ([`History`]), reads the
//! final state of the arena (`FinalState`, in `history/final_state.rs`), and calls [`check`], which returns the
//! contradictions. All times count from the start of the history on one monotonic clock, so times of different
//! clients can be compared.

mod check;
mod final_state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

pub use check::check;
pub use final_state::{FinalSession, FinalStanding, FinalState, ObservedMessage};

/// The time since the start of the history.
pub type Moment = Duration;

/// All requests and observations of the clients.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Writes, each with all its attempts.
    pub writes: Vec<Write>,
    /// Answered reads of channels.
    pub reads: Vec<Read>,
    /// Event streams; each entry covers all its connections.
    pub subscriptions: Vec<Subscription>,
    /// Keys of pairs of concurrent writes; exactly one of each pair may succeed.
    pub races: Vec<[String; 2]>,
}

/// A change that a client requests, and that must happen at most once.
#[derive(Debug, Clone)]
pub struct Write {
    /// The `Idempotency-Key` of the write's requests, unique among all writes.
    pub key: String,
    pub operation: WriteOperation,
    /// All requests for this write, in the order sent.
    pub attempts: Vec<Attempt>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteOperation {
    /// The creation of a session. Creations with equal options are compared only by their number.
    Create {
        challenge: String,
        /// The options: names, and values as JSON.
        options: Vec<(String, String)>,
    },
    /// The announcement of an invite on the public channel.
    Announce {
        invite: String,
    },
    Join {
        invite: String,
        /// The user name of the player, if given.
        user: Option<String>,
    },
    Say {
        session: String,
        from: String,
        /// The recipient; `None` means all players.
        to: Option<String>,
        /// The text, unique among all messages.
        content: String,
    },
    Act {
        session: String,
        from: String,
        method: String,
        content: String,
    },
}

impl WriteOperation {
    pub fn create(challenge: &str, options: &Map<String, Value>) -> WriteOperation {
        let options = options.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
        WriteOperation::Create { challenge: challenge.to_owned(), options }
    }
}

/// One request for a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The node that received the request.
    pub node: usize,
    pub sent: Moment,
    /// The time at which the client received the response or gave up.
    pub done: Moment,
    pub outcome: RequestOutcome,
}

/// The outcome of a request, as far as the client knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The client got no connection and sent nothing.
    Unsent,
    /// The client sent the request and got no complete or conclusive response. The write may have happened, or may
    /// still happen.
    Unknown,
    /// Status 200, with this body.
    Accepted(String),
    /// A final refusal with this code.
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The node that answered.
    pub node: usize,
    /// The channel, by its name on the wire: `{uuid}`, `challenge_{uuid}` or `invites`.
    pub channel: String,
    pub sent: Moment,
    pub done: Moment,
    /// The index of the first requested message.
    pub from: u64,
    /// The index of the last message in the answer; `from` − 1 if the answer has none.
    pub last: u64,
}

/// A subscriber of a channel, over all its connections.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The channel, by its name on the wire.
    pub channel: String,
    /// All messages received, in order.
    pub deliveries: Vec<Delivery>,
    /// The number of end-of-session events received.
    pub ends: usize,
    /// True if the subscriber had time to receive all messages. If false, the last messages may be missing, but no
    /// earlier ones.
    pub whole: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The node that sent the message.
    pub node: usize,
    /// The time of arrival.
    pub at: Moment,
    pub message: ObservedMessage,
}

/// A contradiction between the history and the final state: a promise that the arena broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The broken promise.
    pub kind: FaultKind,
    /// The evidence.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// A promise of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// An acknowledged write is missing.
    Lost,
    /// A write happened more often than it was requested.
    Doubled,
    /// A write that was always refused has happened.
    RefusedButThere,
    /// The arena shows something that no client requested.
    Invented,
    /// A repetition with the same key got a different answer.
    AnsweredOtherwise,
    /// The response to a write has another index than the write's message.
    Misplaced,
    /// Two writes exclude each other, but none or both succeeded.
    RaceUndecided,
    /// A seat isn't held by the player who joined it, or the session's seats and status contradict each other.
    Seats,
    /// The indexes of a channel aren't 1, 2, 3 …
    Gap,
    /// A message has an earlier time than the message before it.
    TimeWentBack,
    /// A read shows less than the clients knew when the read was sent.
    ReadWentBack,
    /// A subscriber missed a message, or received it twice, out of order, or changed.
    Stream,
    /// A leaderboard or a count doesn't match the games.
    Miscounted,
    /// Counting all games again changed a standing.
    Mended,
}
