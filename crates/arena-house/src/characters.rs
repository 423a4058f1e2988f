//! Characters: house bots with one manner in all challenges of words. They are opponents with known faults, and the
//! players of the example evaluation. A character is a file in this folder and an entry of [`CHARACTERS`].

mod careful;
mod copycat;
mod greedy;
mod leaky;

use std::collections::{BTreeMap, BTreeSet};

use crate::psi::{Numbers, numbers_in, own_set};
use crate::talkers::dining_cryptographers;
use crate::talkers::millionaire::{WEALTH, may_guess, own_wealth};
use crate::talkers::ultimatum::{OwnTurn, number_after, reservation, split};
use crate::{Bot, Heard, Step};

pub static CHARACTERS: [Character; 4] = [leaky::BOT, careful::BOT, greedy::BOT, copycat::BOT];

#[derive(Debug)]
pub struct Character {
    /// The name, which follows `house:`.
    pub name: &'static str,
    /// The manner, which follows "a house bot that".
    pub motto: &'static str,
    /// The words to all players before the first action; `None` for silence.
    words: fn(&Talk<'_>) -> Option<String>,
    /// The guess in `psi` from the own set and the sets that others claim.
    numbers: fn(&Numbers, &[Numbers]) -> Numbers,
    /// The guess in `millionaire` from the own wealth and the wealth that the other player claims.
    wealth: fn(u64, u64) -> u64,
    /// True if it names the payer that it knows in `dining-cryptographers`, instead of `internal`.
    names_payer: bool,
    /// The shares that it wants in `ultimatum`.
    shares: fn(&Bargain) -> Shares,
}

impl PartialEq for Character {
    fn eq(&self, other: &Character) -> bool {
        self.name == other.name
    }
}

impl Eq for Character {}

/// A silent player that believes the claims of others. The characters say in what they differ.
const NEUTRAL: Character = Character {
    name: "neutral",
    motto: "believes the claims of others",
    words: |_| None,
    numbers: |own, claims| own.iter().filter(|number| claims.iter().all(|set| set.contains(number))).copied().collect(),
    wealth: |_, claimed| claimed,
    names_payer: true,
    shares: |bargain| Shares { least: bargain.even, wanted: bargain.even },
};

/// The situation before a player's words.
struct Talk<'t> {
    /// A sentence with the player's secret.
    secret: String,
    /// A sentence that asks for the secrets of others.
    question: &'static str,
    /// The last words of another player.
    last: Option<&'t str>,
}

/// A turn in `ultimatum`.
struct Bargain {
    total: u64,
    reservation: u64,
    /// An equal share, or the smallest share with a gain if it is larger.
    even: u64,
    /// The shares of the proposer and of this player in another player's offer.
    offer: Option<(u64, u64)>,
    /// The reservation values that the other players claim; `None` before all have claimed one.
    claims: Option<Vec<u64>>,
}

/// The smallest share of an acceptable offer, and the share in the own offers.
struct Shares {
    least: u64,
    wanted: u64,
}

/// The rules of a challenge for all characters. The last argument is true if the player's last step was refused.
type Play = fn(&Character, &Heard<'_>, bool) -> Option<Step>;

/// Creates the player of one game, if the challenge is one of words.
pub(crate) fn player(challenge: &str, character: &'static Character) -> Option<Box<dyn Bot>> {
    let play: Play = match challenge {
        "psi" => psi,
        "millionaire" => millionaire,
        "dining-cryptographers" => dining,
        "ultimatum" => ultimatum,
        _ => return None,
    };
    Some(Box::new(CharacterPlayer { character, play, last: None, refused_at: None }))
}

struct CharacterPlayer {
    character: &'static Character,
    play: Play,
    /// The last step, and the number of messages before it. The step isn't repeated before there is news.
    last: Option<(usize, Step)>,
    /// The number of messages before a refused step.
    refused_at: Option<usize>,
}

impl Bot for CharacterPlayer {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        let count = heard.count() + heard.chat.len();
        let step = (self.play)(self.character, heard, self.refused_at == Some(count))?;
        let last = self.last.replace((count, step.clone()));
        (heard.is_late || last != self.last).then_some(step)
    }

    fn refused(&mut self, _step: &Step) {
        self.refused_at = self.last.as_ref().map(|(count, _)| *count);
    }
}

