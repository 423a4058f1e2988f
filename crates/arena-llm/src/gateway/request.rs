//! The requests of command-line agents: the changes that the gateway makes before the provider gets them. Pure.
//!
//! Only what is listed here passes. A provider has many keys that fetch a URL, read or write a memory, or change the
//! price, and new ones appear each month.

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use crate::Api;
use crate::conversation::{LIMITS, whole};

/// The keys that pass in all APIs.
const PASSED: [&str; 9] =
    ["model", "parallel_tool_calls", "stream", "temperature", "tool_choice", "tools", "top_k", "top_p", "user"];

/// The keys that pass in the APIs of OpenAI.
const PASSED_OPENAI: [&str; 6] =
    ["prompt_cache_key", "reasoning", "safety_identifier", "stream_options", "top_logprobs", "verbosity"];

/// The keys that pass in Chat Completions.
const PASSED_CHAT: [&str; 16] = [
    "chat_template_kwargs",
    "enable_thinking",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "min_p",
    "n",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "thinking",
];

/// The keys that pass in Responses.
const PASSED_RESPONSES: [&str; 7] =
    ["include", "input", "instructions", "max_output_tokens", "max_tool_calls", "text", "truncation"];

/// The keys that pass in Messages.
const PASSED_MESSAGES: [&str; 9] = [
    "context_management",
    "max_tokens",
    "messages",
    "metadata",
    "output_config",
    "output_format",
    "stop_sequences",
    "system",
    "thinking",
];

/// The keys without which a request has another meaning, so it is refused: they refer to conversations and prompts that
/// the provider has stored, or ask for several answers.
const REFUSED: [&str; 4] = ["best_of", "conversation", "previous_response_id", "prompt"];

/// The types of entries and parts of a conversation that pass. All others are replaced: images and files, which may be
/// URLs and cost more tokens than they have bytes, and references to stored entries.
const PASSED_TYPES: [&str; 22] = [
    "apply_patch_call",
    "apply_patch_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "function",
    "function_call",
    "function_call_output",
    "input_text",
    "local_shell_call",
    "local_shell_call_output",
    "message",
    "output_text",
    "reasoning",
    "redacted_thinking",
    "refusal",
    "shell_call",
    "shell_call_output",
    "summary_text",
    "text",
    "thinking",
    "tool_result",
    "tool_use",
];

/// The types of tools that the agent runs itself. Types of Anthropic end in a date. A tool of any other type would give
/// the agent a network, such as a search at the provider.
const OWN_TOOLS: [&str; 9] =
    ["apply_patch", "bash", "custom", "function", "local_shell", "memory", "namespace", "shell", "text_editor"];

/// A request as the provider gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    pub body: Bytes,
    pub output_tokens: u64,
}

impl AgentRequest {
    /// Reads the body of a request. `model` replaces its model, and `most` is the highest limit of output tokens.
    ///
    /// # Errors
    /// If the body isn't a JSON object, or can't be answered without what the gateway doesn't pass: the reason in a
    /// sentence.
    pub fn read(api: Api, body: &[u8], model: &str, most: u64) -> Result<AgentRequest, String> {
        let mut object: Map<String, Value> =
            serde_json::from_slice(body).map_err(|error| format!("the body isn't a JSON object: {error}"))?;
        object.retain(|_, value| !value.is_null());
        if let Some(key) = REFUSED.iter().find(|key| object.contains_key(**key)) {
            return Err(format!("the gateway doesn't pass {key}; send the whole conversation, and ask for one answer"));
        }
        let passed: [&[&str]; 2] = match api {
            Api::ChatCompletions => [&PASSED_OPENAI, &PASSED_CHAT],
            Api::Responses => [&PASSED_OPENAI, &PASSED_RESPONSES],
            Api::AnthropicMessages => [&[], &PASSED_MESSAGES],
        };
        object.retain(|key, _| [&PASSED[..], passed[0], passed[1]].iter().any(|keys| keys.contains(&key.as_str())));
        object.insert("model".to_owned(), model.into());
        remove_foreign_tools(&mut object);
        for key in ["input", "messages", "system"] {
            if let Some(entries) = object.get_mut(key) {
                replace_foreign(entries, false);
            }
        }
        let mut limit = None;
        for key in LIMITS {
            if let Some(value) = object.get_mut(key) {
                // A limit that isn't a number may mean no limit.
                let lowered = whole(value).filter(|limit| *limit > 0).unwrap_or(most).min(most);
                *value = lowered.into();
                limit = limit.max(Some(lowered));
            }
        }
        if limit.is_none() {
            object.insert((api.format().limit_key)(model).to_owned(), most.into());
        }
        let answers = match object.get("n") {
            None => 1,
            Some(n) => {
                let answers = whole(n).filter(|answers| *answers > 0 && n.as_f64() == Some(*answers as f64));
                answers.ok_or("n isn't a whole number of answers above 0")?
            }
        };
        if api == Api::ChatCompletions && object.get("stream") == Some(&Value::Bool(true)) {
            // Without this option the answer doesn't contain the number of tokens.
            let options = object.entry("stream_options").or_insert_with(|| json!({}));
            if !options.is_object() {
                *options = json!({});
            }
            options["include_usage"] = true.into();
        }
        if api == Api::Responses {
            // The provider stores conversations by default.
            object.insert("store".to_owned(), false.into());
        }
        let output_tokens = limit.unwrap_or(most).saturating_mul(answers);
        Ok(AgentRequest { body: Value::Object(object).to_string().into(), output_tokens })
    }
}

