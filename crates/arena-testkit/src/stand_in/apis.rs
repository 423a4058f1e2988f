//! Requests and answers of the three APIs. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The estimated number of bytes in a token.
const BYTES_A_TOKEN: usize = 4;

/// The number of reasoning tokens that the Responses API reports for each answer.
const REASONING: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Chat,
    Responses,
    Messages,
}

/// A parsed request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Conversation {
    pub model: String,
    pub system: String,
    /// The tools. A model without tools answers with text, which may contain a tool call as JSON.
    pub tools: Vec<ToolInfo>,
    pub turns: Vec<ApiTurn>,
    /// The maximum number of output tokens.
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolInfo {
    pub name: String,
    /// The JSON schema of the arguments.
    pub parameters: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ApiTurn {
    /// A text of the user.
    Told(String),
    /// A text of the model.
    Said(String),
    /// A tool call of the model.
    Called(ApiCall),
    /// The result of a tool call.
    Result { id: String, text: String, is_error: bool },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
    /// True if the answer shall contain invalid arguments instead.
    pub is_broken: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ApiAnswer {
    pub text: String,
    pub calls: Vec<ApiCall>,
    pub end: AnswerEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEnd {
    Done,
    /// The limit of output tokens.
    Length,
    /// A refusal of the model or of the provider's filter.
    Refused,
}

/// The tokens of an answer. `input` includes `cached`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl Format {
    pub fn of(path: &str) -> Option<Format> {
        match path {
            "/v1/chat/completions" => Some(Format::Chat),
            "/v1/responses" => Some(Format::Responses),
            "/v1/messages" => Some(Format::Messages),
            _ => None,
        }
    }

    pub fn id_header(self) -> &'static str {
        match self {
            Format::Chat | Format::Responses => "x-request-id",
            Format::Messages => "request-id",
        }
    }

    /// Parses the body of a request.
    ///
    /// # Errors
    /// If the body isn't valid. The error is a message for the client.
    pub fn read(self, body: &Value) -> Result<Conversation, String> {
        let model = body["model"].as_str().ok_or("`model` must be a string")?.to_owned();
        let (mut system, mut turns) = (String::new(), Vec::new());
        let mut add_system = |text: String| system.push_str(&text);
        match self {
            Format::Chat => {
                for message in body["messages"].as_array().ok_or("`messages` must be a list")? {
                    match message["role"].as_str() {
                        Some("system" | "developer") => add_system(text_of(&message["content"])),
                        _ => read_chat(message, &mut turns)?,
                    }
                }
            }
            Format::Responses => {
                add_system(text_of(&body["instructions"]));
                if let Some(text) = body["input"].as_str() {
                    turns.push(ApiTurn::Told(text.to_owned()));
                }
                for item in body["input"].as_array().into_iter().flatten() {
                    match item["role"].as_str() {
                        Some("system" | "developer") => add_system(text_of(&item["content"])),
                        _ => read_item(item, &mut turns)?,
                    }
                }
            }
            Format::Messages => {
                add_system(text_of(&body["system"]));
                for message in body["messages"].as_array().ok_or("`messages` must be a list")? {
                    read_blocks(message, &mut turns)?;
                }
            }
        }
        check_calls(&turns)?;
        let limit =
            ["max_tokens", "max_completion_tokens", "max_output_tokens"].iter().find_map(|name| body[*name].as_u64());
        let tools = body["tools"].as_array().into_iter().flatten().filter_map(read_tool).collect();
        Ok(Conversation { model, system, tools, turns, limit })
    }

    pub fn write(self, conversation: &Conversation, answer: &ApiAnswer, tokens: Tokens, id: &str) -> Value {
        match self {
            Format::Chat => write_chat(&conversation.model, answer, tokens, id),
            Format::Responses => write_response(&conversation.model, answer, tokens, id),
            Format::Messages => write_message(&conversation.model, answer, tokens, id),
        }
    }

    /// Returns a valid body without an answer.
    pub fn write_empty(self, model: &str) -> Value {
        match self {
            Format::Chat => json!({"id": "chatcmpl-0", "object": "chat.completion", "model": model, "choices": []}),
            Format::Responses => json!({"id": "resp_0", "object": "response", "model": model, "output": []}),
            Format::Messages => json!({"id": "msg_0", "type": "message", "model": model, "content": []}),
        }
    }

    pub fn write_error(self, kind: &str, message: &str) -> Value {
        match self {
            Format::Chat | Format::Responses => json!({"error": {"message": message, "type": kind, "code": kind}}),
            Format::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
        }
    }
}

fn write_chat(model: &str, ApiAnswer { text, calls, end }: &ApiAnswer, tokens: Tokens, id: &str) -> Value {
    let Tokens { input, cached, output } = tokens;
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if *end == AnswerEnd::Refused {
        message["content"] = Value::Null;
        message["refusal"] = json!(text);
    } else if !calls.is_empty() {
        let write = |call: &ApiCall| {
            let function = json!({"name": call.name, "arguments": call.written_arguments()});
            json!({"id": call.id, "type": "function", "function": function})
        };
        message["tool_calls"] = calls.iter().map(write).collect();
        if text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    let reason = match end {
        AnswerEnd::Length => "length",
        AnswerEnd::Refused => "content_filter",
        AnswerEnd::Done if calls.is_empty() => "stop",
        AnswerEnd::Done => "tool_calls",
    };
    json!({
        "id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": 0, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    })
}

fn write_response(model: &str, ApiAnswer { text, calls, end }: &ApiAnswer, tokens: Tokens, id: &str) -> Value {
    let Tokens { input, cached, output } = tokens;
    let mut items = Vec::new();
    if !text.is_empty() {
        let part = if *end == AnswerEnd::Refused {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": []})
        };
        items.push(json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [part],
        }));
    }
    items.extend(calls.iter().map(|call| {
        json!({
            "type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
            "name": call.name, "arguments": call.written_arguments(), "status": "completed",
        })
    }));
    let (status, details) = match end {
        AnswerEnd::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
        AnswerEnd::Refused | AnswerEnd::Done => ("completed", Value::Null),
    };
    json!({
        "id": format!("resp_{id}"), "object": "response", "created_at": 0, "model": model,
        "status": status, "incomplete_details": details, "error": null, "output": items,
        "usage": {
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens_details": {"reasoning_tokens": REASONING.min(output)},
        },
    })
}

