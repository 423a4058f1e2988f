//! Checks of challenges for their authors. The checks play many games in sessions with the same transitions as on a
//! server.
//!
//! This crate is pure: equal challenges and plans give equal reports. The command line loads scripts, starts bots and
//! prints. Checks use the [`ChallengeType`] trait only, so they also cover the built-in challenges.

mod described;
mod ending;
mod hostile;
mod play;
mod repeat;
mod secrecy;
mod words;

use std::sync::Arc;

use arena_model::{ChallengeType, Seed};
use serde::Serialize;

use play::Subject;

/// The extent of the checks.
#[derive(Debug, Clone)]
pub struct CheckPlan {
    /// The seed of all random numbers in the checks. With the same seed, an author can repeat a finding after a
    /// change.
    pub seed: Seed,
    /// The number of games with random actions.
    pub games: u32,
    /// The maximum number of actions in a random game.
    pub actions: u32,
    /// The number of deals in which `secrecy` searches for two that differ for one player only.
    pub deals: u32,
}

impl Default for CheckPlan {
    fn default() -> CheckPlan {
        CheckPlan { seed: Seed::from_number(0), games: 20, actions: 200, deals: 400 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The check passed.
    Fine,
    /// The challenge is possibly wrong; the observed behavior may be intended.
    Advice,
    /// The challenge is wrong and must be fixed.
    Wrong,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check, such as `secrecy`; a check may have several findings.
    pub check: &'static str,
    #[serde(rename = "verdict")]
    pub severity: Severity,
    /// The finding, in a sentence without a period.
    pub what: String,
    /// The evidence, line by line; often empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The file and line in the author's files, such as `index.ts:12`, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Finding {
    /// Creates a finding of a passed check.
    pub fn fine(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Severity::Fine, what)
    }

    pub fn advice(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Severity::Advice, what)
    }

    pub fn wrong(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Severity::Wrong, what)
    }

    fn new(check: &'static str, severity: Severity, what: impl Into<String>) -> Finding {
        Finding { check, severity, what: what.into(), evidence: Vec::new(), place: None }
    }

    /// Creates a finding for a failure of the rules, with the actions that led to it.
    fn of_fault(check: &'static str, when: &str, fault: &Fault, actions: &[String]) -> Finding {
        let Fault { what, place, stack } = fault;
        let finding = Finding { place: place.clone(), ..Finding::wrong(check, format!("{when}: {what}")) };
        finding.shown_by(actions.iter().chain(stack).cloned())
    }

    #[must_use]
    pub fn shown_by(mut self, evidence: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(evidence.into_iter().map(|line| play::excerpt(&line)));
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub what: String,
    /// The file and line in the author's files, such as `index.ts:12`, if known.
    pub place: Option<String>,
    /// The call stack, the innermost function first, if known.
    pub stack: Vec<String>,
}

/// The checks in the order of the report, each with its question.
pub const CHECKS: [(&str, &str); 7] = [
    ("metadata", "is the description complete and correct?"),
    ("determinism", "do equal seeds and equal actions give equal bytes?"),
    ("restore", "does the state survive serialization between two actions?"),
    ("messages", "do the rules handle any message of a player without failing?"),
    ("secrecy", "do players' secrets stay secret?"),
    ("ending", "does each game end, even if a player stays away?"),
    ("scores", "are the scores comparable numbers?"),
];

/// Runs all checks. Findings are in the order of [`CHECKS`], with at least one for each check that could run.
/// `last_fault` returns the details of the last failed call of the rules, and forgets them; the error for players
/// doesn't contain these details. `begins` is called with the name of each check that starts, because some checks
/// take long.
pub fn check(
    challenge: &Arc<dyn ChallengeType>,
    plan: &CheckPlan,
    last_fault: &dyn Fn() -> Option<Fault>,
    begins: &dyn Fn(&'static str),
) -> Vec<Finding> {
    let subject = Subject { challenge, last_fault };
    begins("metadata");
    let mut findings = described::check(&**challenge);
    // If not all players can join, no other check can run.
    if let Err(fault) = play::TestSession::seated(subject, &plan.seed) {
        findings.push(Finding::of_fault("determinism", "no game can start", &fault, &[]));
        return findings;
    }
    begins("determinism");
    findings.extend(repeat::check(subject, plan));
    begins("messages");
    findings.extend(hostile::check(subject, plan));
    begins("secrecy");
    findings.extend(secrecy::check(subject, plan));
    begins("ending");
    findings.extend(ending::check(subject, plan));
    let place = |finding: &Finding| CHECKS.iter().position(|(name, _)| *name == finding.check);
    findings.sort_by_key(place);
    findings
}
