//! Whether a challenge tells what players and pages need, and whether what it tells can be so.

use arena_model::ChallengeType;
use serde_json::Map;

use crate::Finding;

const CHECK: &str = "metadata";

/// More players than any challenge has use for.
const MAX_PLAYERS: usize = 64;

/// What is sent with a chat message to a bot is called so, and a method of that name couldn't be told from it.
const RESERVED: [&str; 1] = ["chat"];

/// Looks at the metadata.
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
        let what = format!("`players` is {}, but a challenge has 1 to {MAX_PLAYERS}", metadata.players);
        findings.push(Finding::wrong(CHECK, what));
    }
    if metadata.methods.is_empty() {
        findings.push(Finding::wrong(CHECK, "`methods` is empty: nobody could do anything"));
    }
    for (number, method) in metadata.methods.iter().enumerate() {
        let name = &method.name;
        let plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        if name.is_empty() || !name.chars().all(plain) {
            let what = format!("the method {name:?} isn't a name of letters, digits, `_` and `-`, as tools need it");
            findings.push(Finding::wrong(CHECK, what));
        }
        if metadata.methods[..number].iter().any(|other| other.name == *name) {
            findings.push(Finding::wrong(CHECK, format!("the method `{name}` is there twice")));
        }
        if RESERVED.contains(&name.as_str()) {
            let what = format!("a method can't be called `{name}`: bots say so when they talk to other players");
            findings.push(Finding::wrong(CHECK, what));
        }
        if method.description.trim().is_empty() {
            findings.push(Finding::wrong(CHECK, format!("the method `{name}` has no description")));
        }
        if !metadata.prompt.contains(name.as_str()) {
            let what = format!("the prompt says nothing of the method `{name}`, and it is what agents go by");
            findings.push(Finding::advice(CHECK, what));
        }
    }
    if let Err(error) = challenge.resolve(&Map::new()) {
        findings.push(Finding::wrong(CHECK, format!("its default options can't be played with: {error}")));
    }
    if findings.is_empty() {
        let count = metadata.methods.len();
        let methods = if count == 1 { "1 method".to_owned() } else { format!("{count} methods") };
        let what =
            format!("{}, for {} players, with {methods}; the prompt explains all", metadata.name, metadata.players);
        findings.push(Finding::fine(CHECK, what));
    }
    findings
}
