//! The house bot of `dining-cryptographers`. `normal` follows the protocol of the challenge's rules, with the lines of the
//! sample agent: `coin 1` to its right neighbor in private, and `differ 0` to all. It tells people in plain words what it
//! does and expects, and reads theirs. `easy` says openly if it paid. If the others don't take part, both guess the
//! likelier answer.

use std::collections::BTreeMap;

use super::Talker;
use crate::{BotInfo, Heard, Step, Strength, words_of};

pub const BOT: Talker = Talker {
    easy: BotInfo { name: "confessor", motto: "says openly if it paid" },
    normal: BotInfo { name: "coin-tosser", motto: "follows the protocol of the secret coins" },
    next,
};

fn next(heard: &Heard<'_>, strength: Strength, random: u64) -> Option<Step> {
    let players = players(heard)?;
    if heard.has_acted() {
        return None;
    }
    let paid = heard.operator_texts().any(|text| text == "You paid the bill.");
    match strength {
        Strength::Easy => openly(heard, &players, paid),
        Strength::Normal => by_protocol(heard, &players, paid, random % 2),
    }
}

/// Returns the public names of all diners by seat, or `None` before all have arrived.
pub fn players<'h>(heard: &Heard<'h>) -> Option<Vec<&'h str>> {
    let arrived = heard.operator_texts().find_map(|text| text.strip_prefix("All diners have arrived: "))?;
    Some(arrived.lines().next()?.trim_end_matches('.').split(", ").collect())
}

fn openly(heard: &Heard<'_>, players: &[&str], paid: bool) -> Option<Step> {
    if !heard.has_spoken() {
        let about_me = if paid { "I paid the bill." } else { "I did not pay the bill." };
        return Some(Step::Say { content: format!("I am a house bot. {about_me} And you?"), to: None });
    }
    let said = |player: &str, is_it: fn(&str) -> bool| {
        heard.chat.iter().any(|message| message.from == player && message.to.is_none() && is_it(&message.content))
    };
    let others: Vec<&str> = players.iter().copied().filter(|player| *player != heard.me).collect();
    let is_done = |player: &&str| said(player, |_| true) || has_guessed(heard, player);
    if !heard.is_late && !others.iter().all(is_done) {
        return None;
    }
    let is_paid_by_a_diner = paid || !others.iter().all(|player| said(player, is_denial));
    Some(guess(if is_paid_by_a_diner { "internal" } else { "external" }))
}

fn by_protocol(heard: &Heard<'_>, players: &[&str], paid: bool, coin: u64) -> Option<Step> {
    let seat = players.iter().position(|player| *player == heard.me)?;
    let (right, left) = (players[(seat + 1) % players.len()], players[(seat + players.len() - 1) % players.len()]);
    let has_tossed = heard.chat.iter().any(|message| message.from == heard.me && message.to.as_deref() == Some(right));
    if !has_tossed {
        return Some(Step::Say { content: format!("coin {coin}"), to: Some(right.to_owned()) });
    }
    let say = |content: String| Some(Step::Say { content, to: None });
    let is_explained = heard.chat.iter().any(|message| message.content.starts_with("I am a house bot."));
    if !is_explained {
        return say(format!(
            "I am a house bot. Let's find out if a diner paid, and not which one. I sent my coin, 0 or 1, to {right} in \
             private. Each diner sends one to the next: {} to {}. When you know both coins, yours and that of the \
             diner before you, tell all if they are the same (0) or different (1), or the opposite if you paid.",
            players.join(" to "),
            players[0],
        ));
    }
    let mut told: BTreeMap<&str, u64> = BTreeMap::new();
    for message in heard.chat.iter().filter(|message| message.to.is_none()) {
        if let Some(bit) = announcement_in(&message.content) {
            told.entry(&message.from).or_insert(bit);
        }
    }
    let from_left = heard.chat.iter().filter(|message| message.from == left && !message.redacted);
    let is_coin = |message: &&arena_wire::Message| match message.to.as_deref() {
        Some(to) => to == heard.me,
        None => message.content.to_lowercase().contains("coin"),
    };
    let theirs = from_left.clone().filter(is_coin).find_map(|message| bit_in(&message.content));
    let has_said =
        |words: &str| heard.chat.iter().any(|message| message.from == heard.me && message.content.contains(words));
    let others: Vec<&str> = players.iter().filter(|player| !told.contains_key(*player)).copied().collect();
    match (theirs, told.get(heard.me)) {
        (Some(theirs), None) => return say(format!("differ {}", coin ^ theirs ^ u64::from(paid))),
        // A neighbor who talks or hesitates may not know what the bot waits for.
        (None, None) if !has_said("send me your coin") && (heard.is_late || from_left.count() > 0) => {
            return say(format!("I'm waiting for {left}: send me your coin in private, 0 or 1."));
        }
        (_, Some(own)) if heard.is_late && !others.is_empty() && !has_said("My announcement is") => {
            return say(format!("My announcement is {own}. I'm waiting for yours, {}.", others.join(" and ")));
        }
        _ => {}
    }
    if told.len() == players.len() {
        return Some(guess(if told.values().sum::<u64>() % 2 == 1 { "internal" } else { "external" }));
    }
    // A player that has guessed says no more, so the protocol can't be completed.
    let is_broken = others.iter().any(|player| has_guessed(heard, player));
    // A diner paid in most games, also among those in which this one didn't.
    (heard.is_late || is_broken).then(|| guess("internal"))
}

fn guess(content: &str) -> Step {
    Step::Act { method: "guess".to_owned(), content: content.to_owned() }
}

