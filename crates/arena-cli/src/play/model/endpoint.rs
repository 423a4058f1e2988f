//! The endpoint of a language model: URL, key, and retries while the endpoint is busy.
//!
//! The project implements both APIs itself, since it needs only a small part of each. Libraries for many providers
//! would add an HTTP/2 client, some 60 crates, and change the order of keys in all JSON of the workspace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::Agent;

use super::super::news::{self, Inbox};
use super::turn::{Question, Reply};
use super::{anthropic, openai};
use crate::args::Api;
use crate::client::{certificate_fault, is_loopback};
use crate::exit::{Exit, Failure};

/// Time limit of one request; models may take minutes to answer.
const ANSWER: Duration = Duration::from_secs(300);

/// The interval at which a waiting thread checks for an interruption.
const LOOK: Duration = Duration::from_millis(100);

/// The first and the longest pause between two requests. Each pause is twice as long as the one before. An endpoint may
/// request longer pauses.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Maximum size of an answer, in bytes.
const ANSWER_BYTES: u64 = 16 << 20;

/// The maximum length of a quotation from an endpoint's answer, in characters.
const WORDS: usize = 500;

/// The version of the Messages API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

#[derive(Clone)]
pub struct Endpoint {
    agent: Agent,
    api: Api,
    base: String,
    /// The key, which is never printed and is removed from the endpoint's answers.
    key: Option<String>,
}

/// An answer of the endpoint.
pub struct ModelAnswer {
    /// The model's answer.
    pub reply: Reply,
    /// The whole body.
    pub body: Value,
    /// The size of the request, in bytes.
    pub asked_bytes: usize,
}

/// The result of a question and its retries.
pub enum Asked {
    /// The model's answer.
    Answer(Box<ModelAnswer>),
    /// The model didn't answer within the player's time.
    Late,
    /// The session ended while the endpoint was failing. Contains the endpoint's error.
    Over(String),
    /// The endpoint failed permanently, or for longer than the time for retries. Contains the endpoint's error.
    Failed(String),
}

/// The error of one request to the endpoint.
enum Trouble {
    /// A retry may succeed. `pause` is the pause that the endpoint requests, if any. `is_slow` is true if no response
    /// arrived within the time limit.
    Passing { why: String, pause: Option<Duration>, is_slow: bool },
    /// Only the user can fix the cause, such as a wrong key, a missing payment or a wrong model name.
    Lasting(String),
}

