//! An event stream that checks that every index arrives once, in order.
//!
//! A thousand subscribers share the cores with the server, so a stream parses only each `"index":N` in `data:` lines.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use memchr::memmem;

use crate::connection::{Connection, Socket};

/// The time without a byte after which a subscriber gives up.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);

/// A subscription to a channel that was empty at first.
pub struct EventStream {
    socket: Socket,
    body: Incoming,
    ledger: Ledger,
}

impl EventStream {
    /// Subscribes to the chat of a session, and reads the initial event, which must be empty.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn open(connection: Connection, session: &str) -> anyhow::Result<EventStream> {
        let (socket, body) = connection.subscribe(&format!("/api/v1/chat/ws/{session}")).await?;
        let mut stream = EventStream { socket, body, ledger: Ledger::default() };
        while !stream.ledger.begun {
            stream.read(|_, _| ()).await?;
        }
        Ok(stream)
    }

    /// Reads until the message with this index arrives.
    ///
    /// Calls `seen` with the content of each `data:` line, and the time of reading.
    ///
    /// # Errors
    /// If a message is missing, duplicated or out of order, or if nothing arrives within [`SILENCE_LIMIT`].
    pub async fn read_until(&mut self, last: u64, mut seen: impl FnMut(&[u8], Instant)) -> anyhow::Result<()> {
        while self.ledger.last < last {
            self.read(&mut seen).await?;
        }
        ensure!(self.ledger.last == last, "a subscriber received message {} of {last}", self.ledger.last);
        Ok(())
    }

    async fn read(&mut self, mut seen: impl FnMut(&[u8], Instant)) -> anyhow::Result<()> {
        let chunk: Bytes = match tokio::time::timeout(SILENCE_LIMIT, self.socket.drive(self.body.frame())).await {
            Err(_) => bail!("a subscriber with {} messages received nothing for 30 s", self.ledger.last),
            Ok(None) => bail!("the server ended a subscription after message {}", self.ledger.last),
            Ok(Some(frame)) => match frame.context("a subscription broke")?.into_data() {
                Ok(data) => data,
                Err(_) => return Ok(()),
            },
        };
        let now = Instant::now();
        self.ledger.read(&chunk, |line| seen(line, now))
    }
}

/// The state of a subscriber: the bytes of an incomplete line, and the last index without a gap before it.
#[derive(Debug, Default)]
struct Ledger {
    unfinished: Vec<u8>,
    last: u64,
    begun: bool,
}

impl Ledger {
    fn read(&mut self, chunk: &[u8], mut seen: impl FnMut(&[u8])) -> anyhow::Result<()> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.unfinished.is_empty() {
                self.line(&rest[..end], &mut seen)?;
            } else {
                let mut line = std::mem::take(&mut self.unfinished);
                line.extend_from_slice(&rest[..end]);
                self.line(&line, &mut seen)?;
            }
            rest = &rest[end + 1..];
        }
        self.unfinished.extend_from_slice(rest);
        Ok(())
    }

    fn line(&mut self, line: &[u8], seen: &mut impl FnMut(&[u8])) -> anyhow::Result<()> {
        const INDEX: &[u8] = b"\"index\":";
        // Ids and comments are skipped.
        if !line.starts_with(b"data:") {
            return Ok(());
        }
        self.begun = true;
        for at in memmem::find_iter(line, INDEX) {
            let index = leading_number(&line[at + INDEX.len()..]);
            ensure!(index == self.last + 1, "a subscriber received message {index} after message {}", self.last);
            self.last = index;
            seen(line);
        }
        Ok(())
    }
}

/// Returns the number at the start of a text, or 0 if there is no number.
fn leading_number(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// The clock for the delays of messages. Each message contains its intended time, from which every subscriber computes
/// the delay.
#[derive(Debug, Clone, Copy)]
pub struct Postmark {
    epoch: Instant,
}

impl Postmark {
    const MARK: &str = "sent at +";

    /// Returns a postmark whose times count from now.
    pub fn new() -> Postmark {
        Postmark { epoch: Instant::now() }
    }

    /// Returns the content of a message of about a hundred bytes.
    pub fn content(&self, intended: Instant) -> String {
        let ns = intended.saturating_duration_since(self.epoch).as_nanos();
        format!("{}{ns:020} ns: a word to everybody who watches this game, long enough to be like chat", Self::MARK)
    }

    /// Returns the time since the intended time in an event's content, or `None` if the event contains no such time.
    pub fn age(&self, event: &[u8], now: Instant) -> Option<Duration> {
        let at = memmem::find(event, Self::MARK.as_bytes())? + Self::MARK.len();
        let intended = self.epoch + Duration::from_nanos(leading_number(&event[at..]));
        Some(now.saturating_duration_since(intended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = ": ping\n\ndata: {\"type\":\"initial\",\"messages\":[{\"index\":1},{\"index\":2}]}\n\n\
        id: 3\ndata: {\"type\":\"new_message\",\"message\":{\"content\":\"hello\",\"index\":3}}\n\n";

    #[test]
    fn events_are_counted_for_all_sizes_of_chunks() {
        for cut in 0..EVENTS.len() {
            let (head, tail) = EVENTS.as_bytes().split_at(cut);
            let mut ledger = Ledger::default();
            let mut seen = 0;
            ledger.read(head, |_| seen += 1).unwrap();
            ledger.read(tail, |_| seen += 1).unwrap();
            assert_eq!((ledger.last, seen, ledger.begun), (3, 3, true), "cut at {cut}");
        }
    }

    #[test]
    fn a_gap_and_a_repetition_are_errors() {
        let read = |indexes: &[u64]| {
            let mut ledger = Ledger::default();
            let lines: String = indexes.iter().map(|index| format!("data: {{\"index\":{index}}}\n\n")).collect();
            ledger.read(lines.as_bytes(), |_| ()).map_err(|err| err.to_string())
        };
        assert_eq!(read(&[1, 2, 3]), Ok(()));
        assert_eq!(read(&[1, 3]), Err("a subscriber received message 3 after message 1".to_owned()));
        assert_eq!(read(&[1, 2, 2]), Err("a subscriber received message 2 after message 2".to_owned()));
    }

    #[test]
    fn a_postmark_measures_the_age_of_an_event() {
        let postmark = Postmark::new();
        let intended = postmark.epoch + Duration::from_millis(5);
        let event = format!("data: {{\"content\":\"{}\"}}", postmark.content(intended));
        assert_eq!(postmark.age(event.as_bytes(), intended + Duration::from_millis(7)), Some(Duration::from_millis(7)));
        assert_eq!(postmark.age(b"data: {}", intended), None);
    }
}
