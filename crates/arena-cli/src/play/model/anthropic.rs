//! Messages, as Anthropic speaks them. Pure.

use serde_json::{Value, json};

use super::turn::{Call, Question, Reply, Turn, Usage};

/// The longest answer, in tokens: the API wants to be told. A move needs far less.
const ANSWER_TOKENS: u64 = 4096;

/// The body of a request.
pub fn request(question: &Question<'_>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    // Results have to stand first in the turn that follows the calls, so what else is said joins them.
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
            // An empty answer can't be told again.
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

/// The answer in a body; `None` if there is none in it.
pub fn read(body: &Value) -> Option<Reply> {
    let content = body["content"].as_array()?;
    let text: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
    let calls = content.iter().filter(|block| block["type"] == "tool_use").filter_map(read_call).collect();
    let count = |name: &str| body["usage"][name].as_u64().unwrap_or(0);
    // What came from a cache is counted apart there.
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
