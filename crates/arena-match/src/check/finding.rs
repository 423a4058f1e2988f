//! Findings: what an agent gets wrong, each in a sentence, with what it sent and how to mend it.

use serde::Serialize;

use crate::seat::quote;

/// So many different findings of one run are kept; more would only hide the first.
const MAX: usize = 12;

/// What a finding costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Matches.
    Wrong,
    /// Nothing yet.
    Advice,
}

/// Something that an agent gets wrong, or could do better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What it costs.
    pub severity: Severity,
    /// In which game it was found; `None`: in the handshake, or whatever is played.
    pub game: Option<&'static str>,
    /// What is wrong, in a sentence.
    pub what: String,
    /// How often it was seen.
    pub times: u32,
    /// The beginning of the line that the agent sent.
    pub line: Option<String>,
    /// The beginning of the message that it was sent.
    pub message: Option<String>,
    /// The end of what it wrote to stderr.
    pub log: Option<String>,
    /// How to mend it.
    pub advice: String,
}

impl Finding {
    /// Something that costs matches.
    pub fn wrong(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(Severity::Wrong, what.into(), advice.into())
    }

    /// Something that could be better.
    pub fn advice(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding::new(Severity::Advice, what.into(), advice.into())
    }

    fn new(severity: Severity, what: String, advice: String) -> Finding {
        Finding { severity, game: None, what, times: 1, line: None, message: None, log: None, advice }
    }

    /// With the beginning of the line that shows it.
    pub fn sent(mut self, line: impl Into<String>) -> Finding {
        self.line = Some(line.into());
        self
    }

    /// With the beginning of the message that it follows on.
    pub fn told(mut self, message: &[u8]) -> Finding {
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
    /// Notes a finding, or that it was seen again.
    pub fn add(&mut self, finding: Finding) {
        if let Some(known) = self.list.iter_mut().find(|known| known.what == finding.what) {
            known.times += 1;
        } else if self.list.len() < MAX {
            self.list.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// All of them, as found in this game.
    pub fn finish(mut self, game: Option<&'static str>) -> Vec<Finding> {
        if self.left_out > 0 {
            let what = format!("{} more like these are left out", self.left_out);
            self.list.push(Finding::advice(what, "mend those above first"));
        }
        for finding in &mut self.list {
            finding.game = finding.game.or(game);
        }
        self.list
    }
}
