//! The APIs of model endpoints. Each API is a file below this module with two functions: one makes the body of a
//! request, one reads the body of an answer. [`Api::format`] is their registry. Pure.

mod anthropic_messages;
mod chat_completions;
mod part;
mod responses;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::conversation::{Finish, Question, Reply, ToolCall, ToolUse, Usage, whole};
use crate::{lenient, text_tools};
use part::Part;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Chat Completions of OpenAI, which most model servers support.
    ChatCompletions,
    /// Responses of OpenAI.
    Responses,
    /// Messages of Anthropic.
    AnthropicMessages,
}

pub(crate) struct ApiFormat {
    /// The API's name in run files and options.
    pub name: &'static str,
    /// The path after the base URL.
    pub path: &'static str,
    /// The header of the key, and the text before the key.
    pub key_header: (&'static str, &'static str),
    /// Another header of each request.
    pub header: Option<(&'static str, &'static str)>,
    body: for<'q> fn(&Question<'q>) -> Part<'q>,
    read: fn(&Value) -> Result<Reply, String>,
    /// Reads the object `usage` of an answer.
    pub read_usage: fn(&Value) -> Usage,
    /// Returns the key of a request that limits the output tokens of this model.
    pub limit_key: fn(&str) -> &'static str,
}

static FORMATS: [ApiFormat; 3] = [chat_completions::FORMAT, responses::FORMAT, anthropic_messages::FORMAT];

impl Api {
    pub const ALL: [Api; 3] = [Api::ChatCompletions, Api::Responses, Api::AnthropicMessages];

    /// Returns the name in run files and options, such as `chat-completions`.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    /// Returns true if requests contain the sampling seed of [`crate::Params::seed`].
    pub fn takes_seed(self) -> bool {
        self == Api::ChatCompletions
    }

    pub(crate) fn format(self) -> &'static ApiFormat {
        match self {
            Api::ChatCompletions => &FORMATS[0],
            Api::Responses => &FORMATS[1],
            Api::AnthropicMessages => &FORMATS[2],
        }
    }

    /// Returns the raw form of an answer with this text alone, as [`Reply::raw`] has it.
    pub(crate) fn plain_answer(self, text: &str) -> Value {
        match self {
            Api::ChatCompletions => json!({"role": "assistant", "content": text}),
            Api::Responses | Api::AnthropicMessages if text.is_empty() => json!([]),
            Api::Responses => json!([{"role": "assistant", "content": text}]),
            Api::AnthropicMessages => json!([{"type": "text", "text": text}]),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no API `{0}`; the APIs are chat-completions, responses and anthropic-messages")]
pub struct UnknownApi(pub String);

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Api, UnknownApi> {
        Api::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| UnknownApi(name.to_owned()))
    }
}

/// Returns the body of a request as JSON. Keys are sorted.
pub fn request_body(api: Api, tool_use: ToolUse, question: &Question<'_>) -> Value {
    with_body(api, tool_use, question, |body| serde_json::to_value(body).expect("all keys are strings"))
}

/// Returns the body of a request as JSON text: the same bytes as the text of [`request_body`], at a lower cost, since
/// the conversation isn't copied before.
pub fn request_bytes(api: Api, tool_use: ToolUse, question: &Question<'_>) -> Vec<u8> {
    with_body(api, tool_use, question, |body| serde_json::to_vec(body).expect("all keys are strings"))
}

fn with_body<T>(api: Api, tool_use: ToolUse, question: &Question<'_>, write: impl FnOnce(&Part<'_>) -> T) -> T {
    let body = api.format().body;
    match tool_use {
        ToolUse::Native => write(&body(question)),
        ToolUse::Text => {
            let (system, turns) = (text_tools::system(question), text_tools::turns(question.turns));
            let plain = Question { system: &system, tools: &[], turns: &turns, ..*question };
            write(&body(&plain))
        }
    }
}

/// Parses the model's answer in a response body.
///
/// # Errors
/// If the body contains no answer. The error says what is missing.
pub fn read_reply(api: Api, tool_use: ToolUse, body: &Value) -> Result<Reply, String> {
    let mut reply = (api.format().read)(body)?;
    match tool_use {
        ToolUse::Native => {}
        ToolUse::Text if reply.calls.is_empty() => reply.calls.extend(text_tools::call(&reply.text)),
        // The results of calls go back as text. APIs reject calls in the history without results of their own.
        ToolUse::Text => reply.raw = api.plain_answer(&text_tools::with_calls(&reply)),
    }
    Ok(reply)
}

