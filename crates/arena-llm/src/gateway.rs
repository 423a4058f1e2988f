//! The metering gateway: the endpoint that a command-line agent uses in place of the provider's.
//!
//! The agent has a token for its seat only. The gateway checks it, replaces it by the provider's key, and sends the
//! request to the provider. Answers pass unchanged and unbuffered, and the gateway reads the tokens that the provider
//! reports in them. The seat's model is the only one, tools that the provider would run are removed, and a request
//! whose highest possible price doesn't fit the seat's budget is refused.

mod request;
mod usage;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::channel::Sender;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Channel, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::budget::{Bound, Budget, Caps, Exceeded, Reservation, Spent};
use crate::client::read_body;
use crate::fault::{Fault, FaultClass};
use crate::{Api, Client, Endpoint, EndpointError, Key, Prices};
use request::AgentRequest;
use usage::UsageReader;

/// The maximum size of a request in bytes.
const REQUEST_BYTES: usize = 32 << 20;

/// The maximum number of open calls of a seat; more calls wait.
const OPEN_CALLS: usize = 8;

/// The number of parts of an answer that may wait for a slow agent.
const WAITING_PARTS: usize = 16;

/// The headers of an agent's request that the provider gets.
const TO_PROVIDER: [&str; 5] = ["accept", "anthropic-beta", "anthropic-version", "openai-beta", "session_id"];

/// The headers of an answer that the agent gets.
const TO_AGENT: [&str; 6] =
    ["content-type", "openai-model", "request-id", "retry-after", "retry-after-ms", "x-request-id"];

pub type GatewayBody = BoxBody<Bytes, io::Error>;

#[derive(Debug, Clone)]
pub struct GatewaySpec {
    /// The provider's API. The two APIs of OpenAI belong together.
    pub api: Api,
    /// The provider's base URL, as of [`Endpoint::new`].
    pub base: String,
    pub key: Option<Key>,
    /// The model at the provider, which replaces the model in all requests.
    pub model: String,
    pub prices: Option<Prices>,
    pub caps: Caps,
    /// The maximum number of output tokens of a call. Higher limits in requests are lowered to it.
    pub max_output_tokens: u64,
    pub token: String,
}

/// The measurements of a seat's calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metered {
    /// The calls with an answer of the model, their tokens, and their cost in US dollars.
    pub spent: Spent,
    /// The total time of these calls in milliseconds, from the request to the end of the answer.
    pub ms: u64,
    /// The number of calls that the provider refused or didn't answer.
    pub failed: u64,
    /// The number of calls that were refused because their price didn't fit the budget.
    pub over_budget: u64,
    /// The failure of the provider in a sentence, while it lasts. The agent isn't at fault.
    pub outage: Option<String>,
}

#[derive(Debug)]
pub struct Gateway {
    api: Api,
    endpoints: Vec<Endpoint>,
    spec: GatewaySpec,
    client: Client,
    budget: Arc<Budget>,
    open: Arc<Semaphore>,
    metered: Mutex<Metered>,
}

/// A call whose answer isn't complete. It counts when it is dropped.
struct OpenCall {
    gateway: Arc<Gateway>,
    reservation: Option<Reservation>,
    bound: Bound,
    reader: UsageReader,
    begun: Instant,
    is_complete: bool,
    _slot: OwnedSemaphorePermit,
}

impl Gateway {
    /// Creates a gateway.
    ///
    /// # Errors
    /// If the base isn't a URL of HTTP.
    pub fn new(spec: GatewaySpec) -> Result<Arc<Gateway>, EndpointError> {
        let apis: &[Api] = match spec.api {
            Api::AnthropicMessages => &[Api::AnthropicMessages],
            Api::ChatCompletions | Api::Responses => &[Api::ChatCompletions, Api::Responses],
        };
        let endpoints = apis
            .iter()
            .map(|api| Endpoint::new(*api, &spec.base, spec.key.clone()))
            .collect::<Result<Vec<_>, EndpointError>>()?;
        Ok(Arc::new(Gateway {
            api: spec.api,
            endpoints,
            client: Client::new(),
            budget: Budget::of_seat(spec.caps),
            open: Arc::new(Semaphore::new(OPEN_CALLS)),
            metered: Mutex::default(),
            spec,
        }))
    }

    pub fn metered(&self) -> Metered {
        let metered = self.metered.lock().clone();
        Metered { spent: self.budget.spent(), ..metered }
    }

    /// Waits for the end of all open calls, but no longer than `patience`. The provider may count the tokens of an
    /// answer that the agent no longer reads.
    pub async fn settle(&self, patience: Duration) {
        let _ = tokio::time::timeout(patience, self.open.acquire_many(OPEN_CALLS as u32)).await;
    }

