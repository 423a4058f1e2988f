//! A small HTTP client with the requests of players and their errors. The paths and field names of the API are defined
//! here only. Callers interpret the responses. Administrators' requests are in `client/admin.rs`, those of creators in
//! `client/creator.rs`, records and files of logs in `client/records.rs`, and streams in `client/stream.rs`.

mod admin;
mod agents;
mod creator;
mod records;
mod stream;

pub use admin::ExportError;
pub use stream::{Stream, StreamEvent};

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use arena_identity::{KeyPair, ProfileUpdate};
use arena_llm::describe_certificate_fault;
use arena_model::{Timestamp, hex};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::CertificateError;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};
use ureq::http::Response;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, RequestBuilder};

use super::ChannelKind;

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

/// The range of messages to read from a channel, and the waiting time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    /// The first message's index; all messages if unset.
    pub index: Option<u64>,
    /// Time to wait for a message, in seconds.
    pub wait: Option<u8>,
}

/// The user that takes a seat or changes its profile.
#[derive(Debug, Clone, Copy)]
pub enum Identity<'i> {
    /// The user with this id; the user that the server chooses if `None`.
    Name(Option<&'i str>),
    /// The owner of a key, which signs the request at this time.
    Key(&'i KeyPair, Timestamp),
}

/// A server's response: unchanged JSON text.
#[derive(Debug)]
pub struct HttpAnswer {
    url: String,
    text: String,
}

impl HttpAnswer {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_str(&self.text).map_err(|error| CallError::NotAnArena {
            url: self.url.clone(),
            what: format!("unexpected JSON ({error})"),
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("cannot reach a server at {url}: {why}")]
    Unreachable { url: String, why: String },
    /// The server didn't answer within the time limit. It may have performed a write nevertheless.
    #[error(
        "no answer from {url} within {seconds} s{}",
        if *.write { "; the request may have taken effect: check before you repeat it" } else { "" }
    )]
    TimedOut {
        url: String,
        /// The time limit.
        seconds: u64,
        /// True if the request was a write.
        write: bool,
    },
    #[error("no arena server at {url} (check --url): the response is {what}")]
    NotAnArena {
        url: String,
        /// A description of the response.
        what: String,
    },
    #[error("the server refused the request: {error} ({})", status_text(*.status, .code.as_deref()))]
    Refused {
        /// HTTP status, 4xx.
        status: u16,
        error: String,
        code: Option<String>,
    },
    #[error("the server failed: {error} ({})", status_text(*.status, .code.as_deref()))]
    Failed {
        /// HTTP status, 5xx.
        status: u16,
        error: String,
        code: Option<String>,
    },
    #[error("{0}")]
    Request(String),
}

