//! The house bot of `millionaire`. It asks for the half of the range that contains the opponent's wealth, and guesses
//! the likelier side of its own wealth. `easy` states its own half and never guesses an exact wealth. `normal` keeps its
//! wealth to itself, and uses an exact wealth that the opponent names.

use std::ops::RangeInclusive;

use super::Talker;
use crate::{BotInfo, Heard, Step, Strength};

pub const BOT: Talker = Talker {
    easy: BotInfo { name: "half-teller", motto: "states its half of the range and guesses the likelier side" },
    normal: BotInfo { name: "discreet", motto: "keeps its wealth to itself" },
    next,
};

/// The range of a wealth, in millions.
pub const WEALTH: RangeInclusive<u64> = 1..=100;

/// The largest number of the lower half.
const HALF: u64 = 50;

/// Words that put a wealth above a number, or above the half.
const ABOVE: [&str; 8] = ["above", "more", "over", "upper", "higher", "richer", "yes", "yep"];

/// Words that put a wealth below a number, or into the lower half.
const BELOW: [&str; 8] = ["below", "less", "under", "lower", "poorer", "no", "nope", "most"];

/// Returns true if the bot can guess: both players have joined, and it hasn't guessed.
pub fn may_guess(heard: &Heard<'_>) -> bool {
    heard.has_opponent() && !heard.has_acted()
}

/// Returns the bot's wealth, in millions.
pub fn own_wealth(heard: &Heard<'_>) -> Option<u64> {
    heard.operator_texts().find_map(|text| text.strip_prefix("Your wealth is $")?.split('M').next())?.parse().ok()
}

fn next(heard: &Heard<'_>, strength: Strength, _random: u64) -> Option<Step> {
    let own = own_wealth(heard)?;
    if !may_guess(heard) {
        return None;
    }
    if !heard.has_spoken() {
        let about_me = match strength {
            Strength::Easy if own > HALF => "My wealth is above 50.",
            Strength::Easy => "My wealth is 50 or less.",
            Strength::Normal => "I keep my wealth to myself.",
        };
        let content = format!("I am a house bot. {about_me} Is yours above 50?");
        return Some(Step::Say { content, to: None });
    }
    let said = heard.chat.iter().rev().filter(|message| message.from != heard.me);
    let theirs = said.map(|message| message.content.as_str()).find_map(range_in);
    if theirs.is_none() && !heard.is_late && !heard.has_opponent_guessed() {
        return None;
    }
    let guess = guess(own, theirs.unwrap_or(WEALTH), strength);
    Some(Step::Act { method: "guess".to_owned(), content: guess.to_string() })
}

/// Returns the range of the opponent's wealth according to its text, if the text states one.
fn range_in(text: &str) -> Option<RangeInclusive<u64>> {
    let text = text.to_lowercase();
    let mut digits = text.split(|char: char| !char.is_ascii_digit());
    let number = digits.find_map(|digits| digits.parse().ok()).filter(|number| WEALTH.contains(number));
    let has = |known: &[&str]| text.split(|char: char| !char.is_alphabetic()).any(|word| known.contains(&word));
    match (has(&ABOVE), has(&BELOW), number) {
        (true, false, number) => Some((number.unwrap_or(HALF) + 1).min(*WEALTH.end())..=*WEALTH.end()),
        (false, true, number) => Some(*WEALTH.start()..=number.unwrap_or(HALF)),
        (false, false, Some(number)) => Some(number..=number),
        _ => None,
    }
}

fn guess(own: u64, theirs: RangeInclusive<u64>, strength: Strength) -> u64 {
    let (low, high) = theirs.into_inner();
    if low == high && (strength == Strength::Normal || low == own) {
        return low;
    }
    let (above, below) = (high.saturating_sub(low.max(own + 1) - 1), own.min(high + 1).saturating_sub(low));
    let is_above = above >= below && own < *WEALTH.end();
    // The guess nearest to the own wealth that isn't an exact wealth which the opponent named.
    let is_fair = |guess: &u64| low != high || *guess != low;
    let found = if is_above { (own + 1..=*WEALTH.end()).find(is_fair) } else { (1..own).rev().find(is_fair) };
    found.unwrap_or(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talkers::next;

    const DEALT: [&str; 2] =
        ["operator > me: Your wealth is $30M. Guess your opponent's wealth", "operator > you: (redacted)"];

    #[test]
    fn it_asks_and_guesses_when_it_has_an_answer() {
        let ask = |strength| next(&BOT, strength, &DEALT, &[], false);
        assert_eq!(ask(Strength::Easy), "to all: I am a house bot. My wealth is 50 or less. Is yours above 50?");
        assert_eq!(ask(Strength::Normal), "to all: I am a house bot. I keep my wealth to myself. Is yours above 50?");
        assert_eq!(next(&BOT, Strength::Easy, &DEALT[..1], &[], false), "wait");
        let after = |strength, answer: &str| {
            next(&BOT, strength, &DEALT, &["me > all: Is yours above 50?", &format!("you > all: {answer}")], false)
        };
        assert_eq!(after(Strength::Normal, "hello"), "wait");
        assert_eq!(after(Strength::Normal, "Yes!"), "guess 31");
        assert_eq!(after(Strength::Normal, "no, less than 20"), "guess 29");
        assert_eq!(after(Strength::Normal, "I have 31"), "guess 31");
        assert_eq!(after(Strength::Easy, "I have 31"), "guess 32");
        assert_eq!(after(Strength::Easy, "I have 30"), "guess 30");
    }

    #[test]
    fn it_guesses_when_it_need_not_wait_any_longer() {
        let said = ["me > all: Is yours above 50?"];
        assert_eq!(next(&BOT, Strength::Normal, &DEALT, &said, false), "wait");
        assert_eq!(next(&BOT, Strength::Normal, &DEALT, &said, true), "guess 31");
        let guessed = [DEALT[0], DEALT[1], "operator > all: Player you sent a guess"];
        assert_eq!(next(&BOT, Strength::Normal, &guessed, &said, false), "guess 31");
        let done = [DEALT[0], DEALT[1], "me > operator: (guess) 31"];
        assert_eq!(next(&BOT, Strength::Normal, &done, &said, true), "wait");
    }

    #[test]
    fn a_guess_is_always_possible() {
        for own in WEALTH {
            for theirs in [1..=100, 51..=100, 1..=50, 1..=1, 100..=100, own..=own] {
                for strength in [Strength::Easy, Strength::Normal] {
                    let guess = guess(own, theirs.clone(), strength);
                    assert!(WEALTH.contains(&guess), "{own} {theirs:?}: {guess}");
                }
            }
        }
    }
}