    pub async fn answer<B>(self: &Arc<Self>, request: Request<B>) -> Response<GatewayBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if !has_token(request.headers(), &self.spec.token) {
            let sentence = "the key isn't the token of this seat";
            return self.refusal(StatusCode::UNAUTHORIZED, "authentication_error", sentence);
        }
        let path = request.uri().path();
        if request.method() == Method::GET && path == "/v1/models" {
            let model = json!({"id": self.spec.model, "object": "model", "type": "model"});
            return respond(StatusCode::OK, &json!({"object": "list", "data": [model]}));
        }
        let is_at = |endpoint: &&Endpoint| {
            let own = endpoint.api().format().path;
            path == own || path.strip_prefix("/v1") == Some(own)
        };
        let Some(endpoint) = self.endpoints.iter().find(is_at).filter(|_| request.method() == Method::POST) else {
            let sentence = format!("the gateway has no {} {path}", request.method());
            return self.refusal(StatusCode::NOT_FOUND, "not_found_error", &sentence);
        };
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, REQUEST_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let sentence = format!("the request is larger than {} MiB", REQUEST_BYTES >> 20);
                return self.refusal(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", &sentence);
            }
            Err(_) => return self.refusal(StatusCode::BAD_REQUEST, "invalid_request_error", "the body is incomplete"),
        };
        match AgentRequest::read(endpoint.api(), &body, &self.spec.model, self.spec.max_output_tokens) {
            Ok(asked) => self.forward(endpoint, &parts.headers, asked).await,
            Err(sentence) => self.refusal(StatusCode::BAD_REQUEST, "invalid_request_error", &sentence),
        }
    }

    /// Sends a request to the provider, if the budget allows it.
    async fn forward(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        headers: &HeaderMap,
        asked: AgentRequest,
    ) -> Response<GatewayBody> {
        let Ok(slot) = Arc::clone(&self.open).acquire_owned().await else {
            return self.refusal(StatusCode::SERVICE_UNAVAILABLE, "api_error", "the match is over");
        };
        let bound = Bound::of(&asked.body, asked.output_tokens, self.spec.prices.as_ref());
        let reservation = match self.budget.reserve(0, bound.amount()).await {
            Ok(reservation) => reservation,
            Err(exceeded) => {
                self.metered.lock().over_budget += 1;
                return self.over_budget(exceeded);
            }
        };
        let begun = Instant::now();
        let end = begun + endpoint.timeouts().whole;
        let mut call = OpenCall {
            gateway: Arc::clone(self),
            reservation: Some(reservation),
            bound,
            reader: UsageReader::new(endpoint.api(), asked.body.len()),
            begun,
            is_complete: false,
            _slot: slot,
        };
        let more = chosen(headers, &TO_PROVIDER);
        let response = match self.client.head(endpoint, &more, asked.body, end).await {
            Ok(response) => response,
            Err(fault) => return self.failed(&mut call, endpoint, fault),
        };
        let status = response.status();
        if !status.is_success() {
            return self.pass_error(&mut call, endpoint, response, end).await;
        }
        self.metered.lock().outage = None;
        let mut answer = Response::builder().status(status);
        if let Some(answer) = answer.headers_mut() {
            *answer = chosen(response.headers(), &TO_AGENT);
        }
        let is_stream =
            response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        call.reader.is_stream = is_stream;
        let (sender, body) = Channel::<Bytes, io::Error>::new(WAITING_PARTS);
        tokio::spawn(pass_on(call, response.into_body(), sender, end));
        answer.body(body.boxed()).expect("the status and headers are those of a response")
    }

    /// Passes the provider's error to the agent, without the key.
    async fn pass_error(
        &self,
        call: &mut OpenCall,
        endpoint: &Endpoint,
        response: Response<Incoming>,
        end: Instant,
    ) -> Response<GatewayBody> {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response.into_body(), end, endpoint.timeouts().whole).await.unwrap_or_default();
        let body = endpoint.answer_without_key(&body).map_or(body, Bytes::from);
        let location = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        let key = endpoint.key_described();
        let fault = Fault::of_status(status.as_u16(), &body, location, key.as_deref());
        if status.is_redirection() || status.is_informational() {
            return self.failed(call, endpoint, fault);
        }
        self.note(call, &fault);
        let mut answer = Response::new(whole(body));
        *answer.status_mut() = status;
        *answer.headers_mut() = chosen(&headers, &TO_AGENT);
        answer
    }

    /// Answers a call that the provider didn't answer.
    fn failed(&self, call: &mut OpenCall, endpoint: &Endpoint, fault: Fault) -> Response<GatewayBody> {
        let fault = Fault { sentence: endpoint.without_key(fault.sentence), ..fault };
        self.note(call, &fault);
        self.refusal(StatusCode::BAD_GATEWAY, "api_error", &format!("the provider failed: {}", fault.sentence))
    }

    /// Counts a fault of the provider. A rejected request is the agent's own.
    fn note(&self, call: &mut OpenCall, fault: &Fault) {
        call.reservation = None;
        let mut metered = self.metered.lock();
        metered.failed += 1;
        if fault.class != FaultClass::Rejected {
            metered.outage = Some(fault.sentence.clone());
        }
    }

    /// Refuses a call that doesn't fit the budget, as the provider would without credit. The header stops the retries
    /// of the providers' own clients.
    fn over_budget(&self, exceeded: Exceeded) -> Response<GatewayBody> {
        let cap = match exceeded {
            Exceeded::Run("tokens") => format!("{} tokens", self.spec.caps.tokens.unwrap_or_default()),
            Exceeded::Run("calls") => format!("{} calls", self.spec.caps.calls.unwrap_or_default()),
            Exceeded::Run(_) => format!("{} US dollars", self.spec.caps.usd.unwrap_or_default()),
            Exceeded::Model(usd) => format!("{usd} US dollars"),
        };
        let spent = self.budget.spent();
        let sentence = format!(
            "The highest possible price of this request exceeds the rest of the seat's budget of {cap}: {} calls have cost \
             {:.4} US dollars and {} tokens.",
            spent.calls,
            spent.usd,
            spent.usage.tokens()
        );
        let mut answer = self.refusal(StatusCode::PAYMENT_REQUIRED, "billing_error", &sentence);
        answer.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        answer
    }

    /// Returns an error in the provider's format.
    fn refusal(&self, status: StatusCode, kind: &str, sentence: &str) -> Response<GatewayBody> {
        let body = match self.api {
            Api::AnthropicMessages => json!({"type": "error", "error": {"type": kind, "message": sentence}}),
            Api::ChatCompletions | Api::Responses => {
                let kind = if kind == "billing_error" { "insufficient_quota" } else { kind };
                json!({"error": {"message": sentence, "type": kind, "code": kind, "param": null}})
            }
        };
        respond(status, &body)
    }
}

