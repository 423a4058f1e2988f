//! A conversation with a language model, independent of the API.

use serde::Serialize;
use serde_json::{Map, Value};

use super::prompt::Tool;

/// A question to an endpoint.
pub struct Question<'q> {
    /// The model's name.
    pub model: &'q str,
    /// The system prompt.
    pub system: &'q str,
    pub tools: &'q [Tool],
    /// The turns so far. The first turn is a message to the model.
    pub turns: &'q [Turn],
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The sampling seed.
    pub seed: Option<i64>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// A message to the model.
    Told(String),
    /// An answer of the model.
    Answered(Reply),
    /// The results of the tool calls in the last answer.
    Results(Vec<CallResult>),
}

impl Turn {
    /// Returns the answer, if the turn is one.
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Turn::Answered(reply) => Some(reply),
            Turn::Told(_) | Turn::Results(_) => None,
        }
    }
}

/// An answer of a model.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Reply {
    /// The text, which the other players don't see.
    pub text: String,
    /// The tool calls, in order.
    pub calls: Vec<Call>,
    /// The answer in the API's format, which later questions contain as history.
    #[serde(skip)]
    pub raw: Value,
    /// The tokens used.
    pub usage: Usage,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// The call's id, which its result repeats.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, or the reason why they are invalid.
    pub arguments: Result<Map<String, Value>, String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CallResult {
    /// The call's id.
    pub id: String,
    /// The text for the model.
    pub text: String,
    /// True if the call failed.
    pub is_error: bool,
}

/// Numbers of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Input tokens, including cached ones.
    pub input: u64,
    /// Cached input tokens.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
}
