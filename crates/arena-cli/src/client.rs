//! A small HTTP client of an arena: the calls that players make, and what can go wrong with them.
//! It knows the wire's names so that the verbs, and the demo's bots, needn't. What an answer means is for the caller. The
//! administrator's calls are in `client/admin.rs`, streams in `client/stream.rs`.

mod admin;
mod stream;

pub use admin::ExportError;
pub use stream::Event;

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use arena_identity::{KeyPair, ProfileUpdate};
use arena_model::{InviteCode, Timestamp, hex};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::CertificateError;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};
use ureq::Agent;
use ureq::http::Response;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::args::{Global, SyncArgs};
use crate::exit::{Exit, Failure};

/// How long a server may take to accept a connection. Across the world it takes a fraction of a second.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a server may take to answer, beyond the time that it was asked to wait.
const ANSWER: Duration = Duration::from_secs(15);

/// Pauses before a request that met a broken connection is sent again, and so also the number of times.
const RETRIES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(400)];

/// Pauses of a caller who holds out, when those above are used up.
const HOLD_ON: Duration = Duration::from_secs(1);

/// The longest pause that a server may ask for between two requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Longest answer that is read. A channel may hold a million messages, and is read in one piece if one asks for it.
const ANSWER_BYTES: u64 = 1 << 30;

/// What needn't be escaped in a path segment.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// An arena, as one player or onlooker sees it.
#[derive(Debug, Clone)]
pub struct Arena {
    agent: Agent,
    url: String,
    from: Option<String>,
    key: Option<String>,
    /// Whether the key is the administrator's token.
    administers: bool,
    /// How long an answer may take, beyond the time that was asked to wait.
    patience: Duration,
    /// For how long a request is sent again to a server that is away, or asks to slow down.
    stamina: Duration,
}

/// Which messages of a channel to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    /// The first of them; all, if unset.
    pub index: Option<u64>,
    /// Seconds to wait until there is one.
    pub wait: Option<u8>,
}

impl From<&SyncArgs> for Read {
    fn from(args: &SyncArgs) -> Read {
        Read { index: args.index, wait: args.wait }
    }
}

/// An answer of the arena: JSON text, exactly as it came.
#[derive(Debug)]
pub struct Answer {
    url: String,
    text: String,
}

impl Answer {
    /// The JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The answer as a value of the type that the caller expects.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_str(&self.text).map_err(|error| CallError::NotAnArena {
            url: self.url.clone(),
            what: format!("unexpected JSON ({error})"),
        })
    }
}

/// Why a call has no answer to show.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing answers there.
    #[error("can't reach an arena at {url}: {why}")]
    Unreachable {
        /// Where.
        url: String,
        /// In words.
        why: String,
    },
    /// It takes too long. A write may have happened nevertheless.
    #[error(
        "no answer from {url} within {seconds} s{}",
        if *.write { "; the request may have taken effect, so look before you repeat it" } else { "" }
    )]
    TimedOut {
        /// Where.
        url: String,
        /// How long was waited.
        seconds: u64,
        /// Whether the request was to change something.
        write: bool,
    },
    /// Something answers, but not as an arena does.
    #[error("what answers at {url} doesn't seem to be an arena: it sent {what}")]
    NotAnArena {
        /// Where.
        url: String,
        /// What it sent instead.
        what: String,
    },
    /// The arena says no.
    #[error("the arena refused: {error} ({})", told(*.status, .code.as_deref()))]
    Refused {
        /// HTTP status, 4xx.
        status: u16,
        /// The arena's own sentence.
        error: String,
        /// The arena's own code.
        code: Option<String>,
    },
    /// The arena couldn't.
    #[error("the arena failed: {error} ({})", told(*.status, .code.as_deref()))]
    Failed {
        /// HTTP status, 5xx.
        status: u16,
        /// The arena's own sentence.
        error: String,
        /// The arena's own code.
        code: Option<String>,
    },
    /// The request can't be made.
    #[error("{0}")]
    Request(String),
}

