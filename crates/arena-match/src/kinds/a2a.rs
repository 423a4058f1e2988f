//! Agents that are services of the Agent2Agent protocol: `a2a:URL`.
//!
//! Each state is a message to the service: a text with the news, which explains the tools in the first message, and the
//! state as data. The service answers like a language model without tools of its own, or with the actions as data. All
//! messages of a match have the same context. Versions 1.0 and 0.3 are supported, with JSON-RPC over HTTP.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arena_llm::{Api, Reply, ToolCall, ToolUse, read_reply, request_body};
use arena_model::{GameType, TimeLimits, hex};
use serde_json::{Map, Value, json};

use super::model::{MatchTalk, play_state, random_mark};
use super::{AgentText, BuiltInPlayer, PlayerAnswer, PlayerError, Recipe, SeatStart};
use crate::http;

/// The path of the agent card, which names the service's addresses.
const CARD_PATH: &str = "/.well-known/agent-card.json";

/// The maximum size of an answer in bytes.
const ANSWER_BYTES: u64 = 1 << 20;

/// The maximum length of a quotation from an answer, in characters.
const QUOTED: usize = 200;

/// The pauses between two requests for the state of a task.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// The service that a text names.
#[derive(Debug)]
struct A2aRecipe {
    text: String,
    /// The address of the agent card.
    card: String,
}

/// Parses what follows `a2a:`, the URL of a service or of its card.
pub(super) fn read_a2a(AgentText { whole, rest, .. }: AgentText<'_>) -> Result<Arc<dyn Recipe>, String> {
    check_url(rest).map_err(|why| format!("`{whole}` names no service: {why}"))?;
    let card = match rest.ends_with(".json") {
        true => rest.to_owned(),
        false => format!("{}{CARD_PATH}", rest.trim_end_matches('/')),
    };
    Ok(Arc::new(A2aRecipe { text: whole.to_owned(), card }))
}

/// Checks that a text is a URL of HTTP without a password, which results would show.
fn check_url(url: &str) -> Result<(), String> {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Err("its URL must begin with http:// or https://".to_owned());
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host {
        "" => Err("its URL has no host".to_owned()),
        host if host.contains('@') => Err("its URL contains a name or password".to_owned()),
        _ => Ok(()),
    }
}

impl Recipe for A2aRecipe {
    fn text(&self) -> &str {
        &self.text
    }

    fn check(&self, _game: &GameType) -> Result<(), String> {
        Ok(())
    }

    fn player(&self, start: SeatStart<'_>) -> Result<Box<dyn BuiltInPlayer>, String> {
        let mark = random_mark()?;
        Ok(Box::new(A2aPlayer {
            client: A2aClient {
                http: http::client(Duration::from_secs(3600), start.public_only),
                card: self.card.clone(),
                service: None,
                nonce: random_mark().map(|mark| hex::encode(&mark))?,
                sent: 0,
                context: None,
                task: None,
            },
            limits: start.limits,
            talk: MatchTalk::new(start.game, start.id, start.config, &hex::encode(&mark)),
        }))
    }
}

/// A service in one match.
struct A2aPlayer {
    client: A2aClient,
    limits: TimeLimits,
    talk: MatchTalk,
}

impl BuiltInPlayer for A2aPlayer {
    fn actions(&mut self, state: &Map<String, Value>) -> Result<PlayerAnswer, PlayerError> {
        let client = &mut self.client;
        let mut data = Some(state);
        let actions = play_state(&mut self.talk, state, self.limits, |talk, left| {
            let is_board = talk.is_board();
            let body = request_body(Api::ChatCompletions, ToolUse::Text, &talk.question(""));
            let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
            let content = |message: Option<&Value>| {
                message.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned()
            };
            let news = content(messages.last());
            let text = match client.sent {
                0 => format!("{}\n\n{news}", content(messages.first())),
                _ => news,
            };
            client.ask(&text, data.take(), Instant::now() + left)?.reply(is_board)
        })?;
        Ok(actions.into())
    }
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// 1.0 and later.
    One,
    /// 0.3 and earlier.
    Zero,
}

/// The service's JSON-RPC interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Interface {
    url: String,
    version: Version,
}

/// The texts and the data in a service's answer.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    actions: Option<Vec<Value>>,
}

/// A client of one service in one match.
#[derive(Debug)]
struct A2aClient {
    http: ureq::Agent,
    card: String,
    service: Option<Interface>,
    /// The beginning of message ids, which are unique.
    nonce: String,
    /// The number of messages sent.
    sent: u64,
    /// The context that the service has chosen.
    context: Option<String>,
    /// The task that waits for the next message.
    task: Option<String>,
}

/// The result of a request.
#[derive(Debug, PartialEq)]
enum Outcome {
    Said(Said),
    /// The task with this id is in work.
    Working(String),
}

