//! Answers of servers, and the errors of requests.

use std::io::ErrorKind;
use std::time::Duration;

use arena_llm::describe_certificate_fault;
use rustls::CertificateError;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use ureq::http::Response;

use super::{ANSWER_BYTES, Arena, CONNECT, Credential, LONGEST_PAUSE, RETRY_PAUSE};

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
    /// Converts the responses of an arena server into answers or errors. Other responses at this address become
    /// [`CallError::NotAnArena`].
    pub(super) fn judge(&self, url: &str, answer: RawAnswer) -> Result<HttpAnswer, CallError> {
        let RawAnswer { status, location, html, text, .. } = answer;
        if let Some(location) = location {
            return Err(self.stranger(format!("a redirect to {location}; give --url the final address")));
        }
        if html {
            return Err(self.stranger(format!("a web page (HTML, HTTP {status})")));
        }
        if serde_json::from_str::<IgnoredAny>(&text).is_err() {
            return Err(self.stranger(match text.trim().is_empty() {
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

    pub(super) fn explain(&self, url: &str, limit: Duration, write: bool, error: ureq::Error) -> CallError {
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
                return self.stranger(format!("something that isn't TLS ({error})"));
            }
            ureq::Error::Io(error) if error.kind() == ErrorKind::InvalidData => {
                return self.stranger(format!("bytes that aren't text ({error})"));
            }
            ureq::Error::Io(error) => error.to_string(),
            ureq::Error::HostNotFound => "the host name is unknown".to_owned(),
            ureq::Error::Protocol(error) => {
                return self.stranger(format!("something that isn't HTTP ({error})"));
            }
            ureq::Error::BodyExceedsLimit(bytes) => {
                return self.stranger(format!("more than {bytes} bytes"));
            }
            ureq::Error::BadUri(uri) => return CallError::Request(format!("{uri} isn't a valid URL")),
            ureq::Error::Http(error) => return CallError::Request(format!("cannot send a request to {url}: {error}")),
            error => error.to_string(),
        };
        CallError::Unreachable { url: self.url.clone(), why }
    }

    /// Returns the error for a response that isn't from an arena server.
    pub(super) fn stranger(&self, what: String) -> CallError {
        CallError::NotAnArena { url: self.url.clone(), what }
    }
}

/// An HTTP response that may not come from an arena server.
pub(super) struct RawAnswer {
    pub(super) status: u16,
    /// The target of a redirect.
    pub(super) location: Option<String>,
    pub(super) html: bool,
    /// The server's `Retry-After`, in seconds.
    pub(super) retry_after: Option<u64>,
    pub(super) text: String,
}

impl RawAnswer {
    /// Returns the pause before a retry if the status allows one (429, 502, 503, 504).
    pub(super) fn asks_for_a_pause(&self) -> Option<Duration> {
        matches!(self.status, 429 | 502..=504)
            .then(|| self.retry_after.map_or(RETRY_PAUSE, Duration::from_secs).min(LONGEST_PAUSE))
    }
}

pub(super) fn read_answer(response: Response<ureq::Body>) -> Result<RawAnswer, ureq::Error> {
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
pub(super) fn is_broken_connection(error: &ureq::Error) -> bool {
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
