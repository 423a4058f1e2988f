//! The Responses API of OpenAI, without storage at the provider: each request repeats the conversation. Pure.

use serde_json::{Map, Value};

use super::part::Part;
use super::{ApiFormat, arguments_text, call_id, count, finish_of, is_empty, read_arguments, some_text};
use crate::conversation::{Finish, Question, Reply, ToolCall, Turn, Usage};

pub const FORMAT: ApiFormat = ApiFormat {
    name: "responses",
    path: "/responses",
    key_header: ("authorization", "Bearer "),
    header: None,
    body,
    read,
    read_usage,
    limit_key: |_| "max_output_tokens",
};

/// The part of an answer that makes reasoning repeatable without storage at the provider.
const REASONING: &str = "reasoning.encrypted_content";

fn body<'q>(question: &Question<'q>) -> Part<'q> {
    let mut input = Vec::new();
    for turn in question.turns {
        match turn {
            Turn::Told(text) => input.push(Part::object([("role", "user".into()), ("content", text.into())])),
            Turn::Answered(reply) => input.extend(reply.raw.as_array().into_iter().flatten().map(Part::Value)),
            Turn::Results(results) => input.extend(results.iter().map(|result| {
                Part::object([
                    ("type", "function_call_output".into()),
                    ("call_id", (&result.id).into()),
                    ("output", (&result.text).into()),
                ])
            })),
        }
    }
    let tools = Part::list(question.tools.iter().map(|tool| {
        Part::object([
            ("type", "function".into()),
            ("name", (&tool.name).into()),
            ("description", (&tool.description).into()),
            ("parameters", Part::Value(&tool.parameters)),
            // The default makes all arguments required.
            ("strict", Part::Flag(false)),
        ])
    }));
    let params = question.params;
    let effort = params.reasoning_effort.as_ref().map(|effort| Part::object([("effort", effort.into())]));
    // Models without reasoning reject the request for it.
    let reasons = effort.is_some() || params.extra.contains_key("reasoning") || is_reasoner(question.model);
    Part::body(
        [
            ("model", Some(question.model.into())),
            ("instructions", some_text(question.system)),
            ("input", Some(Part::List(input))),
            ("tools", tools),
            ("store", Some(Part::Flag(false))),
            ("stream", Some(Part::Flag(false))),
            ("include", reasons.then(|| Part::List(vec![REASONING.into()]))),
            ("temperature", params.temperature.map(Part::Real)),
            ("top_p", params.top_p.map(Part::Real)),
            ("max_output_tokens", params.max_tokens.map(Part::Count)),
            ("reasoning", effort),
        ],
        &params.extra,
    )
}

/// Returns true for OpenAI's models that always reason.
fn is_reasoner(model: &str) -> bool {
    let is_series = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()));
    is_series || (model.starts_with("gpt-5") && !model.contains("chat"))
}

fn read(body: &Value) -> Result<Reply, String> {
    let output = body["output"].as_array().ok_or("it has no output")?;
    let is_cut = body["status"] == "incomplete";
    if output.is_empty() && !is_cut {
        return Err("its output is empty".to_owned());
    }
    let (mut texts, mut calls, mut raw, mut is_refused) = (Vec::new(), Vec::new(), Vec::new(), false);
    for item in output {
        match item["type"].as_str() {
            Some("message") => {
                let text = read_message(item, &mut is_refused);
                if !text.is_empty() {
                    let mut message = raw_item(item);
                    // The type of messages in answers requires an id.
                    message.remove("type");
                    message.insert("content".to_owned(), text.as_str().into());
                    message.insert("role".to_owned(), "assistant".into());
                    raw.push(Value::Object(message));
                    texts.push(text);
                }
            }
            Some("function_call") => {
                let Some(call) = read_call(item, &calls) else { continue };
                let mut raw_call = raw_item(item);
                raw_call.insert("call_id".to_owned(), call.id.as_str().into());
                raw_call.insert("arguments".to_owned(), arguments_text(&call.arguments).into());
                raw.push(Value::Object(raw_call));
                calls.push(call);
            }
            Some("reasoning") => raw.extend(read_reasoning(item)),
            _ => {}
        }
    }
    // The API rejects reasoning that nothing follows, as in answers that were cut off.
    while raw.last().is_some_and(|item| item["type"] == "reasoning") {
        raw.pop();
    }
    let finish = match finish_of(&body["incomplete_details"]["reason"]) {
        _ if is_refused => Finish::Refused,
        Finish::Done if is_cut => Finish::Length,
        finish => finish,
    };
    let text = texts.join("\n");
    Ok(Reply { text, calls, raw: Value::Array(raw), usage: read_usage(&body["usage"]), finish, request_id: None })
}

fn read_message(item: &Value, is_refused: &mut bool) -> String {
    let mut texts = Vec::new();
    for part in item["content"].as_array().into_iter().flatten() {
        if let Some(refusal) = part["refusal"].as_str() {
            *is_refused = true;
            texts.push(refusal);
        }
        texts.extend(part["text"].as_str());
    }
    texts.join("\n")
}

/// Returns an item for the history: as it came, with all state of the provider, but without the id, which only a
/// provider that stores answers knows.
fn raw_item(item: &Value) -> Map<String, Value> {
    let mut raw = item.as_object().cloned().unwrap_or_default();
    raw.retain(|key, value| !matches!(key.as_str(), "id" | "status") && !is_empty(value));
    raw
}

fn read_call(item: &Value, before: &[ToolCall]) -> Option<ToolCall> {
    let id = if item["call_id"].is_string() { &item["call_id"] } else { &item["id"] };
    let (id, name) = (call_id(id, before), item["name"].as_str()?.to_owned());
    Some(ToolCall { id, name, arguments: read_arguments(&item["arguments"]) })
}

/// Returns a reasoning item as later requests repeat it; `None` if it refers to text that only the provider has.
fn read_reasoning(item: &Value) -> Option<Value> {
    let is_whole = item["encrypted_content"].is_string() || item["content"].as_array().is_some_and(|c| !c.is_empty());
    let mut item = item.as_object().filter(|_| is_whole)?.clone();
    // The status belongs to answers: an item of a request must not have an empty one.
    item.remove("status");
    Some(Value::Object(item))
}

fn read_usage(usage: &Value) -> Usage {
    let output = count(usage, &["output_tokens"]);
    Usage {
        input: count(usage, &["input_tokens"]),
        cached: count(usage, &["input_tokens_details", "cached_tokens"]),
        output,
        reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"]).min(output),
        is_estimated: false,
    }
}