fn has_guessed(heard: &Heard<'_>, player: &str) -> bool {
    heard.operator_texts().any(|text| text.strip_suffix(" has submitted their guess.") == Some(player))
}

/// Returns true if the text says that its author didn't pay.
fn is_denial(text: &str) -> bool {
    words_of(text).iter().any(|word| ["no", "not", "nope", "didn't", "didnt"].contains(&word.as_str()))
}

/// Returns the only bit in a text, such as `coin 1`, `it's 0` or `heads`.
fn bit_in(text: &str) -> Option<u64> {
    let mut bits = words_of(text).into_iter().filter_map(|word| match word.as_str() {
        "0" | "zero" | "tails" => Some(0),
        "1" | "heads" => Some(1),
        _ => None,
    });
    bits.next().filter(|_| bits.next().is_none())
}

/// Returns the announcement in a text to all, such as `differ 0`, `I say 1`, `same` or `not the same`.
fn announcement_in(text: &str) -> Option<u64> {
    let words = words_of(text);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    // Longer texts explain something, and a coin isn't an announcement.
    if words.len() > 12 || text.ends_with('?') || has(&["coin", "coins", "player", "know"]) {
        return None;
    }
    let is_different = has(&["different", "differ", "differs", "unequal"]);
    let is_named = is_different || has(&["same", "equal", "alike"]);
    let is_negated = has(&["not", "don't", "dont", "aren't", "isn't"]);
    bit_in(text).or_else(|| is_named.then_some(u64::from(is_different != is_negated)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talkers::next;

    const NOT_PAID: &str = "operator > me: You did not pay the bill.";
    const PAID: &str = "operator > me: You paid the bill.";
    const ARRIVED: &str = "operator > all: All diners have arrived: me, ada, bob.\n\nThe bill has been paid.";
    const TOSSED: [&str; 2] = ["me > ada: coin 1", "ada > all: I am a house bot."];

    #[test]
    fn the_protocol_is_followed() {
        let normal = |operator: &[&str], chat: &[&str]| next(&BOT, Strength::Normal, operator, chat, false);
        assert_eq!(normal(&[NOT_PAID], &[]), "wait");
        assert_eq!(normal(&[NOT_PAID, ARRIVED], &[]), "to ada: coin 1");
        assert!(normal(&[NOT_PAID, ARRIVED], &TOSSED[..1]).starts_with("to all: I am a house bot."));
        assert_eq!(normal(&[NOT_PAID, ARRIVED], &TOSSED), "wait");
        let asked = "to all: I'm waiting for bob: send me your coin in private, 0 or 1.";
        let mut chat = vec![TOSSED[0], TOSSED[1], "bob > all: what now?"];
        assert_eq!(normal(&[NOT_PAID, ARRIVED], &chat), asked);
        assert_eq!(next(&BOT, Strength::Normal, &[NOT_PAID, ARRIVED], &TOSSED, true), asked);
        chat.push("me > all: send me your coin");
        assert_eq!(normal(&[NOT_PAID, ARRIVED], &chat), "wait");
        assert_eq!(next(&BOT, Strength::Normal, &[NOT_PAID, ARRIVED], &chat, true), "guess internal");
        for coin in ["bob > me: coin 1", "bob > me: it's 1", "bob > me: Heads!", "bob > all: my coin is 1"] {
            let heard = [TOSSED[0], TOSSED[1], coin];
            assert_eq!(normal(&[NOT_PAID, ARRIVED], &heard), "to all: differ 0", "{coin}");
            assert_eq!(normal(&[PAID, ARRIVED], &heard), "to all: differ 1", "{coin}");
        }
        let mut chat = vec![TOSSED[0], TOSSED[1], "bob > me: coin 1", "me > all: differ 0", "bob > all: differ 1"];
        let expected = "to all: My announcement is 0. I'm waiting for yours, ada.";
        assert_eq!(normal(&[NOT_PAID, ARRIVED], &chat), "wait");
        assert_eq!(next(&BOT, Strength::Normal, &[NOT_PAID, ARRIVED], &chat, true), expected);
        chat.push("me > all: My announcement is 0.");
        for (expected, texts) in [
            ("guess internal", ["differ 0", "I say 0", "the same", "They are not different."]),
            ("guess external", ["differ 1", "My announcement: 1", "not the same", "Ours differ!"]),
            ("wait", ["hello", "are they the same?", "Player 1, go on", "my coin is 1"]),
        ] {
            for text in texts {
                let ada = format!("ada > all: {text}");
                assert_eq!(normal(&[NOT_PAID, ARRIVED], &[&chat[..], &[&ada]].concat()), expected, "{text}");
            }
        }
        let guessed = [NOT_PAID, ARRIVED, "operator > all: bob has submitted their guess."];
        assert_eq!(normal(&guessed, &TOSSED), "guess internal");
    }

    #[test]
    fn easy_says_if_it_paid() {
        let easy = |operator: &[&str], chat: &[&str]| next(&BOT, Strength::Easy, operator, chat, false);
        assert_eq!(easy(&[PAID, ARRIVED], &[]), "to all: I am a house bot. I paid the bill. And you?");
        let own = "me > all: I am a house bot. I did not pay the bill. And you?";
        assert_eq!(easy(&[NOT_PAID, ARRIVED], &[own, "ada > all: not me"]), "wait");
        let all = |bob| easy(&[NOT_PAID, ARRIVED], &[own, "ada > all: not me", bob]);
        assert_eq!(all("bob > all: I didn't pay"), "guess external");
        assert_eq!(all("bob > all: it was me"), "guess internal");
        assert_eq!(next(&BOT, Strength::Easy, &[NOT_PAID, ARRIVED], &[own], true), "guess internal");
    }
}
