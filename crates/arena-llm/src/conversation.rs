//! A conversation with a language model, independent of the API. Pure.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question to an endpoint: the conversation so far and the parameters of the next answer.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// The model's name at the endpoint.
    pub model: &'q str,
    pub system: &'q str,
    /// The tools that the model may call. May be empty.
    pub tools: &'q [Tool],
    /// The turns so far. The first turn is [`Turn::Told`]; the last one isn't [`Turn::Answered`].
    pub turns: &'q [Turn],
    pub params: &'q Params,
}

/// The parameters of a request. Parameters that are `None` are left to the endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Params {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The probability mass of nucleus sampling, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The maximum number of output tokens, with reasoning tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The sampling seed. Only APIs for which [`crate::Api::takes_seed`] is true send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The reasoning effort, such as `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// More keys of the request's body. They replace keys of the same name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The keys of requests that limit the output tokens, in all APIs.
pub(crate) const LIMITS: [&str; 3] = ["max_completion_tokens", "max_output_tokens", "max_tokens"];

impl Params {
    /// Returns the limit of output tokens in requests, under any of its names; the highest, if there are several.
    pub fn output_limit(&self) -> Option<u64> {
        let named = LIMITS.iter().filter_map(|key| whole(self.extra.get(*key)?));
        named.chain(self.max_tokens).max()
    }

    /// Replaces the limit of output tokens, under the name that it has.
    pub fn set_output_limit(&mut self, limit: u64) {
        let mut is_named = false;
        for key in LIMITS {
            if let Some(named) = self.extra.get_mut(key) {
                *named = limit.into();
                is_named = true;
            }
        }
        if !is_named || self.max_tokens.is_some() {
            self.max_tokens = Some(limit);
        }
    }
}

/// Reads a number by its value: `100.0` is 100, too. Returns `None` for negative numbers and other values.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The tool's name: at most 64 letters, digits, `_` and `-`.
    pub name: String,
    /// The tool's purpose, for the model.
    pub description: String,
    /// The JSON schema of the tool's arguments.
    pub parameters: Value,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolUse {
    /// Through the tools of the API.
    #[default]
    Native,
    /// As one JSON object in the text of the answer. The system prompt describes the tools.
    Text,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// A message to the model.
    Told(String),
    Answered(Reply),
    /// The results of the tool calls in the last answer.
    Results(Vec<CallResult>),
}

impl Turn {
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Turn::Answered(reply) => Some(reply),
            Turn::Told(_) | Turn::Results(_) => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text outside of tool calls, or the text of a refusal.
    pub text: String,
    pub calls: Vec<ToolCall>,
    /// The answer in the API's format, which later questions contain as history.
    pub raw: Value,
    pub usage: Usage,
    pub finish: Finish,
    /// The provider's id of the request, if the provider gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id, which its result repeats. Ids are unique within an answer.
    pub id: String,
    pub name: String,
    /// The arguments, or the reason why they are invalid.
    pub arguments: Result<Map<String, Value>, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    pub id: String,
    pub text: String,
    pub is_error: bool,
}

/// The reason for the end of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finish {
    #[default]
    Done,
    /// The limit of output tokens cut the answer off.
    Length,
    /// The model or a content filter refused to answer.
    Refused,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens, including reasoning tokens.
    pub output: u64,
    /// Reasoning tokens, as far as the endpoint counts them apart.
    pub reasoning: u64,
    /// True if the endpoint counted no tokens for a part of these numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

impl Usage {
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            is_estimated: self.is_estimated || other.is_estimated,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn turns_survive_a_file() {
        let call = |arguments| ToolCall { id: "c1".to_owned(), name: "chat".to_owned(), arguments };
        let reply = Reply {
            text: "hm".to_owned(),
            calls: vec![call(Ok(Map::new())), call(Err("no JSON".to_owned()))],
            raw: json!([{"type": "text", "text": "hm"}]),
            usage: Usage { input: 5, cached: 1, output: 2, reasoning: 1, is_estimated: true },
            finish: Finish::Length,
            request_id: Some("req_1".to_owned()),
        };
        let result = CallResult { id: "c1".to_owned(), text: "done".to_owned(), is_error: false };
        let turns = [Turn::Told("hello".to_owned()), Turn::Answered(reply), Turn::Results(vec![result])];
        let text = serde_json::to_string(&turns).unwrap();
        assert!(text.starts_with(r#"[{"told":"hello"},{"answered":{"#), "{text}");
        assert_eq!(serde_json::from_str::<Vec<Turn>>(&text).unwrap(), turns);
    }

    #[test]
    fn unknown_parameters_are_kept() {
        let text = r#"{"temperature":1,"max_tokens":2000,"top_k":40}"#;
        let params: Params = serde_json::from_str(text).unwrap();
        assert_eq!((params.temperature, params.max_tokens, params.seed), (Some(1.0), Some(2000), None));
        assert_eq!(json!(params), json!({"temperature": 1.0, "max_tokens": 2000, "top_k": 40}));
    }

    #[test]
    fn a_limit_has_any_of_its_names() {
        let of = |text: &str| serde_json::from_str::<Params>(text).unwrap();
        for (text, limit, changed) in [
            (r"{}", None, r#"{"max_tokens":9}"#),
            (r#"{"max_tokens":5}"#, Some(5), r#"{"max_tokens":9}"#),
            (r#"{"max_completion_tokens":5}"#, Some(5), r#"{"max_completion_tokens":9}"#),
            (r#"{"max_output_tokens":5.0}"#, Some(5), r#"{"max_output_tokens":9}"#),
            (r#"{"max_tokens":5,"max_output_tokens":7}"#, Some(7), r#"{"max_tokens":9,"max_output_tokens":9}"#),
        ] {
            let mut params = of(text);
            assert_eq!(params.output_limit(), limit, "{text}");
            params.set_output_limit(9);
            assert_eq!(params, of(changed), "{text}");
        }
    }

    #[test]
    fn usages_add_up() {
        let mut usage = Usage { input: 10, cached: 4, output: 3, reasoning: 2, is_estimated: false };
        usage += Usage { input: 1, cached: 1, output: 1, reasoning: 0, is_estimated: true };
        assert_eq!(usage, Usage { input: 11, cached: 5, output: 4, reasoning: 2, is_estimated: true });
    }
}
