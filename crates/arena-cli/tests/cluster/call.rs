//! How clients call an arena of several nodes: any node at first, another one when it doesn't answer, under the same key, until there
//! is an answer that counts; and everything is written down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::Dice;
use arena_testkit::history::{Attempt, Deed, History, Message, Moment, Outcome, Read, Write};
use parking_lot::Mutex;
use serde_json::Value;

use crate::nodes::Place;

/// Longest time that anything may take, over all attempts. Far more than it does.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Pause before another attempt.
const PAUSE: Duration = Duration::from_millis(20);

/// What clients have in common: where the nodes are, and the book in which they write.
pub struct Field {
    pub places: Vec<Arc<Place>>,
    timeout: Duration,
    began: Instant,
    history: Mutex<History>,
    numbers: AtomicU64,
    /// Whether no new games are to begin.
    pub closing: AtomicBool,
    /// Answers that no client should ever see, such as 500.
    complaints: Mutex<Vec<String>>,
    /// How often answers to writes left open what came of them, by what was answered instead.
    open: Mutex<BTreeMap<String, usize>>,
}

impl Field {
    pub fn new(places: Vec<Arc<Place>>, timeout: Duration) -> Field {
        Field {
            places,
            timeout,
            began: Instant::now(),
            history: Mutex::default(),
            // The least number that is good for a range of numbers to be dealt, or a sum to be split.
            numbers: AtomicU64::new(1_000),
            closing: AtomicBool::new(false),
            complaints: Mutex::default(),
            open: Mutex::default(),
        }
    }

    pub fn now(&self) -> Moment {
        self.began.elapsed()
    }

    /// A number that nobody else has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub fn note(&self, take: impl FnOnce(&mut History)) {
        take(&mut self.history.lock());
    }

    pub fn complain(&self, what: String) {
        self.complaints.lock().push(what);
    }

    /// The book, once all clients have gone. Answers that nobody should have seen fail the test.
    #[track_caller]
    pub fn close(self) -> (History, BTreeMap<String, usize>) {
        let complaints = self.complaints.into_inner();
        assert!(complaints.is_empty(), "{complaints:#?}");
        (self.history.into_inner(), self.open.into_inner())
    }
}

/// One client.
pub struct Caller<'f> {
    pub field: &'f Field,
    pub dice: Dice,
    /// Who it is, where players have to show a session key.
    pub key: Option<String>,
    /// The only node that it asks, if it isn't free to choose.
    pub only: Option<usize>,
}

impl<'f> Caller<'f> {
    pub fn new(field: &'f Field, dice: Dice) -> Caller<'f> {
        Caller { field, dice, key: None, only: None }
    }

    /// Another client with the same rights.
    pub fn fork(&mut self) -> Caller<'f> {
        Caller { field: self.field, dice: self.dice.fork(), key: self.key.clone(), only: self.only }
    }

    /// A node to ask: one that is up as far as is known, and another one than `not` if there is one.
    pub fn choose(&mut self, not: Option<usize>) -> usize {
        if let Some(only) = self.only {
            return only;
        }
        let places = &self.field.places;
        let others: Vec<usize> = (0..places.len()).filter(|node| Some(*node) != not).collect();
        let up: Vec<usize> = others.iter().copied().filter(|node| places[*node].up.load(Ordering::SeqCst)).collect();
        // Now and then one that is down, as clients without a balancer would.
        let among = if up.is_empty() || self.dice.chance(2) { &others } else { &up };
        if among.is_empty() { 0 } else { among[self.dice.below(among.len() as u64) as usize] }
    }

    /// Does something for sure: asks until it is taken or refused. Returns the answer, or the code of the refusal.
    #[track_caller]
    pub fn write(&mut self, deed: Deed, path: &str, body: &Value) -> Result<Value, String> {
        self.write_as(deed, path, body, true).1.expect("it goes on until there is an answer")
    }

    /// Tries to do something; may leave it open whether it was done.
    pub fn try_write(&mut self, deed: Deed, path: &str, body: &Value) {
        self.write_as(deed, path, body, false);
    }

