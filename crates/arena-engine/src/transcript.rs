//! The messages of short sessions in memory, from the creation to the end, so that the log of an arena reads them from
//! the store only if they are missing here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arena_model::{Session, SessionId};
use hashlink::LruCache;
use parking_lot::Mutex;

use crate::feed::{Posted, TAIL};

/// The maximum number of ended sessions that wait for the log.
const MOST_ENDED: usize = 4096;

/// The maximum size of the texts of ended sessions that wait for the log, in bytes.
const MOST_ENDED_BYTES: usize = 16 * 1024 * 1024;

/// All messages of one session in the order of their commits, with its inputs. A longer session has none. The tails of
/// the channels have the same messages, so a transcript takes little more memory.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    messages: Vec<Arc<Posted>>,
    bytes: usize,
}

impl Transcript {
    /// Adds the next message. Returns `None` if the session is too long.
    pub(crate) fn with(mut self, message: Arc<Posted>) -> Option<Transcript> {
        let (most_messages, most_bytes) = TAIL;
        self.bytes += message.message().content.len();
        self.messages.push(message);
        (self.messages.len() <= most_messages && self.bytes <= most_bytes).then_some(self)
    }
}

/// An ended session with all its messages up to the end.
#[derive(Debug)]
pub(crate) struct EndedTranscript {
    pub(crate) session: Arc<Session>,
    pub(crate) messages: Vec<Arc<Posted>>,
}

/// The ended sessions that wait for the log. If there are too many, the oldest are dropped.
pub(crate) struct EndedTranscripts {
    /// True if the arena keeps the log. Otherwise no session has a transcript.
    is_kept: AtomicBool,
    waiting: Mutex<WaitingEnds>,
}

struct WaitingEnds {
    sessions: LruCache<SessionId, (EndedTranscript, usize)>,
    bytes: usize,
}

impl EndedTranscripts {
    pub(crate) fn new() -> EndedTranscripts {
        let waiting = WaitingEnds { sessions: LruCache::new_unbounded(), bytes: 0 };
        EndedTranscripts { is_kept: AtomicBool::new(false), waiting: Mutex::new(waiting) }
    }

    /// Lets new sessions have transcripts.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Returns the transcript of a new session without messages; `None` if the arena keeps no log.
    pub(crate) fn begin(&self) -> Option<Transcript> {
        self.is_kept.load(Ordering::Relaxed).then(Transcript::default)
    }

    pub(crate) fn add(&self, session: Arc<Session>, transcript: Transcript) {
        let (id, Transcript { messages, bytes }) = (session.facts.id, transcript);
        let mut waiting = self.waiting.lock();
        waiting.bytes += bytes;
        if let Some((_, before)) = waiting.sessions.insert(id, (EndedTranscript { session, messages }, bytes)) {
            waiting.bytes -= before;
        }
        while waiting.sessions.len() > MOST_ENDED || waiting.bytes > MOST_ENDED_BYTES {
            let Some((_, (_, dropped))) = waiting.sessions.remove_lru() else { break };
            waiting.bytes -= dropped;
        }
    }

    /// Removes an ended session and returns it; `None` if only the store has its messages.
    pub(crate) fn take(&self, id: SessionId) -> Option<EndedTranscript> {
        let mut waiting = self.waiting.lock();
        let (ended, bytes) = waiting.sessions.remove(&id)?;
        waiting.bytes -= bytes;
        Some(ended)
    }

    /// Drops all sessions, because the database may have lost some of their commits.
    pub(crate) fn clear(&self) {
        let mut waiting = self.waiting.lock();
        waiting.sessions.clear();
        waiting.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arena_model::{Channel, ChatMessage, GameCategory, Party, Phase, SessionFacts, Timestamp};

    fn id(number: u128) -> SessionId {
        SessionId(uuid::Uuid::from_u128(number))
    }

    fn message(number: u128, bytes: usize) -> Arc<Posted> {
        Arc::new(Posted::new(ChatMessage {
            channel: Channel::Operator(id(number)),
            index: 1,
            from: Party::Operator,
            to: None,
            content: "x".repeat(bytes),
            method: None,
            at: Timestamp(1),
            hidden: None,
        }))
    }

    fn session(number: u128) -> Arc<Session> {
        let ending = arena_model::Ending::Completed;
        Arc::new(Session {
            version: 5,
            phase: Phase::Ended { at: Timestamp(2), ending, category: GameCategory::Train },
            ..Session::blank(SessionFacts::bare(id(number), "psi", Timestamp(1)), "{}".to_owned())
        })
    }

    #[test]
    fn long_sessions_have_no_transcript() {
        let filled = |sizes: &[usize]| {
            sizes.iter().try_fold(Transcript::default(), |transcript, bytes| transcript.with(message(1, *bytes)))
        };
        let lengths = |sizes: &[usize]| filled(sizes).map(|transcript| (transcript.messages.len(), transcript.bytes));
        assert_eq!(lengths(&[1; TAIL.0]), Some((TAIL.0, TAIL.0)));
        assert_eq!(lengths(&[1; TAIL.0 + 1]), None);
        assert_eq!(lengths(&[TAIL.1]), Some((1, TAIL.1)));
        assert_eq!(lengths(&[TAIL.1, 1]), None);
    }

    #[test]
    fn the_oldest_sessions_are_dropped_if_too_many_wait() {
        let ended = EndedTranscripts::new();
        assert!(ended.begin().is_none());
        ended.keep();
        let transcript = |number: u128, bytes: usize| {
            ended.begin().and_then(|begun| begun.with(message(number, bytes))).expect("a short session")
        };
        for number in 0..MOST_ENDED as u128 + 2 {
            ended.add(session(number), transcript(number, 10));
        }
        assert!(ended.take(id(0)).is_none() && ended.take(id(1)).is_none());
        assert_eq!(ended.take(id(2)).expect("the third session").messages.len(), 1);
        assert!(ended.take(id(2)).is_none());
        ended.clear();
        assert!(ended.take(id(3)).is_none());
        let fit = MOST_ENDED_BYTES / TAIL.1;
        for number in 0..fit as u128 + 3 {
            ended.add(session(number), transcript(number, TAIL.1));
        }
        // The same session again replaces the first one.
        ended.add(session(3), transcript(3, TAIL.1));
        assert!(ended.take(id(2)).is_none());
        let rest = (3..fit as u128 + 3).filter(|number| ended.take(id(*number)).is_some()).count();
        assert_eq!((rest, ended.waiting.lock().bytes), (fit, 0));
    }
}