/// Replaces the entries and parts of a conversation that don't pass by a text. So the agent can go on after it has
/// looked at an image.
fn replace_foreign(entries: &mut Value, are_parts: bool) {
    for entry in entries.as_array_mut().into_iter().flatten() {
        let kind = entry.get("type").and_then(Value::as_str);
        if let Some(kind) = kind.filter(|kind| !PASSED_TYPES.contains(kind)) {
            let text = format!("[The gateway doesn't pass on {kind}.]");
            *entry = match are_parts {
                // The parts of Responses have types of their own, such as `input_image`.
                true => json!({"type": if kind.starts_with("input_") { "input_text" } else { "text" }, "text": text}),
                false => json!({"role": "user", "content": text}),
            };
            continue;
        }
        let Some(entry) = entry.as_object_mut() else { continue };
        // An answer in sound that the provider has stored.
        entry.remove("audio");
        for key in ["content", "output"] {
            if let Some(parts) = entry.get_mut(key) {
                replace_foreign(parts, true);
            }
        }
    }
}

/// Removes the tools that the provider would run, also those in groups of tools.
fn remove_foreign_tools(object: &mut Map<String, Value>) {
    let Some(Value::Array(tools)) = object.get_mut("tools") else { return };
    tools.iter_mut().filter_map(Value::as_object_mut).for_each(remove_foreign_tools);
    tools.retain(|tool| {
        let Some(kind) = tool.get("type") else { return true };
        let kind = kind.as_str().unwrap_or_default();
        let kind = kind.trim_end_matches(|char: char| char.is_ascii_digit()).trim_end_matches('_');
        OWN_TOOLS.contains(&kind)
    });
    if tools.is_empty() {
        object.remove("tools");
        object.remove("tool_choice");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(api: Api, body: &str, expected: Expect) {
        let shown = match AgentRequest::read(api, body.as_bytes(), "m", 500) {
            Ok(request) => format!("{} {}", request.output_tokens, String::from_utf8_lossy(&request.body)),
            Err(why) => why,
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn the_seats_model_and_limits_apply() {
        let [chat, responses, anthropic] = Api::ALL;
        check(
            chat,
            r#"{"model": "dear", "messages": []}"#,
            expect![[r#"500 {"max_tokens":500,"messages":[],"model":"m"}"#]],
        );
        check(
            chat,
            r#"{"stream": true, "n": 3, "max_completion_tokens": 20, "service_tier": "priority"}"#,
            expect![[
                r#"60 {"max_completion_tokens":20,"model":"m","n":3,"stream":true,"stream_options":{"include_usage":true}}"#
            ]],
        );
        check(
            responses,
            r#"{"max_output_tokens": 9999, "background": true}"#,
            expect![[r#"500 {"max_output_tokens":500,"model":"m","store":false}"#]],
        );
        check(anthropic, r#"{"max_tokens": 7, "mcp_servers": [{}]}"#, expect![[r#"7 {"max_tokens":7,"model":"m"}"#]]);
        check(
            anthropic,
            "[]",
            expect!["the body isn't a JSON object: invalid type: sequence, expected a map at line 1 column 0"],
        );
    }

    #[test]
    fn numbers_count_by_their_value() {
        let [chat, responses, anthropic] = Api::ALL;
        check(
            chat,
            r#"{"n": 100.0, "max_tokens": 20.0}"#,
            expect![[r#"2000 {"max_tokens":20,"model":"m","n":100.0}"#]],
        );
        check(chat, r#"{"max_tokens": 1e9}"#, expect![[r#"500 {"max_tokens":500,"model":"m"}"#]]);
        check(chat, r#"{"max_completion_tokens": -1}"#, expect![[r#"500 {"max_completion_tokens":500,"model":"m"}"#]]);
        check(anthropic, r#"{"max_tokens": "9"}"#, expect![[r#"500 {"max_tokens":500,"model":"m"}"#]]);
        for n in ["\"9\"", "1.5", "0", "-1", "1e300"] {
            check(chat, &format!(r#"{{"n": {n}}}"#), expect!["n isn't a whole number of answers above 0"]);
        }
        // The limit of another API limits nothing.
        check(chat, r#"{"max_output_tokens": 1}"#, expect![[r#"500 {"max_tokens":500,"model":"m"}"#]]);
        check(
            responses,
            r#"{"max_tokens": 1, "n": 9}"#,
            expect![[r#"500 {"max_output_tokens":500,"model":"m","store":false}"#]],
        );
    }

    #[test]
    fn memories_urls_and_unknown_keys_do_not_pass() {
        let [chat, responses, anthropic] = Api::ALL;
        check(
            chat,
            r#"{"max_tokens": 1, "store": true, "metadata": {}, "prediction": {}, "modalities": ["audio"], "new": 1, "seed": 7}"#,
            expect![[r#"1 {"max_tokens":1,"model":"m","seed":7}"#]],
        );
        check(
            responses,
            r#"{"max_output_tokens": 1, "store": true, "previous_response_id": null}"#,
            expect![[r#"1 {"max_output_tokens":1,"model":"m","store":false}"#]],
        );
        for body in [
            r#"{"previous_response_id": "resp_1"}"#,
            r#"{"prompt": {"id": "pmpt_1"}}"#,
            r#"{"conversation": "conv_1"}"#,
            r#"{"best_of": 5}"#,
        ] {
            let refused = AgentRequest::read(responses, body.as_bytes(), "m", 500).unwrap_err();
            assert!(refused.starts_with("the gateway doesn't pass "), "{refused}");
        }
        let image = r#"{"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}"#;
        check(
            chat,
            &format!(
                r#"{{"max_tokens": 1, "messages": [{{"role": "user", "content": [{{"type": "text", "text": "a"}}, {image}]}},
                {{"role": "assistant", "audio": {{"id": "audio_1"}}, "content": "b"}}]}}"#
            ),
            expect![[
                r#"1 {"max_tokens":1,"messages":[{"content":[{"text":"a","type":"text"},{"text":"[The gateway doesn't pass on image_url.]","type":"text"}],"role":"user"},{"content":"b","role":"assistant"}],"model":"m"}"#
            ]],
        );
        check(
            responses,
            r#"{"max_output_tokens": 1, "input": [{"type": "item_reference", "id": "msg_1"},
                {"role": "user", "content": [{"type": "input_file", "file_url": "https://a.example"}]},
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "u"}]}]}"#,
            expect![[
                r#"1 {"input":[{"content":"[The gateway doesn't pass on item_reference.]","role":"user"},{"content":[{"text":"[The gateway doesn't pass on input_file.]","type":"input_text"}],"role":"user"},{"call_id":"c","output":[{"text":"[The gateway doesn't pass on input_image.]","type":"input_text"}],"type":"function_call_output"}],"max_output_tokens":1,"model":"m","store":false}"#
            ]],
        );
        check(
            anthropic,
            r#"{"max_tokens": 1, "messages": [{"role": "user", "content": [
                {"type": "document", "source": {"type": "url", "url": "u"}},
                {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"type": "url"}}]}]}]}"#,
            expect![[
                r#"1 {"max_tokens":1,"messages":[{"content":[{"text":"[The gateway doesn't pass on document.]","type":"text"},{"content":[{"text":"[The gateway doesn't pass on image.]","type":"text"}],"tool_use_id":"t","type":"tool_result"}],"role":"user"}],"model":"m"}"#
            ]],
        );
    }

    #[test]
    fn tools_of_the_provider_are_removed() {
        let [_, responses, anthropic] = Api::ALL;
        check(
            anthropic,
            r#"{"max_tokens": 1, "tools": [{"name": "own"}, {"type": "bash_20250124"}, {"type": "web_search_20250305"}]}"#,
            expect![[r#"1 {"max_tokens":1,"model":"m","tools":[{"name":"own"},{"type":"bash_20250124"}]}"#]],
        );
        check(
            responses,
            r#"{"max_output_tokens": 1, "tools": [{"type": "web_search"}], "tool_choice": "auto"}"#,
            expect![[r#"1 {"max_output_tokens":1,"model":"m","store":false}"#]],
        );
    }
}