    /// The write's key, and what came of it; nothing if that is open, and `insists` isn't set.
    #[track_caller]
    pub fn write_as(
        &mut self,
        deed: Deed,
        path: &str,
        body: &Value,
        insists: bool,
    ) -> (String, Option<Result<Value, String>>) {
        let key = format!("key of the write {}", self.field.number());
        let mut attempts: Vec<Attempt> = Vec::new();
        let until = Instant::now() + PATIENCE;
        let result = loop {
            let node = self.choose(attempts.last().map(|attempt| attempt.node));
            let attempt = self.attempt(node, &key, path, body);
            attempts.push(attempt.clone());
            match attempt.outcome {
                Outcome::Accepted(body) => break Some(Ok(serde_json::from_str(&body).expect("looked at before"))),
                Outcome::Refused(code) => break Some(Err(code)),
                Outcome::Unsent | Outcome::Unknown if !insists => break None,
                Outcome::Unsent | Outcome::Unknown => {
                    assert!(Instant::now() < until, "nobody takes {deed:?}: {attempts:#?}");
                    thread::sleep(PAUSE);
                }
            }
        };
        // Whoever lost the answer would ask again, at whichever node.
        if matches!(result, Some(Ok(_))) && self.dice.chance(10) {
            let node = self.choose(attempts.last().map(|attempt| attempt.node));
            attempts.push(self.attempt(node, &key, path, body));
        }
        self.field.note(|history| history.writes.push(Write { key: key.clone(), deed, attempts }));
        (key, result)
    }

    fn attempt(&self, node: usize, key: &str, path: &str, body: &Value) -> Attempt {
        let sent = self.field.now();
        let authorization = self.key.as_ref().map(|key| format!("Bearer {key}"));
        let mut headers = vec![("Idempotency-Key", key)];
        headers.extend(authorization.as_ref().map(|key| ("Authorization", key.as_str())));
        let client = self.field.places[node].client().patient_for(self.field.timeout);
        let answer = client.try_request("POST", path, &headers, body.to_string().as_bytes());
        let outcome = match answer {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Outcome::Unsent,
            Err(error) => self.open(error.kind().to_string()),
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                let json: Option<Value> = serde_json::from_str(&text).ok();
                let code = |answer: &Value| answer["code"].as_str().unwrap_or(&text).to_owned();
                match (answer.status, json) {
                    (200, Some(_)) => Outcome::Accepted(text),
                    (400..=499, Some(refusal)) => Outcome::Refused(code(&refusal)),
                    (503, Some(answer)) => self.open(code(&answer)),
                    // An answer that was cut short has no body that can be read.
                    (_, None) => self.open("cut short".to_owned()),
                    (status, Some(_)) => {
                        self.field.complain(format!("node {node}, POST {path}: {status} {text}"));
                        self.open(status.to_string())
                    }
                }
            }
        };
        Attempt { node, sent, done: self.field.now(), outcome }
    }

    /// Notes why a request is open.
    fn open(&self, why: String) -> Outcome {
        *self.field.open.lock().entry(why).or_default() += 1;
        Outcome::Unknown
    }

    /// Messages of a channel from an index on, from whichever node tells them. Waits a moment for one if there is none.
    #[track_caller]
    pub fn read(&mut self, channel: &str, viewer: &str, from: u64, wait: bool) -> Vec<Message> {
        let route = if channel.starts_with("challenge_") { "arena" } else { "chat" };
        // Less than the client waits for an answer.
        let wait = if wait { "&wait=1" } else { "" };
        let path = format!("/api/{route}/sync?channel={channel}&from={viewer}&index={from}{wait}");
        let until = Instant::now() + PATIENCE;
        let mut last = None;
        loop {
            let node = self.choose(last);
            last = Some(node);
            let sent = self.field.now();
            if let Some(answer) = self.get(node, &path) {
                let messages: Vec<Message> =
                    answer["messages"].as_array().expect("messages are a list").iter().map(Message::of).collect();
                let last = messages.last().map_or(from - 1, |message| message.index);
                let read = Read { node, channel: channel.to_owned(), sent, done: self.field.now(), from, last };
                self.field.note(|history| history.reads.push(read));
                return messages;
            }
            assert!(Instant::now() < until, "nobody answers {path}");
            thread::sleep(PAUSE);
        }
    }

    /// What a node answers, if it does.
    fn get(&self, node: usize, path: &str) -> Option<Value> {
        let authorization = self.key.as_ref().map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> = authorization.iter().map(|key| ("Authorization", key.as_str())).collect();
        let answer =
            self.field.places[node].client().patient_for(self.field.timeout).try_request("GET", path, &headers, b"");
        let answer = answer.ok()?;
        match answer.status {
            // A long answer may be cut short.
            200 => serde_json::from_slice(&answer.body).ok(),
            503 => None,
            status => {
                self.field
                    .complain(format!("node {node}, GET {path}: {status} {}", String::from_utf8_lossy(&answer.body)));
                None
            }
        }
    }
}