fn status_text(status: u16, code: Option<&str>) -> String {
    match code {
        Some(code) => format!("{code}, HTTP {status}"),
        None => format!("HTTP {status}"),
    }
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

    /// Gets one challenge type or all.
    pub fn metadata(&self, name: Option<&str>) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "metadata"], name), &[], None)
    }

    /// Gets a page of sessions, newest first.
    pub fn list(
        &self,
        name: Option<&str>,
        status: Option<&str>,
        limit: Option<u32>,
        offset: Option<u64>,
    ) -> Result<HttpAnswer, CallError> {
        let query = [
            ("status", status.map(str::to_owned)),
            ("limit", limit.map(|limit| limit.to_string())),
            ("offset", offset.map(|offset| offset.to_string())),
        ];
        self.get(&path(&["api", "challenges"], name), &query, None)
    }

    pub fn create(&self, name: &str, options: Option<&Map<String, Value>>) -> Result<HttpAnswer, CallError> {
        self.post(&path(&["api", "challenges"], Some(name)), json!({ "options": options }))
    }

    /// Creates a session of the challenge type `name` that no list shows.
    pub fn create_unlisted(&self, name: &str, options: Option<&Map<String, Value>>) -> Result<HttpAnswer, CallError> {
        self.post(&path(&["api", "challenges"], Some(name)), json!({ "options": options, "unlisted": true }))
    }

    /// Gets the session of an unused invite.
    pub fn find_invite(&self, invite: &str) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "invites"], Some(invite)), &[], None)
    }

    /// Gets the session of a player.
    pub fn find_player(&self, invite: &str) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "players"], Some(invite)), &[], None)
    }

    /// Waits for opponents in a challenge. House bots may step in after `house_after` seconds.
    pub fn join_queue(&self, challenge: &str, house_after: Option<u64>) -> Result<HttpAnswer, CallError> {
        self.post(&path(&["api", "queue"], Some(challenge)), json!({ "houseAfterS": house_after }))
    }

    /// Gets the state of a ticket, after waiting for a match for at most `wait` seconds.
    pub fn poll_ticket(&self, challenge: &str, ticket: &str, wait: u8) -> Result<HttpAnswer, CallError> {
        let query = [("wait", Some(wait.to_string()))];
        self.get(&ticket_path(challenge, ticket), &query, Some(wait))
    }

    pub fn leave_queue(&self, challenge: &str, ticket: &str) -> Result<HttpAnswer, CallError> {
        let url = format!("{}{}", self.url, ticket_path(challenge, ticket));
        self.with_retries(&url, self.patience, true, || {
            read_answer(self.agent.delete(&url).config().timeout_global(Some(self.patience)).build().call()?)
        })
    }

    /// Takes the seat of `invite`. The answer contains a session key if the server requires keys.
    pub fn join(&self, invite: &str, identity: Identity<'_>) -> Result<HttpAnswer, CallError> {
        match identity {
            // The sender of a join is the invite itself.
            Identity::Name(user) => {
                self.seen_by(invite).post("/api/arena/join", json!({ "invite": invite, "userId": user }))
            }
            Identity::Key(pair, now) => {
                let code = invite.parse().map_err(|error| CallError::Request(format!("{invite} is {error}")))?;
                let body = json!({
                    "invite": invite,
                    "publicKey": pair.public_key().as_hex(),
                    "signature": pair.sign_join(code, now),
                    "timestamp": now,
                });
                self.post("/api/arena/join", body)
            }
        }
    }

    /// Gets the global leaderboard, or those of a challenge type.
    pub fn scoring(
        &self,
        name: Option<&str>,
        sort: Option<&str>,
        limit: Option<u32>,
        offset: Option<u64>,
    ) -> Result<HttpAnswer, CallError> {
        let query = [
            ("sort", sort.map(str::to_owned)),
            ("limit", limit.map(|limit| limit.to_string())),
            ("offset", offset.map(|offset| offset.to_string())),
        ];
        self.get(&path(&["api", "scoring"], name), &query, None)
    }

    /// Gets one profile or all.
    pub fn users(&self, id: Option<&str>) -> Result<HttpAnswer, CallError> {
        self.get(&path(&["api", "users"], id), &[], None)
    }

    /// Changes a profile.
    pub fn update_user(&self, identity: Identity<'_>, update: ProfileUpdate<'_>) -> Result<HttpAnswer, CallError> {
        let ProfileUpdate { username, model } = &update;
        let body = match identity {
            Identity::Name(user) => json!({ "userId": user, "username": username, "model": model }),
            Identity::Key(pair, now) => json!({
                "publicKey": pair.public_key().as_hex(),
                "signature": pair.sign_profile_update(&update, now),
                "timestamp": now,
                "username": username,
                "model": model,
            }),
        };
        self.post("/api/users", body)
    }

    pub fn act(&self, session: &str, method: &str, content: &str) -> Result<HttpAnswer, CallError> {
        let body = json!({ "challengeId": session, "messageType": method, "content": content });
        self.post("/api/arena/message", body)
    }

    /// Sends `text` to the chat of `session`, for all players or one.
    pub fn say(&self, session: &str, text: &str, to: Option<&str>) -> Result<HttpAnswer, CallError> {
        self.post("/api/chat/send", json!({ "channel": session, "content": text, "to": to }))
    }

    /// Gets the messages of a channel.
    pub fn messages(&self, kind: ChannelKind, channel: &str, read: Read) -> Result<HttpAnswer, CallError> {
        let path = match kind {
            ChannelKind::Operator => "/api/arena/sync",
            ChannelKind::Chat => "/api/chat/sync",
        };
        let query = [
            ("channel", Some(channel.to_owned())),
            ("index", read.index.map(|index| index.to_string())),
            ("wait", read.wait.map(|wait| wait.to_string())),
        ];
        self.get(path, &query, read.wait)
    }

    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Returns true if the server requires keys and the client has none. Returns false if the server doesn't state
    /// whether it requires keys.
    pub fn lacks_key(&self) -> bool {
        let skill = || self.get("/skill.json", &[], None).ok()?.read::<Value>().ok();
        self.key.is_none() && skill().is_some_and(|skill| skill["identity"] == "key")
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

    /// Converts the responses of an arena server into answers or errors. Other responses at this address become
    /// [`CallError::NotAnArena`].
    fn judge(&self, url: &str, answer: RawAnswer) -> Result<HttpAnswer, CallError> {
        let RawAnswer { status, location, html, text, .. } = answer;
        let stranger = |what: String| CallError::NotAnArena { url: self.url.clone(), what };
        if let Some(location) = location {
            return Err(stranger(format!("a redirect to {location}; give --url the final address")));
        }
        if html {
            return Err(stranger(format!("a web page (HTML, HTTP {status})")));
        }
        if serde_json::from_str::<IgnoredAny>(&text).is_err() {
            return Err(stranger(match text.trim().is_empty() {
                true => format!("an empty answer (HTTP {status})"),
                false => format!("something that isn't JSON (HTTP {status})"),
            }));
        }
        if (200..300).contains(&status) {
            return Ok(HttpAnswer { url: url.to_owned(), text });
        }
        // A server's error is `{"error", "code"?}`; the client quotes other JSON as the message.
        let fields = serde_json::from_str::<Map<String, Value>>(&text).unwrap_or_default();
        let field = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut error = field("error").unwrap_or_else(|| format!("no reason given; the response was {}", text.trim()));
        let code = field("code");
        error.push_str(self.advice(&error, code.as_deref()));
        match status {
            500.. => Err(CallError::Failed { status, error, code }),
            _ => Err(CallError::Refused { status, error, code }),
        }
    }

    fn advice(&self, error: &str, code: Option<&str>) -> &'static str {
        match (error, code) {
            ("from is required", _) if self.from.is_none() => {
                "; give --from INVITE, or --auth KEY if the server requires keys"
            }
            ("from is required", _) => "; give --auth KEY with the session key from your join",
            ("userId is required", _) => "; give --user-id ID",
            ("publicKey, signature, and timestamp are required", _) => {
                "; sign the request with --sign; `arena identity new` creates a key"
            }
            (_, Some("AUTHENTICATION_REQUIRED")) => match self.credential {
                Credential::Player => "; the key given with --auth doesn't belong to this session",
                Credential::Creator => "; the key isn't that of this session's creator",
                Credential::Owner => "; give --key KEY, the administrator's token or the key of the replaced agent",
                Credential::Administrator => "; the token isn't this server's administrator token",
            },
            (_, Some("CHALLENGE_NOT_FOUND")) if self.credential != Credential::Player => {
                "; no session has this id; `arena challenges list` lists the sessions"
            }
            (_, Some("UNKNOWN_CHALLENGE")) | ("Unknown challenge type", _) => {
                "; `arena challenges metadata` lists the challenge types"
            }
            (_, Some("USER_NOT_FOUND")) => "; `arena users get` lists all users",
            (_, Some("TIMESTAMP_EXPIRED")) => "; check the clock of this machine",
            _ => "",
        }
    }

    fn explain(&self, url: &str, limit: Duration, write: bool, error: ureq::Error) -> CallError {
        let why = match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                format!("no connection within {} s", CONNECT.as_secs())
            }
            ureq::Error::Timeout(_) => {
                return CallError::TimedOut { url: self.url.clone(), seconds: limit.as_secs(), write };
            }
            ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
                "connection refused; check --url, or start a server with `arena serve`".to_owned()
            }
            error if certificate_fault(&error).is_some() => certificate_fault(&error).unwrap_or_default(),
            ureq::Error::Io(error) if rustls_error(&error).is_some() => {
                return CallError::NotAnArena {
                    url: self.url.clone(),
                    what: format!("something that isn't TLS ({error})"),
                };
            }
            ureq::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
                return CallError::NotAnArena {
                    url: self.url.clone(),
                    what: format!("bytes that aren't text ({error})"),
                };
            }
            ureq::Error::Io(error) => error.to_string(),
            ureq::Error::HostNotFound => "the host name is unknown".to_owned(),
            ureq::Error::Protocol(error) => {
                return CallError::NotAnArena {
                    url: self.url.clone(),
                    what: format!("something that isn't HTTP ({error})"),
                };
            }
            ureq::Error::BodyExceedsLimit(bytes) => {
                return CallError::NotAnArena { url: self.url.clone(), what: format!("more than {bytes} bytes") };
            }
            ureq::Error::BadUri(uri) => return CallError::Request(format!("{uri} isn't a valid URL")),
            ureq::Error::Http(error) => return CallError::Request(format!("cannot send a request to {url}: {error}")),
            error => error.to_string(),
        };
        CallError::Unreachable { url: self.url.clone(), why }
    }
}

