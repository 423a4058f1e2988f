//! The house bots of `psi`, with a file for each bot. Those of [`BOTS`] are pure functions from the bot's view to its next
//! action.
//!
//! # How bots talk
//!
//! A chat is free text, so bots need a convention to understand each other. The convention has three kinds of line
//! (`ChatLine`). Each bot of [`BOTS`] sends one such line as soon as an opponent has joined:
//!
//! ```text
//! PLAIN 101 205 880 …                   the whole set
//! DIGESTS salt=5f0c… 8a31… 90be… …      for each number, SHA-256 of `salt:number`, cut to 16 hex digits
//! PASS                                  no information
//! ```
//!
//! The speaker chooses the salt. The listener hashes its own numbers with the same salt; equal digests show the numbers
//! that the speaker has too. Bots ignore any other text and keep waiting; a silent player counts as having passed.
//!
//! People and language models don't know the convention. `bargainer` talks with them in plain words.

mod bargainer;
mod cautious;
mod convention;
mod hash_swap;
mod open_book;
pub(crate) mod plain_words;
mod snoop;

use arena_model::Seed;

use self::convention::{ChatLine, digest};
pub(crate) use self::convention::{Numbers, numbers_in};
use crate::{Bot, BotInfo, Heard, RefusalGuard, Step, Strength};

/// The bots that follow the convention, in the order of the demo's output.
pub static BOTS: [PsiBot; 4] = [open_book::BOT, hash_swap::BOT, snoop::BOT, cautious::BOT];

#[derive(Debug)]
pub struct PsiBot {
    /// The name, which is the user id in the demo.
    pub name: &'static str,
    /// The strategy, which follows "a house bot that".
    pub motto: &'static str,
    next: fn(&View) -> Action,
}

/// The bot that plays with beginners. It sends no digests, since people can't compute hashes by hand.
static EASY: &PsiBot = &BOTS[0];

pub(crate) fn info(strength: Strength) -> BotInfo {
    match strength {
        Strength::Easy => BotInfo { name: EASY.name, motto: EASY.motto },
        Strength::Normal => bargainer::INFO,
    }
}

/// Creates the bot for a game with people or language models, which needn't follow the convention.
pub(crate) fn player(strength: Strength, random: u64) -> Box<dyn Bot> {
    match strength {
        Strength::Easy => Box::new(PsiPlayer::new(EASY, random, true)),
        Strength::Normal => Box::new(bargainer::Bargainer::new(random)),
    }
}

impl PsiBot {
    /// Creates the bot for a game with other bots, which follow the convention.
    pub fn player_with_bots(&'static self, random: u64) -> Box<dyn Bot> {
        Box::new(PsiPlayer::new(self, random, false))
    }
}

struct PsiPlayer {
    bot: &'static PsiBot,
    salt: String,
    /// True if the numbers in any text of the opponent count as the opponent's set.
    reads_numbers: bool,
    /// True if the bot no longer waits for the opponent's line.
    is_impatient: bool,
    guard: RefusalGuard,
}

impl PsiPlayer {
    fn new(bot: &'static PsiBot, random: u64, reads_numbers: bool) -> PsiPlayer {
        let salt = arena_model::hex::encode(&Seed::from_number(random).derive("house/psi/salt").0[..8]);
        PsiPlayer { bot, salt, reads_numbers, is_impatient: false, guard: RefusalGuard::default() }
    }

    fn parse(&self, content: &str) -> Option<ChatLine> {
        let numbers = || Some(numbers_in(content)).filter(|numbers| self.reads_numbers && !numbers.is_empty());
        content.parse().ok().or_else(|| numbers().map(ChatLine::Plain))
    }
}

