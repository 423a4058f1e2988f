//! Findings: the errors of an agent, with its line and advice.

use serde::Serialize;

use crate::seat::quote;

/// The maximum number of different findings of one run.
const MAX: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An error that costs matches.
    Wrong,
    /// Advice without consequences.
    Advice,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// The game, or `None` if the finding doesn't depend on the game.
    pub game: Option<&'static str>,
    pub what: String,
    pub times: u32,
    /// The start of the agent's line.
    pub line: Option<String>,
    /// The start of the message to the agent.
    pub message: Option<String>,
    /// The end of the agent's stderr.
    pub log: Option<String>,
    pub advice: String,
}

impl Finding {
    /// Creates a finding that costs matches.
    pub fn wrong(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(Severity::Wrong, what.into(), advice.into())
    }

    pub fn advice(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(Severity::Advice, what.into(), advice.into())
    }

    fn new(severity: Severity, what: String, advice: String) -> Finding {
        Finding { severity, game: None, what, times: 1, line: None, message: None, log: None, advice }
    }

    /// Adds the start of the agent's line.
    pub fn with_line(mut self, line: impl Into<String>) -> Finding {
        self.line = Some(line.into());
        self
    }

    /// Adds the start of the message to the agent.
    pub fn with_message(mut self, message: &[u8]) -> Finding {
        self.message = Some(quote(message.trim_ascii_end()));
        self
    }
}

/// The findings of a run, each once.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    left_out: u32,
}

impl Findings {
    /// Adds a finding. If the same finding exists, increases its count.
    pub fn add(&mut self, finding: Finding) {
        if let Some(known) = self.list.iter_mut().find(|known| known.what == finding.what) {
            known.times += 1;
        } else if self.list.len() < MAX {
            self.list.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// Returns all findings, as found in this game.
    pub fn finish(mut self, game: Option<&'static str>) -> Vec<Finding> {
        if self.left_out > 0 {
            let what = format!("{} more findings are left out", self.left_out);
            self.list.push(Finding::advice(what, "fix the findings above first"));
        }
        for finding in &mut self.list {
            finding.game = finding.game.or(game);
        }
        self.list
    }
}
