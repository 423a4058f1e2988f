//! The check `metadata`: completeness and plausibility of a challenge's description.

use arena_model::ChallengeType;
use serde_json::Map;

use crate::Finding;

const CHECK: &str = "metadata";

/// The maximum number of players; no challenge needs more.
const MAX_PLAYERS: usize = 64;

/// Method names that challenges can't use: bots send chat messages under this name.
const RESERVED: [&str; 1] = ["chat"];

pub fn check(challenge: &dyn ChallengeType) -> Vec<Finding> {
    let metadata = challenge.metadata();
    let mut findings = Vec::new();
    for (field, text) in
        [("name", &metadata.name), ("description", &metadata.description), ("prompt", &metadata.prompt)]
    {
        if text.trim().is_empty() {
            findings.push(Finding::wrong(CHECK, format!("`{field}` is empty")));
        }
    }
    if !(1..=MAX_PLAYERS).contains(&metadata.players) {
        let what = format!("`players` must be 1 to {MAX_PLAYERS}, not {}", metadata.players);
        findings.push(Finding::wrong(CHECK, what));
    }
    if metadata.methods.is_empty() {
        findings.push(Finding::wrong(CHECK, "`methods` is empty, so players have no actions"));
    }
    for (number, method) in metadata.methods.iter().enumerate() {
        let name = &method.name;
        let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        if name.is_empty() || !name.chars().all(plain) {
            let what = format!("the method {name:?} must consist of letters, digits, `_` and `-`");
            findings.push(Finding::wrong(CHECK, what));
        }
        if metadata.methods[..number].iter().any(|other| other.name == *name) {
            findings.push(Finding::wrong(CHECK, format!("the method `{name}` is declared twice")));
        }
        if RESERVED.contains(&name.as_str()) {
            let what = format!("the method name `{name}` is reserved for the chat messages of agents");
            findings.push(Finding::wrong(CHECK, what));
        }
        if method.description.trim().is_empty() {
            findings.push(Finding::wrong(CHECK, format!("the method `{name}` has no description")));
        }
        if !metadata.prompt.contains(name.as_str()) {
            let what = format!("the prompt doesn't mention the method `{name}`, and agents rely on the prompt");
            findings.push(Finding::advice(CHECK, what));
        }
    }
    if let Err(error) = challenge.resolve(&Map::new()) {
        findings
            .push(Finding::wrong(CHECK, format!("the challenge cannot be played with its default options: {error}")));
    }
    if findings.is_empty() {
        let count = metadata.methods.len();
        let methods = if count == 1 { "1 method".to_owned() } else { format!("{count} methods") };
        let what = format!(
            "{}, for {} players, with {methods}; the prompt mentions all of them",
            metadata.name, metadata.players
        );
        findings.push(Finding::fine(CHECK, what));
    }
    findings
}
