//! Committed messages of a channel, for readers. The latest messages, the tail, are in memory; the store has all of
//! them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arena_model::{ChatMessage, Session, Timestamp, Viewer, redact};
use bytes::Bytes;

/// The size of a channel's tail while its session is in use: the number of messages, and the bytes of their texts.
pub(crate) const TAIL: (usize, usize) = (64, 32 * 1024);

/// The size of the tail while the channel has subscribers. A subscriber that needs older messages reads them from the
/// store. The tail is large because separate reads for a thousand subscribers of a busy channel would cost more than
/// all other work.
const WATCHED_TAIL: (usize, usize) = (4096, 1024 * 1024);

/// The limit for the total size of all tails, in bytes. Above this limit, every channel gets a small tail; above twice
/// this limit, channels get no tail.
const ALL_TAILS: usize = 64 * 1024 * 1024;

/// The total size of all tails, in bytes. Clones are handles to the same count.
#[derive(Debug, Clone, Default)]
pub(crate) struct TailBytes(Arc<AtomicUsize>);

/// A committed message, with a cache of its JSON for viewers.
#[derive(Debug)]
pub struct Posted {
    message: ChatMessage,
    readable: OnceLock<Bytes>,
    redacted: OnceLock<Bytes>,
}

/// Returns the maximum size of a message in memory, in bytes: its text and the cached JSON.
fn weight(message: &ChatMessage) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    256 + message.content.len() + message.content.bytes().map(escaped).sum::<usize>()
}

impl Posted {
    pub(crate) fn new(message: ChatMessage) -> Posted {
        Posted { message, readable: OnceLock::new(), redacted: OnceLock::new() }
    }

    pub(crate) fn message(&self) -> &ChatMessage {
        &self.message
    }

    /// Returns the position in the channel, from 1.
    pub fn index(&self) -> u64 {
        self.message.index
    }

    /// Returns the time of the message, which all viewers see.
    pub fn at(&self) -> Timestamp {
        self.message.at
    }

    /// Returns the size of the message's text in bytes, which readers of the text must not see otherwise.
    pub fn text_bytes(&self) -> usize {
        self.message.content.len()
    }

    /// Applies [`redact`] for `viewer`. The JSON is serialized once for all viewers with the same view.
    pub fn json(&self, viewer: Viewer, ended: bool, reveal_chat: bool) -> &Bytes {
        let view = redact(&self.message, viewer, ended, reveal_chat);
        let cached = if view.is_readable() { &self.readable } else { &self.redacted };
        cached.get_or_init(|| serde_json::to_vec(&view).expect("texts and numbers are JSON").into())
    }
}

