//! The clients of an arena of several nodes. A client sends a request to any node, and retries on another node with the
//! same key until it receives a conclusive answer. All requests are recorded.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::history::{Attempt, History, Moment, ObservedMessage, Read, RequestOutcome, Write, WriteOperation};
use arena_testkit::{Client, TestRng};
use parking_lot::Mutex;
use serde_json::Value;

use crate::nodes::NodeHandle;

/// The time limit for an operation, over all attempts. It is far longer than needed.
pub const TIMEOUT: Duration = Duration::from_secs(60);

const ADDRESSES: u64 = 20;

/// The pause before another attempt.
const PAUSE: Duration = Duration::from_millis(20);

/// The shared state of all clients: the nodes' addresses and the history.
pub struct Field {
    pub handles: Vec<Arc<NodeHandle>>,
    timeout: Duration,
    began: Instant,
    history: Mutex<History>,
    numbers: AtomicU64,
    /// True if clients must not start new games.
    pub closing: AtomicBool,
    /// Answers that no client should ever get, such as 500.
    complaints: Mutex<Vec<String>>,
    /// The numbers of inconclusive answers to writes, by kind.
    open: Mutex<BTreeMap<String, usize>>,
}

impl Field {
    pub fn new(handles: Vec<Arc<NodeHandle>>, timeout: Duration) -> Field {
        Field {
            handles,
            timeout,
            began: Instant::now(),
            history: Mutex::default(),
            // Numbers are used as ranges for dealing and as sums to split, which need at least this size.
            numbers: AtomicU64::new(1_000),
            closing: AtomicBool::new(false),
            complaints: Mutex::default(),
            open: Mutex::default(),
        }
    }

    pub fn now(&self) -> Moment {
        self.began.elapsed()
    }

    /// Returns a unique number.
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

    /// Returns the history after all clients have ended. Fails the test on forbidden answers.
    #[track_caller]
    pub fn close(self) -> (History, BTreeMap<String, usize>) {
        let complaints = self.complaints.into_inner();
        assert!(complaints.is_empty(), "{complaints:#?}");
        (self.history.into_inner(), self.open.into_inner())
    }
}

pub struct Caller<'f> {
    pub field: &'f Field,
    pub rng: TestRng,
    /// The session key, if players must authenticate.
    pub key: Option<String>,
    /// The only node for the client's requests; `None` means that the client chooses nodes.
    pub only: Option<usize>,
    /// The client's own address. Limits count per address, and so do keys of anonymous requests.
    pub address: Ipv4Addr,
}

impl<'f> Caller<'f> {
    pub fn new(field: &'f Field, mut rng: TestRng) -> Caller<'f> {
        let address = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(rng.below(ADDRESSES)).unwrap());
        Caller { field, rng, key: None, only: None, address }
    }

