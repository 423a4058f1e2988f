//! Agents on HTTP servers. For each server, a thread reads messages from a pipe, posts them, and writes each
//! answer to another pipe as one line. So the match loop handles only pipes, and its deadlines apply to
//! servers too.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::time::Duration;

use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::address::is_public;
use crate::link::{Link, MAX_LINE};
use crate::thread_body::{self, Notices, ThreadBody};

/// The maximum number of bytes read from the body of an HTTP error.
const MAX_EXCUSE: u64 = 4096;

/// Creates a link to the server at `url` without sending a request. A request that takes longer than
/// `patience` is aborted; the match's own deadlines are shorter. With `public_only`, the server must have a
/// public address.
///
/// # Errors
/// If the pipes or the thread can't be created.
pub fn connect(url: &str, patience: Duration, public_only: bool) -> io::Result<(Link, ThreadBody)> {
    let agent = client(patience, public_only);
    let url = url.to_owned();
    thread_body::start("http agent", Notices::default(), move |messages, answers| {
        carry(&agent, &url, messages, answers)
    })
}

/// Creates a client that follows no redirects and uses no proxy. The arguments are those of [`connect`].
fn client(patience: Duration, public_only: bool) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build();
    let resolver = Addresses { public_only, all: DefaultResolver::default() };
    ureq::Agent::with_parts(config, DefaultConnector::default(), resolver)
}

/// A resolver that filters the addresses of a server. It checks the address of the actual connection, since a
/// name may resolve to different addresses each time.
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
            // The message doesn't contain the address, which would reveal facts about a private network.
            let refusal = io::Error::new(io::ErrorKind::PermissionDenied, "its address isn't a public one");
            return Err(ureq::Error::Io(refusal));
        }
        Ok(allowed)
    }
}

/// Transfers messages and answers until the match closes its pipe. Returns an error if the server can't be
/// reached.
fn carry(agent: &ureq::Agent, url: &str, messages: File, answers: &mut File) -> Result<(), String> {
    let mut is_reused = false;
    for message in BufReader::new(messages).lines() {
        let Ok(message) = message else { return Ok(()) };
        let post = || agent.post(url).header("content-type", "application/json").send(&message);
        let mut response = post();
        // A server may have closed an idle connection. The client notices this only at the next request.
        if is_reused && response.as_ref().is_err_and(is_closed) {
            response = post();
        }
        is_reused = true;
        let mut response = response.map_err(|error| explain(&error))?;
        let status = response.status();
        let mut line = match status.is_success() {
            // One byte more than the limit of a line, so that the match detects a line that is too long.
            true => {
                let body = response.body_mut().with_config().limit(MAX_LINE as u64 + 2).read_to_vec();
                body.unwrap_or_else(|error| match error {
                    ureq::Error::BodyExceedsLimit(_) => vec![b' '; MAX_LINE + 2],
                    error => format!("the answer is incomplete: {}", cause(&error)).into_bytes(),
                })
            }
            // The body of an error helps the author of the server.
            false => {
                let body = response.body_mut().with_config().limit(MAX_EXCUSE).read_to_vec().unwrap_or_default();
                let body = String::from_utf8_lossy(body.trim_ascii()).into_owned();
                let colon = if body.is_empty() { "" } else { ": " };
                format!("HTTP {status}{colon}{body}").into_bytes()
            }
        };
        for byte in &mut line {
            // In JSON, line ends are equivalent to spaces.
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

/// Returns true if the connection was closed before the answer.
fn is_closed(error: &ureq::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let ureq::Error::Io(io) = error else { return false };
    matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Describes the error of a request, in words that follow the agent's name.
pub fn explain(error: &ureq::Error) -> String {
    match error {
        _ if is_closed(error) => "closed the connection without an answer".to_owned(),
        ureq::Error::Timeout(_) => "didn't answer in time".to_owned(),
        ureq::Error::Protocol(_) => format!("doesn't speak HTTP ({})", cause(error)),
        _ => format!("can't be reached: {}", cause(error)),
    }
}

/// Returns the message of the I/O or protocol error inside of `error`, or else its own message.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(io) => io.to_string(),
        ureq::Error::Protocol(protocol) => protocol.to_string(),
        error => error.to_string(),
    }
}