#[derive(Debug)]
pub(crate) struct Tail {
    len: u64,
    /// The messages, each with its size in memory.
    recent: VecDeque<(Arc<Posted>, usize)>,
    /// The total size of the messages' texts, in bytes.
    bytes: usize,
    /// The total size of the messages in memory, in bytes.
    weight: usize,
    all: TailBytes,
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

impl Tail {
    /// Creates the tail of a channel with `len` messages in the store.
    pub(crate) fn of_len(len: u64, all: TailBytes) -> Tail {
        Tail { len, recent: VecDeque::new(), bytes: 0, weight: 0, all }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds the next message; `watched` is true if the channel has subscribers.
    pub(crate) fn push(&mut self, message: ChatMessage, watched: bool) {
        self.push_shared(Arc::new(Posted::new(message)), watched);
    }

    /// Adds the next message like [`Tail::push`].
    pub(crate) fn push_shared(&mut self, posted: Arc<Posted>, watched: bool) {
        let message = &posted.message;
        let all = self.all.0.load(Ordering::Relaxed);
        let (most_messages, most_bytes) = match all {
            0..ALL_TAILS if watched => WATCHED_TAIL,
            0..ALL_TAILS => TAIL,
            _ if all < 2 * ALL_TAILS => (TAIL.0, TAIL.1 / 8),
            _ => (0, 0),
        };
        debug_assert_eq!(message.index, self.len + 1, "channels have no gaps");
        self.len = message.index;
        self.bytes += message.content.len();
        let weight = weight(message);
        self.weight += weight;
        self.all.0.fetch_add(weight, Ordering::Relaxed);
        self.recent.push_back((posted, weight));
        while self.recent.len() > most_messages || self.bytes > most_bytes {
            let Some((old, weight)) = self.recent.pop_front() else { break };
            self.bytes -= old.message.content.len();
            self.lighten(weight);
        }
    }

    fn lighten(&mut self, weight: usize) {
        self.weight -= weight;
        self.all.0.fetch_sub(weight, Ordering::Relaxed);
    }

    /// Updates the tail from the store: `len` is the channel's length, and `news` are messages that follow the known
    /// ones. If `hidden` is true, messages may have lost their content, so the tail first drops its messages. `watched` is
    /// as for [`Tail::push`].
    pub(crate) fn follow(&mut self, len: u64, news: Vec<ChatMessage>, hidden: bool, watched: bool) {
        if hidden {
            self.forget();
        }
        if !news.is_empty() && (self.len + 1..=len).eq(news.iter().map(|message| message.index)) {
            news.into_iter().for_each(|message| self.push(message, watched));
        } else if len != self.len {
            self.forget();
            self.len = len;
        }
    }

    /// Drops all messages; the next reader gets them from the store.
    pub(crate) fn forget(&mut self) {
        self.recent.clear();
        self.bytes = 0;
        self.lighten(self.weight);
    }

    /// Returns at most `limit` messages from index `from` on, or `None` if some of them are only in the store.
    pub(crate) fn read(&self, from: u64, limit: usize) -> Option<Vec<Arc<Posted>>> {
        let from = from.max(1);
        if from > self.len {
            return Some(Vec::new());
        }
        let first = self.len + 1 - self.recent.len() as u64;
        let skip = usize::try_from(from.checked_sub(first)?).ok()?;
        Some(self.recent.iter().skip(skip).take(limit).map(|(posted, _)| Arc::clone(posted)).collect())
    }
}

/// Messages of a channel, with the state of the session at the time of the read.
#[derive(Debug)]
pub struct Snapshot {
    /// The requested messages, in order.
    pub messages: Vec<Arc<Posted>>,
    /// The number of messages in the channel.
    pub len: u64,
    /// The channel's session; `None` for the public channel.
    pub session: Option<Arc<Session>>,
    /// True if the session was removed: no more messages will come.
    pub removed: bool,
}

impl Snapshot {
    pub fn ended(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.status() == arena_model::Status::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::{Channel, Party};

    fn message(index: u64, bytes: usize) -> ChatMessage {
        ChatMessage {
            channel: Channel::Invites,
            index,
            from: Party::Operator,
            to: None,
            content: "x".repeat(bytes),
            method: None,
            at: Timestamp(0),
            hidden: None,
        }
    }

    fn indexes(tail: &Tail, from: u64, limit: usize) -> Option<Vec<u64>> {
        tail.read(from, limit).map(|messages| messages.iter().map(|message| message.index()).collect())
    }

    #[test]
    fn a_tail_returns_nothing_for_messages_that_it_does_not_hold() {
        let mut tail = Tail::of_len(10, TailBytes::default());
        assert_eq!(indexes(&tail, 11, 9), Some(vec![]));
        assert_eq!(indexes(&tail, 10, 9), None);
        for index in 11..=100 {
            tail.push(message(index, 1), false);
        }
        assert_eq!(indexes(&tail, 98, 9), Some(vec![98, 99, 100]));
        assert_eq!(indexes(&tail, 98, 2), Some(vec![98, 99]));
        assert_eq!(indexes(&tail, 37, 1), Some(vec![37]));
        assert_eq!(indexes(&tail, 36, 1), None);
        assert_eq!(indexes(&tail, 0, 1), None);
    }

    #[test]
    fn a_tail_of_large_messages_is_short() {
        let mut tail = Tail::of_len(0, TailBytes::default());
        for index in 1..=10 {
            tail.push(message(index, 20 * 1024), false);
        }
        assert_eq!(indexes(&tail, 10, 9), Some(vec![10]));
        assert_eq!(indexes(&tail, 9, 9), None);
        tail.push(message(11, TAIL.1 + 1), false);
        assert_eq!((indexes(&tail, 11, 9), indexes(&tail, 12, 9)), (None, Some(vec![])));
        tail.push(message(12, 1), false);
        assert_eq!(indexes(&tail, 12, 9), Some(vec![12]));
    }

    #[test]
    fn all_tails_together_are_bounded_however_many_are_watched() {
        let all = TailBytes::default();
        let mut tails: Vec<Tail> = (0..20).map(|_| Tail::of_len(0, all.clone())).collect();
        for tail in &mut tails {
            // Control characters take six bytes in JSON.
            let message = ChatMessage { content: "\u{1}".repeat(WATCHED_TAIL.1), ..message(1, 0) };
            tail.push(message, true);
        }
        let held = all.0.load(Ordering::Relaxed);
        assert!((ALL_TAILS..ALL_TAILS + 7 * WATCHED_TAIL.1 + 256).contains(&held), "{held}");
        for index in 2..=20 {
            tails.iter_mut().for_each(|tail| tail.push(message(index, TAIL.1), true));
        }
        let held = all.0.load(Ordering::Relaxed);
        assert!(held < 2 * ALL_TAILS + 3 * TAIL.1, "{held}");
        drop(tails);
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_watched_tail_is_long() {
        let mut tail = Tail::of_len(0, TailBytes::default());
        for index in 1..=1000 {
            tail.push(message(index, 1), true);
        }
        assert_eq!(indexes(&tail, 1, 2), Some(vec![1, 2]));
        tail.push(message(1001, 1), false);
        assert_eq!(indexes(&tail, 937, 1), None);
        assert_eq!(indexes(&tail, 938, 1), Some(vec![938]));
    }
}
