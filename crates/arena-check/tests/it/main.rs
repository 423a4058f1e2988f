//! The checks on all built-in challenges, and on challenges with one fault each.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod catalogue;
mod faulty;

use std::fmt::Write as _;
use std::sync::Arc;

use arena_check::{CheckPlan, Finding, check};
use arena_model::ChallengeType;

fn findings_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { check, severity, what, evidence, .. } in findings {
        writeln!(text, "{severity:?} {check}: {what}").unwrap();
        for line in evidence {
            writeln!(text, "  {line}").unwrap();
        }
    }
    text
}

fn report(challenge: &Arc<dyn ChallengeType>) -> Vec<Finding> {
    check(challenge, &CheckPlan::default(), &|| None, &|_| {})
}
