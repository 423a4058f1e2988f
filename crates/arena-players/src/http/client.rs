//! A small HTTP client. The paths and field names of the API are defined here only. Callers interpret the responses. The
//! requests of players are in `client/player.rs`, those of administrators in `client/admin.rs` and of creators in
//! `client/creator.rs`, records and files of logs in `client/records.rs`, and streams in `client/stream.rs`. The file
//! `client/answer.rs` distinguishes answers from errors.

mod admin;
mod agents;
mod answer;
mod creator;
mod player;
mod records;
mod stream;

pub use admin::ExportError;
pub use answer::{CallError, HttpAnswer};
pub use player::{Identity, Read};
pub use stream::{Stream, StreamEvent};

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use answer::{RawAnswer, is_broken_connection, read_answer};
use arena_model::hex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, RequestBuilder};

/// Time limit for establishing a connection. A connection across the world takes a fraction of a second.
const CONNECT: Duration = Duration::from_secs(5);

/// Time limit of an answer, beyond the requested waiting time.
const ANSWER: Duration = Duration::from_secs(15);

/// Pauses before the retries of a request after its connection broke.
const RETRIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// The pause between further retries of a persistent client, after the pauses in [`RETRIES`].
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The maximum pause before a retry, even if the server requests a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Maximum size of an answer. A channel may have a million messages, and one request can ask for all of them.
const ANSWER_BYTES: u64 = 1 << 30;

/// The characters to escape in a path segment: all except letters, digits, `-`, `_` and `~`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// A server, from the perspective of one player or observer.
#[derive(Debug, Clone)]
pub struct Arena {
    agent: Agent,
    url: String,
    from: Option<String>,
    key: Option<String>,
    credential: Credential,
    /// Time limit of an answer, beyond the requested waiting time.
    patience: Duration,
    /// Time for which a request is retried while the server is unreachable or limits the rate of requests.
    retry_for: Duration,
}

/// The kind of a client's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credential {
    /// A session key, if any.
    Player,
    /// The key of a session's creator.
    Creator,
    /// The administrator's token.
    Administrator,
    /// The key of an agent's owner, or the administrator's token.
    Owner,
}

impl Arena {
    /// Creates the client of an anonymous observer for the server at `url` (without a trailing slash).
    pub fn at(url: &str) -> Arena {
        Arena::with_roots(url, RootCerts::WebPki)
    }

    /// Creates the client of an anonymous observer that trusts only the certificates in `pem`.
    ///
    /// # Errors
    /// If `pem` isn't PEM or contains no certificate.
    pub fn trusting(url: &str, pem: &[u8]) -> Result<Arena, String> {
        let mut certificates: Vec<Certificate<'static>> = Vec::new();
        for item in parse_pem(pem) {
            match item {
                Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
                Ok(_) => {}
                Err(error) => return Err(format!("isn't PEM: {error}")),
            }
        }
        if certificates.is_empty() {
            return Err("contains no certificate; give a PEM file with a line BEGIN CERTIFICATE".to_owned());
        }
        Ok(Arena::with_roots(url, RootCerts::new_with_certs(&certificates)))
    }

    fn with_roots(url: &str, roots: RootCerts) -> Arena {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would turn a POST into a GET, so the client doesn't follow it and reports the new address as
            // an error.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")));
        // A proxy can't reach this machine's loopback.
        let config = if is_loopback(url) { config.proxy(None) } else { config };
        Arena {
            agent: config.build().new_agent(),
            url: url.to_owned(),
            from: None,
            key: None,
            credential: Credential::Player,
            patience: ANSWER,
            retry_for: Duration::ZERO,
        }
    }

    /// Returns a persistent client. For the time `retry_for`, it retries requests while the server is unreachable,
    /// restarts or limits the rate of requests. A retried write takes effect only once.
    pub fn with_retries_for(self, retry_for: Duration) -> Arena {
        Arena { retry_for, ..self }
    }

    pub fn with_key(&self, key: Option<String>) -> Arena {
        Arena { key: key.or_else(|| self.key.clone()), ..self.clone() }
    }

    /// Returns a client that sends requests as the player `from`.
    pub fn seen_by(&self, from: &str) -> Arena {
        Arena { from: Some(from.to_owned()), ..self.clone() }
    }

    /// Returns a client that shares no connections with this one, like the client of another program.
    pub fn own_connection(&self) -> Arena {
        Arena { agent: self.agent.config().new_agent(), ..self.clone() }
    }

