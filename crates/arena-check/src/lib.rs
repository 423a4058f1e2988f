//! What a challenge gets wrong, told to its author: found by playing it, again and again, in sessions as a server keeps them.
//!
//! Everything here is pure: equal challenges and plans give equal reports. Loading scripts, starting bots and printing are the
//! command line's; this crate knows a challenge by the trait that an arena hosts it by, so that the same checks hold the built-in
//! ones to account.

mod described;
mod ending;
mod hostile;
mod play;
mod repeat;
mod secrecy;
mod words;

use arena_model::{ChallengeType, Seed};
use serde::Serialize;

use play::Subject;

/// How thoroughly a challenge is looked at.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All that is random in the checks comes of this, so that what was found is found again after mending something else.
    pub seed: Seed,
    /// Games that are played at random.
    pub games: u32,
    /// After so many actions a game at random is broken off.
    pub actions: u32,
    /// Deals that are looked through for two that differ for one player alone.
    pub deals: u32,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { seed: Seed::from_number(0), games: 20, actions: 200, deals: 400 }
    }
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was tried, and is as it should be.
    Fine,
    /// Worth a thought; it may be meant so.
    Advice,
    /// It has to be mended.
    Wrong,
}

/// What one check came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check, such as `secrecy`; several findings may be of one.
    pub check: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was found, in a sentence without a full stop.
    pub what: String,
    /// What shows it, line by line; often empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The place in the author's files, such as `index.ts:12`, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub fn fine(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Verdict::Fine, what)
    }

    /// Something worth a thought.
    pub fn advice(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Verdict::Advice, what)
    }

    /// Something that has to be mended.
    pub fn wrong(check: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(check, Verdict::Wrong, what)
    }

    fn new(check: &'static str, verdict: Verdict, what: impl Into<String>) -> Finding {
        Finding { check, verdict, what: what.into(), evidence: Vec::new(), place: None }
    }

    /// A failure of the rules, and what led to it.
    fn of_fault(check: &'static str, when: &str, fault: &Fault, led: &[String]) -> Finding {
        let Fault { what, place, stack } = fault;
        let finding = Finding { place: place.clone(), ..Finding::wrong(check, format!("{when}: {what}")) };
        finding.shown_by(led.iter().chain(stack).cloned())
    }

    /// The finding, with what shows it.
    #[must_use]
    pub fn shown_by(mut self, evidence: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(evidence.into_iter().map(|line| play::excerpt(&line)));
        self
    }
}

/// What is known of a call on which the rules failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub what: String,
    /// The place in the author's files, such as `index.ts:12`, where it is known.
    pub place: Option<String>,
    /// Which functions had called which, the innermost first, where that is known.
    pub stack: Vec<String>,
}

/// The checks, in the order in which they are made and told, each with what it asks.
pub const CHECKS: [(&str, &str); 7] = [
    ("metadata", "is all told that a player and a page need, and is it true?"),
    ("determinism", "do equal seeds and equal actions give equal bytes?"),
    ("restore", "is nothing lost when the state is written down between two actions?"),
    ("messages", "does it take whatever players may send, without a fault of its own?"),
    ("secrecy", "does nobody learn what another player alone was told?"),
    ("ending", "does it end, and what if somebody stays away?"),
    ("scores", "are scores numbers that can be compared?"),
];

/// Makes all checks. Findings are in the order of [`CHECKS`]; there is at least one for each check that could be made. After each call
/// that failed, `last_fault` is asked what is known of it, and then forgets it; players are told no more than that it failed. `begins`
/// is told of each check that begins, as some take long.
pub fn check(
    challenge: &dyn ChallengeType,
    plan: &Plan,
    last_fault: &dyn Fn() -> Option<Fault>,
    begins: &dyn Fn(&'static str),
) -> Vec<Finding> {
    let subject = Subject { challenge, last_fault };
    begins("metadata");
    let mut findings = described::check(challenge);
    // Where not even all can join, nothing else can be tried.
    if let Err(fault) = play::Table::seated(subject, &plan.seed) {
        findings.push(Finding::of_fault("determinism", "no game can begin", &fault, &[]));
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