fn write_message(model: &str, ApiAnswer { text, calls, end }: &ApiAnswer, tokens: Tokens, id: &str) -> Value {
    let Tokens { input, cached, output } = tokens;
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(calls.iter().map(|call| {
        let input = if call.is_broken { wrong_arguments() } else { call.arguments.clone() };
        json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
    }));
    let reason = match end {
        AnswerEnd::Length => "max_tokens",
        AnswerEnd::Refused => "refusal",
        AnswerEnd::Done if calls.is_empty() => "end_turn",
        AnswerEnd::Done => "tool_use",
    };
    // This API doesn't include cached tokens in `input_tokens`.
    json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": reason, "stop_sequence": null,
        "usage": {
            "input_tokens": input - cached.min(input), "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0, "output_tokens": output,
        },
    })
}

impl Tokens {
    /// Counts the tokens of an answer to a request of `bytes` bytes. The turns up to the model's last one come from the
    /// cache. The answer has no more tokens than the request allows.
    pub(super) fn count(bytes: usize, conversation: &Conversation, answer: &ApiAnswer) -> Tokens {
        let input = tokens(bytes);
        let last = conversation.turns.iter().rposition(ApiTurn::is_of_model);
        let cached = last.map_or(0, |last| {
            let new: usize = conversation.turns[last + 1..].iter().map(ApiTurn::bytes).sum();
            input.saturating_sub(tokens(new))
        });
        let calls = answer.calls.iter().map(|call| call.name.len() + call.arguments.to_string().len());
        let output = match (answer.end, conversation.limit) {
            (AnswerEnd::Length, Some(limit)) => limit,
            (_, limit) => (tokens(answer.text.len() + calls.sum::<usize>()) + REASONING).min(limit.unwrap_or(u64::MAX)),
        };
        Tokens { input, cached, output }
    }
}

