//! The requests of command-line agents: the changes that the gateway makes before the provider gets them. Pure.

use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use crate::Api;

/// The keys that limit the output tokens, in all APIs.
const LIMITS: [&str; 3] = ["max_completion_tokens", "max_output_tokens", "max_tokens"];

/// The keys that make the provider do more than answer, or that change the price of tokens.
const REMOVED: [&str; 8] =
    ["background", "container", "fallbacks", "mcp_servers", "plugins", "service_tier", "speed", "web_search_options"];

/// The types of tools that the agent runs itself. Types of Anthropic end in a date. A tool of any other type would give
/// the agent a network, such as a search at the provider.
const OWN_TOOLS: [&str; 9] =
    ["apply_patch", "bash", "custom", "function", "local_shell", "memory", "namespace", "shell", "text_editor"];

/// A request as the provider gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    /// The body.
    pub body: Bytes,
    /// The maximum number of output tokens.
    pub output_tokens: u64,
}

impl AgentRequest {
    /// Reads the body of a request. `model` replaces its model, and `most` is the highest limit of output tokens.
    ///
    /// # Errors
    /// If the body isn't a JSON object: the reason in a sentence.
    pub fn read(api: Api, body: &[u8], model: &str, most: u64) -> Result<AgentRequest, String> {
        let mut object: Map<String, Value> =
            serde_json::from_slice(body).map_err(|error| format!("the body isn't a JSON object: {error}"))?;
        object.insert("model".to_owned(), model.into());
        for key in REMOVED {
            object.remove(key);
        }
        remove_foreign_tools(&mut object);
        let mut limit = None;
        for key in LIMITS {
            if let Some(given) = object.get(key).and_then(Value::as_u64) {
                object.insert(key.to_owned(), given.min(most).into());
                limit = limit.max(Some(given.min(most)));
            }
        }
        if limit.is_none() {
            object.insert((api.format().limit_key)(model).to_owned(), most.into());
        }
        let answers = object.get("n").and_then(Value::as_u64).unwrap_or(1).max(1);
        if api == Api::ChatCompletions && object.get("stream") == Some(&Value::Bool(true)) {
            // Without this option the answer doesn't contain the number of tokens.
            let options = object.entry("stream_options").or_insert_with(|| json!({}));
            if !options.is_object() {
                *options = json!({});
            }
            options["include_usage"] = true.into();
        }
        let output_tokens = limit.unwrap_or(most).saturating_mul(answers);
        Ok(AgentRequest { body: Value::Object(object).to_string().into(), output_tokens })
    }
}

/// Removes the tools that the provider would run.
fn remove_foreign_tools(object: &mut Map<String, Value>) {
    let Some(Value::Array(tools)) = object.get_mut("tools") else { return };
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
            expect![[r#"500 {"max_output_tokens":500,"model":"m"}"#]],
        );
        check(anthropic, r#"{"max_tokens": 7, "mcp_servers": [{}]}"#, expect![[r#"7 {"max_tokens":7,"model":"m"}"#]]);
        check(
            anthropic,
            "[]",
            expect!["the body isn't a JSON object: invalid type: sequence, expected a map at line 1 column 0"],
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
            expect![[r#"1 {"max_output_tokens":1,"model":"m"}"#]],
        );
    }
}