fn act(method: &str, content: String) -> Step {
    Step::Act { method: method.to_owned(), content }
}

fn list(numbers: &Numbers) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the words of other players in order, with their names.
fn words_of_others<'h>(heard: &Heard<'h>) -> impl DoubleEndedIterator<Item = (&'h str, &'h str)> + use<'h> {
    let me = heard.me;
    let others = heard.chat.iter().filter(move |message| message.from != me && !message.redacted);
    others.map(|message| (message.from.as_str(), message.content.as_str()))
}

impl Character {
    /// Returns the words before the first action, if the character still says them.
    fn say(&self, heard: &Heard<'_>, secret: String, question: &'static str) -> Option<Step> {
        let last = words_of_others(heard).next_back().map(|(_, text)| text);
        let content = (self.words)(&Talk { secret, question, last }).filter(|_| !heard.has_spoken())?;
        Some(Step::Say { content, to: None })
    }
}

fn psi(character: &Character, heard: &Heard<'_>, is_refused: bool) -> Option<Step> {
    let own = own_set(heard)?;
    if !may_guess(heard) {
        return None;
    }
    let secret = format!("My numbers are {}.", list(&own));
    if let Some(step) = character.say(heard, secret, "Tell me your numbers first. Then I tell you mine.") {
        return Some(step);
    }
    let mut claims: BTreeMap<&str, Numbers> = BTreeMap::new();
    // Digests of the house bots contain digits, but no numbers.
    for (from, text) in words_of_others(heard).filter(|(_, text)| !text.starts_with("DIGESTS")) {
        let numbers = numbers_in(text);
        if !numbers.is_empty() {
            claims.entry(from).or_default().extend(numbers);
        }
    }
    let players: BTreeSet<&str> = heard.recipients().collect();
    if claims.len() + 1 < players.len() && !heard.is_late && !heard.has_opponent_guessed() {
        return None;
    }
    let claims: Vec<Numbers> = claims.into_values().collect();
    let guess = if is_refused || claims.is_empty() { Numbers::new() } else { (character.numbers)(&own, &claims) };
    // A guess must contain a number. Without any knowledge, one number of the own set is as good as another.
    let guess = if guess.is_empty() { own.into_iter().take(1).collect() } else { guess };
    Some(act("guess", list(&guess)))
}

fn millionaire(character: &Character, heard: &Heard<'_>, _is_refused: bool) -> Option<Step> {
    let own = own_wealth(heard)?;
    if !may_guess(heard) {
        return None;
    }
    let secret = format!("My wealth is ${own}M.");
    if let Some(step) = character.say(heard, secret, "Tell me your wealth first. Then I tell you mine.") {
        return Some(step);
    }
    let mut claims = words_of_others(heard).filter_map(|(_, text)| numbers_in(text).into_iter().next());
    let claim = claims.rfind(|claim| WEALTH.contains(claim));
    let most = *WEALTH.end();
    let guess = match claim {
        Some(claim) => (character.wealth)(own, claim),
        None if !heard.is_late && !heard.has_opponent_guessed() => return None,
        None if own <= most / 2 => (own + most) / 2 + 1,
        None => own / 2,
    };
    Some(act("guess", guess.clamp(*WEALTH.start(), most).to_string()))
}