impl Bot for PsiPlayer {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        let set = own_set(heard)?;
        if heard.has_acted() || !heard.has_opponent() || self.guard.blocks(heard) {
            return None;
        }
        let mut others = heard.chat.iter().filter(|message| message.from != heard.me && message.from != "operator");
        let line = others.find_map(|message| self.parse(&message.content));
        let said = heard.has_spoken();
        self.is_impatient |= said && heard.is_late;
        let is_over = self.is_impatient || heard.has_opponent_guessed();
        let heard_line = line.or_else(|| is_over.then_some(ChatLine::Pass)).filter(|_| said);
        let view = View { set, salt: self.salt.clone(), said, heard: heard_line };
        match (self.bot.next)(&view) {
            Action::Say(line) => Some(Step::Say { content: line.to_string(), to: None }),
            Action::Listen => None,
            Action::Guess(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                Some(Step::Act { method: "guess".to_owned(), content: numbers.join(", ") })
            }
        }
    }

    fn refused(&mut self, _step: &Step) {
        self.guard.record();
    }
}

pub(crate) fn own_set(heard: &Heard<'_>) -> Option<Numbers> {
    heard.operator_texts().find_map(|text| text.strip_prefix("Your private set is:").map(numbers_in))
}

#[derive(Debug)]
struct View {
    set: Numbers,
    salt: String,
    /// True if the bot has sent its line.
    said: bool,
    /// The opponent's line; [`ChatLine::Pass`] after a timeout, `None` while the bot waits for it.
    heard: Option<ChatLine>,
}

#[derive(Debug, PartialEq, Eq)]
enum Action {
    Say(ChatLine),
    /// Wait for the opponent's line.
    Listen,
    /// Send the bot's only guess, which ends the bot's play.
    Guess(Numbers),
}

impl View {
    /// Returns the bot's numbers that, according to the opponent's line, are shared.
    fn shared(&self, line: &ChatLine) -> Numbers {
        match line {
            ChatLine::Plain(theirs) => &self.set & theirs,
            ChatLine::Digests { salt, digests } => {
                self.set.iter().copied().filter(|number| digests.contains(&digest(salt, *number))).collect()
            }
            ChatLine::Pass => Numbers::new(),
        }
    }

