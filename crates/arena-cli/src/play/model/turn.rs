//! A conversation with a language model, apart from how an endpoint spells it.

use serde::Serialize;
use serde_json::{Map, Value};

use super::prompt::Tool;

/// What an endpoint is asked.
pub struct Question<'q> {
    /// The model's name.
    pub model: &'q str,
    /// What it is told before all else.
    pub system: &'q str,
    /// What it can call.
    pub tools: &'q [Tool],
    /// What was said so far. The first turn is ours.
    pub turns: &'q [Turn],
    /// How much chance there is in the answer.
    pub temperature: Option<f64>,
    /// What that chance comes of.
    pub seed: Option<i64>,
}

/// One turn.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Turn {
    /// What we said.
    Told(String),
    /// What it answered.
    Answered(Reply),
    /// What came of the calls of its answer.
    Results(Vec<CallResult>),
}

impl Turn {
    /// The answer, if it is one.
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
    /// What it says in words, to nobody.
    pub text: String,
    /// What it wants to be done, in its order.
    pub calls: Vec<Call>,
    /// How the endpoint wants to hear of this answer again: the words of its API.
    #[serde(skip)]
    pub raw: Value,
    /// What it has cost.
    pub usage: Usage,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// By which its result is told.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With which arguments; or what is wrong with them, in a sentence.
    pub arguments: Result<Map<String, Value>, String>,
}

/// What came of a call.
#[derive(Debug, Clone, Serialize)]
pub struct CallResult {
    /// The call's.
    pub id: String,
    /// What is told of it.
    pub text: String,
    /// Whether it came to nothing.
    pub is_error: bool,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Of the question, those from a cache included.
    pub input: u64,
    /// Of the question, from a cache.
    pub cached: u64,
    /// Of the answer.
    pub output: u64,
}