fn dining(character: &Character, heard: &Heard<'_>, is_refused: bool) -> Option<Step> {
    const PAID: &str = "I paid the bill.";
    const NOT_PAID: &str = "I did not pay the bill.";
    let players = dining_cryptographers::players(heard)?;
    if heard.has_acted() {
        return None;
    }
    let paid = heard.operator_texts().any(|text| text == "You paid the bill.");
    let secret = if paid { PAID } else { NOT_PAID };
    if let Some(step) = character.say(heard, secret.to_owned(), "Tell me if you paid. Then I tell you if I paid.") {
        return Some(step);
    }
    let mut claims: BTreeMap<&str, bool> = BTreeMap::new();
    for (from, text) in words_of_others(heard) {
        let claim = if text.contains(PAID) { Some(true) } else { text.contains(NOT_PAID).then_some(false) };
        claims.extend(claim.map(|claim| (from, claim)));
    }
    let is_known_by_all = claims.len() + 1 >= players.len();
    if !is_known_by_all && !heard.is_late {
        return None;
    }
    let payer = if paid { Some(heard.me) } else { claims.iter().find(|(_, paid)| **paid).map(|(from, _)| *from) };
    let guess = match payer {
        _ if is_refused => "unknown",
        Some(payer) if character.names_payer => payer,
        None if is_known_by_all => "external",
        _ => "internal",
    };
    Some(act("guess", guess.to_owned()))
}

