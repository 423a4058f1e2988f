//! Faults during a measurement: their number, and the first few messages.

use std::collections::BTreeMap;

/// The largest number of different messages that are kept. Further messages are only counted.
const KEPT: usize = 5;

/// The number of faults, and some of their messages.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    count: u64,
    sentences: BTreeMap<String, u64>,
}

impl Faults {
    pub fn add(&mut self, fault: &anyhow::Error) {
        self.add_sentence(format!("{fault:#}"), 1);
    }

    pub fn merge(&mut self, other: Faults) {
        let explained: u64 = other.sentences.values().sum();
        self.count += other.count - explained;
        for (sentence, count) in other.sentences {
            self.add_sentence(sentence, count);
        }
    }

    fn add_sentence(&mut self, sentence: String, count: u64) {
        self.count += count;
        if self.sentences.len() < KEPT || self.sentences.contains_key(&sentence) {
            *self.sentences.entry(sentence).or_default() += count;
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns some of the messages, each with its number of occurrences.
    pub fn sentences(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sentences.iter().map(|(sentence, count)| (sentence.as_str(), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_keeps_the_count_but_not_all_sentences() {
        let mut one = Faults::default();
        for number in 0..10 {
            one.add(&anyhow::anyhow!("fault {number}"));
        }
        let mut other = Faults::default();
        other.add(&anyhow::anyhow!("fault 0"));
        other.merge(one);
        assert_eq!(other.count(), 11);
        assert_eq!(other.sentences().next(), Some(("fault 0", 2)));
        assert_eq!(other.sentences().count(), KEPT);
    }
}