impl ApiTurn {
    fn is_of_model(&self) -> bool {
        matches!(self, ApiTurn::Said(_) | ApiTurn::Called(_))
    }

    fn bytes(&self) -> usize {
        match self {
            ApiTurn::Told(text) | ApiTurn::Said(text) | ApiTurn::Result { text, .. } => text.len(),
            ApiTurn::Called(call) => call.name.len() + call.arguments.to_string().len(),
        }
    }
}

impl ApiCall {
    /// Returns the arguments as a string. Broken arguments are cut off, so that they aren't JSON.
    fn written_arguments(&self) -> String {
        if self.is_broken { r#"{"content": "1"#.to_owned() } else { self.arguments.to_string() }
    }
}

/// Returns arguments of the wrong type, for an API whose arguments are always JSON.
fn wrong_arguments() -> Value {
    json!({"content": 7, "text": 7})
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_A_TOKEN) as u64
}

/// Returns the text of a content: a string, or a list of parts with texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(part_text).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn part_text(part: &Value) -> Option<&str> {
    part["text"].as_str().or_else(|| part["refusal"].as_str())
}

fn read_chat(message: &Value, turns: &mut Vec<ApiTurn>) -> Result<(), String> {
    let text = text_of(&message["content"]);
    match message["role"].as_str() {
        Some("user") => turns.push(ApiTurn::Told(text)),
        Some("assistant") => {
            let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
            if !text.is_empty() || calls.is_empty() {
                turns.push(ApiTurn::Said(text));
            }
            for call in calls {
                let function = &call["function"];
                turns.push(read_call(&call["id"], &function["name"], &function["arguments"])?);
            }
        }
        Some("tool") => {
            let id = message["tool_call_id"].as_str().ok_or("a tool message has no `tool_call_id`")?.to_owned();
            turns.push(ApiTurn::Result { id, text, is_error: false });
        }
        _ => return Err(format!("unknown role {}", message["role"])),
    }
    Ok(())
}

fn read_item(item: &Value, turns: &mut Vec<ApiTurn>) -> Result<(), String> {
    match (item["type"].as_str(), item["role"].as_str()) {
        (Some("function_call"), _) => turns.push(read_call(&item["call_id"], &item["name"], &item["arguments"])?),
        (Some("function_call_output"), _) => {
            let id = item["call_id"].as_str().ok_or("a result has no `call_id`")?.to_owned();
            turns.push(ApiTurn::Result { id, text: text_of(&item["output"]), is_error: false });
        }
        (Some("reasoning"), _) => {}
        (_, Some("user")) => turns.push(ApiTurn::Told(text_of(&item["content"]))),
        (_, Some("assistant")) => turns.push(ApiTurn::Said(text_of(&item["content"]))),
        _ => return Err(format!("unknown item of type {}", item["type"])),
    }
    Ok(())
}

fn read_blocks(message: &Value, turns: &mut Vec<ApiTurn>) -> Result<(), String> {
    let is_of_model = match message["role"].as_str() {
        Some("user") => false,
        Some("assistant") => true,
        _ => return Err(format!("unknown role {}", message["role"])),
    };
    let text_turn = |text: String| if is_of_model { ApiTurn::Said(text) } else { ApiTurn::Told(text) };
    let Some(blocks) = message["content"].as_array() else {
        turns.push(text_turn(text_of(&message["content"])));
        return Ok(());
    };
    if blocks.is_empty() {
        return Err("`content` must not be empty".to_owned());
    }
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => turns.push(text_turn(block["text"].as_str().unwrap_or_default().to_owned())),
            Some("tool_use") if is_of_model => turns.push(read_call(&block["id"], &block["name"], &block["input"])?),
            Some("tool_result") if !is_of_model => {
                let id = block["tool_use_id"].as_str().ok_or("a result has no `tool_use_id`")?.to_owned();
                let is_error = block["is_error"].as_bool().unwrap_or(false);
                turns.push(ApiTurn::Result { id, text: text_of(&block["content"]), is_error });
            }
            Some("thinking" | "redacted_thinking") => {}
            _ => return Err(format!("unknown block of type {}", block["type"])),
        }
    }
    Ok(())
}