impl A2aClient {
    /// Sends a message and returns the answer. An error is a description in words that follow the agent's name.
    fn ask(&mut self, text: &str, data: Option<&Map<String, Value>>, until: Instant) -> Result<Said, String> {
        let service = match &self.service {
            Some(service) => service.clone(),
            None => {
                let found = self.find_interface(until)?;
                self.service = Some(found.clone());
                found
            }
        };
        self.sent += 1;
        let mut parts = vec![part(service.version, "text", text.into())];
        if let Some(state) = data {
            parts.push(part(service.version, "data", json!({ "state": state })));
        }
        let role = if service.version == Version::One { "ROLE_USER" } else { "user" };
        let mut message = json!({"messageId": format!("{}-{}", self.nonce, self.sent), "role": role, "parts": parts});
        if let Some(context) = &self.context {
            message["contextId"] = context.as_str().into();
        }
        if let Some(task) = self.task.take() {
            message["taskId"] = task.into();
        }
        let modes = json!(["text/plain", "application/json"]);
        let params = match service.version {
            Version::One => json!({"message": message, "configuration": {"acceptedOutputModes": modes}}),
            Version::Zero => {
                message["kind"] = "message".into();
                json!({"message": message, "configuration": {"acceptedOutputModes": modes, "blocking": true}})
            }
        };
        let method = if service.version == Version::One { "SendMessage" } else { "message/send" };
        let mut result = self.call(&service, method, &params, until)?;
        let mut pause = PAUSES[0];
        loop {
            match self.read(&result)? {
                Outcome::Said(said) => return Ok(said),
                Outcome::Working(id) => {
                    if Instant::now() + pause >= until {
                        return Err("didn't finish its task in time".to_owned());
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                    let method = if service.version == Version::One { "GetTask" } else { "tasks/get" };
                    result = self.call(&service, method, &json!({ "id": id }), until)?;
                }
            }
        }
    }

    /// Reads the agent card.
    fn find_interface(&self, until: Instant) -> Result<Interface, String> {
        let left = left(until)?;
        let sent = self.http.get(&self.card).config().timeout_global(Some(left)).build().call();
        let card = read_answer(sent).map_err(|why| format!("has no agent card at {}: it {why}", self.card))?;
        let found = interface(&card).ok_or("has no interface with JSON-RPC in its agent card")?;
        check_url(&found.url).map_err(|why| format!("has a bad agent card: {why}"))?;
        Ok(found)
    }

    /// Calls a method and returns its result.
    fn call(&self, service: &Interface, method: &str, params: &Value, until: Instant) -> Result<Value, String> {
        let left = left(until)?;
        let body = json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}).to_string();
        let mut request = self.http.post(&service.url).header("content-type", "application/json");
        if service.version == Version::One {
            request = request.header("a2a-version", "1.0");
        }
        let sent = request.header("accept", "application/json").config().timeout_global(Some(left)).build().send(body);
        let mut answer = read_answer(sent)?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            let message = error["message"].as_str().unwrap_or("without a message");
            return Err(format!("answered with the error {}: {}", error["code"], quoted(message)));
        }
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(format!("sent no result: {}", quoted(&answer.to_string()))),
        }
    }

    /// Reads the result of a request: a message or a task.
    fn read(&mut self, result: &Value) -> Result<Outcome, String> {
        let is_kind = |kind: &str| result["kind"] == kind;
        let task = result.get("task").or_else(|| (is_kind("task") || result.get("status").is_some()).then_some(result));
        let message =
            result.get("message").or_else(|| (is_kind("message") || result.get("parts").is_some()).then_some(result));
        let Some(content) = task.or(message) else {
            return Err(format!("sent neither a message nor a task: {}", quoted(&result.to_string())));
        };
        if let Some(context) = content["contextId"].as_str().filter(|context| !context.is_empty()) {
            self.context = Some(context.to_owned());
        }
        let Some(task) = task else { return Ok(Outcome::Said(said([content]))) };
        let status = &task["status"];
        let state = status["state"].as_str().unwrap_or_default().to_ascii_lowercase().replace('_', "-");
        let id = task["id"].as_str().unwrap_or_default();
        match state.strip_prefix("task-state-").unwrap_or(&state) {
            "completed" => {
                let artifacts = task["artifacts"].as_array().into_iter().flatten();
                Ok(Outcome::Said(said(std::iter::once(&status["message"]).chain(artifacts))))
            }
            "input-required" => {
                self.task = Some(id.to_owned()).filter(|id| !id.is_empty());
                Ok(Outcome::Said(said([&status["message"]])))
            }
            "submitted" | "working" if !id.is_empty() => Ok(Outcome::Working(id.to_owned())),
            state => {
                let why = said([&status["message"]]).text;
                let colon = if why.trim().is_empty() { "" } else { ": " };
                Err(format!("ended its task as `{}`{colon}{}", quoted(state), quoted(&why)))
            }
        }
    }
}

/// Returns a part of a message.
fn part(version: Version, kind: &str, content: Value) -> Value {
    let mut part = json!({});
    part[kind] = content;
    if version == Version::Zero {
        part["kind"] = kind.into();
    }
    part
}

