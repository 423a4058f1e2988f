//! `bargainer` plays `psi` with people and language models in plain words. It asks for numbers, some of which it doesn't
//! have, answers questions, and trades secret numbers one for one, mostly truthfully. It guesses when it knows the common
//! numbers or has asked for most of its set, or when the opponent has guessed or is silent. It uses the secrets that it
//! is told against their owner, and can be fooled by false ones.

use arena_model::Seed;

use super::convention::{Numbers, RANGE};
use super::own_set;
use super::plain_words::Spoken;
use crate::{Bot, BotInfo, Heard, RefusalGuard, Step, below};

pub const INFO: BotInfo = BotInfo { name: "bargainer", motto: "bargains for numbers in plain words" };

/// The maximum number of the bot's texts. Evaluations stop awaiting chat after 40 rounds without an action.
const MAX_TEXTS: usize = 20;

/// The maximum number of numbers in one text that the bot talks about, and of secrets that it tells in a game.
const MAX_NUMBERS: usize = 3;

const OFFER: &str = "Tell me one of yours, and I tell you one of mine.";
const FAREWELL: &str = "I know enough. Do you have a last question?";

pub struct Bargainer {
    seed: Seed,
    guard: RefusalGuard,
    progress: Progress,
    /// The progress before the last step, which a refusal takes back.
    before: Progress,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    /// The number of texts of others that the bot has answered.
    answered: usize,
    /// The number of those that it had heard at its farewell.
    farewell: Option<usize>,
}

/// The knowledge from the chat.
#[derive(Default)]
struct Ledger {
    /// The texts of others, and the number of the bot's texts.
    texts: Vec<Spoken>,
    said: usize,
    /// The numbers that others say they have or lack, and those of the bot that they asked for first.
    theirs: Numbers,
    denied: Numbers,
    sought: Numbers,
    /// All numbers in texts of the bot, in texts of others, and in the bot's open question.
    named: Numbers,
    heard: Numbers,
    open: Numbers,
    /// The numbers of secrets that the bot told and received in trades.
    told: usize,
    received: usize,
    has_offered: bool,
}

impl Ledger {
    fn read(heard: &Heard<'_>, own: &Numbers) -> Ledger {
        let is_number = |number: u64| RANGE.contains(&number) || (own.first()..=own.last()).contains(&Some(&number));
        let mut ledger = Ledger::default();
        for message in heard.chat.iter().filter(|message| !message.redacted && message.from != "operator") {
            let spoken = Spoken::read(&message.content, is_number);
            let numbers = &(&spoken.has | &spoken.lacks) | &spoken.asks;
            if message.from == heard.me {
                ledger.said += 1;
                ledger.told += spoken.has.difference(&ledger.heard).count();
                ledger.has_offered |= spoken.wants;
                ledger.named.extend(numbers);
                ledger.open = spoken.asks;
            } else {
                ledger.heard.extend(numbers);
                ledger.note(spoken, own);
            }
        }
        ledger
    }

    fn note(&mut self, mut spoken: Spoken, own: &Numbers) {
        // All sets have one size, so a claim of more numbers is false.
        if spoken.has.len() > own.len() {
            spoken.has.clear();
        }
        self.received += spoken.has.difference(&self.named).count();
        let is_detailed = !self.open.is_disjoint(&(&spoken.has | &spoken.lacks));
        if spoken.answer == Some(true) && !is_detailed {
            spoken.has.append(&mut self.open);
        } else if spoken.answer.is_some() || is_detailed {
            spoken.lacks.extend(&std::mem::take(&mut self.open) - &spoken.has);
        }
        if spoken.asks.len() <= MAX_NUMBERS {
            self.sought.extend(&(&spoken.asks & own) - &self.named);
        }
        self.theirs = &(&self.theirs | &spoken.has) - &spoken.lacks;
        self.denied = &(&self.denied - &spoken.has) | &spoken.lacks;
        self.texts.push(spoken);
    }

    /// Returns the bot's numbers that others seem to have too.
    fn common(&self, own: &Numbers) -> Numbers {
        &(&(&self.theirs | &self.sought) & own) - &self.denied
    }
}

impl Bargainer {
    pub fn new(random: u64) -> Bargainer {
        let seed = Seed::from_number(random).derive("house/psi/bargainer");
        Bargainer { seed, guard: RefusalGuard::default(), progress: Progress::default(), before: Progress::default() }
    }

    /// Returns true in one of `n` games. Equal purposes give equal results in a game.
    fn chance(&self, purpose: &str, n: u64) -> bool {
        self.seed.rng(purpose).below(n) == 0
    }

    /// Returns the numbers to ask for in order: three quarters of the own ones, and others between them.
    fn deck(&self, own: &Numbers) -> Vec<u64> {
        let mut rng = self.seed.rng("deck");
        let (low, high) = own.first().zip(own.last()).map_or((0, 0), |(low, high)| (*low, *high));
        let mut rest: Vec<u64> = own.iter().copied().collect();
        let others = (0..own.len() / 3).map(|_| low + rng.below(high - low + 1)).filter(|number| !own.contains(number));
        let others: Numbers = others.collect();
        let mut draw = |from: &mut Vec<u64>| from.swap_remove(below(from.len(), &mut rng));
        let mut deck: Vec<u64> = ((own.len() / 4).max(1)..own.len()).map(|_| draw(&mut rest)).collect();
        deck.extend(others);
        (0..deck.len()).map(|_| draw(&mut deck)).collect()
    }

