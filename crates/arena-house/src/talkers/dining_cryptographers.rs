//! The house bot of `dining-cryptographers`. `normal` follows the protocol of the challenge's rules, with the lines of the
//! sample agent: `coin 1` to its right neighbor in private, and `differ 0` to all. `easy` says openly if it paid. If the
//! others don't take part, both guess the likelier answer.

use std::collections::BTreeMap;

use super::Talker;
use crate::{BotInfo, Heard, Step, Strength};

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
    let is_explained = heard.chat.iter().any(|message| message.content.starts_with("I am a house bot."));
    if !is_explained {
        let content = "I am a house bot. I sent my right neighbor my coin in private (coin 0 or coin 1). When I know my \
                       left neighbor's coin, I tell all if the two differ (differ 0 or differ 1), and the opposite if I \
                       paid.";
        return Some(Step::Say { content: content.to_owned(), to: None });
    }
    let mut told: BTreeMap<&str, u64> = BTreeMap::new();
    for message in heard.chat.iter().filter(|message| message.to.is_none()) {
        if let Some(bit) = bit_after(&message.content, "differ ") {
            told.entry(&message.from).or_insert(bit);
        }
    }
    let from_left = |message: &&arena_wire::Message| message.from == left && message.to.as_deref() == Some(heard.me);
    let theirs = heard.chat.iter().filter(from_left).find_map(|message| bit_after(&message.content, "coin "));
    if let Some(theirs) = theirs.filter(|_| !told.contains_key(heard.me)) {
        return Some(Step::Say { content: format!("differ {}", coin ^ theirs ^ u64::from(paid)), to: None });
    }
    if told.len() == players.len() {
        return Some(guess(if told.values().sum::<u64>() % 2 == 1 { "internal" } else { "external" }));
    }
    // A player that has guessed says no more, so the protocol can't be completed.
    let is_broken = players.iter().any(|player| !told.contains_key(player) && has_guessed(heard, player));
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
    let text = text.to_lowercase();
    let mut words = text.split(|char: char| !char.is_alphanumeric() && char != '\'');
    words.any(|word| ["no", "not", "nope", "didn't", "didnt"].contains(&word))
}

fn bit_after(text: &str, prefix: &str) -> Option<u64> {
    match text.trim().strip_prefix(prefix)? {
        "0" => Some(0),
        "1" => Some(1),
        _ => None,
    }
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
        let heard = [TOSSED[0], TOSSED[1], "bob > me: coin 1"];
        assert_eq!(normal(&[NOT_PAID, ARRIVED], &heard), "to all: differ 0");
        assert_eq!(normal(&[PAID, ARRIVED], &heard), "to all: differ 1");
        let all = |ada: &str| {
            let ada = format!("ada > all: {ada}");
            let chat = [heard[0], heard[1], heard[2], "me > all: differ 0", &ada, "bob > all: differ 1"];
            normal(&[NOT_PAID, ARRIVED], &chat)
        };
        assert_eq!([all("differ 0"), all("differ 1"), all("hello")], ["guess internal", "guess external", "wait"]);
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