fn read_call(id: &Value, name: &Value, arguments: &Value) -> Result<ApiTurn, String> {
    let id = id.as_str().ok_or("a tool call has no id")?.to_owned();
    let name = name.as_str().ok_or("a tool call has no name")?.to_owned();
    let arguments = match arguments {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| format!("the arguments of {name} aren't JSON: {error}"))?
        }
        other => other.clone(),
    };
    Ok(ApiTurn::Called(ApiCall { id, name, arguments, is_broken: false }))
}

fn read_tool(tool: &Value) -> Option<ToolInfo> {
    let tool = if tool["function"].is_object() { &tool["function"] } else { tool };
    let schema = [&tool["parameters"], &tool["input_schema"]].into_iter().find(|schema| schema.is_object());
    Some(ToolInfo {
        name: tool["name"].as_str()?.to_owned(),
        parameters: schema.cloned().unwrap_or_else(|| Value::Object(Map::new())),
    })
}

/// Checks that each tool call has a result and each result a tool call, as the real APIs do.
fn check_calls(turns: &[ApiTurn]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for turn in turns {
        match turn {
            ApiTurn::Called(call) => {
                open.insert(call.id.as_str());
            }
            ApiTurn::Result { id, .. } => {
                if !open.remove(id.as_str()) {
                    return Err(format!("the result {id} belongs to no tool call"));
                }
            }
            ApiTurn::Told(_) if !open.is_empty() => return Err("a tool call has no result".to_owned()),
            ApiTurn::Told(_) | ApiTurn::Said(_) => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err("the last tool call has no result".to_owned()) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn call(id: &str) -> ApiCall {
        ApiCall {
            id: id.to_owned(),
            name: "act_guess".to_owned(),
            arguments: json!({"content": "1"}),
            is_broken: false,
        }
    }

    /// Returns one conversation in the three formats.
    fn bodies() -> [(Format, Value); 3] {
        let arguments = r#"{"content":"1"}"#;
        let schema = json!({"type": "object"});
        let chat = json!({
            "model": "leaky", "max_tokens": 50,
            "tools": [{"type": "function", "function": {"name": "act_guess", "description": "G", "parameters": schema}}],
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "act_guess", "arguments": arguments}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "done"},
                {"role": "user", "content": "News"},
            ],
        });
        let responses = json!({
            "model": "leaky", "max_output_tokens": 50, "instructions": "S",
            "tools": [{"type": "function", "name": "act_guess", "description": "G", "parameters": schema}],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
                {"type": "reasoning", "id": "r"},
                {"type": "function_call", "call_id": "c1", "name": "act_guess", "arguments": arguments},
                {"type": "function_call_output", "call_id": "c1", "output": "done"},
                {"type": "message", "role": "user", "content": "News"},
            ],
        });
        let messages = json!({
            "model": "leaky", "max_tokens": 50, "system": [{"type": "text", "text": "S"}],
            "tools": [{"name": "act_guess", "description": "G", "input_schema": schema}],
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": "act_guess", "input": {"content": "1"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "done"},
                    {"type": "text", "text": "News"},
                ]},
            ],
        });
        [(Format::Chat, chat), (Format::Responses, responses), (Format::Messages, messages)]
    }

    #[test]
    fn the_three_apis_contain_the_same_conversation() {
        let expected = Conversation {
            model: "leaky".to_owned(),
            system: "S".to_owned(),
            tools: vec![ToolInfo { name: "act_guess".to_owned(), parameters: json!({"type": "object"}) }],
            turns: vec![
                ApiTurn::Told("Hello".to_owned()),
                ApiTurn::Called(call("c1")),
                ApiTurn::Result { id: "c1".to_owned(), text: "done".to_owned(), is_error: false },
                ApiTurn::Told("News".to_owned()),
            ],
            limit: Some(50),
        };
        for (format, body) in bodies() {
            assert_eq!(format.read(&body).as_ref(), Ok(&expected), "{format:?}");
        }
    }

    #[test]
    fn tokens_are_counted_at_four_bytes() {
        let (format, body) = &bodies()[0];
        let conversation = format.read(body).unwrap();
        let count = |end, text: &str| {
            let answer = ApiAnswer { text: text.to_owned(), calls: Vec::new(), end };
            let Tokens { input, cached, output } = Tokens::count(400, &conversation, &answer);
            [input, cached, output]
        };
        // `done` and `News` are new.
        assert_eq!(count(AnswerEnd::Done, "12345678"), [100, 98, 10]);
        assert_eq!(count(AnswerEnd::Done, &"long ".repeat(1000)), [100, 98, 50]);
        assert_eq!(count(AnswerEnd::Length, "cut"), [100, 98, 50]);
    }

    #[test]
    fn answers_have_the_form_of_their_api() {
        let tokens = Tokens { input: 100, cached: 60, output: 10 };
        let (_, body) = &bodies()[0];
        let conversation = Format::Chat.read(body).unwrap();
        let written = [
            (Format::Chat, "", vec![call("c2")], AnswerEnd::Done),
            (Format::Chat, "No.", Vec::new(), AnswerEnd::Refused),
            (Format::Responses, "", vec![call("c2")], AnswerEnd::Done),
            (Format::Responses, "I would", Vec::new(), AnswerEnd::Length),
            (Format::Messages, "", vec![ApiCall { is_broken: true, ..call("c2") }], AnswerEnd::Done),
            (Format::Messages, "No.", Vec::new(), AnswerEnd::Refused),
        ]
        .map(|(format, text, calls, end)| {
            let name = format!("{format:?} {end:?} {text:?}");
            let written = format.write(&conversation, &ApiAnswer { text: text.to_owned(), calls, end }, tokens, "7");
            let (parts, tokens) = match format {
                Format::Chat => (vec!["choices"], "prompt_tokens"),
                Format::Responses => (vec!["output", "status"], "input_tokens"),
                Format::Messages => (vec!["content", "stop_reason"], "input_tokens"),
            };
            let mut parts: Vec<&Value> = parts.into_iter().map(|part| &written[part]).collect();
            parts.push(&written["usage"][tokens]);
            format!("{name}: {}\n", json!(parts))
        });
        expect![[r#"
            Chat Done "": [[{"finish_reason":"tool_calls","index":0,"message":{"content":null,"refusal":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"content\":\"1\"}","name":"act_guess"},"id":"c2","type":"function"}]}}],100]
            Chat Refused "No.": [[{"finish_reason":"content_filter","index":0,"message":{"content":null,"refusal":"No.","role":"assistant"}}],100]
            Responses Done "": [[{"arguments":"{\"content\":\"1\"}","call_id":"c2","id":"fc_c2","name":"act_guess","status":"completed","type":"function_call"}],"completed",100]
            Responses Length "I would": [[{"content":[{"annotations":[],"text":"I would","type":"output_text"}],"id":"msg_7","role":"assistant","status":"completed","type":"message"}],"incomplete",100]
            Messages Done "": [[{"id":"c2","input":{"content":7,"text":7},"name":"act_guess","type":"tool_use"}],"tool_use",40]
            Messages Refused "No.": [[{"text":"No.","type":"text"}],"refusal",40]
        "#]].assert_eq(&written.concat());
    }

    #[test]
    fn requests_that_real_servers_reject_are_rejected() {
        let check = |format: Format, body: Value, expected: Expect| {
            expected.assert_eq(&format.read(&body).expect_err("the request is invalid"));
        };
        check(Format::Chat, json!({}), expect!["`model` must be a string"]);
        check(Format::Messages, json!({"model": "m"}), expect!["`messages` must be a list"]);
        check(
            Format::Chat,
            json!({"model": "m", "messages": [{"role": "tool", "tool_call_id": "c9", "content": "done"}]}),
            expect!["the result c9 belongs to no tool call"],
        );
        let calls = json!([{"type": "tool_use", "id": "c1", "name": "wait", "input": {}}]);
        check(
            Format::Messages,
            json!({"model": "m", "messages": [{"role": "assistant", "content": calls}, {"role": "user", "content": "?"}]}),
            expect!["a tool call has no result"],
        );
        check(
            Format::Responses,
            json!({"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "wait", "arguments": "{"}]}),
            expect!["the arguments of wait aren't JSON: EOF while parsing an object at line 1 column 1"],
        );
    }
}
