//! The follower of a channel. A thread reads the channel as a stream, or polls if the server has no streams. It
//! reconnects after a broken connection or a restart of the server. It sends each message to the inbox once, in order
//! and without gaps.

use std::io;
use std::sync::mpsc::{SendError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use arena_wire::{Message, Messages, SessionState};
use serde_json::Value;

use super::client::{Arena, CallError, Read, StreamEvent};
use super::inbox::{InboxEvent, InboxMessage};
use super::{ChannelKind, OUTAGE};

/// Waiting time of a polling request, in seconds.
const WAIT_S: u8 = 20;

/// The minimum time between two polling requests without messages, for servers that answer at once instead of waiting.
const REST: Duration = Duration::from_secs(1);

/// The first and the longest pause after a broken connection; each is twice as long as the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Starts a thread, which ends when the session ends, the inbox is dropped, or the program exits.
pub fn follow(arena: &Arena, session: &str, kind: ChannelKind, events: Sender<InboxEvent>) -> io::Result<()> {
    let channel = match kind {
        ChannelKind::Operator => format!("challenge_{session}"),
        ChannelKind::Chat => session.to_owned(),
    };
    // The follower retries by itself, so its client doesn't.
    let arena = arena.clone().with_retries_for(Duration::ZERO);
    let follower = Follower { arena, channel, kind, next: 1, after: None, has_streamed: false, events };
    thread::Builder::new().name(format!("{kind:?} channel")).spawn(|| follower.run()).map(|_| ())
}

struct Follower {
    arena: Arena,
    channel: String,
    kind: ChannelKind,
    /// Index of the next message for the inbox.
    next: u64,
    /// Id of the stream's last event, if the server sends ids.
    after: Option<String>,
    has_streamed: bool,
    events: Sender<InboxEvent>,
}

/// The reason why reading a channel stopped.
enum Stop {
    /// The channel has ended, or the inbox was dropped.
    Done,
    Call(CallError),
}

impl From<CallError> for Stop {
    fn from(error: CallError) -> Stop {
        Stop::Call(error)
    }
}

impl From<SendError<InboxEvent>> for Stop {
    fn from(_: SendError<InboxEvent>) -> Stop {
        Stop::Done
    }
}

impl Follower {
    fn run(mut self) {
        let (mut pause, mut heard, mut streams) = (PAUSES.0, Instant::now(), true);
        loop {
            let next = self.next;
            let stopped = if streams { self.read_stream() } else { self.poll() };
            if self.next > next || stopped.is_ok() {
                (pause, heard) = (PAUSES.0, Instant::now());
            }
            match stopped {
                Ok(()) => {}
                Err(Stop::Done) => return,
                // A server without streams refuses the first request for one.
                Err(Stop::Call(CallError::Refused { status: 404 | 405 | 501, .. } | CallError::NotAnArena { .. }))
                    if streams && !self.has_streamed =>
                {
                    streams = false;
                    continue;
                }
                Err(Stop::Call(error)) => {
                    let is_away = match error {
                        CallError::Refused { status, .. } => status == 429,
                        CallError::Request(_) => false,
                        _ => true,
                    };
                    if !is_away || heard.elapsed() > OUTAGE {
                        // The inbox may have been dropped too.
                        let _ = self.events.send(InboxEvent::Lost(error));
                        return;
                    }
                }
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Reads the stream to its end. Unless the session has ended, the end of the stream means a broken connection.
    fn read_stream(&mut self) -> Result<(), Stop> {
        let mut stream = self.arena.stream(&self.channel, self.after.as_deref())?;
        self.has_streamed = true;
        while let Some(StreamEvent { id, data }) = stream.next_event()? {
            match data["type"].as_str() {
                Some("initial") => self.pass_on_all(data["messages"].as_array().cloned().unwrap_or_default())?,
                Some("new_message") => self.pass_on_all(vec![data["message"].clone()])?,
                Some("game_ended") => return self.end(serde_json::from_value(data["data"].clone()).ok()),
                // Servers may send unknown events.
                _ => {}
            }
            self.after = id.or(self.after.take());
        }
        Ok(())
    }

    /// Requests new messages once, with a waiting time if the server supports it.
    fn poll(&mut self) -> Result<(), Stop> {
        let asked = Instant::now();
        let messages = self.read(Some(WAIT_S))?;
        let is_quiet = messages.is_empty();
        for message in messages {
            if self.pass_on(message)? {
                return self.end(None);
            }
        }
        if is_quiet {
            thread::sleep(REST.saturating_sub(asked.elapsed()));
        }
        Ok(())
    }

    fn read(&self, wait: Option<u8>) -> Result<Vec<Message>, CallError> {
        let read = Read { index: Some(self.next), wait };
        let Messages { messages, .. } = self.arena.messages(self.kind, &self.channel, read)?.read()?;
        Ok(messages)
    }

    fn pass_on_all(&mut self, messages: Vec<Value>) -> Result<(), Stop> {
        for message in messages {
            // Invalid messages are skipped. The next valid message then shows a gap, and the missing messages are
            // requested.
            let Ok(message) = serde_json::from_value::<Message>(message) else { continue };
            if message.index > self.next {
                for missed in self.read(None)?.into_iter().filter(|missed| missed.index < message.index) {
                    self.pass_on(missed)?;
                }
            }
            self.pass_on(message)?;
        }
        Ok(())
    }

    /// Sends a message to the inbox unless it was sent before. Returns true if it is the session's last message.
    fn pass_on(&mut self, message: Message) -> Result<bool, Stop> {
        if message.index < self.next {
            return Ok(false);
        }
        self.next = message.index + 1;
        // A redacted message has no content.
        if message.redacted {
            return Ok(false);
        }
        let Message { from, to, content, index, timestamp, .. } = message;
        let message = InboxMessage { channel: self.kind, index, from, to, content, timestamp: timestamp.0 };
        let is_the_last = message.is_the_last();
        self.events.send(InboxEvent::Message(message))?;
        Ok(is_the_last)
    }

    fn end(&self, ending: Option<SessionState>) -> Result<(), Stop> {
        self.events.send(InboxEvent::Ended(self.kind, ending))?;
        Err(Stop::Done)
    }
}