    /// Returns another client with the same rights.
    pub fn fork(&mut self) -> Caller<'f> {
        Caller {
            field: self.field,
            rng: self.rng.fork(),
            key: self.key.clone(),
            only: self.only,
            address: self.address,
        }
    }

    pub fn client(&self, node: usize) -> Client {
        let client = self.field.handles[node].client();
        client.from_address(self.address.into()).patient_for(self.field.timeout)
    }

    /// Chooses a node for a request: usually a node that is marked as up, and not the node `not` if there are others.
    pub fn choose(&mut self, not: Option<usize>) -> usize {
        if let Some(only) = self.only {
            return only;
        }
        let handles = &self.field.handles;
        let others: Vec<usize> = (0..handles.len()).filter(|node| Some(*node) != not).collect();
        let up: Vec<usize> = others.iter().copied().filter(|node| handles[*node].up.load(Ordering::SeqCst)).collect();
        // Some requests go to a node that is down, as those of clients without a load balancer.
        let among = if up.is_empty() || self.rng.chance(2) { &others } else { &up };
        if among.is_empty() { 0 } else { among[self.rng.below(among.len() as u64) as usize] }
    }

    /// Carries out a write: retries until it is accepted or refused. Returns the answer, or the code of the refusal.
    #[track_caller]
    pub fn write(&mut self, operation: WriteOperation, path: &str, body: &Value) -> Result<Value, String> {
        self.write_as(operation, path, body, true).1.expect("a write with `insists` returns an answer")
    }

    /// Attempts a write; the outcome may stay unknown.
    pub fn try_write(&mut self, operation: WriteOperation, path: &str, body: &Value) {
        self.write_as(operation, path, body, false);
    }

    /// Sends a write. Returns its key and its answer. If the outcome is unknown, the method retries if `insists` is
    /// true, and otherwise returns `None` as the answer.
    #[track_caller]
    pub fn write_as(
        &mut self,
        operation: WriteOperation,
        path: &str,
        body: &Value,
        insists: bool,
    ) -> (String, Option<Result<Value, String>>) {
        let key = format!("key of the write {}", self.field.number());
        let mut attempts: Vec<Attempt> = Vec::new();
        let until = Instant::now() + TIMEOUT;
        let result = loop {
            let node = self.choose(attempts.last().map(|attempt| attempt.node));
            let attempt = self.attempt(node, &key, path, body);
            attempts.push(attempt.clone());
            match attempt.outcome {
                RequestOutcome::Accepted(body) => {
                    break Some(Ok(serde_json::from_str(&body).expect("the body was parsed before")));
                }
                RequestOutcome::Refused(code) => break Some(Err(code)),
                RequestOutcome::Unsent | RequestOutcome::Unknown if !insists => break None,
                RequestOutcome::Unsent | RequestOutcome::Unknown => {
                    assert!(Instant::now() < until, "no node accepts {operation:?}: {attempts:#?}");
                    thread::sleep(PAUSE);
                }
            }
        };
        // Some accepted writes are repeated on any node, as by a client that has lost the answer.
        if matches!(result, Some(Ok(_))) && self.rng.chance(10) {
            let node = self.choose(attempts.last().map(|attempt| attempt.node));
            attempts.push(self.attempt(node, &key, path, body));
        }
        self.field.note(|history| history.writes.push(Write { key: key.clone(), operation, attempts }));
        (key, result)
    }

    fn attempt(&self, node: usize, key: &str, path: &str, body: &Value) -> Attempt {
        let sent = self.field.now();
        let authorization = self.key.as_ref().map(|key| format!("Bearer {key}"));
        let mut headers = vec![("Idempotency-Key", key)];
        headers.extend(authorization.as_ref().map(|key| ("Authorization", key.as_str())));
        let client = self.client(node);
        let answer = client.try_request("POST", path, &headers, body.to_string().as_bytes());
        let outcome = match answer {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => RequestOutcome::Unsent,
            Err(error) => self.open(error.kind().to_string()),
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                let json: Option<Value> = serde_json::from_str(&text).ok();
                let code = |answer: &Value| answer["code"].as_str().unwrap_or(&text).to_owned();
                match (answer.status, json) {
                    (200, Some(_)) => RequestOutcome::Accepted(text),
                    (400..=499, Some(refusal)) => RequestOutcome::Refused(code(&refusal)),
                    (503, Some(answer)) => self.open(code(&answer)),
                    // An answer that was cut short has no valid body.
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

    /// Counts an inconclusive answer by its kind.
    fn open(&self, why: String) -> RequestOutcome {
        *self.field.open.lock().entry(why).or_default() += 1;
        RequestOutcome::Unknown
    }

    /// Returns the messages of a channel from an index on, from any node. Waits a moment if there are none.
    #[track_caller]
    pub fn read(&mut self, channel: &str, viewer: &str, from: u64, wait: bool) -> Vec<ObservedMessage> {
        let route = if channel.starts_with("challenge_") { "arena" } else { "chat" };
        // The wait is shorter than the client's timeout.
        let wait = if wait { "&wait=1" } else { "" };
        let path = format!("/api/{route}/sync?channel={channel}&from={viewer}&index={from}{wait}");
        let until = Instant::now() + TIMEOUT;
        let mut last = None;
        loop {
            let node = self.choose(last);
            last = Some(node);
            let sent = self.field.now();
            if let Some(answer) = self.get(node, &path) {
                let messages: Vec<ObservedMessage> = answer["messages"]
                    .as_array()
                    .expect("messages are a list")
                    .iter()
                    .map(ObservedMessage::of)
                    .collect();
                let last = messages.last().map_or(from - 1, |message| message.index);
                let read = Read { node, channel: channel.to_owned(), sent, done: self.field.now(), from, last };
                self.field.note(|history| history.reads.push(read));
                return messages;
            }
            assert!(Instant::now() < until, "no node answers {path}");
            thread::sleep(PAUSE);
        }
    }

    fn get(&self, node: usize, path: &str) -> Option<Value> {
        let authorization = self.key.as_ref().map(|key| format!("Bearer {key}"));
        let headers: Vec<(&str, &str)> = authorization.iter().map(|key| ("Authorization", key.as_str())).collect();
        let answer = self.client(node).try_request("GET", path, &headers, b"");
        let answer = answer.ok()?;
        match answer.status {
            // A long answer may be cut short.
            200 => serde_json::from_slice(&answer.body).ok(),
            // 502 and 504 are a balancer's.
            502..=504 => None,
            status => {
                self.field
                    .complain(format!("node {node}, GET {path}: {status} {}", String::from_utf8_lossy(&answer.body)));
                None
            }
        }
    }
}
