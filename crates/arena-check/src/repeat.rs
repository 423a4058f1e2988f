//! Whether a game can be played again: equal seeds and actions give equal bytes, and nothing is lost between two actions.

use arena_model::ChallengeType;
use serde_json::Value;

use crate::play::{Action, Outcome, Table, excerpt};
use crate::words::Words;
use crate::{Finding, Plan};

/// Games that are played twice.
const GAMES: u32 = 5;

/// Plays games twice, and writes the state down and reads it again after each action.
pub fn check(challenge: &dyn ChallengeType, plan: &Plan) -> Vec<Finding> {
    let words = Words::of(challenge.metadata());
    let (mut same, mut restored) = (None, None);
    let (mut actions, mut states) = (0, 0);
    for game in 0..plan.games.min(GAMES) {
        let seed = plan.seed.derive(&format!("repeat/{game}"));
        let mut rng = seed.rng("actions");
        // A second run beside the first, so that the first byte that differs is found with the action that caused it.
        let (Ok(mut table), Ok(mut twin)) = (Table::seated(challenge, &seed), Table::seated(challenge, &seed)) else {
            continue;
        };
        same = same.or_else(|| difference(&table, &twin, "the players have joined"));
        for _ in 0..plan.actions {
            if table.has_ended() || same.is_some() || restored.is_some() {
                break;
            }
            restored = restored.or_else(|| loss(challenge, &table));
            states += 1;
            let seat = arena_model::Seat(rng.below(table.seats() as u64) as usize);
            let action: Action = words.draw(&table, seat, &mut rng);
            let outcomes: [Outcome; 2] = [table.act(&action), twin.act(&action)];
            actions += 1;
            if outcomes[0] != outcomes[1] {
                let what = "the same action in the same game is once taken and once refused, or refused in other words";
                same = Some(Finding::wrong("determinism", what).shown_by([
                    action.describe(),
                    format!("{:?}", outcomes[0]),
                    format!("{:?}", outcomes[1]),
                ]));
            }
            same = same.or_else(|| difference(&table, &twin, &action.describe()));
        }
    }
    let same = same.unwrap_or_else(|| {
        Finding::fine("determinism", format!("{actions} actions gave the same bytes when they were played again"))
    });
    let restored = restored
        .unwrap_or_else(|| Finding::fine("restore", format!("{states} states came back as they were written down")));
    vec![same, restored]
}

/// The first thing in which two runs of one game differ.
fn difference(table: &Table<'_>, twin: &Table<'_>, after: &str) -> Option<Finding> {
    let (a, b) = (table.bytes(), twin.bytes());
    if a == b {
        return None;
    }
    let lines = a.lines().zip(b.lines()).find(|(a, b)| a != b).unwrap_or(("more is said", "less is said"));
    let what = "equal seeds and equal actions give different games: use the session's randomness only, and no state \
                outside of the challenge";
    let shown = [format!("after: {after}"), format!("once:  {}", lines.0), format!("again: {}", lines.1)];
    Some(Finding::wrong("determinism", what).shown_by(shown))
}

/// What is lost when the state is restored and written down again.
fn loss(challenge: &dyn ChallengeType, table: &Table<'_>) -> Option<Finding> {
    let state = &table.session.state;
    let again = match challenge.restore(&table.session.facts, state) {
        Ok(operator) => operator.serialize(),
        Err(error) => {
            let what = format!("the state that was written down can't be read again: {error}");
            return Some(Finding::wrong("restore", what).shown_by([format!("state: {state}")]));
        }
    };
    let [before, after]: [Value; 2] = [state, &again].map(|text| serde_json::from_str(text).unwrap_or_default());
    let (path, [was, is]) = first_difference(String::new(), &before, &after)?;
    let what =
        format!("the state changes when it is written down and read again, at `{path}`: keep what JSON can hold");
    Some(Finding::wrong("restore", what).shown_by([format!("before: {was}"), format!("after:  {is}")]))
}

/// Where two values differ, and how.
fn first_difference(path: String, a: &Value, b: &Value) -> Option<(String, [String; 2])> {
    match (a, b) {
        _ if a == b => None,
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            let null = Value::Null;
            let value = |of: &serde_json::Map<String, Value>, key: &str| of.get(key).unwrap_or(&null).clone();
            keys.into_iter().find_map(|key| {
                let [a, b] = [value(a, key), value(b, key)];
                first_difference(format!("{path}/{key}"), &a, &b)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(index, (a, b))| first_difference(format!("{path}/{index}"), a, b))
        }
        _ => Some((path, [a, b].map(|value| excerpt(&value.to_string())))),
    }
}