impl Api {
    /// Returns the API's name, as on the command line.
    fn name(self) -> &'static str {
        match self {
            Api::Openai => "openai",
            Api::Anthropic => "anthropic",
        }
    }

    /// Returns the environment variable of the key.
    fn key_name(self) -> &'static str {
        match self {
            Api::Openai => "OPENAI_API_KEY",
            Api::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

impl Endpoint {
    /// Creates the endpoint of `api` at `base`, or at the vendor's URL. The vendor's URL requires a key; other URLs
    /// don't.
    ///
    /// # Errors
    /// If the key is missing or invalid.
    pub fn of(api: Api, base: Option<&str>) -> Result<Endpoint, Failure> {
        let name = api.key_name();
        let key = std::env::var(name).ok().filter(|key| !key.is_empty());
        if key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Failure::new(
                Exit::Usage,
                format_args!("{name} isn't a valid key: it contains spaces or non-ASCII characters"),
            ));
        }
        let home = match api {
            Api::Openai => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com",
        };
        if key.is_none() && base.is_none() {
            let sentence =
                format!("{name} isn't set; set it to the key of {home}, or give another endpoint with --api-base");
            return Err(Failure::new(Exit::Usage, sentence));
        }
        let base = base.unwrap_or(home).to_owned();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The client follows no redirects, since a redirect would send the key to another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(Duration::from_secs(15)))
            .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")));
        let config = if is_loopback(&base) { config.proxy(None) } else { config };
        Ok(Endpoint { agent: config.build().new_agent(), api, base, key })
    }

    pub fn api(&self) -> &'static str {
        self.api.name()
    }

    /// Returns the URL.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a question. While the endpoint is busy or unreachable, retries for the time `patience`, unless the session
    /// ends. The callback `retried` receives the reason of each failure and the pause that follows. `deadline` is the
    /// end of the player's time.
    ///
    /// # Errors
    /// If the play was interrupted, or the server is unreachable.
    pub fn ask(
        &self,
        question: &Question<'_>,
        patience: Duration,
        deadline: Option<Instant>,
        inbox: &mut Inbox,
        mut retried: impl FnMut(&str, Duration) -> Result<(), Failure>,
    ) -> Result<Asked, Failure> {
        let body = match self.api {
            Api::Openai => openai::request(question),
            Api::Anthropic => anthropic::request(question),
        }
        .to_string();
        let begun = Instant::now();
        let mut usual = PAUSES.0;
        let mut failed = false;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let limit = left.unwrap_or(ANSWER).clamp(Duration::from_secs(1), ANSWER);
            let (why, pause, is_slow) = match self.try_aside(&body, limit, inbox.called_off())? {
                Ok(answer) => return Ok(Asked::Answer(Box::new(answer))),
                Err(Trouble::Lasting(why)) => return Ok(Asked::Failed(self.without_key(&why))),
                Err(Trouble::Passing { why, pause, is_slow }) => (self.without_key(&why), pause, is_slow),
            };
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if is_slow && left.is_some_and(|left| left.is_zero()) {
                // The model is late only if its own slowness used up the time. After a failure of the endpoint, the
                // endpoint is at fault.
                return Ok(if failed { Asked::Failed(why) } else { Asked::Late });
            }
            let wished = pause
                .filter(|pause| !pause.is_zero())
                .map(|pause| format!("; it requests a pause of {} s", pause.as_secs_f64().ceil()));
            // The pause has a minimum, since some endpoints always request a pause of 0.
            let pause = pause.map_or(usual, |pause| pause.max(usual / 10));
            if pause >= left.unwrap_or(patience).min(patience.saturating_sub(begun.elapsed())) {
                return Ok(Asked::Failed(why + &wished.unwrap_or_default()));
            }
            usual = (usual * 2).min(PAUSES.1);
            failed = true;
            retried(&why, pause)?;
            if inbox.rest(Instant::now() + pause)? {
                return Ok(Asked::Over(why));
            }
        }
    }

    /// Sends the request once, on a separate thread, so that an interruption needn't wait for the answer.
    fn try_aside(
        &self,
        body: &str,
        limit: Duration,
        called_off: &AtomicBool,
    ) -> Result<Result<ModelAnswer, Trouble>, Failure> {
        let (sender, tried) = channel();
        let (endpoint, body) = (self.clone(), body.to_owned());
        // The receiver is dropped after an interruption.
        let ask = move || drop(sender.send(endpoint.try_once(&body, limit)));
        thread::Builder::new().spawn(ask).map_err(|error| {
            Failure::new(Exit::Internal, format_args!("cannot start a thread for the request to the endpoint: {error}"))
        })?;
        loop {
            match tried.recv_timeout(LOOK) {
                Ok(tried) => return Ok(tried),
                Err(RecvTimeoutError::Timeout) => look(called_off)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new(Exit::Internal, "the request to the endpoint was lost"));
                }
            }
        }
    }

    fn try_once(&self, body: &str, limit: Duration) -> Result<ModelAnswer, Trouble> {
        let asked_bytes = body.len();
        let path = match self.api {
            Api::Openai => "/chat/completions",
            Api::Anthropic => "/v1/messages",
        };
        let mut request = self.agent.post(format!("{}{path}", self.base)).header("content-type", "application/json");
        request = match (self.api, &self.key) {
            (Api::Openai, Some(key)) => request.header("authorization", format!("Bearer {key}")),
            (Api::Anthropic, Some(key)) => request.header("x-api-key", key),
            (_, None) => request,
        };
        if self.api == Api::Anthropic {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        let passing = |error: ureq::Error| {
            let is_slow = matches!(error, ureq::Error::Timeout(ureq::Timeout::Global | ureq::Timeout::RecvResponse));
            Trouble::Passing { why: error.to_string(), pause: None, is_slow }
        };
        let sent = request.config().timeout_global(Some(limit)).build().send(body);
        let mut response = sent.map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::HostNotFound => {
                Trouble::Lasting(error.to_string())
            }
            // A retry doesn't help against a bad certificate.
            error => match certificate_fault(&error) {
                Some(why) => Trouble::Lasting(why),
                None => passing(error),
            },
        })?;
        let status = response.status().as_u16();
        let pause = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
        let pause = pause.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let text = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_string().map_err(passing)?;
        let body = serde_json::from_str::<Value>(&text);
        if (200..300).contains(&status) {
            // A response that can't be parsed may come from a gateway in front of an unreachable endpoint, so a retry
            // may help.
            let garbled = |why| Trouble::Passing { why, pause, is_slow: false };
            let body = body.map_err(|error| garbled(format!("its answer isn't JSON ({error})")))?;
            let reply = match self.api {
                Api::Openai => openai::read(&body),
                Api::Anthropic => anthropic::read(&body),
            };
            let reply = reply.ok_or_else(|| {
                let api = self.api.name();
                garbled(format!("its answer doesn't fit the API {api}: {}", short(&text)))
            })?;
            return Ok(ModelAnswer { reply, body, asked_bytes });
        }
        let words = body.ok().and_then(|body| Some(body["error"]["message"].as_str()?.to_owned()));
        let words = words.unwrap_or(text);
        let why = format!("HTTP {status}: {}", short(&words));
        Err(match status {
            401 | 403 if self.key.is_some() => {
                Trouble::Lasting(format!("it rejects the key in {} ({why})", self.api.key_name()))
            }
            401 | 403 => Trouble::Lasting(format!("it requires a key, but {} isn't set ({why})", self.api.key_name())),
            408 | 409 | 425 | 429 | 500.. => Trouble::Passing { why, pause, is_slow: false },
            _ => Trouble::Lasting(why),
        })
    }

    /// Removes the key from a text, since endpoints often quote the key in errors.
    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.as_str(), "[key]"),
            None => text.to_owned(),
        }
    }
}

/// Fails after an interruption.
fn look(called_off: &AtomicBool) -> Result<(), Failure> {
    if called_off.load(Ordering::Relaxed) { Err(news::called_off()) } else { Ok(()) }
}

/// Returns the beginning of an endpoint's answer, on one line.
fn short(text: &str) -> String {
    let words: String = text.trim().chars().take(WORDS).collect();
    words.replace('\n', " ")
}
