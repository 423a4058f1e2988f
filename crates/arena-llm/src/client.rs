//! The HTTP client: one attempt of one request. Connections are kept and shared.
//!
//! The client follows no redirects, since a redirect would send the key to another server. Answers aren't streamed.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, LOCATION};
use hyper::{Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{HttpConnector, capture_connection};
use hyper_util::client::legacy::{Client as PooledClient, Error as SendError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::conversation::{Reply, Usage};
use crate::fault::{self, Fault, FaultClass};
use crate::{Endpoint, lenient, read_reply};

/// The maximum size of an answer in bytes.
const ANSWER_BYTES: usize = 16 << 20;

/// The time after which an unused connection is closed. Many servers close theirs after a minute.
const IDLE: Duration = Duration::from_secs(30);

/// The time between two signs of life on a silent connection.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The estimated size of a token in bytes, if the endpoint doesn't count tokens; typical of English text and JSON.
pub(crate) const BYTES_A_TOKEN: usize = 4;

/// A client of endpoints. Its clones share connections.
#[derive(Clone)]
pub struct Client {
    http: PooledClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// The model's answer. If the endpoint counts no tokens, its usage is estimated at 4 bytes a token.
    pub reply: Reply,
    pub body: Value,
    /// The size of the request's body in bytes.
    pub request_bytes: usize,
    /// The time to the first byte of the answer in milliseconds.
    pub first_byte_ms: u64,
    /// The time to the end of the answer in milliseconds.
    pub ms: u64,
}

impl Received {
    /// Returns the size of the request in bytes, if the endpoint has counted its tokens.
    pub fn counted(&self) -> Option<usize> {
        (!self.reply.usage.is_estimated).then_some(self.request_bytes)
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client(..)")
    }
}

impl Client {
    pub fn new() -> Client {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Networks forget connections that are silent for minutes.
        tcp.set_keepalive(Some(KEEPALIVE));
        let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let http = PooledClient::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(https.wrap_connector(tcp));
        Client { http }
    }

    /// Sends a request's body once and returns the answer. If the endpoint rejects a key that others need, sends the
    /// body again in the form that the endpoint accepts.
    ///
    /// # Errors
    /// If no model answered. The fault's sentence doesn't contain the key.
    pub async fn send(&self, endpoint: &Endpoint, body: &[u8]) -> Result<Received, Fault> {
        let habits = endpoint.habits();
        let sent = loop {
            let adapted = habits.adapt(body);
            match self.exchange(endpoint, &adapted).await {
                Err(fault) if fault.class == FaultClass::Rejected && habits.learn(&adapted, &fault.sentence) => {}
                Ok(received) => break Ok(Received { request_bytes: body.len(), ..received }),
                Err(fault) => break Err(fault),
            }
        };
        sent.map_err(|fault| Fault { sentence: endpoint.without_key(fault.sentence), ..fault })
    }

    async fn exchange(&self, endpoint: &Endpoint, body: &[u8]) -> Result<Received, Fault> {
        let begun = Instant::now();
        let end = begun + endpoint.timeouts().whole;
        let response = self.head(endpoint, &HeaderMap::new(), Bytes::copy_from_slice(body), end).await?;
        let first_byte_ms = begun.elapsed().as_millis() as u64;
        let (status, headers) = (response.status(), response.headers().clone());
        let request_id = request_id(&headers);
        let answer = read_body(response.into_body(), end, endpoint.timeouts().whole).await;
        let read = match status.is_success() {
            true => answer.and_then(|answer| read_answer(endpoint, &answer)),
            // The status says more than a broken body.
            false => read_error(endpoint, status.as_u16(), &headers, &answer.unwrap_or_default()),
        };
        let (mut reply, answer) = read.map_err(|fault| Fault {
            retry_after: fault::retry_after(&headers, now()).or(fault.retry_after),
            request_id: request_id.clone(),
            ..fault
        })?;
        reply.request_id = request_id;
        if status.is_success() && reply.usage == Usage::default() {
            reply.usage = estimate(body.len(), &reply);
        }
        let ms = begun.elapsed().as_millis() as u64;
        Ok(Received { reply, body: answer, request_bytes: body.len(), first_byte_ms, ms })
    }

    /// Sends the request and returns the answer's head. `more` are headers that replace the endpoint's.
    pub(crate) async fn head(
        &self,
        endpoint: &Endpoint,
        more: &HeaderMap,
        body: Bytes,
        end: Instant,
    ) -> Result<Response<Incoming>, Fault> {
        let times = endpoint.timeouts();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.uri().clone();
        *request.headers_mut() = endpoint.headers().clone();
        for (name, value) in more {
            request.headers_mut().insert(name, value.clone());
        }
        let mut connection = capture_connection(&mut request);
        let response = self.http.request(request);
        tokio::pin!(response);
        let connected = async { drop(connection.wait_for_connection_metadata().await) };
        let early = tokio::select! {
            biased;
            response = &mut response => Some(response),
            () = connected => None,
            () = sleep(times.connect) => {
                let sentence = format!("it cannot be connected within {}", seconds(times.connect));
                return Err(Fault::new(FaultClass::Unreachable, sentence));
            }
        };
        let silent = |_| {
            let sentence = format!("it sent no answer within {}", seconds(times.first_byte.min(times.whole)));
            Fault::of_sent(FaultClass::Silent, sentence)
        };
        let sent = match early {
            Some(sent) => sent,
            None => {
                let left = end.saturating_duration_since(Instant::now());
                timeout(times.first_byte.min(left), response).await.map_err(silent)?
            }
        };
        sent.map_err(|error| broken(&error))
    }
}

/// Returns the time of this machine in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "endpoints request pauses until a time of day; no rule depends on it")]
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the provider's id of a request.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get("x-request-id").or_else(|| headers.get("request-id"))?;
    id.to_str().ok().filter(|id| !id.is_empty()).map(str::to_owned)
}

pub(crate) async fn read_body(body: Incoming, end: Instant, whole: Duration) -> Result<Bytes, Fault> {
    let Ok(read) = timeout_at(end, Limited::new(body, ANSWER_BYTES).collect()).await else {
        let sentence = format!("its answer wasn't complete within {}", seconds(whole));
        return Err(Fault::of_sent(FaultClass::Slow, sentence));
    };
    match read {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let sentence = format!("its answer is larger than {} MiB", ANSWER_BYTES >> 20);
            Err(Fault::of_sent(FaultClass::Malformed, sentence))
        }
        Err(error) => {
            let sentence = format!("the connection broke in the middle of its answer: {}", root(&*error));
            Err(Fault::of_sent(FaultClass::Unreachable, sentence))
        }
    }
}