    fn get(&self, path: &str, query: &[(&str, Option<String>)], wait: Option<u8>) -> Result<HttpAnswer, CallError> {
        let url = format!("{}{path}", self.url);
        let limit = self.patience + Duration::from_secs(wait.unwrap_or(0).into());
        self.with_retries(&url, limit, false, || {
            let mut request = self.agent.get(&url).config().timeout_global(Some(limit)).build();
            for (name, value) in query {
                if let Some(value) = value {
                    request = request.query(*name, value);
                }
            }
            read_answer(self.reading(request).call()?)
        })
    }

    /// Adds the client's key to a request.
    fn authorized<B>(&self, mut request: RequestBuilder<B>) -> RequestBuilder<B> {
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request
    }

    /// Adds the client's player and key to a request that reads.
    fn reading<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.from {
            Some(from) => self.authorized(request.query("from", from)),
            None => self.authorized(request),
        }
    }

    /// Sends a write with the fields that aren't null. The request has an idempotency key, so that a retry after a lost
    /// response doesn't repeat the write.
    fn post(&self, path: &str, fields: Value) -> Result<HttpAnswer, CallError> {
        let mut fields: Map<String, Value> = serde_json::from_value(fields).unwrap_or_default();
        fields.retain(|_, value| !value.is_null());
        self.post_all(path, fields)
    }

    fn post_all(&self, path: &str, mut body: Map<String, Value>) -> Result<HttpAnswer, CallError> {
        let url = format!("{}{path}", self.url);
        if let Some(from) = &self.from {
            body.insert("from".to_owned(), json!(from));
        }
        let body = Value::Object(body).to_string();
        let once = random_hex()?;
        self.with_retries(&url, self.patience, true, || {
            let request = self.agent.post(&url).config().timeout_global(Some(self.patience)).build();
            let request = request.header("idempotency-key", &once).header("content-type", "application/json");
            read_answer(self.authorized(request).send(&body)?)
        })
    }

    fn with_retries(
        &self,
        url: &str,
        limit: Duration,
        write: bool,
        call: impl Fn() -> Result<RawAnswer, ureq::Error>,
    ) -> Result<HttpAnswer, CallError> {
        let begun = Instant::now();
        let mut pauses = RETRIES.iter().copied();
        loop {
            let call = call();
            let is_fresh = begun.elapsed() < self.retry_for;
            let pause = match &call {
                Ok(answer) => answer.asks_for_a_pause().filter(|_| is_fresh),
                Err(error) if is_broken_connection(error) => pauses.next().or(is_fresh.then_some(RETRY_PAUSE)),
                Err(ureq::Error::Timeout(_)) => is_fresh.then_some(RETRY_PAUSE),
                Err(_) => None,
            };
            match (pause, call) {
                (Some(pause), _) => std::thread::sleep(pause),
                (None, Ok(answer)) => return self.judge(url, answer),
                (None, Err(error)) => return Err(self.explain(url, limit, write, error)),
            }
        }
    }
}

fn path(fixed: &[&str], name: Option<&str>) -> String {
    let name = name.map(|name| utf8_percent_encode(name, SEGMENT).to_string());
    fixed.iter().copied().chain(name.as_deref()).fold(String::new(), |path, segment| path + "/" + segment)
}

pub fn is_loopback(url: &str) -> bool {
    let authority = url.split('/').nth(2).unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host == "localhost" || host == "[::1]" || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

/// Returns 128 random bits as hexadecimal digits, for idempotency keys and salts.
pub fn random_hex() -> Result<String, CallError> {
    random_bytes::<16>().map(|bytes| hex::encode(&bytes))
}

pub fn random_bytes<const N: usize>() -> Result<[u8; N], CallError> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(CallError::Request(format!("cannot get random bytes from the system: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_path_segment() {
        assert_eq!(path(&["api", "metadata"], Some("psi")), "/api/metadata/psi");
        assert_eq!(path(&["api", "metadata"], Some("../a b?c#%")), "/api/metadata/%2E%2E%2Fa%20b%3Fc%23%25");
        assert_eq!(path(&["api", "metadata"], None), "/api/metadata");
    }

    #[test]
    fn loopback_is_this_machine_and_nothing_that_looks_like_it() {
        let here = ["http://localhost:3001", "http://127.0.0.1", "http://127.8.9.1:80/arena", "http://[::1]:3001"];
        let elsewhere =
            ["http://localhost.example:3001", "https://arena.example", "http://[2001:db8::1]:80", "http://10.0.0.1"];
        assert_eq!(here.map(is_loopback), [true; 4]);
        assert_eq!(elsewhere.map(is_loopback), [false; 4]);
    }
}
