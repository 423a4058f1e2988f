//! Plain words about numbers, as people, language models and `bargainer` write them.

use super::convention::Numbers;
use crate::words_of;

/// The meaning of a text: the numbers that its author has, lacks and asks for.
#[derive(Debug, Default)]
pub struct Spoken {
    pub has: Numbers,
    pub lacks: Numbers,
    pub asks: Numbers,
    /// The answer to an earlier question of yes or no.
    pub answer: Option<bool>,
    /// True if the author asks for numbers without naming any.
    pub wants: bool,
}

/// Words that deny. The first three are answers too.
const NO: [&str; 25] = [
    "no", "nope", "nah", "not", "none", "neither", "nor", "never", "without", "don't", "dont", "doesn't", "doesnt",
    "didn't", "didnt", "isn't", "isnt", "aren't", "arent", "haven't", "havent", "won't", "wont", "can't", "cannot",
];
const YES: [&str; 8] = ["yes", "yep", "yeah", "yup", "same", "correct", "right", "both"];
/// Words that begin a question, also without a question mark.
const QUESTION: [&str; 9] = ["do", "is", "are", "got", "any", "what", "how", "which", "can"];
/// Words of an indirect question: "tell me if you have 417".
const INDIRECT: [&str; 2] = ["if", "whether"];
/// Words of a request, in a clause without a number.
const REQUEST: [&str; 8] = ["tell", "give", "show", "trade", "swap", "reveal", "share", "what"];
/// Words about talking: a "no" beside them answers no question.
const TALKING: [&str; 6] = ["tell", "say", "said", "know", "give", "sure"];

impl Spoken {
    /// Parses a text. `is_number` tells the game's numbers from others, such as the size of a set.
    pub fn read(text: &str, is_number: impl Fn(u64) -> bool) -> Spoken {
        let mut spoken = Spoken::default();
        for clause in text.replace(" but ", ". ").split_inclusive(['.', '?', '!', ';', '\n']) {
            // "I don't have 300, I have 417"
            let two = clause.split_once(", I ").filter(|(one, _)| one.contains(|char: char| char.is_ascii_digit()));
            for part in two.map_or(vec![clause], |(one, other)| vec![one, other]) {
                let words = words_of(&joined(part));
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                spoken.read_clause(&words, part.ends_with('?'), &is_number);
            }
        }
        spoken
    }

    fn read_clause(&mut self, words: &[&str], has_mark: bool, is_number: &impl Fn(u64) -> bool) {
        // "Numbers between 100 and 900" is about no number.
        if words.contains(&"between") {
            return;
        }
        let number = |word: &&str| word.parse().ok().filter(|number| is_number(*number));
        let Some((first, rest)) = words.split_first() else { return };
        // In "no 417", the word denies the number instead of answering.
        let is_no = NO[..3].contains(first) && rest.first().and_then(number).is_none();
        let mut answer = if YES.contains(first) { Some(true) } else { is_no.then_some(false) };
        let words = if answer.is_some() { rest } else { words };
        let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
        let is_question = has_mark || has(&INDIRECT) || words.first().is_some_and(|word| QUESTION.contains(word));
        let denial = words.iter().position(|word| NO.contains(word)).unwrap_or(words.len());
        let numbers = |words: &[&str]| words.iter().filter_map(number).collect::<Numbers>();
        let (before, after) = (numbers(&words[..denial]), numbers(&words[denial..]));
        if is_question {
            self.asks.extend(before.iter().chain(&after));
        } else if after.is_empty() && denial < words.len() {
            // "417 isn't mine"
            self.lacks.extend(&before);
        } else {
            // "I have 300, not 417"
            self.has.extend(&before);
            self.lacks.extend(&after);
        }
        if before.is_empty() && after.is_empty() {
            self.wants |= has(&REQUEST) && !has(&NO);
            if answer.is_none() && !is_question && !has(&TALKING) {
                let is_yes = has(&YES) || (words.len() <= 3 && has(&["do", "have"]));
                answer = if has(&NO) { Some(false) } else { is_yes.then_some(true) };
            }
        }
        // "Yes, I have 417" says all by itself. Only a bare answer belongs to the question before it.
        if is_question || (before.is_empty() && after.is_empty()) {
            self.answer = self.answer.or(answer);
        }
    }
}

/// Joins words with hyphens, since the number in "SHA-256" belongs to no set.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for char in text.chars() {
        if char != '-' || !joined.ends_with(char::is_alphabetic) {
            joined.push(char);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_about_numbers_in_many_ways() {
        for (text, expected) in [
            ("PLAIN 101 205", "{101, 205} {} {} None false"),
            ("Is 417 in your set", "{} {} {417} None false"),
            ("What about 417 or 300?", "{} {} {300, 417} None false"),
            ("I do!", "{} {} {} Some(true) false"),
            ("None of them", "{} {} {} Some(false) false"),
            ("No, but I have 300", "{300} {} {} Some(false) false"),
            ("yes, 417. And is 205 yours?", "{417} {} {205} None false"),
            ("Yes, I have 417", "{417} {} {} None false"),
            ("Tell me if you have 417.", "{} {} {417} None false"),
            ("300 doesn't belong to my set", "{} {300} {} None false"),
            ("I don't have 300, I have 417", "{417} {300} {} None false"),
            ("Let's use SHA-256, with numbers between 100 and 900.", "{} {} {} None false"),
            ("417 isn’t mine", "{} {417} {} None false"),
            ("I have 300, not 417", "{300} {417} {} None false"),
            ("I won't tell you", "{} {} {} None false"),
            ("Tell me one first", "{} {} {} None true"),
            ("DIGESTS salt=101a of 13 numbers", "{} {} {} None false"),
        ] {
            let Spoken { has, lacks, asks, answer, wants } = Spoken::read(text, |number| number >= 100);
            assert_eq!(format!("{has:?} {lacks:?} {asks:?} {answer:?} {wants}"), expected, "{text}");
        }
    }
}
