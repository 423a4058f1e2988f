//! The Chat Completions API of OpenAI and most model servers. Pure.

use serde_json::{Value, json};

use super::turn::{Call, Question, Reply, Turn, Usage};

/// Returns the body of a request.
pub fn request(question: &Question<'_>) -> Value {
    let mut messages = vec![json!({"role": "system", "content": question.system})];
    for turn in question.turns {
        match turn {
            Turn::Told(text) => messages.push(json!({"role": "user", "content": text})),
            Turn::Answered(reply) => messages.push(reply.raw.clone()),
            Turn::Results(results) => messages.extend(
                results.iter().map(|result| json!({"role": "tool", "tool_call_id": result.id, "content": result.text})),
            ),
        }
    }
    let tools: Vec<Value> = (question.tools.iter())
        .map(|tool| {
            let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            json!({"type": "function", "function": function})
        })
        .collect();
    let mut body = json!({"model": question.model, "messages": messages, "tools": tools});
    if let Some(temperature) = question.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(seed) = question.seed {
        body["seed"] = json!(seed);
    }
    body
}

/// Parses the model's answer in a response body. Returns `None` if the body contains no answer.
pub fn read(body: &Value) -> Option<Reply> {
    let message = body["choices"][0]["message"].as_object()?;
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default().to_owned();
    let listed = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let calls: Vec<Call> = listed.iter().enumerate().filter_map(|(number, call)| read_call(number, call)).collect();
    let mut raw = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        let spelled: Vec<Value> = calls.iter().map(spell).collect();
        raw["tool_calls"] = json!(spelled);
    }
    let count = |name: &str| body["usage"][name].as_u64().unwrap_or(0);
    let cached = body["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0);
    let usage = Usage { input: count("prompt_tokens"), cached, output: count("completion_tokens") };
    Some(Reply { text, calls, raw, usage })
}

fn read_call(number: usize, call: &Value) -> Option<Call> {
    let name = call["function"]["name"].as_str()?.to_owned();
    // Some servers send no call ids. The number of the call within the answer replaces a missing id.
    let id = call["id"].as_str().map_or_else(|| format!("call_{number}"), str::to_owned);
    let arguments = match &call["function"]["arguments"] {
        Value::String(text) if text.trim().is_empty() => Ok(serde_json::Map::new()),
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| format!("the arguments aren't a JSON object: {error}"))
        }
        Value::Object(arguments) => Ok(arguments.clone()),
        Value::Null => Ok(serde_json::Map::new()),
        _ => Err("the arguments aren't a JSON object".to_owned()),
    };
    Some(Call { id, name, arguments })
}

/// Formats a call for the history. Servers reject arguments that aren't JSON, even if the server's own model produced
/// them.
fn spell(call: &Call) -> Value {
    let arguments = call.arguments.as_ref().map(|arguments| json!(arguments).to_string());
    let arguments = arguments.unwrap_or_else(|_| "{}".to_owned());
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}