    fn reply(&self, ledger: &Ledger, own: &Numbers, new: &[Spoken]) -> String {
        let mut parts: Vec<String> = Vec::new();
        if ledger.said == 0 {
            parts.push("I am a house bot. Let's find our common numbers step by step.".to_owned());
        }
        let shown = new.iter().flat_map(|text| text.has.difference(&ledger.named));
        let numbers: Numbers = new.iter().flat_map(|text| &text.asks).chain(shown).copied().collect();
        if numbers.len() > MAX_NUMBERS {
            parts.push("So many numbers! I talk about one or two at a time.".to_owned());
        } else {
            parts.extend(numbers.iter().map(|number| self.answer(*number, ledger, own)));
        }
        if self.progress.farewell.is_some() {
            return parts.join(" ");
        }
        let mut deck = self.deck(own);
        deck.retain(|number| !ledger.named.contains(number) && !ledger.heard.contains(number));
        let is_wanted = new.iter().any(|text| text.wants);
        let (is_debtor, is_kind) = (ledger.received > ledger.told, ledger.told == 0 && self.chance("kind", 2));
        // One secret of six is false.
        let is_true = !self.chance(&format!("secret {}", ledger.told), 6);
        let secret = deck.iter().position(|number| own.contains(number) == is_true);
        match secret.filter(|_| ledger.told < MAX_NUMBERS) {
            Some(at) if is_debtor => parts.push(format!("In return: I have {}.", deck.remove(at))),
            Some(at) if is_wanted && is_kind => parts.push(format!("All right: I have {}.", deck.remove(at))),
            _ if is_wanted && ledger.has_offered => parts.push("You first.".to_owned()),
            _ => {}
        }
        // By the usual options, 3 of 13 numbers are common.
        let is_informed = ledger.common(own).len() >= ((3 * own.len() + 6) / 13).max(1);
        let is_time = is_wanted || ledger.said == 2 + usize::from(self.chance("early", 2));
        parts.push(match (&deck[..], ledger.said % 3) {
            ([], _) => FAREWELL.to_owned(),
            _ if is_informed => FAREWELL.to_owned(),
            _ if is_time && !ledger.has_offered && ledger.received == 0 => OFFER.to_owned(),
            ([one, other, ..], 1..) => format!("Which of {one} and {other} do you have?"),
            ([one, ..], _) => format!("Is {one} in your set?"),
        });
        parts.join(" ")
    }

    fn answer(&self, number: u64, ledger: &Ledger, own: &Numbers) -> String {
        if ledger.named.contains(&number) && ledger.denied.contains(&number) {
            "You said that you don't have it. Why ask?".to_owned()
        } else if own.contains(&number) && !self.chance(&format!("lie {number}"), 12) {
            format!("I have {number}.")
        } else {
            format!("I don't have {number}.")
        }
    }

    /// Returns the common numbers, and the secrets of others that the bot believes.
    fn guess(&self, ledger: &Ledger, own: &Numbers) -> Numbers {
        let mut guess = ledger.common(own);
        let believed = (ledger.theirs.difference(own)).filter(|number| self.chance(&format!("believe {number}"), 2));
        guess.extend(believed.take(own.len() - guess.len()));
        if guess.is_empty() {
            // A guess must contain a number, and one of the own numbers may be common.
            guess.extend(own.difference(&ledger.denied).next().or(own.first()));
        }
        guess
    }
}

impl Bot for Bargainer {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        let own = own_set(heard)?;
        if heard.has_acted() || !heard.has_opponent() || self.guard.blocks(heard) {
            return None;
        }
        let ledger = Ledger::read(heard, &own);
        let new = ledger.texts.get(self.progress.answered..).unwrap_or_default();
        let has_left = self.progress.farewell.is_some_and(|at| ledger.texts.len() > at);
        let is_done = has_left && new.iter().all(|text| text.asks.is_empty());
        let is_late = heard.is_late && ledger.said > 0;
        if is_done || is_late || ledger.said >= MAX_TEXTS || heard.has_opponent_guessed() {
            let numbers: Vec<String> = self.guess(&ledger, &own).iter().map(u64::to_string).collect();
            return Some(Step::Act { method: "guess".to_owned(), content: numbers.join(", ") });
        }
        if ledger.said > 0 && new.is_empty() {
            return None;
        }
        let content = self.reply(&ledger, &own, new);
        self.before = self.progress;
        self.progress.answered = ledger.texts.len();
        if content.ends_with(FAREWELL) {
            self.progress.farewell = Some(ledger.texts.len());
        }
        Some(Step::Say { content, to: None })
    }

    fn refused(&mut self, _step: &Step) {
        self.guard.record();
        self.progress = self.before;
    }
}
