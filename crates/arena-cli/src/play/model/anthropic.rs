//! The Messages API of Anthropic. Pure.

use serde_json::{Value, json};

use super::turn::{Call, Question, Reply, Turn, Usage};

/// The maximum size of an answer, in tokens. The API requires this limit; a move needs far less.
const ANSWER_TOKENS: u64 = 4096;

/// Returns the body of a request.
pub fn request(question: &Question<'_>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    // The API requires that the turn after tool calls begins with their results. So other messages are appended to the
    // results.
    let mut ours: Vec<Value> = Vec::new();
    for turn in question.turns {
        match turn {
            Turn::Told(text) => ours.push(json!({"type": "text", "text": text})),
            Turn::Results(results) => ours.extend(results.iter().map(|result| {
                json!({
                    "type": "tool_result", "tool_use_id": result.id, "content": result.text,
                    "is_error": result.is_error,
                })
            })),
            // Empty answers are left out, since the API rejects them in the history.
            Turn::Answered(reply) if reply.raw.as_array().is_none_or(Vec::is_empty) => {}
            Turn::Answered(reply) => {
                messages.push(json!({"role": "user", "content": std::mem::take(&mut ours)}));
                messages.push(json!({"role": "assistant", "content": reply.raw}));
            }
        }
    }
    messages.push(json!({"role": "user", "content": ours}));
    let tools: Vec<Value> = (question.tools.iter())
        .map(|tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters}))
        .collect();
    let mut body = json!({
        "model": question.model, "max_tokens": ANSWER_TOKENS, "system": question.system, "messages": messages,
        "tools": tools,
    });
    if let Some(temperature) = question.temperature {
        body["temperature"] = json!(temperature);
    }
    body
}

/// Parses the model's answer in a response body. Returns `None` if the body contains no answer.
pub fn read(body: &Value) -> Option<Reply> {
    let content = body["content"].as_array()?;
    let text: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
    let calls = content.iter().filter(|block| block["type"] == "tool_use").filter_map(read_call).collect();
    let count = |name: &str| body["usage"][name].as_u64().unwrap_or(0);
    // This API doesn't include cached tokens in `input_tokens`.
    let cached = count("cache_read_input_tokens");
    let input = count("input_tokens") + count("cache_creation_input_tokens") + cached;
    let usage = Usage { input, cached, output: count("output_tokens") };
    Some(Reply { text: text.join("\n"), calls, raw: body["content"].clone(), usage })
}

fn read_call(block: &Value) -> Option<Call> {
    let arguments = match &block["input"] {
        Value::Object(arguments) => Ok(arguments.clone()),
        _ => Err("the arguments aren't a JSON object".to_owned()),
    };
    Some(Call { id: block["id"].as_str()?.to_owned(), name: block["name"].as_str()?.to_owned(), arguments })
}
