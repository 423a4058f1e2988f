//! The inbox of a player or an observer: the events of a session in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use arena_model::SeenMessage;
use arena_wire::SessionState;
use serde::Serialize;

use super::ChannelKind;
use super::client::{Arena, CallError};
use super::follow::follow;
use crate::GameMessage;

/// The interval at which a wait checks for an interruption.
const LOOK: Duration = Duration::from_millis(200);

/// After the operator's last message: the time to wait for the last messages of the other channel and for the server's
/// result.
const LAST_WORDS: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum SeatError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("interrupted; the seat stays yours and the session continues without you")]
    Interrupted,
}

/// A message visible to the player.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InboxMessage {
    pub channel: ChannelKind,
    /// The message's index in the channel, from 1.
    pub index: u64,
    pub from: String,
    /// The recipient; all players if `None`.
    pub to: Option<String>,
    pub content: String,
    /// The time of writing by the server's clock, in epoch milliseconds.
    #[serde(skip)]
    pub timestamp: i64,
}

impl InboxMessage {
    /// Returns true if the operator announces the end of the session with this message.
    pub fn is_the_last(&self) -> bool {
        self.channel == ChannelKind::Operator
            && self.from == "operator"
            && self.to.is_none()
            && self.content.starts_with("Game ended.")
    }

    /// Returns the message of a game's operator; `None` for other messages.
    pub fn game_message(&self) -> Option<GameMessage> {
        let is_of_the_game = self.channel == ChannelKind::Operator && self.from == "operator";
        if is_of_the_game { GameMessage::parse(&self.content) } else { None }
    }
}

impl From<InboxMessage> for SeenMessage {
    fn from(message: InboxMessage) -> SeenMessage {
        let InboxMessage { channel, index, from, to, content, .. } = message;
        let channel = match channel {
            ChannelKind::Operator => "operator",
            ChannelKind::Chat => "chat",
        };
        SeenMessage { channel: channel.to_owned(), index, from, to, content }
    }
}

/// Parses the result in the operator's last message.
pub(super) fn result_in(content: &str) -> SessionState {
    let line = |line: &str| serde_json::from_str(line.strip_prefix("- Player ")?.split_once(": ")?.1).ok();
    SessionState {
        scores: content.lines().filter_map(line).collect(),
        abandoned: content.contains("\nAbandoned:"),
        ..SessionState::default()
    }
}

#[derive(Debug)]
pub enum InboxEvent {
    Message(InboxMessage),
    /// The end of a channel, with the session's result if the channel contained it.
    Ended(ChannelKind, Option<SessionState>),
    /// The follower of a channel failed.
    Lost(CallError),
    /// A line of input; `None` at the end of input.
    Typed(Option<String>),
    Leave,
}

#[derive(Debug, PartialEq)]
pub enum Next {
    Message(InboxMessage),
    /// A line of input; `None` at the end of input.
    Typed(Option<String>),
    Leave,
    /// The session has ended, and all messages were read.
    Over,
    /// No event arrived within the time limit.
    Nothing,
}

pub struct Inbox {
    events: Receiver<InboxEvent>,
    /// Unread messages.
    kept: VecDeque<InboxMessage>,
    sender: Sender<InboxEvent>,
    called_off: Arc<AtomicBool>,
    ending: Option<SessionState>,
    /// The time at which the operator's last message arrived. After that, the inbox waits only for the remaining
    /// messages.
    ending_since: Option<Instant>,
    ended: [bool; 2],
}