/// Returns the time until the deadline.
fn left(until: Instant) -> Result<Duration, String> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err("didn't answer in time".to_owned()) } else { Ok(left) }
}

/// Reads an answer of HTTP as JSON. An error is a description in words that follow the agent's name.
fn read_answer(sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, String> {
    let mut response = sent.map_err(|error| http::explain(&error))?;
    let status = response.status();
    if status.is_redirection() {
        let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("another address");
        return Err(format!("redirects to {}; give that URL", quoted(to)));
    }
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return Err("answered with a stream of events instead of JSON".to_owned());
    }
    let body = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec().map_err(|error| match error {
        ureq::Error::BodyExceedsLimit(_) => format!("sent an answer of more than {} MiB", ANSWER_BYTES >> 20),
        error => http::explain(&error),
    })?;
    let shown = || quoted(&String::from_utf8_lossy(&body));
    match serde_json::from_slice(&body) {
        // Some services report errors of JSON-RPC with an error status.
        Ok(Value::Object(answer)) if status.is_success() || answer.contains_key("error") => Ok(Value::Object(answer)),
        _ if !status.is_success() => Err(format!("answered HTTP {status}: {}", shown())),
        Ok(_) | Err(_) => Err(format!("sent an answer that isn't a JSON object: {}", shown())),
    }
}

/// Finds the interface in an agent card: of version 1, or else of version 0.
fn interface(card: &Value) -> Option<Interface> {
    let listed = card["supportedInterfaces"].as_array().into_iter().flatten();
    let mut found: Vec<Interface> = listed
        .filter(|entry| entry["protocolBinding"] == "JSONRPC")
        .filter_map(|entry| {
            let is_zero = entry["protocolVersion"].as_str().is_some_and(|version| version.starts_with("0."));
            let version = if is_zero { Version::Zero } else { Version::One };
            Some(Interface { url: entry["url"].as_str()?.to_owned(), version })
        })
        .collect();
    found.sort_by_key(|interface| interface.version == Version::Zero);
    found.into_iter().next().or_else(|| {
        let is_rpc = |name: &Value| name.is_null() || name == "JSONRPC";
        let more = card["additionalInterfaces"].as_array().into_iter().flatten();
        let own = is_rpc(&card["preferredTransport"]).then_some(&card["url"]);
        let other = || more.clone().find(|entry| entry["transport"] == "JSONRPC").map(|entry| &entry["url"]);
        let url = own.or_else(other)?.as_str()?;
        Some(Interface { url: url.to_owned(), version: Version::Zero })
    })
}

/// Collects the parts of messages and artifacts.
fn said<'v>(contents: impl IntoIterator<Item = &'v Value>) -> Said {
    let mut said = Said::default();
    let mut texts = Vec::new();
    for part in contents.into_iter().flat_map(|content| content["parts"].as_array().into_iter().flatten()) {
        if let Some(text) = part["text"].as_str() {
            texts.push(text.to_owned());
        }
        if let Some(data) = part.get("data").filter(|data| data.is_object()) {
            match data["actions"].as_array() {
                Some(actions) => said.actions = Some(actions.clone()),
                None => texts.push(data.to_string()),
            }
        }
    }
    said.text = texts.join("\n");
    said
}

impl Said {
    /// Returns the answer as that of a language model.
    fn reply(self, is_board: bool) -> Result<Reply, String> {
        let body = json!({"choices": [{"message": {"content": self.text}}]});
        let mut reply = read_reply(Api::ChatCompletions, ToolUse::Text, &body)?;
        if let Some(actions) = self.actions {
            reply.calls = calls(&actions, is_board);
        }
        Ok(reply)
    }
}

/// Returns the tool calls that mean these actions.
fn calls(actions: &[Value], is_board: bool) -> Vec<ToolCall> {
    let call = |number: usize, name: String, arguments: Value| ToolCall {
        id: format!("call_{number}"),
        name,
        arguments: arguments.as_object().cloned().ok_or_else(|| "the arguments aren't an object".to_owned()),
    };
    if actions.is_empty() {
        return vec![call(0, "wait".to_owned(), json!({}))];
    }
    if is_board {
        return vec![call(0, "act_actions".to_owned(), json!({"content": json!(actions).to_string()}))];
    }
    let each = actions.iter().enumerate().map(|(number, action)| match action["action"].as_str() {
        Some("chat") => call(number, "chat".to_owned(), json!({"text": action["content"], "to": action["to"]})),
        method => {
            let name = format!("act_{}", method.unwrap_or("?"));
            call(number, name, json!({"content": action["content"]}))
        }
    });
    each.collect()
}

/// Returns the beginning of a text on one line.
fn quoted(text: &str) -> String {
    let line: String =
        text.trim().chars().map(|char| if char.is_control() { ' ' } else { char }).take(QUOTED).collect();
    if line.len() < text.trim().len() { line + "…" } else { line }
}

#[cfg(test)]
mod tests;
