//! Agents behind HTTP: a thread takes each message from a pipe, posts it, and puts the answer on another pipe as one line. So the
//! match loop knows pipes only, and its deadlines hold for servers too.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::address::is_public;
use crate::body::{Body, End, Log};
use crate::link::{Link, MAX_LINE};

/// How much is looked at of an answer that says that there is none, in bytes.
const MAX_EXCUSE: u64 = 4096;

/// An agent that is somebody's server.
pub struct Server {
    thread: Option<JoinHandle<()>>,
    end: Arc<OnceLock<String>>,
}

/// Makes a link to the server at `url`. Nothing is sent yet. A post that takes longer than `patience` is given up; the match's own
/// deadlines are shorter. With `public_only`, a server at any other address can't be reached.
///
/// # Errors
/// When the system gives no pipes or no thread.
pub fn connect(url: &str, patience: Duration, public_only: bool) -> io::Result<(Link, Server)> {
    let (messages, input) = pipe_with(PipeFlags::CLOEXEC)?;
    let (output, answers) = pipe_with(PipeFlags::CLOEXEC)?;
    for fd in [&input, &output] {
        fcntl_setfl(fd, OFlags::NONBLOCK)?;
    }
    let end = Arc::new(OnceLock::new());
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build();
    let resolver = Addresses { public_only, all: DefaultResolver::default() };
    let agent = ureq::Agent::with_parts(config, DefaultConnector::default(), resolver);
    let carry = {
        let (url, end) = (url.to_owned(), end.clone());
        move || {
            let mut answers = File::from(answers);
            if let Err(sentence) = carry(&agent, &url, File::from(messages), &mut answers) {
                let _ = end.set(sentence);
            }
            // However it has ended, both pipes are closed now, and the match sees it.
        }
    };
    let thread = thread::Builder::new().name("http agent".to_owned()).spawn(carry)?;
    Ok((Link::new(input, output), Server { thread: Some(thread), end }))
}

/// Looks up where a server is. What counts is the address that is connected to: a name may lead elsewhere each time it is asked for.
#[derive(Debug)]
struct Addresses {
    public_only: bool,
    all: DefaultResolver,
}

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.all.resolve(uri, config, timeout)?;
        if !self.public_only {
            return Ok(found);
        }
        let mut allowed = self.empty();
        for address in found.iter().filter(|address| is_public(address.ip())) {
            allowed.push(*address);
        }
        if allowed.is_empty() {
            // Which one it is would tell strangers about a private network.
            let refusal = io::Error::new(io::ErrorKind::PermissionDenied, "its address isn't a public one");
            return Err(ureq::Error::Io(refusal));
        }
        Ok(allowed)
    }
}

/// Carries messages and answers to and fro, until the match closes its pipe or the server can't be reached; then says why.
fn carry(agent: &ureq::Agent, url: &str, messages: File, answers: &mut File) -> Result<(), String> {
    let mut is_reused = false;
    for message in BufReader::new(messages).lines() {
        let Ok(message) = message else { return Ok(()) };
        let post = || agent.post(url).header("content-type", "application/json").send(&message);
        let mut response = post();
        // Servers close connections that they kept open, and it shows only when the next message is sent.
        if is_reused && response.as_ref().is_err_and(is_closed) {
            response = post();
        }
        is_reused = true;
        let mut response = response.map_err(|error| explain(&error))?;
        let status = response.status();
        let mut line = match status.is_success() {
            // One byte more than a line may have, so that the match sees that it is too long.
            true => {
                let body = response.body_mut().with_config().limit(MAX_LINE as u64 + 2).read_to_vec();
                body.unwrap_or_else(|error| match error {
                    ureq::Error::BodyExceedsLimit(_) => vec![b' '; MAX_LINE + 2],
                    error => format!("the answer broke off: {}", cause(&error)).into_bytes(),
                })
            }
            // What servers say of their failures helps their authors.
            false => {
                let body = response.body_mut().with_config().limit(MAX_EXCUSE).read_to_vec().unwrap_or_default();
                let body = String::from_utf8_lossy(body.trim_ascii()).into_owned();
                let colon = if body.is_empty() { "" } else { ": " };
                format!("HTTP {status}{colon}{body}").into_bytes()
            }
        };
        for byte in &mut line {
            // Within JSON, line ends are but blanks.
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        if line.trim_ascii().is_empty() && line.len() <= MAX_LINE {
            line = b"{}".to_vec();
        }
        line.push(b'\n');
        if answers.write_all(&line).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether the connection was closed before an answer began.
fn is_closed(error: &ureq::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let ureq::Error::Io(io) = error else { return false };
    matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Why nothing came back, in a sentence that goes on from the agent's name.
fn explain(error: &ureq::Error) -> String {
    match error {
        _ if is_closed(error) => "closed the connection without an answer".to_owned(),
        ureq::Error::Timeout(_) => "gave no answer for a long time".to_owned(),
        ureq::Error::Protocol(_) => format!("doesn't speak HTTP ({})", cause(error)),
        _ => format!("can't be reached: {}", cause(error)),
    }
}

/// The words of the system, without those of layers above it.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(io) => io.to_string(),
        ureq::Error::Protocol(protocol) => protocol.to_string(),
        error => error.to_string(),
    }
}

impl Body for Server {
    fn ended(&mut self, patience: Duration) -> Option<End> {
        self.join(patience);
        let sentence = self.end.get().cloned()?;
        Some(End { sentence, is_out_of_memory: false, code: None, left_behind: 0 })
    }

    fn is_flooding(&self) -> bool {
        false
    }

    fn kill(&mut self) {}

    fn finish(&mut self, grace: Duration) -> Log {
        // A post under way ends in its own time; nobody waits for what it brings.
        self.join(grace);
        Log::default()
    }
}

impl Server {
    /// Waits this long for the thread to end.
    fn join(&mut self, patience: Duration) {
        let by = Instant::now() + patience;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < by {
            thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}