/// Reads the answer of a success status: the model's answer and the whole body.
fn read_answer(endpoint: &Endpoint, answer: &[u8]) -> Result<(Reply, Value), Fault> {
    let malformed = |sentence| Fault::of_sent(FaultClass::Malformed, sentence);
    // An answer is recorded, and a server that repeats its request would repeat the key.
    let cleaned = endpoint.answer_without_key(answer);
    let answer = cleaned.as_deref().unwrap_or(answer);
    // Such an answer may come from a gateway in front of an unreachable endpoint, so a retry may help.
    let body: Value = lenient::parse(answer).map_err(|error| match is_stream(answer) {
        true => malformed("its answer is a stream of events, although the request has `stream: false`".to_owned()),
        false => malformed(format!("its answer isn't JSON ({error})")),
    })?;
    let usage = counted(endpoint, &body);
    if let Some(reply) = fault::refusal(endpoint.api(), 200, &body) {
        return Ok((Reply { usage: usage.unwrap_or_default(), ..reply }, body));
    }
    if let Some(fault) = Fault::in_answer(&body) {
        return Err(Fault { usage, ..fault });
    }
    let reply = read_reply(endpoint.api(), endpoint.tool_use(), &body).map_err(|why| {
        let text = fault::short(&String::from_utf8_lossy(answer));
        let sentence = format!("its answer doesn't fit the API {}: {why}: {text}", endpoint.api());
        Fault { usage, ..malformed(sentence) }
    })?;
    Ok((reply, body))
}

/// Returns the tokens that a body counts.
fn counted(endpoint: &Endpoint, body: &Value) -> Option<Usage> {
    let usage = (endpoint.api().format().read_usage)(&body["usage"]);
    (usage != Usage::default()).then_some(usage)
}

/// Returns true if an answer begins like a stream of events.
fn is_stream(answer: &[u8]) -> bool {
    let begin = answer.trim_ascii_start();
    [&b"data:"[..], b"event:", b":"].iter().any(|line| begin.starts_with(line))
}

/// Reads the answer of an error status: a refusal of the model, or a fault.
fn read_error(endpoint: &Endpoint, status: u16, headers: &HeaderMap, answer: &[u8]) -> Result<(Reply, Value), Fault> {
    let cleaned = endpoint.answer_without_key(answer);
    let answer = cleaned.as_deref().unwrap_or(answer);
    let body: Value = lenient::parse(answer).unwrap_or_default();
    if let Some(reply) = fault::refusal(endpoint.api(), status, &body) {
        return Ok((reply, body));
    }
    let location = headers.get(LOCATION).and_then(|to| to.to_str().ok());
    let usage = counted(endpoint, &body);
    Err(Fault { usage, ..Fault::of_status(status, answer, location, endpoint.key_described().as_deref()) })
}

fn estimate(request_bytes: usize, reply: &Reply) -> Usage {
    let tokens = |bytes: usize| bytes.div_ceil(BYTES_A_TOKEN) as u64;
    let output = tokens(reply.raw.to_string().len());
    Usage { input: tokens(request_bytes), cached: 0, output, reasoning: 0, is_estimated: true }
}

/// Returns the fault of a request without an answer.
fn broken(error: &SendError) -> Fault {
    if let Some(why) = certificate_fault(error) {
        return Fault::new(FaultClass::Rejected, why);
    }
    let cause = root(error);
    if error.is_connect() {
        return Fault::new(FaultClass::Unreachable, format!("it cannot be connected: {cause}"));
    }
    let inner = error.source().and_then(|source| source.downcast_ref::<hyper::Error>());
    if inner.is_some_and(hyper::Error::is_parse) {
        return Fault::of_sent(FaultClass::Malformed, format!("its answer isn't HTTP: {cause}"));
    }
    Fault::of_sent(FaultClass::Unreachable, format!("the connection broke before its answer: {cause}"))
}

/// Returns a description of the fault in the endpoint's certificate, if a bad certificate caused the error. A retry
/// doesn't help against one.
fn certificate_fault(error: &SendError) -> Option<String> {
    let rustls::Error::InvalidCertificate(error) = tls_error(error)? else { return None };
    Some(describe_certificate_fault(error))
}

/// Describes the fault of a server's certificate: "its certificate has expired".
pub fn describe_certificate_fault(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "its certificate is signed by an unknown authority".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate isn't valid yet; check the clock of this machine".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host".to_owned()
        }
        error => format!("its certificate is rejected: {error:?}"),
    }
}

/// Finds the error of TLS among an error's causes. An error of I/O hides its content from the chain of causes.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    let content = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    if let Some(found) = content.and_then(|content| tls_error(content)) {
        return Some(found);
    }
    tls_error(error.source()?)
}

/// Returns the first cause of an error.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
