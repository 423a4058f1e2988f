//! The house bots of `psi`. Each bot has its own file, with a pure function from the bot's view to its next action.

mod cautious;
mod hash_swap;
mod open_book;
mod snoop;

use super::convention::{ChatLine, Numbers, digest};

/// All house bots, in the order of the output.
pub static HOUSE: [DemoBot; 4] = [open_book::BOT, hash_swap::BOT, snoop::BOT, cautious::BOT];

/// A house bot.
#[derive(Debug)]
pub struct DemoBot {
    /// The name, which is also the user id.
    pub name: &'static str,
    /// The description of the strategy, for people.
    pub motto: &'static str,
    /// The function from the view to the next action.
    pub next: fn(&View) -> Action,
}

/// The data from which a bot chooses its next action.
#[derive(Debug)]
pub struct View {
    /// The bot's private set of numbers.
    pub set: Numbers,
    /// A random salt for the bot's digests.
    pub salt: String,
    /// True if the bot has sent its line.
    pub said: bool,
    /// The opponent's line; [`ChatLine::Pass`] after a timeout, `None` while the bot hasn't waited for it.
    pub heard: Option<ChatLine>,
}

/// An action of a bot.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the bot's line to the chat.
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
    /// ends only after both guesses and the server refuses an empty guess. Each of the bot's 13 numbers is shared with
    /// probability 3/13.
    fn or_a_shot_in_the_dark(&self, numbers: Numbers, count: usize) -> Numbers {
        match numbers.is_empty() {
            true => self.set.iter().copied().take(count).collect(),
            false => numbers,
        }
    }
}

/// Formats a bot's actions for tests: the bot's line, and its guess after each kind of line of the opponent.
#[cfg(test)]
fn story(bot: &DemoBot, other: Numbers) -> String {
    let set = Numbers::from([101, 205, 880]);
    let next = |said, heard| (bot.next)(&View { set: set.clone(), salt: "5f0c".to_owned(), said, heard });
    let lines = [ChatLine::Plain(other.clone()), ChatLine::digests(&other, "77aa"), ChatLine::Pass];
    let mut story = format!("{:?}\n{:?}\n", next(false, None), next(true, None));
    for line in lines {
        story += &format!("{} -> {:?}\n", line.to_string().split(' ').next().unwrap(), next(true, Some(line)));
    }
    story
}