impl Inbox {
    /// Follows a session as the player of `arena`, or as an observer. An interruption sets `called_off`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn open(arena: &Arena, session: &str, called_off: Arc<AtomicBool>) -> Result<Inbox, CallError> {
        let (sender, events) = channel();
        for kind in [ChannelKind::Operator, ChannelKind::Chat] {
            follow(arena, session, kind, sender.clone())
                .map_err(|error| CallError::Request(format!("cannot start a thread to follow a channel: {error}")))?;
        }
        Ok(Inbox {
            events,
            kept: VecDeque::new(),
            sender,
            called_off,
            ending: None,
            ending_since: None,
            ended: [false; 2],
        })
    }

    /// Returns a sender for events of other sources, such as typed lines.
    pub fn sender(&self) -> Sender<InboxEvent> {
        self.sender.clone()
    }

    /// Returns the result of the session, as far as it is known.
    pub fn ending(&self) -> SessionState {
        self.ending.clone().unwrap_or_default()
    }

    /// Waits for the next event, at most until `until`.
    ///
    /// # Errors
    /// If the server is unreachable, or the play was interrupted.
    pub fn next(&mut self, until: Option<Instant>) -> Result<Next, SeatError> {
        match self.kept.pop_front() {
            Some(message) => Ok(Next::Message(message)),
            None => self.receive(until),
        }
    }

    /// Waits until `until`, and stores arriving messages for later. Returns true if the session is over.
    ///
    /// # Errors
    /// As [`Inbox::next`].
    pub fn rest(&mut self, until: Instant) -> Result<bool, SeatError> {
        loop {
            match self.receive(Some(until))? {
                Next::Message(message) => self.kept.push_back(message),
                Next::Over => return Ok(true),
                Next::Nothing => return Ok(false),
                Next::Typed(_) | Next::Leave => {}
            }
        }
    }

    fn receive(&mut self, until: Option<Instant>) -> Result<Next, SeatError> {
        loop {
            if self.called_off.load(Ordering::Relaxed) {
                return Err(SeatError::Interrupted);
            }
            let now = Instant::now();
            let is_last = self.ended == [true; 2] || self.ending_since.is_some_and(|since| now >= since + LAST_WORDS);
            let patience = match until {
                _ if is_last => Duration::ZERO,
                Some(until) => until.saturating_duration_since(now).min(LOOK),
                None => LOOK,
            };
            match self.events.recv_timeout(patience) {
                Ok(InboxEvent::Message(message)) => {
                    if message.is_the_last() {
                        self.ending_since.get_or_insert(now);
                        self.ending.get_or_insert_with(|| result_in(&message.content));
                    }
                    return Ok(Next::Message(message));
                }
                Ok(InboxEvent::Ended(kind, ending)) => {
                    self.ended[kind as usize] = true;
                    self.ending_since.get_or_insert(now);
                    // The result in the server's event takes precedence over the one in the operator's message.
                    self.ending = ending.or(self.ending.take());
                }
                Ok(InboxEvent::Lost(error)) => match self.ending_since {
                    Some(_) => self.ended = [true; 2],
                    None => return Err(error.into()),
                },
                Ok(InboxEvent::Typed(line)) => return Ok(Next::Typed(line)),
                Ok(InboxEvent::Leave) => return Ok(Next::Leave),
                Err(RecvTimeoutError::Timeout) if is_last => return Ok(Next::Over),
                Err(RecvTimeoutError::Timeout) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Ok(Next::Nothing);
                }
                Err(_) => {}
            }
        }
    }

    /// Waits for a message, and returns all messages that have arrived. The second value is false if the session is
    /// over.
    ///
    /// # Errors
    /// As [`Inbox::next`].
    pub fn gather(&mut self, until: Option<Instant>) -> Result<(Vec<InboxMessage>, bool), SeatError> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_is_read_from_the_operators_last_message() {
        let text = "Game ended.\n\nScores are:\n- Player 1: {\"security\":1,\"utility\":0.5}\n- Player 2: {\"security\":-1,\"utility\":1}";
        let ending = result_in(text);
        assert_eq!(ending.scores, [json!({"security": 1, "utility": 0.5}), json!({"security": -1, "utility": 1})]);
        assert!(!ending.abandoned);
        assert!(result_in("Game ended.\n\nAbandoned: nothing happened for 10 minutes.").abandoned);
    }
}
