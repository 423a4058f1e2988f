//! What clients of an arena did and saw, written down so that it can be compared with what the arena shows in the end.
//!
//! Pure: whoever runs the clients notes here what they sent, when, to which node, and what came back (`History`); reads what the
//! arena shows when all is quiet (`Present`, in `history/present.rs`); and asks [`check`] what doesn't fit together. Times are since
//! the history began, by one monotonic clock, so that "before" and "after" mean something across clients.

mod check;
mod present;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

pub use check::check;
pub use present::{Message, Present, Seen, Standing};

/// Time since the history began.
pub type Moment = Duration;

/// All that clients did and saw.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Writes, each with all attempts at it.
    pub writes: Vec<Write>,
    /// Reads of channels that were answered.
    pub reads: Vec<Read>,
    /// Streams, each over all its connections.
    pub subscriptions: Vec<Subscription>,
    /// Keys of writes that were sent at the same time, of which exactly one may be taken.
    pub races: Vec<[String; 2]>,
}

/// Something that a client wants done, once.
#[derive(Debug, Clone)]
pub struct Write {
    /// Its `Idempotency-Key`, which no other write has.
    pub key: String,
    /// What is to be done.
    pub deed: Deed,
    /// Every request that was sent for it, in the order of sending.
    pub attempts: Vec<Attempt>,
}

/// What a write is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// A session, with options that no other write asks for.
    Create {
        /// The challenge type.
        challenge: String,
        /// The options, as `key=value` in JSON.
        options: Vec<(String, String)>,
    },
    /// An invite is offered on the public channel.
    Announce {
        /// Which.
        invite: String,
    },
    /// A seat is taken.
    Join {
        /// By which invite.
        invite: String,
        /// Who says to come.
        user: Option<String>,
    },
    /// Something is said in a session.
    Say {
        /// The session.
        session: String,
        /// The speaker.
        from: String,
        /// Who alone may hear it.
        to: Option<String>,
        /// The text, which nobody says twice.
        content: String,
    },
    /// A player acts.
    Act {
        /// The session.
        session: String,
        /// The player.
        from: String,
        /// What the player does.
        method: String,
        /// And how.
        content: String,
    },
}

impl Deed {
    /// A session with these options.
    pub fn create(challenge: &str, options: &Map<String, Value>) -> Deed {
        let options = options.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
        Deed::Create { challenge: challenge.to_owned(), options }
    }
}

/// One request of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The node that it was sent to.
    pub node: usize,
    /// When.
    pub sent: Moment,
    /// When its outcome was known, or given up on.
    pub done: Moment,
    /// What came of it.
    pub outcome: Outcome,
}

/// What is known of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There was no connection: nothing was sent.
    Unsent,
    /// Something was sent, and no whole answer came, or one that leaves it open: it may have happened, or happen yet.
    Unknown,
    /// 200, with this body.
    Accepted(String),
    /// Refused for good, with this code.
    Refused(String),
}

/// A read of a channel that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The node that was asked.
    pub node: usize,
    /// The channel, by its name on the wire: `{uuid}`, `challenge_{uuid}` or `invites`.
    pub channel: String,
    /// When it was sent.
    pub sent: Moment,
    /// When it was answered.
    pub done: Moment,
    /// Messages from this index on were asked for.
    pub from: u64,
    /// Index of the last message in the answer; `from` − 1 if there was none.
    pub last: u64,
}

/// One who watches a channel, over all connections.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// The channel, by its name on the wire.
    pub channel: String,
    /// Every message that was delivered, in order.
    pub deliveries: Vec<Delivery>,
    /// How often the end of the session was told.
    pub ends: usize,
    /// Whether it was given time to see everything. Otherwise it may lack the last messages, but none in between.
    pub whole: bool,
}

/// A message as it came to a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The node that sent it.
    pub node: usize,
    /// When it came.
    pub at: Moment,
    /// What it was.
    pub message: Message,
}

/// A promise that wasn't kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which promise.
    pub kind: FaultKind,
    /// The evidence.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// What a fault is against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// An acknowledged write isn't there.
    Lost,
    /// A write happened more often than it was asked for.
    Doubled,
    /// A write that was refused each time has happened.
    RefusedButThere,
    /// Something is there that nobody asked for.
    Invented,
    /// A repetition under the same key was answered otherwise.
    AnsweredOtherwise,
    /// The answer to a write names another place than the one that the message has.
    Misplaced,
    /// Of writes of which one had to be taken, none was, or both were.
    RaceUndecided,
    /// A seat isn't held by whoever took it, or the session's seats and status contradict each other.
    Seats,
    /// Indexes of a channel aren't 1, 2, 3 …
    Gap,
    /// A message bears an earlier time than the one before it.
    TimeWentBack,
    /// A read shows less than was known to be there when it was sent.
    ReadWentBack,
    /// A subscriber was told something never, twice, out of order, or otherwise.
    Stream,
    /// A leaderboard or a count isn't what the games give.
    Miscounted,
    /// Counting all games again found something to mend.
    Mended,
}
