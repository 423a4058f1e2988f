//! Tools for endpoints that support none: the system prompt describes the tools, and the model answers with one JSON
//! object. Pure.

use std::fmt::Write;

use serde_json::{Deserializer, Map, Value};

use crate::conversation::{Question, ToolCall, Turn};
use crate::lenient;

/// The maximum number of bytes of an answer in which a call is searched.
const SEARCHED: usize = 64 << 10;

/// The maximum number of objects in an answer that are tried. It bounds the time for hostile answers.
const TRIES: usize = 64;

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

/// Returns an answer without the model's reasoning, which some servers leave in the text. The begin of the reasoning may
/// be a part of the prompt. Reasoning without an end is the whole text.
fn without_reasoning(text: &str) -> &str {
    let answer = REASONING.iter().find_map(|(_, end)| text.rsplit_once(end)).map(|(_, answer)| answer);
    let is_unfinished = || REASONING.iter().any(|(begin, _)| text.trim_start().starts_with(begin));
    answer.unwrap_or(if is_unfinished() { "" } else { text })
}

/// Finds the call in an answer: the first JSON object with a tool, fenced or bare, after the model's reasoning.
pub fn call(text: &str) -> Option<ToolCall> {
    let text = without_reasoning(text);
    let text = &text[..text.floor_char_boundary(SEARCHED)];
    let mut named = None;
    for (at, _) in text.match_indices('{').take(TRIES) {
        match read_object(&text[at..]) {
            Ok(object) => {
                if let Some(call) = read_call(object) {
                    return Some(call);
                }
            }
            Err(why) => named = named.or_else(|| tool_name(&text[at..]).map(|name| (name, why))),
        }
    }
    // The model meant a call, so it learns the reason of the failure.
    let (name, why) = named?;
    Some(new_call(name, Err(format!("the call isn't a JSON object: {why}"))))
}

fn new_call(name: String, arguments: Result<Map<String, Value>, String>) -> ToolCall {
    ToolCall { id: "call_0".to_owned(), name, arguments }
}

/// Parses the object at the beginning of a text. Repairs what models often get wrong.
fn read_object(text: &str) -> Result<Map<String, Value>, String> {
    let parse = |text: &str| match Deserializer::from_str(text).into_iter::<Value>().next() {
        Some(Ok(Value::Object(object))) => Ok(object),
        Some(Err(error)) => Err(error.to_string()),
        _ => Err("it isn't an object".to_owned()),
    };
    let repaired = |text: &str| repaired(text).map(|text| lenient::without_halves(&text));
    parse(text).or_else(|why| parse(&repaired(text).ok_or_else(|| why.clone())?).map_err(|_| why))
}

/// Reads an object as a call: `{"tool": NAME, ...arguments}`, or with the arguments in an object of their own.
fn read_call(mut object: Map<String, Value>) -> Option<ToolCall> {
    if let Some(Value::String(name)) = object.remove("tool") {
        let arguments = match object.get("arguments").or(object.get("parameters")) {
            Some(Value::Object(arguments)) if object.len() == 1 => arguments.clone(),
            _ => object,
        };
        return Some(new_call(name, Ok(arguments)));
    }
    let arguments = object.remove("arguments").or_else(|| object.remove("parameters"))?;
    let (Some(Value::String(name)), Value::Object(arguments)) = (object.remove("name"), arguments) else { return None };
    Some(new_call(name, Ok(arguments)))
}

/// Returns the object at the beginning of a text without commas before closing brackets, and with escaped control
/// characters in strings; `None` if the object isn't closed.
fn repaired(text: &str) -> Option<String> {
    let mut out = String::new();
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for char in text.chars() {
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
                depth = depth.checked_sub(1)?;
            }
            _ => {}
        }
        out.push(char);
        if depth == 0 {
            return Some(out);
        }
    }
    None
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
    use crate::conversation::{CallResult, Reply};

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
    fn hostile_answers_cost_little() {
        for text in ["{", "{\"a\":", "{\"tool\":\"", "[", "é{"] {
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