fn told(status: u16, code: Option<&str>) -> String {
    match code {
        Some(code) => format!("{code}, HTTP {status}"),
        None => format!("HTTP {status}"),
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let exit = match error {
            CallError::Unreachable { .. } | CallError::TimedOut { .. } | CallError::NotAnArena { .. } => {
                Exit::Unreachable
            }
            CallError::Refused { .. } => Exit::Refused,
            CallError::Failed { .. } => Exit::ServerFailed,
            CallError::Request(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}

impl Arena {
    /// The arena that the command line names, in the eyes of the player that it names.
    ///
    /// # Errors
    /// When the file of certificates can't be used.
    pub fn of(global: &Global) -> Result<Arena, Failure> {
        let roots = global.cacert.as_deref().map(read_certificates).transpose()?.unwrap_or(RootCerts::WebPki);
        Ok(Arena { from: global.from.clone(), key: global.auth.clone(), ..Arena::trusting(&global.url, roots) })
    }

    /// The arena at `url` (no slash at its end) in the eyes of a stranger.
    pub fn at(url: &str) -> Arena {
        Arena::trusting(url, RootCerts::WebPki)
    }

    fn trusting(url: &str, roots: RootCerts) -> Arena {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would turn a POST into a GET. Better to say where the arena has gone.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")));
        // Proxies are for the world outside; no proxy can reach this machine's own loopback.
        let config = if is_loopback(url) { config.proxy(None) } else { config };
        Arena {
            agent: config.build().new_agent(),
            url: url.to_owned(),
            from: None,
            key: None,
            administers: false,
            patience: ANSWER,
            stamina: Duration::ZERO,
        }
    }

    /// The same arena for somebody who holds out: requests are sent again for so long while the server is away, starting, or
    /// asks to slow down. Each is done once nevertheless.
    pub fn holding_out(self, stamina: Duration) -> Arena {
        Arena { stamina, ..self }
    }

    /// The same arena with a session key.
    pub fn with_key(&self, key: Option<String>) -> Arena {
        Arena { key: key.or_else(|| self.key.clone()), ..self.clone() }
    }

    /// The same arena in the eyes of the player `from`.
    pub fn seen_by(&self, from: &str) -> Arena {
        Arena { from: Some(from.to_owned()), ..self.clone() }
    }

    /// The same arena over connections of its own, as another program would have them.
    pub fn own_connection(&self) -> Arena {
        Arena { agent: self.agent.config().new_agent(), ..self.clone() }
    }

    /// What can be played: one challenge type, or all.
    pub fn metadata(&self, name: Option<&str>) -> Result<Answer, CallError> {
        self.get(&path(&["api", "metadata"], name), &[], None)
    }

    /// A page of sessions, newest first.
    pub fn list(
        &self,
        name: Option<&str>,
        status: Option<&str>,
        limit: Option<u32>,
        offset: Option<u64>,
    ) -> Result<Answer, CallError> {
        let query = [
            ("status", status.map(str::to_owned)),
            ("limit", limit.map(|limit| limit.to_string())),
            ("offset", offset.map(|offset| offset.to_string())),
        ];
        self.get(&path(&["api", "challenges"], name), &query, None)
    }

    /// Creates a session of the challenge type `name`.
    pub fn create(&self, name: &str, options: Option<&Map<String, Value>>) -> Result<Answer, CallError> {
        self.post(&path(&["api", "challenges"], Some(name)), json!({ "options": options }))
    }

    /// The session of an invite that nobody has used yet.
    pub fn find_invite(&self, invite: &str) -> Result<Answer, CallError> {
        self.get(&path(&["api", "invites"], Some(invite)), &[], None)
    }

    /// Takes the seat of `invite`.
    pub fn join(&self, invite: &str, user_id: Option<&str>) -> Result<Answer, CallError> {
        // Who joins speaks as the invite, whoever else the caller may be.
        self.seen_by(invite).post("/api/arena/join", json!({ "invite": invite, "userId": user_id }))
    }

    /// Takes the seat of `invite` as whoever holds a key. The answer holds a session key.
    pub fn join_signed(&self, invite: InviteCode, pair: &KeyPair, now: Timestamp) -> Result<Answer, CallError> {
        let body = json!({
            "invite": invite.to_string(),
            "publicKey": pair.public_key().as_hex(),
            "signature": pair.sign_join(invite, now),
            "timestamp": now,
        });
        self.post("/api/arena/join", body)
    }

    /// Leaderboards: the global one, or those of a challenge type.
    pub fn scoring(
        &self,
        name: Option<&str>,
        sort: Option<&str>,
        limit: Option<u32>,
        offset: Option<u64>,
    ) -> Result<Answer, CallError> {
        let query = [
            ("sort", sort.map(str::to_owned)),
            ("limit", limit.map(|limit| limit.to_string())),
            ("offset", offset.map(|offset| offset.to_string())),
        ];
        self.get(&path(&["api", "scoring"], name), &query, None)
    }

    /// Profiles: one, or all.
    pub fn users(&self, id: Option<&str>) -> Result<Answer, CallError> {
        self.get(&path(&["api", "users"], id), &[], None)
    }

    /// Changes the profile of `user_id`, or else of whoever speaks.
    pub fn update_user(&self, user_id: Option<&str>, update: ProfileUpdate<'_>) -> Result<Answer, CallError> {
        let ProfileUpdate { username, model } = update;
        self.post("/api/users", json!({ "userId": user_id, "username": username, "model": model }))
    }

    /// Changes the profile of whoever holds a key.
    pub fn update_user_signed(
        &self,
        pair: &KeyPair,
        update: ProfileUpdate<'_>,
        now: Timestamp,
    ) -> Result<Answer, CallError> {
        let body = json!({
            "publicKey": pair.public_key().as_hex(),
            "signature": pair.sign_profile_update(&update, now),
            "timestamp": now,
            "username": update.username,
            "model": update.model,
        });
        self.post("/api/users", body)
    }

    /// Sends the operator of `session` an action.
    pub fn act(&self, session: &str, method: &str, content: &str) -> Result<Answer, CallError> {
        let body = json!({ "challengeId": session, "messageType": method, "content": content });
        self.post("/api/arena/message", body)
    }

    /// Tells the arena what a step of one's play has cost. `report` has the fields of the wire.
    pub fn report_usage(&self, session: &str, report: &Map<String, Value>) -> Result<Answer, CallError> {
        let session = [("challengeId".to_owned(), json!(session))];
        self.post_all("/api/arena/usage", session.into_iter().chain(report.clone()).collect())
    }

    /// Messages of the operator's channel.
    pub fn operator_messages(&self, channel: &str, read: Read) -> Result<Answer, CallError> {
        self.sync("/api/arena/sync", channel, read)
    }

    /// Says `text` in the chat of `session`, to everybody or to one player.
    pub fn say(&self, session: &str, text: &str, to: Option<&str>) -> Result<Answer, CallError> {
        self.post("/api/chat/send", json!({ "channel": session, "content": text, "to": to }))
    }

    /// Messages of a chat channel.
    pub fn chat_messages(&self, channel: &str, read: Read) -> Result<Answer, CallError> {
        self.sync("/api/chat/sync", channel, read)
    }

    fn sync(&self, path: &str, channel: &str, read: Read) -> Result<Answer, CallError> {
        let query = [
            ("channel", Some(channel.to_owned())),
            ("index", read.index.map(|index| index.to_string())),
            ("wait", read.wait.map(|wait| wait.to_string())),
        ];
        self.get(path, &query, read.wait)
    }

    /// Returns true if requests carry a session key.
    pub fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Whether this arena tells players apart by keys, and we show none. Arenas that don't say so are taken not to.
    pub fn lacks_key(&self) -> bool {
        #[derive(Deserialize)]
        struct Skill {
            identity: String,
        }
        let skill = || self.get("/skill.json", &[], None).ok()?.read::<Skill>().ok();
        self.key.is_none() && skill().is_some_and(|skill| skill.identity == "key")
    }

    fn get(&self, path: &str, query: &[(&str, Option<String>)], wait: Option<u8>) -> Result<Answer, CallError> {
        let url = format!("{}{path}", self.url);
        let limit = self.patience + Duration::from_secs(wait.unwrap_or(0).into());
        self.with_retries(&url, limit, false, || {
            let mut request = self.agent.get(&url).config().timeout_global(Some(limit)).build();
            for (name, value) in query {
                if let Some(value) = value {
                    request = request.query(*name, value);
                }
            }
            if let Some(from) = &self.from {
                request = request.query("from", from);
            }
            if let Some(key) = &self.key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            read_answer(request.call()?)
        })
    }

    /// A write of those fields that aren't null. It carries a key of its own, so that sending it again after a lost answer doesn't do it
    /// twice.
    fn post(&self, path: &str, fields: Value) -> Result<Answer, CallError> {
        let mut fields: Map<String, Value> = serde_json::from_value(fields).unwrap_or_default();
        fields.retain(|_, value| !value.is_null());
        self.post_all(path, fields)
    }

    fn post_all(&self, path: &str, mut body: Map<String, Value>) -> Result<Answer, CallError> {
        let url = format!("{}{path}", self.url);
        if let Some(from) = &self.from {
            body.insert("from".to_owned(), json!(from));
        }
        let body = Value::Object(body).to_string();
        let once = random_hex()?;
        self.with_retries(&url, self.patience, true, || {
            let mut request = self.agent.post(&url).config().timeout_global(Some(self.patience)).build();
            if let Some(key) = &self.key {
                request = request.header("authorization", format!("Bearer {key}"));
            }
            let request = request.header("idempotency-key", &once).header("content-type", "application/json");
            read_answer(request.send(&body)?)
        })
    }

    fn with_retries(
        &self,
        url: &str,
        limit: Duration,
        write: bool,
        call: impl Fn() -> Result<RawAnswer, ureq::Error>,
    ) -> Result<Answer, CallError> {
        let begun = Instant::now();
        let mut pauses = RETRIES.iter().copied();
        loop {
            let call = call();
            let is_fresh = begun.elapsed() < self.stamina;
            let pause = match &call {
                Ok(answer) => answer.asks_for_a_pause().filter(|_| is_fresh),
                Err(error) if is_broken_connection(error) => pauses.next().or(is_fresh.then_some(HOLD_ON)),
                Err(ureq::Error::Timeout(_)) => is_fresh.then_some(HOLD_ON),
                Err(_) => None,
            };
            match (pause, call) {
                (Some(pause), _) => std::thread::sleep(pause),
                (None, Ok(answer)) => return self.judge(url, answer),
                (None, Err(error)) => return Err(self.explain(url, limit, write, error)),
            }
        }
    }

    /// Tells an arena's answer from anything else that may live at the address.
    fn judge(&self, url: &str, answer: RawAnswer) -> Result<Answer, CallError> {
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
            return Ok(Answer { url: url.to_owned(), text });
        }
        // An error of an arena is `{"error", "code"?}`; whatever else is JSON is still told.
        let fields = serde_json::from_str::<Map<String, Value>>(&text).unwrap_or_default();
        let field = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut error = field("error").unwrap_or_else(|| format!("it gave no reason, only {}", text.trim()));
        let code = field("code");
        error.push_str(self.advice(&error, code.as_deref()));
        match status {
            500.. => Err(CallError::Failed { status, error, code }),
            _ => Err(CallError::Refused { status, error, code }),
        }
    }

    /// What may help against a refusal.
    fn advice(&self, error: &str, code: Option<&str>) -> &'static str {
        match (error, code) {
            ("from is required", _) if self.from.is_none() => {
                "; say who you are with --from INVITE, or with --auth KEY where keys are asked for"
            }
            ("from is required", _) => "; this arena asks for the key that your join was answered with: --auth KEY",
            ("publicKey, signature, and timestamp are required", _) => {
                "; sign it with --sign, and \"arena identity new\" makes a key to sign with"
            }
            (_, Some("AUTHENTICATION_REQUIRED")) if self.administers => {
                "; the token isn't the one of this arena's administrator"
            }
            (_, Some("AUTHENTICATION_REQUIRED")) => "; the key given with --auth isn't one to this session",
            (_, Some("TIMESTAMP_EXPIRED")) => "; is the clock of this machine right?",
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
                "connection refused; is it running? \"arena serve\" starts one".to_owned()
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
            ureq::Error::HostNotFound => "there is no host of that name".to_owned(),
            ureq::Error::Protocol(error) => {
                return CallError::NotAnArena {
                    url: self.url.clone(),
                    what: format!("something that isn't HTTP ({error})"),
                };
            }
            ureq::Error::BodyExceedsLimit(bytes) => {
                return CallError::NotAnArena { url: self.url.clone(), what: format!("more than {bytes} bytes") };
            }
            ureq::Error::BadUri(uri) => return CallError::Request(format!("{uri} is not an address")),
            ureq::Error::Http(error) => return CallError::Request(format!("can't ask for {url}: {error}")),
            error => error.to_string(),
        };
        CallError::Unreachable { url: self.url.clone(), why }
    }
}

/// What came back, before anybody knows whether an arena sent it.
struct RawAnswer {
    status: u16,
    /// Where it sends us, if it's a redirect.
    location: Option<String>,
    html: bool,
    /// Seconds until it wants to be asked again, if it says so.
    retry_after: Option<u64>,
    text: String,
}

impl RawAnswer {
    /// For how long to wait before the same request may find a better answer.
    fn asks_for_a_pause(&self) -> Option<Duration> {
        matches!(self.status, 429 | 502..=504)
            .then(|| self.retry_after.map_or(HOLD_ON, Duration::from_secs).min(LONGEST_PAUSE))
    }
}

fn read_answer(response: Response<ureq::Body>) -> Result<RawAnswer, ureq::Error> {
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let location = if status.is_redirection() { header("location") } else { None };
    let html = header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"));
    // A date, which is allowed too, isn't worth a clock that agrees with the server's.
    let retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok());
    let text = response.into_body().into_with_config().limit(ANSWER_BYTES).read_to_string()?;
    Ok(RawAnswer { status: status.as_u16(), location, html, retry_after, text })
}

