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

use super::super::news;
use super::turn::{Question, Reply};
use super::{anthropic, openai};
use crate::args::Api;
use crate::client::is_loopback;
use crate::exit::{Exit, Failure};

/// How long an answer may take. Models think.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often a wait looks whether it has been called off.
const LOOK: Duration = Duration::from_millis(100);

/// How often a question is asked when the endpoint is busy or away.
const TRIES: u32 = 6;

/// The first pause between two of them, of which each that follows is twice as long; and the longest that an endpoint may ask for.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

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

/// Why a try came to nothing.
enum Trouble {
    /// It may help to ask again, after so long if the endpoint says so.
    Passing {
        why: String,
        pause: Option<Duration>,
    },
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

    /// Asks, and asks again while the endpoint is busy or away. `retried` hears of that: why, and after which pause. `deadline`: when an
    /// answer is of no use any more; `None` if there was none until then.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ask(
        &self,
        question: &Question<'_>,
        deadline: Option<Instant>,
        called_off: &AtomicBool,
        mut retried: impl FnMut(&str, Duration) -> Result<(), Failure>,
    ) -> Result<Option<Answer>, Failure> {
        let body = match self.api {
            Api::Openai => openai::request(question),
            Api::Anthropic => anthropic::request(question),
        }
        .to_string();
        let mut usual = PAUSES.0;
        for number in 1.. {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let patience = left.unwrap_or(PATIENCE).clamp(Duration::from_secs(1), PATIENCE);
            match self.try_aside(&body, patience, called_off)? {
                Ok(answer) => return Ok(Some(answer)),
                Err(Trouble::Lasting(why)) => return Err(self.fail(&why)),
                Err(Trouble::Passing { why, .. }) if number == TRIES => {
                    return Err(self.fail(&format!("{why}, {TRIES} times")));
                }
                Err(Trouble::Passing { why, pause }) => {
                    let pause = pause.unwrap_or(usual).min(PAUSES.1);
                    usual *= 2;
                    if deadline.is_some_and(|deadline| Instant::now() + pause >= deadline) {
                        return Ok(None);
                    }
                    retried(&self.without_key(&why), pause)?;
                    let until = Instant::now() + pause;
                    while Instant::now() < until {
                        look(called_off)?;
                        thread::sleep(LOOK.min(pause));
                    }
                }
            }
        }
        unreachable!("the last try returns")
    }

    /// Tries once, on a thread of its own, so that somebody who wants to stop needn't wait for the answer.
    fn try_aside(
        &self,
        body: &str,
        patience: Duration,
        called_off: &AtomicBool,
    ) -> Result<Result<Answer, Trouble>, Failure> {
        let (sender, tried) = channel();
        let (endpoint, body) = (self.clone(), body.to_owned());
        // Nobody may wait for it any more.
        let ask = move || drop(sender.send(endpoint.try_once(&body, patience)));
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

    fn try_once(&self, body: &str, patience: Duration) -> Result<Answer, Trouble> {
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
        let passing = |error: ureq::Error| Trouble::Passing { why: error.to_string(), pause: None };
        let sent = request.config().timeout_global(Some(patience)).build().send(body);
        let mut response = sent.map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::HostNotFound => {
                Trouble::Lasting(error.to_string())
            }
            error => passing(error),
        })?;
        let status = response.status().as_u16();
        let pause = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse::<f64>().ok());
        let pause = pause.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let text = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_string().map_err(passing)?;
        let body = serde_json::from_str::<Value>(&text);
        if (200..300).contains(&status) {
            let body = body.map_err(|error| Trouble::Lasting(format!("its answer isn't JSON ({error})")))?;
            let reply = match self.api {
                Api::Openai => openai::read(&body),
                Api::Anthropic => anthropic::read(&body),
            };
            let reply = reply.ok_or_else(|| {
                let api = self.api.name();
                Trouble::Lasting(format!("its answer isn't one of the API {api}: {}", short(&text)))
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
            408 | 409 | 429 | 500.. => Trouble::Passing { why, pause },
            _ => Trouble::Lasting(why),
        })
    }

    fn fail(&self, why: &str) -> Failure {
        let why = self.without_key(why);
        Failure::new(Exit::ModelFailed, format_args!("the language model's endpoint {} fails: {why}", self.base))
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
