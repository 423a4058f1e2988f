//! News: what happens in a session, in order, for whoever plays there. The one loop behind all of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use arena_model::SeenMessage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::follow::follow;
use super::seat::Seat;
use crate::client::CallError;
use crate::exit::{Exit, Failure};

/// How often a wait looks whether it has been called off.
const LOOK: Duration = Duration::from_millis(200);

/// How long the other channel's last messages, and an arena's word that it is over, are waited for behind the operator's last message.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// One of a session's two channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What the operator says, and what is said to it.
    Operator,
    /// What players say to each other.
    Chat,
}

/// A message that we may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Where it stands.
    pub channel: Kind,
    /// Its place in the channel, from 1.
    pub index: u64,
    /// Who wrote it.
    pub from: String,
    /// Whom it is for; everybody, if `None`.
    pub to: Option<String>,
    /// What it says.
    pub content: String,
    /// When it was written by the arena's clock, in epoch milliseconds.
    #[serde(skip)]
    pub timestamp: i64,
}

impl Message {
    /// Whether the operator announces the end with it.
    pub fn is_the_last(&self) -> bool {
        self.channel == Kind::Operator
            && self.from == "operator"
            && self.to.is_none()
            && self.content.starts_with("Game ended.")
    }
}

impl From<Message> for SeenMessage {
    fn from(message: Message) -> SeenMessage {
        let Message { channel, index, from, to, content, .. } = message;
        let channel = match channel {
            Kind::Operator => "operator",
            Kind::Chat => "chat",
        };
        SeenMessage { channel: channel.to_owned(), index, from, to, content }
    }
}

/// How a session ended.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Ending {
    /// The players' public names, by seat.
    pub players: Vec<String>,
    /// Their scores, by seat.
    pub scores: Vec<Value>,
    /// What players say that their play has cost, by seat, where the arena tells.
    #[serde(rename = "reportedUsage")]
    pub reported_usage: Vec<Value>,
    /// It was broken off, since nobody did anything any more.
    pub abandoned: bool,
}

impl Ending {
    /// What the operator's last message says of it.
    pub fn read(content: &str) -> Ending {
        let line = |line: &str| serde_json::from_str(line.strip_prefix("- Player ")?.split_once(": ")?.1).ok();
        Ending {
            players: Vec::new(),
            scores: content.lines().filter_map(line).collect(),
            reported_usage: Vec::new(),
            abandoned: content.contains("\nAbandoned:"),
        }
    }
}

/// What comes to an inbox.
#[derive(Debug)]
pub enum News {
    /// A message.
    Message(Message),
    /// A channel that says no more, with what it told of the end.
    Ended(Kind, Option<Ending>),
    /// A channel that can't be followed any longer.
    Lost(CallError),
    /// A line from the keyboard, or whatever stands for one; `None` at its end.
    Typed(Option<String>),
    /// Somebody at the keyboard wants to leave.
    Leave,
}

/// What there is next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// A message.
    Message(Message),
    /// A line that was typed; `None` at the end of input.
    Typed(Option<String>),
    /// The one at the keyboard leaves.
    Leave,
    /// The session has ended, and all was said.
    Over,
    /// Nothing within the time.
    Nothing,
}

/// Where the news of a seat arrive.
pub struct Inbox {
    news: Receiver<News>,
    /// Messages that came while nobody read them.
    kept: VecDeque<Message>,
    sender: Sender<News>,
    called_off: Arc<AtomicBool>,
    ending: Option<Ending>,
    /// Since when only last words are waited for.
    ending_since: Option<Instant>,
    ended: [bool; 2],
}

