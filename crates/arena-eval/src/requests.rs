//! The requests of a run: a line before each request is sent, and lines for those that end without a stored answer.
//! A request that a killed process had sent, or that was given up, may be paid, so it counts at its highest price.

use std::collections::BTreeMap;
use std::path::Path;

use arena_llm::{Bound, Spent, Usage};
use arena_match::line_file::scan;
use serde::{Deserialize, Serialize};

use crate::folder::FolderError;
use crate::journal::now;

pub(crate) const REQUESTS: &str = "requests.jsonl";

/// A line of `requests.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum RequestLine {
    /// A request that is about to be sent, with its highest possible numbers.
    Sent { key: String, agent: String, input: u64, output: u64, usd: f64, time: i64 },
    /// Tokens that are paid without a stored answer.
    Paid { key: String, agent: String, usage: Usage, usd: f64, time: i64 },
    /// The end of a request without an answer. The reason is set if the request would fail again.
    Ended { key: String, why: Option<String>, time: i64 },
}

impl RequestLine {
    pub(crate) fn sent(key: &str, agent: &str, bound: &Bound) -> RequestLine {
        let Bound { input, output, usd } = *bound;
        RequestLine::Sent { key: key.to_owned(), agent: agent.to_owned(), input, output, usd, time: now() }
    }

    pub(crate) fn paid(key: &str, agent: &str, usage: Usage, usd: f64) -> RequestLine {
        RequestLine::Paid { key: key.to_owned(), agent: agent.to_owned(), usage, usd, time: now() }
    }

    pub(crate) fn ended(key: &str, why: Option<String>) -> RequestLine {
        RequestLine::Ended { key: key.to_owned(), why, time: now() }
    }
}

/// The content of a file of requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// The agent and the highest possible cost of each request without an end, by key. Some of them are answered.
    pub(crate) open: BTreeMap<String, Vec<(String, Spent)>>,
    /// The reasons of requests that would fail again, by key.
    pub(crate) refused: BTreeMap<String, String>,
    /// The costs of requests without a stored answer, with their keys and agents.
    pub(crate) paid: Vec<(String, String, Spent)>,
    /// The total length of the complete lines in bytes.
    pub(crate) length: u64,
}

impl Requests {
    /// Reads the file in the folder of a run. Without a file, the run has no requests.
    pub(crate) fn read(dir: &Path) -> Result<Requests, FolderError> {
        let mut requests = Requests::default();
        requests.length = scan(&dir.join(REQUESTS), |_, line| {
            requests.add(serde_json::from_slice(line).map_err(|error| error.to_string())?);
            Ok(())
        })?;
        Ok(requests)
    }

    fn add(&mut self, line: RequestLine) {
        match line {
            RequestLine::Sent { key, agent, input, output, usd, .. } => {
                self.refused.remove(&key);
                self.open.entry(key).or_default().push((agent, Bound { input, output, usd }.spent()));
            }
            RequestLine::Paid { key, agent, usage, usd, .. } => {
                self.paid.push((key, agent, Spent { calls: 0, usage, usd }));
            }
            RequestLine::Ended { key, why, .. } => {
                if let Some(open) = self.open.get_mut(&key) {
                    open.pop();
                }
                if let Some(why) = why {
                    self.refused.insert(key, why);
                }
            }
        }
    }
}
