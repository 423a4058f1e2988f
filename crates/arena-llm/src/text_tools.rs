//! Tools for endpoints that support none: the system prompt describes the tools, and the model answers with one JSON
//! object. Pure.

use std::fmt::Write;

use serde_json::{Deserializer, Map, Value};

use crate::conversation::{Question, Reply, ToolCall, Turn};
use crate::lenient;

/// The maximum size of a call in bytes.
const OBJECT: usize = 64 << 10;

/// The maximum number of bytes that are read in vain in search of a call. It bounds the time for hostile answers.
const SEARCHED: usize = 64 * OBJECT;

/// The begin and the end of a model's reasoning in its answer.
const REASONING: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
];

/// Returns the system prompt with a description of the tools.
pub fn system(question: &Question<'_>) -> String {
    let mut text = question.system.to_owned();
    if question.tools.is_empty() {
        return text;
    }
    text += "\n\nThe tools, with the JSON schemas of their arguments:\n";
    for tool in question.tools {
        // Writing to a `String` can't fail.
        let _ = writeln!(text, "- {}: {} Arguments: {}", tool.name, tool.description, tool.parameters);
    }
    text += "\nTo call a tool, answer with one JSON object and nothing else: {\"tool\": \"NAME\", \"ARGUMENT\": \"VALUE\"}. \
             Each answer calls one tool.";
    text
}