/// Whether trying again may help. A timeout isn't retried: the caller has waited long enough.
fn is_broken_connection(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::Io(error) => error.kind() != ErrorKind::InvalidData,
        ureq::Error::ConnectionFailed => true,
        _ => false,
    }
}

/// Reads the certificates in a PEM file.
fn read_certificates(path: &Path) -> Result<RootCerts, Failure> {
    let wrong = |why: String| Failure::new(Exit::Usage, format_args!("--cacert {}: {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| wrong(format!("can't be read: {error}")))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&text) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(wrong(format!("isn't PEM: {error}"))),
        }
    }
    if certificates.is_empty() {
        return Err(wrong("holds no certificate; it must be a PEM file with BEGIN CERTIFICATE in it".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// The fault of a server's certificate, in a sentence, if that is the reason of an error.
pub fn certificate_fault(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => rustls_error(error)?,
        _ => return None,
    };
    let rustls::Error::InvalidCertificate(error) = error else { return None };
    Some(match error {
        CertificateError::UnknownIssuer => {
            "its certificate is signed by an unknown authority; --cacert FILE names the authority of an arena"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate isn't valid yet; is the clock of this machine right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host".to_owned()
        }
        error => format!("its certificate is refused: {error:?}"),
    })
}

fn rustls_error(error: &std::io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn path(fixed: &[&str], name: Option<&str>) -> String {
    let name = name.map(|name| utf8_percent_encode(name, SEGMENT).to_string());
    fixed.iter().copied().chain(name.as_deref()).fold(String::new(), |path, segment| path + "/" + segment)
}

/// Whether an address is this machine's own.
pub fn is_loopback(url: &str) -> bool {
    let authority = url.split('/').nth(2).unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host == "localhost" || host == "[::1]" || host.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

/// 128 random bits, in hex: nobody else's key, for as long as the arena remembers it.
pub fn random_hex() -> Result<String, CallError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CallError::Request(format!("the system gives no random numbers: {error}")))?;
    Ok(hex::encode(&bytes))
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
