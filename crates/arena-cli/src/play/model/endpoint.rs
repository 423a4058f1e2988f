//! The endpoint of a language model: where it is, which key opens it, and how it is asked again when it is busy.
//!
//! The two APIs are spoken here rather than by a library: those that know many providers bring an HTTP client of their own with HTTP/2,
//! some sixty crates, and change the order of keys in all JSON of the workspace. What is used of each API is a screenful.

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

/// Time limit of one request. Models think.
const ANSWER: Duration = Duration::from_secs(300);

/// How often a wait looks whether it has been called off.
const LOOK: Duration = Duration::from_millis(100);

/// The first pause between two requests, of which each that follows is twice as long, and the longest. An endpoint may ask for more.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Longest answer that is read.
const ANSWER_BYTES: u64 = 16 << 20;

/// How much is told of an endpoint's own words.
const WORDS: usize = 500;

/// The version of the Messages API that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// An endpoint.
#[derive(Clone)]
pub struct Endpoint {
    agent: Agent,
    api: Api,
    base: String,
    /// Never printed, and taken out of what the endpoint says.
    key: Option<String>,
}

/// What came back.
pub struct Answer {
    /// The answer.
    pub reply: Reply,
    /// All that the endpoint said.
    pub body: Value,
    /// How long the question was, in bytes.
    pub asked_bytes: usize,
}

/// The end of a question and its repetitions. Everything but an answer is the endpoint's fault, never the model's.
pub enum Asked {
    /// The model's answer.
    Answer(Box<Answer>),
    /// No answer within the time that the player has.
    Late,
    /// The session ended while the endpoint failed, for this reason.
    Over(String),
    /// The endpoint fails, for this reason.
    Failed(String),
}

/// A request without an answer of the model.
enum Trouble {
    /// Another request may help, after `pause` if the endpoint asks for one. `is_slow`: nothing came within the time limit.
    Passing { why: String, pause: Option<Duration>, is_slow: bool },
    /// Only a person can help: a key, a payment, another model's name.
    Lasting(String),
}

impl Api {
    /// Its name, as on the command line.
    fn name(self) -> &'static str {
        match self {
            Api::Openai => "openai",
            Api::Anthropic => "anthropic",
        }
    }

    /// The environment's variable that holds the key.
    fn key_name(self) -> &'static str {
        match self {
            Api::Openai => "OPENAI_API_KEY",
            Api::Anthropic => "ANTHROPIC_API_KEY",
        }
    }
}

impl Endpoint {
    /// The endpoint that speaks `api`, at `base` or at the address of the API's maker. A key is needed there; others may do without.
    ///
    /// # Errors
    /// When the key is missing or can't be sent.
    pub fn of(api: Api, base: Option<&str>) -> Result<Endpoint, Failure> {
        let name = api.key_name();
        let key = std::env::var(name).ok().filter(|key| !key.is_empty());
        if key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Failure::new(
                Exit::Usage,
                format_args!("what is in {name} isn't a key: it has blanks or is no ASCII"),
            ));
        }
        let home = match api {
            Api::Openai => "https://api.openai.com/v1",
            Api::Anthropic => "https://api.anthropic.com",
        };
        if key.is_none() && base.is_none() {
            let sentence =
                format!("{name} is empty: put the key of {home} there, or name another endpoint with --api-base");
            return Err(Failure::new(Exit::Usage, sentence));
        }
        let base = base.unwrap_or(home).to_owned();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // The key is for this endpoint alone.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(Duration::from_secs(15)))
            .user_agent(concat!("arena/", env!("CARGO_PKG_VERSION")));
        let config = if is_loopback(&base) { config.proxy(None) } else { config };
        Ok(Endpoint { agent: config.build().new_agent(), api, base, key })
    }

    /// What it speaks.
    pub fn api(&self) -> &'static str {
        self.api.name()
    }

    /// Where it is.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Asks, and asks again for `patience` while the endpoint is busy or away, unless the session ends. `retried` hears of each
    /// failed request: the reason, and the pause that follows. `deadline`: the end of the player's time.
    ///
    /// # Errors
    /// When the play was called off, or the arena is lost.
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
                // Only a model that was thinking used up the time; an endpoint that failed before did it otherwise.
                return Ok(if failed { Asked::Failed(why) } else { Asked::Late });
            }
            let wished = pause
                .filter(|pause| !pause.is_zero())
                .map(|pause| format!("; it asks to wait for {} s", pause.as_secs_f64().ceil()));
            // Some ask for no pause at all, again and again.
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

    /// Tries once, on a thread of its own, so that somebody who wants to stop needn't wait for the answer.
    fn try_aside(
        &self,
        body: &str,
        limit: Duration,
        called_off: &AtomicBool,
    ) -> Result<Result<Answer, Trouble>, Failure> {
        let (sender, tried) = channel();
        let (endpoint, body) = (self.clone(), body.to_owned());
        // Nobody may wait for it any more.
        let ask = move || drop(sender.send(endpoint.try_once(&body, limit)));
        thread::Builder::new().spawn(ask).map_err(|error| {
            Failure::new(Exit::Internal, format_args!("the system gives no thread to ask the endpoint: {error}"))
        })?;
        loop {
            match tried.recv_timeout(LOOK) {
                Ok(tried) => return Ok(tried),
                Err(RecvTimeoutError::Timeout) => look(called_off)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new(Exit::Internal, "the question to the endpoint was lost"));
                }
            }
        }
    }

    fn try_once(&self, body: &str, limit: Duration) -> Result<Answer, Trouble> {
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
            // A certificate doesn't become another one by waiting.
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
            // Gateways answer for an endpoint that is away.
            let garbled = |why| Trouble::Passing { why, pause, is_slow: false };
            let body = body.map_err(|error| garbled(format!("its answer isn't JSON ({error})")))?;
            let reply = match self.api {
                Api::Openai => openai::read(&body),
                Api::Anthropic => anthropic::read(&body),
            };
            let reply = reply.ok_or_else(|| {
                let api = self.api.name();
                garbled(format!("its answer isn't one of the API {api}: {}", short(&text)))
            })?;
            return Ok(Answer { reply, body, asked_bytes });
        }
        let words = body.ok().and_then(|body| Some(body["error"]["message"].as_str()?.to_owned()));
        let words = words.unwrap_or(text);
        let why = format!("HTTP {status}: {}", short(&words));
        Err(match status {
            401 | 403 if self.key.is_some() => {
                Trouble::Lasting(format!("it refuses the key in {} ({why})", self.api.key_name()))
            }
            401 | 403 => Trouble::Lasting(format!("it wants a key, and {} is empty ({why})", self.api.key_name())),
            408 | 409 | 425 | 429 | 500.. => Trouble::Passing { why, pause, is_slow: false },
            _ => Trouble::Lasting(why),
        })
    }

    /// The text without the key, which endpoints like to repeat.
    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.as_str(), "[key]"),
            None => text.to_owned(),
        }
    }
}

/// Whether somebody wants to stop.
fn look(called_off: &AtomicBool) -> Result<(), Failure> {
    if called_off.load(Ordering::Relaxed) { Err(news::called_off()) } else { Ok(()) }
}

/// The beginning of an endpoint's own words, on one line.
fn short(text: &str) -> String {
    let words: String = text.trim().chars().take(WORDS).collect();
    words.replace('\n', " ")
}