/// Returns the first word of the reason for the end of an answer, in small letters. Gateways pass on the words of the
/// provider, such as `content_filter: PROHIBITED_CONTENT` or `FinishReason.SAFETY`.
fn finish_word(reason: &Value) -> String {
    let reason = reason.as_str().unwrap_or_default().trim();
    let word = reason.split([':', ' ']).next().unwrap_or_default();
    word.rsplit('.').next().unwrap_or_default().to_ascii_lowercase()
}

/// Returns the end of an answer by its reason, in the words of any provider. An unknown reason is no fault: the content
/// of the answer decides.
fn finish_of(reason: &Value) -> Finish {
    match finish_word(reason).as_str() {
        "content_filter"
        | "content_filtered"
        | "refusal"
        | "refused"
        | "safety"
        | "image_safety"
        | "recitation"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "language"
        | "sensitive"
        | "guardrail_intervened" => Finish::Refused,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "max_length"
        | "model_length"
        | "model_context_window_exceeded" => Finish::Length,
        _ => Finish::Done,
    }
}

/// Returns the reason for the end of an answer in a body, if it says that the provider failed. The model isn't at fault
/// then, even if the answer has a part of its text.
pub(crate) fn failed_finish(body: &Value) -> Option<String> {
    let incomplete = &body["incomplete_details"]["reason"];
    let reasons = [&body["choices"][0]["finish_reason"], &body["stop_reason"], &body["status"], incomplete];
    let mut words = reasons.into_iter().map(finish_word);
    words.find(|word| {
        matches!(
            word.as_str(),
            "error" | "failed" | "network_error" | "insufficient_system_resource" | "abort" | "cancelled" | "canceled"
        )
    })
}

/// Returns the id of a tool call. Some servers send none, or one id for all calls of an answer. The number of the call
/// then replaces it. `before` are the answer's earlier calls.
fn call_id(given: &Value, before: &[ToolCall]) -> String {
    let is_taken = |id: &str| before.iter().any(|call| call.id == id);
    match given.as_str() {
        Some(id) if !id.is_empty() && !is_taken(id) => id.to_owned(),
        _ => {
            let mut numbers = (before.len()..).map(|number| format!("call_{number}"));
            numbers.find(|id| !is_taken(id)).unwrap_or_default()
        }
    }
}

/// Returns true for a value that means the same as a missing one. Servers reject many of their own empty values.
fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Parses the arguments of a tool call: a JSON object, or its text. Some servers format the text twice.
fn read_arguments(arguments: &Value) -> Result<Map<String, Value>, String> {
    let mut arguments = arguments.clone();
    for _ in 0..3 {
        match arguments {
            Value::Object(arguments) => return Ok(arguments),
            Value::Null => return Ok(Map::new()),
            Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
            Value::String(text) => {
                arguments = lenient::parse(text.as_bytes())
                    .map_err(|error| format!("the arguments aren't a JSON object: {error}"))?;
            }
            _ => break,
        }
    }
    Err("the arguments aren't a JSON object".to_owned())
}

/// Formats the arguments of a tool call for the history. Servers reject arguments that aren't JSON, even if the
/// server's own model produced them.
fn arguments_text(arguments: &Result<Map<String, Value>, String>) -> String {
    let text = arguments.as_ref().ok().and_then(|arguments| serde_json::to_string(arguments).ok());
    text.unwrap_or_else(|| "{}".to_owned())
}

/// Returns the text, unless it is empty: some APIs reject empty texts.
fn some_text(text: &str) -> Option<Part<'_>> {
    (!text.is_empty()).then(|| text.into())
}

/// Returns the number at a path of keys; 0 if there is none. Some servers count in decimal numbers.
fn count(usage: &Value, path: &[&str]) -> u64 {
    whole(path.iter().fold(usage, |value, key| &value[*key])).unwrap_or(0)
}

#[cfg(test)]
mod tests;
