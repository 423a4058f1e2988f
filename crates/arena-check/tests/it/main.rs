//! The checks on the whole catalogue, and on challenges that get one thing wrong each.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod catalogue;
mod faulty;

use std::fmt::Write as _;

use arena_check::{Finding, Plan, check};
use arena_model::ChallengeType;

/// A report as text.
fn told(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { check, verdict, what, evidence, .. } in findings {
        writeln!(text, "{verdict:?} {check}: {what}").unwrap();
        for line in evidence {
            writeln!(text, "  {line}").unwrap();
        }
    }
    text
}

/// The report on a challenge.
fn report(challenge: &dyn ChallengeType) -> Vec<Finding> {
    check(challenge, &Plan::default(), &|| None, &|_| {})
}
