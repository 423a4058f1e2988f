//! The house bots: a file each, and in each one pure function from what was seen to the next action.

mod cautious;
mod hash_swap;
mod open_book;
mod snoop;

use super::convention::{Line, Numbers, digest};

/// All house bots, in the order in which they are listed.
pub static HOUSE: [Bot; 4] = [open_book::BOT, hash_swap::BOT, snoop::BOT, cautious::BOT];

/// A bot of the house.
#[derive(Debug)]
pub struct Bot {
    /// Its name, and its user id in the arena.
    pub name: &'static str,
    /// What it believes in, for people.
    pub motto: &'static str,
    /// What it does next. Equal views, equal actions.
    pub next: fn(&View) -> Action,
}

/// All that a bot knows when it has to act.
#[derive(Debug)]
pub struct View {
    /// Its private set.
    pub set: Numbers,
    /// A salt that nobody has used before, in case it wants one.
    pub salt: String,
    /// Whether it has said its line.
    pub said: bool,
    /// The other's line; silence for too long counts as [`Line::Pass`].
    pub heard: Option<Line>,
}

/// What a bot may do.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Say its line in the chat.
    Say(Line),
    /// Wait for the other's line.
    Listen,
    /// Make its only guess, which ends its part.
    Guess(Numbers),
}

impl View {
    /// Which of its own numbers the other's line shows to be shared.
    fn shared(&self, line: &Line) -> Numbers {
        match line {
            Line::Plain(theirs) => &self.set & theirs,
            Line::Digests { salt, digests } => {
                self.set.iter().copied().filter(|number| digests.contains(&digest(salt, *number))).collect()
            }
            Line::Pass => Numbers::new(),
        }
    }

    /// `numbers`, or, if there are none, `count` of its own: the game ends only when both have guessed, and an empty
    /// guess is refused. A shot in the dark hits with 3 chances in 13 for each number.
    fn or_a_shot_in_the_dark(&self, numbers: Numbers, count: usize) -> Numbers {
        match numbers.is_empty() {
            true => self.set.iter().copied().take(count).collect(),
            false => numbers,
        }
    }
}

/// Tells what a bot does, in the tests of the bots: its line, and its guess for each line of the other.
#[cfg(test)]
fn story(bot: &Bot, other: Numbers) -> String {
    let set = Numbers::from([101, 205, 880]);
    let next = |said, heard| (bot.next)(&View { set: set.clone(), salt: "5f0c".to_owned(), said, heard });
    let lines = [Line::Plain(other.clone()), Line::digests(&other, "77aa"), Line::Pass];
    let mut story = format!("{:?}\n{:?}\n", next(false, None), next(true, None));
    for line in lines {
        story += &format!("{} -> {:?}\n", line.to_string().split(' ').next().unwrap(), next(true, Some(line)));
    }
    story
}