impl Inbox {
    /// Follows the session of a seat. `called_off`: the one who started all this wants to stop.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn open(seat: &Seat, called_off: Arc<AtomicBool>) -> Result<Inbox, Failure> {
        let (sender, news) = channel();
        for kind in [Kind::Operator, Kind::Chat] {
            follow(&seat.arena, &seat.session, kind, sender.clone()).map_err(|error| {
                Failure::new(Exit::Internal, format_args!("the system gives no thread to follow a channel: {error}"))
            })?;
        }
        Ok(Inbox {
            news,
            kept: VecDeque::new(),
            sender,
            called_off,
            ending: None,
            ending_since: None,
            ended: [false; 2],
        })
    }

    /// Where other news may be put.
    pub fn sender(&self) -> Sender<News> {
        self.sender.clone()
    }

    /// Raised when whoever started all this wants to stop.
    pub fn called_off(&self) -> &AtomicBool {
        &self.called_off
    }

    /// How the session ended, as far as is known.
    pub fn ending(&self) -> Ending {
        self.ending.clone().unwrap_or_default()
    }

    /// What there is next, waiting no longer than until `until`.
    ///
    /// # Errors
    /// When the arena is lost, or it was called off.
    pub fn next(&mut self, until: Option<Instant>) -> Result<Next, Failure> {
        match self.kept.pop_front() {
            Some(message) => Ok(Next::Message(message)),
            None => self.receive(until),
        }
    }

    /// Waits until `until`, and keeps messages for later. Returns true if the session is over.
    ///
    /// # Errors
    /// As [`Inbox::next`].
    pub fn rest(&mut self, until: Instant) -> Result<bool, Failure> {
        loop {
            match self.receive(Some(until))? {
                Next::Message(message) => self.kept.push_back(message),
                Next::Over => return Ok(true),
                Next::Nothing => return Ok(false),
                Next::Typed(_) | Next::Leave => {}
            }
        }
    }

    fn receive(&mut self, until: Option<Instant>) -> Result<Next, Failure> {
        loop {
            if self.called_off.load(Ordering::Relaxed) {
                return Err(called_off());
            }
            let now = Instant::now();
            let is_last = self.ended == [true; 2] || self.ending_since.is_some_and(|since| now >= since + LAST_WORDS);
            let patience = match until {
                _ if is_last => Duration::ZERO,
                Some(until) => until.saturating_duration_since(now).min(LOOK),
                None => LOOK,
            };
            match self.news.recv_timeout(patience) {
                Ok(News::Message(message)) => {
                    if message.is_the_last() {
                        self.ending_since.get_or_insert(now);
                        self.ending.get_or_insert_with(|| Ending::read(&message.content));
                    }
                    return Ok(Next::Message(message));
                }
                Ok(News::Ended(kind, ending)) => {
                    self.ended[kind as usize] = true;
                    self.ending_since.get_or_insert(now);
                    // What the arena says itself is worth more than what was read from a text.
                    self.ending = ending.or(self.ending.take());
                }
                Ok(News::Lost(error)) => match self.ending_since {
                    Some(_) => self.ended = [true; 2],
                    None => return Err(error.into()),
                },
                Ok(News::Typed(line)) => return Ok(Next::Typed(line)),
                Ok(News::Leave) => return Ok(Next::Leave),
                Err(RecvTimeoutError::Timeout) if is_last => return Ok(Next::Over),
                Err(RecvTimeoutError::Timeout) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Ok(Next::Nothing);
                }
                Err(_) => {}
            }
        }
    }

    /// All messages that are there, once there is one: those that came while nobody looked are taken together. `false`: it is over.
    ///
    /// # Errors
    /// As [`Inbox::next`].
    pub fn gather(&mut self, until: Option<Instant>) -> Result<(Vec<Message>, bool), Failure> {
        let mut messages = Vec::new();
        loop {
            let until = if messages.is_empty() { until } else { Some(Instant::now()) };
            match self.next(until)? {
                Next::Message(message) => messages.push(message),
                Next::Over => return Ok((messages, false)),
                Next::Nothing => return Ok((messages, true)),
                Next::Typed(_) | Next::Leave => {}
            }
        }
    }
}

/// Whoever started all this wants to stop.
pub fn called_off() -> Failure {
    Failure::new(Exit::Interrupted, "called off; the seat stays yours, and the session goes on without you")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_is_read_from_the_operators_last_message() {
        let text = "Game ended.\n\nScores are:\n- Player 1: {\"security\":1,\"utility\":0.5}\n- Player 2: {\"security\":-1,\"utility\":1}";
        let ending = Ending::read(text);
        assert_eq!(ending.scores, [json!({"security": 1, "utility": 0.5}), json!({"security": -1, "utility": 1})]);
        assert!(!ending.abandoned);
        assert!(Ending::read("Game ended.\n\nAbandoned: nothing happened for 10 minutes.").abandoned);
    }
}
