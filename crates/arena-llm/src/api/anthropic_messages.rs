//! The Messages API of Anthropic. Pure.

use serde_json::Value;

use super::part::Part;
use super::{ApiFormat, call_id, count, finish_of, read_arguments, some_text};
use crate::conversation::{Question, Reply, ToolCall, Turn, Usage};

pub const FORMAT: ApiFormat = ApiFormat {
    name: "anthropic-messages",
    path: "/v1/messages",
    key_header: ("x-api-key", ""),
    header: Some(("anthropic-version", "2023-06-01")),
    body,
    read,
    read_usage,
    limit_key: |_| "max_tokens",
};

/// The default limit of output tokens. The API requires a limit; a move needs far less.
const ANSWER_TOKENS: u64 = 4096;

fn body<'q>(question: &Question<'q>) -> Part<'q> {
    let message = |role: &'q str, content: Part<'q>| Part::object([("role", role.into()), ("content", content)]);
    let mut messages = Vec::new();
    // The API requires that the turn after tool calls begins with their results. So other messages are appended to the
    // results.
    let mut ours = Vec::new();
    for turn in question.turns {
        match turn {
            Turn::Told(text) => ours.push(Part::object([("type", "text".into()), ("text", text.into())])),
            Turn::Results(results) => ours.extend(results.iter().map(|result| {
                Part::object([
                    ("type", "tool_result".into()),
                    ("tool_use_id", (&result.id).into()),
                    ("content", (&result.text).into()),
                    ("is_error", Part::Flag(result.is_error)),
                ])
            })),
            // Empty answers are left out, since the API rejects them in the history.
            Turn::Answered(reply) if reply.raw.as_array().is_none_or(Vec::is_empty) => {}
            Turn::Answered(reply) => {
                messages.extend(Part::list(std::mem::take(&mut ours)).map(|ours| message("user", ours)));
                messages.push(message("assistant", Part::Value(&reply.raw)));
            }
        }
    }
    messages.extend(Part::list(ours).map(|ours| message("user", ours)));
    let tools = Part::list(question.tools.iter().map(|tool| {
        Part::object([
            ("name", (&tool.name).into()),
            ("description", (&tool.description).into()),
            ("input_schema", Part::Value(&tool.parameters)),
        ])
    }));
    let params = question.params;
    let effort = params.reasoning_effort.as_ref().map(|effort| Part::object([("effort", effort.into())]));
    Part::body(
        [
            ("model", Some(question.model.into())),
            ("max_tokens", Some(Part::Count(params.max_tokens.unwrap_or(ANSWER_TOKENS)))),
            ("system", some_text(question.system)),
            ("messages", Some(Part::List(messages))),
            ("stream", Some(Part::Flag(false))),
            ("tools", tools),
            ("temperature", params.temperature.map(Part::Real)),
            ("top_p", params.top_p.map(Part::Real)),
            ("output_config", effort),
        ],
        &params.extra,
    )
}

fn read(body: &Value) -> Result<Reply, String> {
    let content = body["content"].as_array().ok_or("it has no content")?;
    let texts = content.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    let (mut calls, mut raw) = (Vec::new(), Vec::new());
    for block in content {
        raw.extend(match block["type"].as_str() {
            Some("text") if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => None,
            Some("tool_use") => read_call(block, &calls).map(|call| {
                let raw_call = raw_call(block, &call);
                calls.push(call);
                raw_call
            }),
            _ => Some(block.clone()),
        });
    }
    // The API rejects reasoning that nothing follows.
    while raw.last().is_some_and(|block| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))) {
        raw.pop();
    }
    let finish = finish_of(&body["stop_reason"]);
    Ok(Reply { text, calls, raw: raw.into(), usage: read_usage(&body["usage"]), finish, request_id: None })
}

fn read_usage(usage: &Value) -> Usage {
    // This API doesn't include cached tokens in `input_tokens`.
    let cached = count(usage, &["cache_read_input_tokens"]);
    let input = count(usage, &["input_tokens"]).saturating_add(count(usage, &["cache_creation_input_tokens"]));
    let input = input.saturating_add(cached);
    let output = count(usage, &["output_tokens"]);
    Usage { input, cached, output, reasoning: 0, is_estimated: false }
}

fn read_call(block: &Value, before: &[ToolCall]) -> Option<ToolCall> {
    let (id, name) = (call_id(&block["id"], before), block["name"].as_str()?.to_owned());
    let arguments = match &block["input"] {
        Value::Null => Err("the arguments aren't a JSON object".to_owned()),
        input => read_arguments(input),
    };
    Some(ToolCall { id, name, arguments })
}

/// For the history: the API rejects arguments that aren't an object, even if its own model produced them.
fn raw_call(block: &Value, call: &ToolCall) -> Value {
    let mut raw = block.clone();
    raw["id"] = call.id.as_str().into();
    raw["input"] = Value::Object(call.arguments.clone().unwrap_or_default());
    raw
}