/// Returns the turns as messages of users and answers in turn, since endpoints without tools often require that these
/// alternate.
pub fn turns(turns: &[Turn]) -> Vec<Turn> {
    let mut plain: Vec<Turn> = Vec::with_capacity(turns.len());
    let mut calls: &[ToolCall] = &[];
    for turn in turns {
        let text = match turn {
            Turn::Answered(reply) => {
                calls = &reply.calls;
                plain.push(Turn::Answered(reply.clone()));
                continue;
            }
            Turn::Told(text) => text.clone(),
            Turn::Results(results) if results.is_empty() => continue,
            Turn::Results(results) => {
                let name =
                    |id: &str| calls.iter().find(|call| call.id == id).map_or("the tool", |call| call.name.as_str());
                let lines = results.iter().map(|result| format!("Result of {}: {}", name(&result.id), result.text));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        match plain.last_mut() {
            Some(Turn::Told(before)) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            _ => plain.push(Turn::Told(text)),
        }
    }
    plain
}

/// Returns the text of an answer with its calls, as [`system`] asks for them.
pub fn with_calls(reply: &Reply) -> String {
    let calls = reply.calls.iter().map(|call| {
        let mut object = call.arguments.clone().unwrap_or_default();
        object.insert("tool".to_owned(), call.name.as_str().into());
        Value::Object(object).to_string()
    });
    [reply.text.clone()].into_iter().chain(calls).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Finds the call in an answer: the first JSON object with a tool, fenced or bare, outside of the model's reasoning,
/// which some servers leave in the text.
///
/// Marks of reasoning in a JSON object are a part of its strings. Outside of objects, reasoning lasts from a begin to
/// the next end of its kind, or to the end of the text. The first begin may be a part of the prompt, so the text before
/// an end without a begin is reasoning, too, if a call follows.
pub fn call(text: &str) -> Option<ToolCall> {
    let (mut found, mut named, mut is_open, mut searched) = (None, None, true, 0);
    let mut rest = text;
    while let Some(at) = rest.find(['{', '<', '[']).filter(|_| searched < SEARCHED) {
        rest = &rest[at..];
        if let Some((_, end)) = REASONING.iter().find(|(begin, _)| rest.starts_with(begin)) {
            let Some((_, after)) = rest.split_once(end) else { break };
            rest = after;
        } else if let Some((_, end)) = REASONING.iter().find(|(_, end)| rest.starts_with(end)) {
            is_open = true;
            rest = &rest[end.len()..];
        } else if rest.starts_with('{') {
            match read_object(&rest[..rest.floor_char_boundary(OBJECT)]) {
                Ok((object, length)) => {
                    if let Some(call) = Some(object).filter(|_| is_open).and_then(|object| find_call(&object)) {
                        (found, is_open) = (Some(call), false);
                    }
                    rest = &rest[length..];
                }
                Err((why, length)) => {
                    named = named.or_else(|| tool_name(rest).map(|name| (name, why)));
                    searched += length;
                    rest = &rest[1..];
                }
            }
        } else {
            rest = &rest[1..];
        }
    }
    // The model meant a call, so it learns the reason of the failure.
    found.or_else(|| named.map(|(name, why)| new_call(name, Err(format!("the call isn't a JSON object: {why}")))))
}

fn new_call(name: String, arguments: Result<Map<String, Value>, String>) -> ToolCall {
    ToolCall { id: "call_0".to_owned(), name, arguments }
}

/// Parses the object at the beginning of a text, and returns it with its length in bytes. Repairs what models often get
/// wrong. A failure has the reason and the number of bytes that were read.
fn read_object(text: &str) -> Result<(Value, usize), (String, usize)> {
    let parse = |text: &str| {
        let mut values = Deserializer::from_str(text).into_iter();
        let object: Value = values.next().unwrap_or(Ok(Value::Null))?;
        Ok::<_, serde_json::Error>((object, values.byte_offset()))
    };
    parse(text).or_else(|why| {
        let (repaired, length) = repaired(text);
        let object = repaired.and_then(|text| parse(&lenient::without_halves(&text)).ok());
        object.map(|(object, _)| (object, length)).ok_or_else(|| (why.to_string(), length))
    })
}

/// Finds the first call in a JSON value.
fn find_call(value: &Value) -> Option<ToolCall> {
    match value {
        Value::Object(object) => read_call(object).or_else(|| object.values().find_map(find_call)),
        Value::Array(items) => items.iter().find_map(find_call),
        _ => None,
    }
}

/// Reads an object as a call: `{"tool": NAME, ...arguments}`, or with the arguments in an object of their own.
fn read_call(object: &Map<String, Value>) -> Option<ToolCall> {
    let arguments = object.get("arguments").or_else(|| object.get("parameters"));
    if let Some(Value::String(name)) = object.get("tool") {
        let mut arguments = match arguments {
            Some(Value::Object(arguments)) if object.len() == 2 => {
                return Some(new_call(name.clone(), Ok(arguments.clone())));
            }
            _ => object.clone(),
        };
        arguments.remove("tool");
        return Some(new_call(name.clone(), Ok(arguments)));
    }
    let (Some(Value::String(name)), Value::Object(arguments)) = (object.get("name"), arguments?) else { return None };
    Some(new_call(name.clone(), Ok(arguments.clone())))
}

/// Returns the object at the beginning of a text without commas before closing brackets, and with escaped control
/// characters in strings; `None` if the object isn't closed. The number is the length that was read, in bytes.
fn repaired(text: &str) -> (Option<String>, usize) {
    let mut out = String::new();
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, char) in text.char_indices() {
        if in_string {
            match char {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                char if char.is_control() => {}
                char => out.push(char),
            }
            in_string = is_escaped || char != '"';
            is_escaped = !is_escaped && char == '\\';
            continue;
        }
        match char {
            '"' => in_string = true,
            '{' | '[' => depth += 1,
            '}' | ']' => {
                let without_comma = out.trim_end().strip_suffix(',').map(str::len);
                out.truncate(without_comma.unwrap_or(out.len()));
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        out.push(char);
        if depth == 0 {
            return (Some(out), at + char.len_utf8());
        }
    }
    (None, text.len())
}

/// Returns the tool's name in a text that begins like a call but isn't JSON.
fn tool_name(text: &str) -> Option<String> {
    let rest = text.strip_prefix('{')?.trim_start().strip_prefix("\"tool\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    rest.split_once('"').map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::CallResult;

    #[test]
    fn calls_are_found_in_sloppy_answers() {
        let guess = r#"act_guess {"content":"7"}"#;
        let cases = [
            (r#"{"tool": "act_guess", "content": "7"}"#, guess),
            ("Sure!\n```json\n{\"tool\": \"act_guess\", \"content\": \"7\"}\n```\nGood luck.", guess),
            (r#"{"tool": "act_guess", "arguments": {"content": "7"}}"#, guess),
            (r#"{"name": "act_guess", "parameters": {"content": "7"}}"#, guess),
            (r#"[{"tool": "act_guess", "content": "7"}]"#, guess),
            (r#"{"call": {"tool": "act_guess", "content": "7"}}"#, guess),
            (r#"The state is {"x": 1}. {"tool": "act_guess", "content": "7",}"#, guess),
            (r#"<think>{"tool": "wait"}?</think>{"tool": "act_guess", "content": "7"}"#, guess),
            (r#"hm {"tool": "wait"}?</think>{"tool": "act_guess", "content": "7"}"#, guess),
            (r#"[THINK]{"tool": "wait"}?[/THINK]{"tool": "act_guess", "content": "7"}"#, guess),
            (r#"<think>{"tool": "act_guess", "content": "7"}"#, "none"),
            (r#"{"tool": "act_guess", "content": "7"} {"tool": "wait"}"#, guess),
            (r#"{"tool": "chat", "text": "a </think> b"}"#, r#"chat {"text":"a </think> b"}"#),
            (r#"{"tool": "chat", "text": "a <think>"} {"tool": "wait"}"#, r#"chat {"text":"a <think>"}"#),
            (r#"{"tool": "chat", "text": "</think>",} {"tool": "wait"}"#, r#"chat {"text":"</think>"}"#),
            (r#"hm {"tool": "wait"}?</think>{"tool": "chat", "text": "[/THINK]"}"#, r#"chat {"text":"[/THINK]"}"#),
            (r#"<think>hm</think>{"tool": "act_guess", "content": "7"} I'd never write </think>."#, guess),
            (r#"Sure. <think>{"tool": "wait"}"#, "none"),
            (r#"Sure. <think>{"tool": "wait"}?</think> {"tool": "act_guess", "content": "7"}"#, guess),
            (r#"{"tool": "act_guess", "content": "7"} <think>{"tool": "wait"}"#, guess),
            (r#"{"call": [1, {"tool": "act_guess", "content": "7"}]} {"tool": "wait"}"#, guess),
            ("{\"tool\": \"chat\", \"text\": \"one\ntwo \\\"three\\\" {\"}", r#"chat {"text":"one\ntwo \"three\" {"}"#),
            (r#"{"tool": "chat", "text": "\ud83d"}"#, "chat {\"text\":\"\u{fffd}\"}"),
            (r#"{"tool": "wait"}"#, "wait {}"),
            ("I would {rather} talk.", "none"),
            (r#"{"content": "7"}"#, "none"),
            (r#"{"tool": 7}"#, "none"),
            ("", "none"),
            (
                r#"{"tool": "act_guess", "content": 7"#,
                "act_guess: the call isn't a JSON object: EOF while parsing an object at line 1 column 34",
            ),
        ];
        for (text, expected) in cases {
            let shown = match call(text) {
                None => "none".to_owned(),
                Some(ToolCall { name, arguments: Ok(arguments), .. }) => format!("{name} {}", json!(arguments)),
                Some(ToolCall { name, arguments: Err(why), .. }) => format!("{name}: {why}"),
            };
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn a_call_is_found_after_any_amount_of_reasoning() {
        let text = r#"\frac{a}{b} </thin {"x": 1} "#.repeat(100_000) + r#"</think>{"tool": "wait"}"#;
        assert_eq!(call(&text).unwrap().name, "wait");
    }

    #[test]
    fn hostile_answers_cost_little() {
        for text in ["{", "{\"a\":", "{\"tool\":\"", "[", "é{", "{</think>", "<think></think>", "{}", "{{}"] {
            call(&text.repeat(4_000_000 / text.len()));
        }
    }

    #[test]
    fn messages_of_both_sides_alternate() {
        let calls = vec![new_call("wait".to_owned(), Ok(Map::new()))];
        let answered = Turn::Answered(Reply { calls, ..Reply::default() });
        let result = |id: &str| CallResult { id: id.to_owned(), text: "done".to_owned(), is_error: false };
        let told = |text: &str| Turn::Told(text.to_owned());
        let all = [
            told("a"),
            told("b"),
            answered.clone(),
            Turn::Results(vec![result("call_0"), result("else")]),
            told("c"),
            answered.clone(),
            Turn::Results(Vec::new()),
        ];
        let results = "Result of wait: done\nResult of the tool: done\n\nc";
        assert_eq!(turns(&all), [told("a\n\nb"), answered.clone(), told(results), answered]);
    }
}