    /// Returns `numbers`, or `count` of the bot's own numbers if `numbers` is empty. The bot must guess, since the game
    /// ends only after both guesses and the server refuses an empty guess. With the default options, each of the
    /// bot's 13 numbers is shared with probability 3/13.
    fn or_a_shot_in_the_dark(&self, numbers: Numbers, count: usize) -> Numbers {
        match numbers.is_empty() {
            true => self.set.iter().copied().take(count).collect(),
            false => numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talkers::{messages, say};
    use expect_test::expect;

    #[test]
    fn bots_act_by_the_kind_of_line() {
        let (set, other) = (Numbers::from([101, 205, 880]), Numbers::from([205, 333, 880]));
        let stories = BOTS.each_ref().map(|bot| {
            let next = |said, heard| (bot.next)(&View { set: set.clone(), salt: "5f0c".to_owned(), said, heard });
            let mut story = format!("{}: {:?}, {:?}\n", bot.name, next(false, None), next(true, None));
            for line in [ChatLine::Plain(other.clone()), ChatLine::digests(&other, "77aa"), ChatLine::Pass] {
                story += &format!("{} -> {:?}\n", line.to_string().split(' ').next().unwrap(), next(true, Some(line)));
            }
            story
        });
        expect![[r#"
            open-book: Say(Plain({101, 205, 880})), Listen
            PLAIN -> Guess({205, 880})
            DIGESTS -> Guess({101})
            PASS -> Guess({101})
            hash-swap: Say(Digests { salt: "5f0c", digests: {"b12721c8e2649d38", "bdf2f034201da7aa", "dd8972c2919f5469"} }), Listen
            PLAIN -> Guess({205, 880})
            DIGESTS -> Guess({205, 880})
            PASS -> Guess({101})
            snoop: Say(Digests { salt: "5f0c", digests: {"b12721c8e2649d38", "bdf2f034201da7aa", "dd8972c2919f5469"} }), Listen
            PLAIN -> Guess({205, 333, 880})
            DIGESTS -> Guess({205, 333, 880})
            PASS -> Guess({101})
            cautious: Say(Pass), Listen
            PLAIN -> Guess({205, 880})
            DIGESTS -> Guess({101, 205})
            PASS -> Guess({101, 205})
        "#]]
        .assert_eq(&stories.concat());
    }

    const DEALT: [&str; 2] = ["operator > me: Your private set is: {101, 205, 880}.", "operator > you: "];
    const SAID: &str = "me > all: PASS";

    #[track_caller]
    fn check(bot: &mut dyn Bot, operator: &[&str], chat: &[&str], is_late: bool, expected: &str) {
        let (operator, chat) = (messages(operator), messages(chat));
        let step = bot.next(&Heard { me: "me", operator: &operator, chat: &chat, is_late });
        assert_eq!(say(step), expected);
    }

    #[test]
    fn people_may_answer_in_their_own_words_or_not_at_all() {
        let new = || player(Strength::Easy, 1);
        check(&mut *new(), &DEALT[..1], &[], true, "wait");
        check(&mut *new(), &DEALT, &[], false, "to all: PLAIN 101 205 880");
        check(&mut *new(), &DEALT, &[SAID, "you > all: hello"], false, "wait");
        check(&mut *new(), &DEALT, &[SAID, "you > me: I have 880 and 300"], false, "guess 880");
        let guessed = [DEALT[0], DEALT[1], "operator > all: Player you sent a guess"];
        check(&mut *new(), &guessed, &[SAID], false, "guess 101");
        let done = [DEALT[0], DEALT[1], "me > operator: (guess) 101"];
        check(&mut *new(), &done, &[SAID], true, "wait");
        let mut bot = new();
        check(&mut *bot, &DEALT, &[], true, "to all: PLAIN 101 205 880");
        check(&mut *bot, &DEALT, &[SAID], false, "wait");
        check(&mut *bot, &DEALT, &[SAID], true, "guess 101");
    }

    #[test]
    fn the_bargainer_talks_in_plain_words() {
        let own: Vec<String> = (21..34).map(|number| (5 * number).to_string()).collect();
        let dealt = format!("operator > me: Your private set is: {{{}}}.", own.join(", "));
        let hello = "to all: I am a house bot. Let's find our common numbers step by step. Is 135 in your set?";
        check(&mut *player(Strength::Normal, 1), &[&dealt, DEALT[1]], &[], false, hello);
        for (text, expected) in [
            ("", "guess 105"),
            ("No. Do you have 300 or 110?", "to all: I have 110. I don't have 300. Which of 135 and 129 do you have?"),
            ("120. Tell me one of yours", "to all: Tell me one of yours, and I tell you one of mine."),
            ("both. 300", "to all: I don't have 300. In return: I have 135. Which of 110 and 129 do you have?"),
            (
                "yes, 105, 110 and 165",
                "to all: I have 110. I have 165. In return: I have 135. I know enough. Do you have a last question?",
            ),
        ] {
            let chat = ["me > all: Which of 105 and 120 do you have?", &format!("you > all: {text}")];
            let chat = if text.is_empty() { &chat[..1] } else { &chat };
            check(&mut *player(Strength::Normal, 1), &[&dealt, DEALT[1]], chat, text.is_empty(), expected);
        }
    }

    #[test]
    fn bots_ignore_texts_beside_the_convention() {
        let mut bot = BOTS[1].player_with_bots(1);
        check(&mut *bot, &DEALT, &["me > all: DIGESTS salt=00", "you > all: 101"], false, "wait");
        check(&mut *bot, &DEALT, &["me > all: DIGESTS salt=00", "you > all: PLAIN 205 101"], false, "guess 101, 205");
    }

    #[test]
    fn salts_derive_from_the_number() {
        let line = |random| {
            let (operator, mut bot) = (messages(&DEALT), BOTS[1].player_with_bots(random));
            say(bot.next(&Heard { me: "me", operator: &operator, chat: &[], is_late: false }))
        };
        assert!(line(1).starts_with("to all: DIGESTS salt="));
        assert_eq!(line(1), line(1));
        assert_ne!(line(1), line(2));
    }
}