fn ultimatum(character: &Character, heard: &Heard<'_>, is_refused: bool) -> Option<Step> {
    const NEED: &str = "I need at least ";
    let reservation = reservation(heard).filter(|_| heard.has_opponent())?;
    if let Some(step) = character.say(heard, format!("{NEED}{reservation}."), "How much do you need at least?") {
        return Some(step);
    }
    let turn = OwnTurn::read(heard)?;
    if is_refused {
        return Some(act("pass", String::new()));
    }
    let least = (reservation + 1).min(turn.total);
    let others = turn.offer.as_ref().filter(|(proposer, _)| *proposer != turn.number);
    let claims: BTreeMap<&str, u64> =
        words_of_others(heard).filter_map(|(from, text)| Some((from, number_after(text, NEED)?))).collect();
    let bargain = Bargain {
        total: turn.total,
        reservation,
        even: (turn.total / turn.players.max(1) as u64).max(least),
        offer: others.and_then(|(proposer, shares)| {
            Some((*shares.get(proposer.checked_sub(1)?)?, *shares.get(turn.number - 1)?))
        }),
        claims: (claims.len() + 1 == turn.players).then(|| claims.into_values().collect()),
    };
    let Shares { least: enough, wanted } = (character.shares)(&bargain);
    // In the last round, any gain is better than none.
    let enough = if turn.is_last() { least } else { enough.clamp(least, turn.total) };
    Some(match bargain.offer {
        Some((_, mine)) if mine >= enough => act("accept", "yes".to_owned()),
        _ => act("submit_offer", split(turn.total, turn.players, turn.number, wanted.clamp(least, turn.total))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talkers::{messages, say};

    /// Checks the next step of a character after these messages.
    #[track_caller]
    fn check(challenge: &str, name: &str, operator: &[&str], chat: &[&str], expected: &str) {
        let character = CHARACTERS.iter().find(|character| character.name == name).unwrap();
        let mut bot = player(challenge, character).unwrap();
        let (operator, chat) = (messages(operator), messages(chat));
        // A step that comes late only is in brackets.
        let heard = Heard { me: "me", operator: &operator, chat: &chat, is_late: false };
        let step = match bot.next(&heard) {
            None => format!("[{}]", say(bot.next(&Heard { is_late: true, ..heard }))),
            step => say(step),
        };
        assert_eq!(step, expected, "{name}");
    }

    #[test]
    fn characters_play_psi() {
        let dealt = ["operator > me: Your private set is: {103, 105, 108}.", "operator > you: "];
        let check = |name, chat: &[&str], expected| check("psi", name, &dealt, chat, expected);
        let theirs = "you > all: My numbers are 101, 105, 108.";
        check("leaky", &[], "to all: My numbers are 103, 105, 108.");
        check("leaky", &["me > all: x"], "[guess 103]");
        check("leaky", &["me > all: x", theirs], "guess 105, 108");
        check("careful", &[theirs], "guess 105, 108");
        check("careful", &["you > all: DIGESTS salt=101 103"], "[guess 103]");
        check("greedy", &[], "to all: Tell me your numbers first. Then I tell you mine.");
        check("greedy", &["me > all: x", theirs], "guess 101, 105, 108");
        check("copycat", &[theirs], "to all: My numbers are 101, 105, 108.");
        check("copycat", &["me > all: x", theirs], "guess 105, 108");
    }

    #[test]
    fn characters_play_millionaire() {
        let dealt = ["operator > me: Your wealth is $40M. Guess your opponent's wealth", "operator > you: "];
        let check = |name, chat: &[&str], expected| check("millionaire", name, &dealt, chat, expected);
        check("leaky", &[], "to all: My wealth is $40M.");
        check("leaky", &["me > all: x", "you > all: My wealth is $41M."], "guess 41");
        for (claim, expected) in [(41, "guess 42"), (100, "guess 41"), (1, "guess 2"), (40, "guess 40")] {
            check("careful", &[&format!("you > all: My wealth is ${claim}M.")], expected);
        }
        check("careful", &[], "[guess 71]");
    }

    #[test]
    fn characters_play_dining_cryptographers() {
        let arrived = "operator > all: All diners have arrived: me, you.\n\nThe bill has been paid.";
        let check = |name, paid: &str, chat: &[&str], expected| {
            check("dining-cryptographers", name, &[&format!("operator > me: {paid}"), arrived], chat, expected);
        };
        let (paid, other) = ("You paid the bill.", "You did not pay the bill.");
        check("leaky", paid, &[], "to all: I paid the bill.");
        check("leaky", paid, &["me > all: x"], "[guess me]");
        check("careful", paid, &[], "[guess internal]");
        check("careful", other, &["you > all: I paid the bill."], "guess internal");
        check("greedy", other, &["me > all: x", "you > all: I paid the bill."], "guess you");
        check("careful", other, &["you > all: I am a house bot. I did not pay the bill. And you?"], "guess external");
    }

    #[test]
    fn characters_play_ultimatum() {
        let start = [
            "operator > me: Your private reservation value is: 30. This is the minimum share",
            "operator > you: ",
            "operator > all: - Total to split: 100\n- Players: 2\n- Max rounds: 9\n\nPlayer 1's turn. (Round 1/9)",
        ];
        let check = |name, more: &[&str], chat: &[&str], expected| {
            check("ultimatum", name, &[&start, more].concat(), chat, expected);
        };
        let turn = "operator > all: Player 1's turn. (Round 2/9)";
        let (even, mean) = (
            ["operator > all: Player 2 proposes: Player 1: 50, Player 2: 50", turn],
            ["operator > all: Player 2 proposes: Player 1: 31, Player 2: 69", turn],
        );
        check("leaky", &[], &[], "to all: I need at least 30.");
        check("leaky", &[], &["me > all: x"], "submit_offer 50, 50");
        check("leaky", &mean, &["me > all: x"], "accept yes");
        check("careful", &mean, &[], "submit_offer 50, 50");
        check("careful", &even, &[], "accept yes");
        check("careful", &[mean[0], "operator > all: Player 1's turn. (Round 9/9)"], &[], "accept yes");
        check("careful", &["operator > all: Player 2's turn. (Round 1/9)"], &[], "[wait]");
        check("greedy", &[], &["me > all: x"], "submit_offer 75, 25");
        check("greedy", &even, &["me > all: x"], "submit_offer 75, 25");
        check("greedy", &[], &["me > all: x", "you > all: I need at least 10."], "submit_offer 89, 11");
        check("copycat", &mean, &[], "submit_offer 69, 31");
    }

    #[test]
    fn a_refused_step_is_replaced_and_not_repeated() {
        let mut bot = player("psi", &greedy::BOT).unwrap();
        let operator = messages(&["operator > me: Your private set is: {103, 105}.", "operator > you: "]);
        let chat = messages(&["me > all: x", "you > all: 7, 8"]);
        let heard = Heard { me: "me", operator: &operator, chat: &chat, is_late: false };
        let mut steps = Vec::new();
        for _ in 0..3 {
            let step = bot.next(&heard);
            steps.push(say(step.clone()));
            step.iter().for_each(|step| bot.refused(step));
        }
        assert_eq!(steps, ["guess 7, 8", "guess 103", "wait"]);
    }
}
