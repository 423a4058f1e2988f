//! The Chat Completions API of OpenAI and most model servers. Pure.

use serde_json::{Map, Value, json};

use super::part::Part;
use super::{ApiFormat, arguments_text, call_id, count, finish_of, is_empty, read_arguments};
use crate::conversation::{Finish, Question, Reply, ToolCall, Turn, Usage};

pub const FORMAT: ApiFormat = ApiFormat {
    name: "chat-completions",
    path: "/chat/completions",
    key_header: ("authorization", "Bearer "),
    header: None,
    body,
    read,
    read_usage,
    limit_key,
};

fn body<'q>(question: &Question<'q>) -> Part<'q> {
    let message = |role: &'q str, content: &'q str| Part::object([("role", role.into()), ("content", content.into())]);
    let mut messages = Vec::new();
    if !question.system.is_empty() {
        messages.push(message("system", question.system));
    }
    for turn in question.turns {
        match turn {
            Turn::Told(text) => messages.push(message("user", text)),
            Turn::Answered(reply) => messages.push(Part::Value(&reply.raw)),
            Turn::Results(results) => messages.extend(results.iter().map(|result| {
                Part::object([
                    ("role", "tool".into()),
                    ("tool_call_id", (&result.id).into()),
                    ("content", (&result.text).into()),
                ])
            })),
        }
    }
    let tools = Part::list(question.tools.iter().map(|tool| {
        let function = Part::object([
            ("name", (&tool.name).into()),
            ("description", (&tool.description).into()),
            ("parameters", Part::Value(&tool.parameters)),
        ]);
        Part::object([("type", "function".into()), ("function", function)])
    }));
    let params = question.params;
    let limit = limit_key(question.model);
    Part::body(
        [
            ("model", Some(question.model.into())),
            ("messages", Some(Part::List(messages))),
            ("stream", Some(Part::Flag(false))),
            ("tools", tools),
            ("temperature", params.temperature.map(Part::Real)),
            ("top_p", params.top_p.map(Part::Real)),
            (limit, params.max_tokens.map(Part::Count)),
            ("seed", params.seed.map(Part::Whole)),
            ("reasoning_effort", params.reasoning_effort.as_ref().map(Part::from)),
        ],
        &params.extra,
    )
}

fn limit_key(model: &str) -> &'static str {
    if has_new_limit(model) { "max_completion_tokens" } else { "max_tokens" }
}

/// Returns true for OpenAI's own models: `o3`, `gpt-5` and the like. They reject the old name of the limit of output
/// tokens, and many other servers ignore the new one.
fn has_new_limit(model: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(|char: char| char.is_ascii_digit());
    model.strip_prefix('o').is_some_and(is_numbered) || model.strip_prefix("gpt-").is_some_and(is_numbered)
}

fn read(body: &Value) -> Result<Reply, String> {
    let choice = body["choices"].as_array().and_then(|choices| choices.first()).ok_or("it has no choices")?;
    let ended = finish_of(&choice["finish_reason"]);
    let none = Map::new();
    let message = match choice["message"].as_object() {
        Some(message) => message,
        // Some filters leave out the message.
        None if ended != Finish::Done => &none,
        None => return Err("its choice has no message".to_owned()),
    };
    let mut text = message.get("content").map(read_text).unwrap_or_default();
    let refusal = message.get("refusal").and_then(Value::as_str).unwrap_or_default();
    let finish = if refusal.is_empty() { ended } else { Finish::Refused };
    if text.is_empty() {
        refusal.clone_into(&mut text);
    }
    let listed = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (mut calls, mut raw_calls) = (Vec::new(), Vec::new());
    for given in listed {
        let Some(call) = read_call(given, &calls) else { continue };
        raw_calls.push(raw_call(given, &call));
        calls.push(call);
    }
    let raw = raw_message(message, &text, raw_calls);
    Ok(Reply { text, calls, raw, usage: read_usage(&body["usage"]), finish, request_id: None })
}

/// Returns a message for the history: as it came, with all state of the provider, such as signatures and reasoning.
/// Only values that APIs reject in requests are changed.
fn raw_message(message: &Map<String, Value>, text: &str, calls: Vec<Value>) -> Value {
    let mut raw = message.clone();
    raw.retain(|key, value| key == "content" || !is_empty(value));
    raw.insert("role".to_owned(), "assistant".into());
    if calls.is_empty() {
        raw.remove("tool_calls");
        if raw.get("content").is_none_or(is_empty) {
            raw.insert("content".to_owned(), text.into());
        }
    } else {
        raw.insert("tool_calls".to_owned(), calls.into());
    }
    Value::Object(raw)
}

/// Reads a message's content: a text, or a list of parts. Parts with the model's reasoning are left out.
fn read_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn read_call(call: &Value, before: &[ToolCall]) -> Option<ToolCall> {
    let name = call["function"]["name"].as_str()?.to_owned();
    let id = call_id(&call["id"], before);
    Some(ToolCall { id, name, arguments: read_arguments(&call["function"]["arguments"]) })
}

fn raw_call(given: &Value, call: &ToolCall) -> Value {
    let mut raw = given.clone();
    raw["id"] = json!(call.id);
    raw["type"] = json!("function");
    raw["function"]["arguments"] = json!(arguments_text(&call.arguments));
    raw
}

fn read_usage(usage: &Value) -> Usage {
    let (input, output) = (count(usage, &["prompt_tokens"]), count(usage, &["completion_tokens"]));
    // Some servers count reasoning tokens in the total only.
    let output = output.max(count(usage, &["total_tokens"]).saturating_sub(input));
    let cached = count(usage, &["prompt_tokens_details", "cached_tokens"]);
    Usage {
        input,
        cached: cached.max(count(usage, &["prompt_cache_hit_tokens"])),
        output,
        reasoning: count(usage, &["completion_tokens_details", "reasoning_tokens"]).min(output),
        is_estimated: false,
    }
}
