//! The contents of random actions: examples from the metadata, numbers and words that a player received, and
//! variations of both.
//!
//! The checks can't know the contents that a challenge accepts. They use the examples in backticks that a good
//! description of a method has, and that agents need as well. If random actions made from these examples can't play a
//! challenge, agents probably can't either.

use arena_model::{ChallengeMetadata, Seat, SeedRng};
use serde_json::Value;

use crate::play::{Action, TestSession};

/// The number of recently received texts to use.
const MEMORY: usize = 64;

/// The maximum length of a word, in characters.
const MAX_WORD: usize = 80;

/// The maximum length of a message that is repeated as a whole, in bytes.
const MAX_WHOLE: usize = 2000;

/// The possible contents, by method.
pub struct Words {
    methods: Vec<(String, Vec<String>)>,
    /// Examples from the prompt, for all methods.
    common: Vec<String>,
}

impl Words {
    /// Collects the examples in the metadata.
    pub fn of(metadata: &ChallengeMetadata) -> Words {
        let names: Vec<&str> = metadata.methods.iter().map(|method| method.name.as_str()).collect();
        let examples = |text: &str| -> Vec<String> {
            let quoted = text.split('`').skip(1).step_by(2).filter(|word| word.chars().count() <= MAX_WORD);
            quoted
                .filter(|word| !names.contains(word))
                // Some authors write the example `bid 40` for the method `bid` with the content `40`.
                .map(|word| {
                    let behind = names.iter().find_map(|name| word.strip_prefix(name)?.strip_prefix(' '));
                    behind.unwrap_or(word).to_owned()
                })
                .collect()
        };
        Words {
            methods: (metadata.methods.iter())
                .map(|method| (method.name.clone(), examples(&method.description)))
                .collect(),
            common: examples(&metadata.prompt),
        }
    }

    /// Draws an action for the player at a seat: usually a plausible content, sometimes an arbitrary one.
    pub fn draw(&self, table: &TestSession<'_>, seat: Seat, rng: &mut SeedRng) -> Action {
        let (method, own) = pick(&self.methods, rng).expect("a challenge has methods");
        let contents = || contents_for(table, seat);
        let content = match rng.below(20) {
            0..=5 => pick(own, rng).cloned(),
            6..=11 => pick(own, rng).map(|example| vary(example, rng)),
            12..=13 => pick(&self.common, rng).map(|example| vary(example, rng)),
            14..=16 => pick(&contents(), rng).cloned(),
            17 => pick(&table.session().facts.invites, rng).map(ToString::to_string),
            18 => Some(rng.below(101).to_string()),
            _ => Some(String::new()),
        };
        Action { seat, method: method.clone(), content: content.unwrap_or_default() }
    }
}

/// Draws one element of a list, each equally likely.
pub fn pick<'l, T>(list: &'l [T], rng: &mut SeedRng) -> Option<&'l T> {
    match list.len() {
        0 => None,
        count => list.get(rng.below(count as u64) as usize),
    }
}

/// The new numbers have the same sum, which rules often require, or are drawn independently.
fn vary(example: &str, rng: &mut SeedRng) -> String {
    let numbers: Vec<u64> = digits(example).filter_map(|(_, text)| text.parse().ok()).collect();
    let sum: u64 = numbers.iter().fold(0, |sum, number| sum.saturating_add(*number));
    let keeps_sum = numbers.len() > 1 && rng.below(2) == 0;
    let mut left = sum;
    let mut varied = String::new();
    let mut end = 0;
    for (index, (at, text)) in digits(example).enumerate() {
        let number = match (keeps_sum, index + 1 == numbers.len()) {
            (true, true) => left,
            (true, false) => rng.below(left.saturating_add(1).max(1)),
            (false, _) => rng.below(sum.saturating_mul(2).clamp(10, 1_000_000)),
        };
        left = left.saturating_sub(number);
        varied += &example[end..at];
        varied += &number.to_string();
        end = at + text.len();
    }
    varied + &example[end..]
}

/// Returns the runs of digits in a text, with their positions.
fn digits(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let at = rest + text[rest..].find(|char: char| char.is_ascii_digit())?;
        let end = text[at..].find(|char: char| !char.is_ascii_digit()).map_or(text.len(), |length| at + length);
        rest = end;
        Some((at, &text[at..end]))
    })
}

/// Returns the latest numbers and words that the player at a seat has received. From a message in JSON, this function
/// takes the strings. From other messages it takes numbers, lists in braces, and the whole text of private messages,
/// because the rules may require a player to repeat them.
fn contents_for(table: &TestSession<'_>, seat: Seat) -> Vec<String> {
    let mut words = Vec::new();
    for said in table.messages_for(seat, 0) {
        match serde_json::from_str::<Value>(said.content) {
            Ok(value) => leaves(&value, &mut words),
            Err(_) => {
                words.extend(digits(said.content).map(|(_, text)| text.to_owned()));
                let braces = said.content.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
                words.extend(braces.map(|(inner, _)| inner.to_owned()));
            }
        }
    }
    words.retain(|word| word.chars().count() <= MAX_WORD);
    let mut words = words.split_off(words.len().saturating_sub(MEMORY));
    let whole = table.messages().filter(|said| said.to == Some(seat) && said.content.len() <= MAX_WHOLE);
    words.extend(whole.map(|said| said.content.to_owned()).take(MEMORY));
    words
}

fn leaves(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Number(number) => words.push(number.to_string()),
        Value::Array(list) => list.iter().for_each(|item| leaves(item, words)),
        Value::Object(members) => members.values().for_each(|item| leaves(item, words)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use arena_model::Seed;

    use super::*;

    #[test]
    fn a_varied_example_keeps_its_form_and_half_of_the_time_its_sum() {
        let mut rng = Seed::from_number(1).rng("words");
        let varied: Vec<String> = (0..8).map(|_| vary("60, 40", &mut rng)).collect();
        let kept = |text: &&String| digits(text).filter_map(|(_, text)| text.parse::<u64>().ok()).sum::<u64>() == 100;
        assert!((1..8).contains(&varied.iter().filter(kept).count()), "{varied:?}");
        assert!(varied.iter().all(|text| text.split(", ").count() == 2), "{varied:?}");
        assert_eq!(vary("no number", &mut rng), "no number");
    }
}