/// Passes an answer to the agent while it arrives. If the agent disconnects, the rest is read nevertheless, because the
/// provider counts the whole answer.
async fn pass_on(mut call: OpenCall, mut body: Incoming, sender: Sender<Bytes, io::Error>, end: Instant) {
    let mut sender = Some(sender);
    loop {
        let frame = match timeout_at(end, body.frame()).await {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                let sentence = format!("the connection broke in the middle of its answer: {error}");
                call.break_off(sender, sentence);
                return;
            }
            Err(_) => {
                call.break_off(sender, "its answer wasn't complete in time".to_owned());
                return;
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        call.reader.read(&data);
        if let Some(channel) = &mut sender
            && channel.send_data(data).await.is_err()
        {
            sender = None;
        }
    }
    // The measurements are complete before the agent sees the end of the answer.
    call.is_complete = true;
    drop(call);
    drop(sender);
}

impl OpenCall {
    fn break_off(self, sender: Option<Sender<Bytes, io::Error>>, sentence: String) {
        self.gateway.metered.lock().outage = Some(sentence.clone());
        drop(self);
        if let Some(sender) = sender {
            sender.abort(io::Error::other(sentence));
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else { return };
        let prices = self.gateway.spec.prices.as_ref();
        let usage = self.bound.believe(self.reader.usage(self.is_complete), prices);
        reservation.settle(Spent::of_call(usage, prices));
        self.gateway.metered.lock().ms += self.begun.elapsed().as_millis() as u64;
    }
}

/// Returns true if a request has the seat's token, in the way of either provider.
pub fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let key = headers.get("x-api-key").map(HeaderValue::as_bytes);
    [bearer, key].into_iter().flatten().any(|given| is_equal(given, token.as_bytes()))
}

/// Compares two texts in a time that depends on their lengths only.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn chosen(headers: &HeaderMap, names: &[&'static str]) -> HeaderMap {
    let found = names.iter().filter_map(|name| Some((HeaderName::from_static(name), headers.get(*name)?.clone())));
    found.collect()
}

fn whole(body: Bytes) -> GatewayBody {
    Full::new(body).map_err(|never| match never {}).boxed()
}

fn respond(status: StatusCode, body: &Value) -> Response<GatewayBody> {
    let mut answer = Response::new(whole(body.to_string().into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

#[cfg(test)]
mod tests;