/// An HTTP response that may not come from an arena server.
struct RawAnswer {
    status: u16,
    /// The target of a redirect.
    location: Option<String>,
    html: bool,
    /// The server's `Retry-After`, in seconds.
    retry_after: Option<u64>,
    text: String,
}

impl RawAnswer {
    /// Returns the pause before a retry if the status allows one (429, 502, 503, 504).
    fn asks_for_a_pause(&self) -> Option<Duration> {
        matches!(self.status, 429 | 502..=504)
            .then(|| self.retry_after.map_or(RETRY_PAUSE, Duration::from_secs).min(LONGEST_PAUSE))
    }
}

fn read_answer(response: Response<ureq::Body>) -> Result<RawAnswer, ureq::Error> {
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let location = if status.is_redirection() { header("location") } else { None };
    let html = header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
    // HTTP also allows a date here. The client ignores dates, since they would need a clock that agrees with the
    // server's.
    let retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok());
    let text = response.into_body().into_with_config().limit(ANSWER_BYTES).read_to_string()?;
    Ok(RawAnswer { status: status.as_u16(), location, html, retry_after, text })
}

/// Returns true if the connection broke, so a retry may succeed. A timeout doesn't count: the caller has waited long
/// enough.
fn is_broken_connection(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => error.kind() != ErrorKind::InvalidData,
        ureq::Error::ConnectionFailed => true,
        _ => false,
    }
}

/// Returns a description of the fault in the server's certificate, if a bad certificate caused the error.
fn certificate_fault(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => rustls_error(error)?,
        _ => return None,
    };
    let rustls::Error::InvalidCertificate(error) = error else { return None };
    let fault = describe_certificate_fault(error);
    Some(match error {
        CertificateError::UnknownIssuer => format!("{fault}; give the authority's certificate with --cacert FILE"),
        _ => fault,
    })
}

fn rustls_error(error: &std::io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn path(fixed: &[&str], name: Option<&str>) -> String {
    let name = name.map(|name| utf8_percent_encode(name, SEGMENT).to_string());
    fixed.iter().copied().chain(name.as_deref()).fold(String::new(), |path, segment| path + "/" + segment)
}

fn ticket_path(challenge: &str, ticket: &str) -> String {
    path(&["api", "queue"], Some(challenge)) + &path(&[], Some(ticket))
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
