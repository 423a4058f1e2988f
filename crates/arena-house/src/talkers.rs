//! The house bots of the challenges of words, one file each: a pure function from the messages to the next step. The
//! bots of `psi` are in `psi`.

pub mod dining_cryptographers;
pub mod millionaire;
pub mod ultimatum;

use crate::{Bot, BotInfo, Heard, RefusalGuard, Step, Strength};

#[derive(Debug)]
pub struct Talker {
    easy: BotInfo,
    normal: BotInfo,
    /// The function from the messages, the strength and a random number, the same for the whole game, to the next step;
    /// `None` while the bot waits for others.
    next: fn(&Heard<'_>, Strength, u64) -> Option<Step>,
}

/// Returns the bots of a challenge, if it is one of words.
pub fn find(challenge: &str) -> Option<&'static Talker> {
    match challenge {
        "dining-cryptographers" => Some(&dining_cryptographers::BOT),
        "millionaire" => Some(&millionaire::BOT),
        "ultimatum" => Some(&ultimatum::BOT),
        _ => None,
    }
}

impl Talker {
    pub fn info(&self, strength: Strength) -> BotInfo {
        match strength {
            Strength::Easy => self.easy,
            Strength::Normal => self.normal,
        }
    }

    pub fn player(&'static self, strength: Strength, random: u64) -> Box<dyn Bot> {
        Box::new(TalkingPlayer { talker: self, strength, random, guard: RefusalGuard::default() })
    }
}

struct TalkingPlayer {
    talker: &'static Talker,
    strength: Strength,
    random: u64,
    guard: RefusalGuard,
}

impl Bot for TalkingPlayer {
    fn next(&mut self, heard: &Heard<'_>) -> Option<Step> {
        if self.guard.blocks(heard) {
            return None;
        }
        (self.talker.next)(heard, self.strength, self.random)
    }

    fn refused(&mut self, _step: &Step) {
        self.guard.record();
    }
}

/// Messages for tests: `from > to: text`, where `all` means no recipient.
#[cfg(test)]
pub fn messages(lines: &[&str]) -> Vec<arena_wire::Message> {
    let message = |(index, line): (u64, &&str)| {
        let (head, content) = line.split_once(": ").unwrap();
        let (from, to) = head.split_once(" > ").unwrap();
        arena_wire::Message {
            channel: String::new(),
            from: from.to_owned(),
            to: (to != "all").then(|| to.to_owned()),
            content: content.to_owned(),
            index,
            timestamp: arena_model::Timestamp(0),
            redacted: false,
            content_sha256: None,
            method: None,
        }
    };
    (1..).zip(lines).map(message).collect()
}

/// Formats a step in one line, for tests.
#[cfg(test)]
pub fn say(step: Option<Step>) -> String {
    match step {
        None => "wait".to_owned(),
        Some(Step::Say { content, to }) => format!("to {}: {content}", to.as_deref().unwrap_or("all")),
        Some(Step::Act { method, content }) => format!("{method} {content}"),
    }
}

/// Returns the next step of the bot `me` after these messages, in one line.
#[cfg(test)]
fn next(bot: &Talker, strength: Strength, operator: &[&str], chat: &[&str], is_late: bool) -> String {
    let (operator, chat) = (messages(operator), messages(chat));
    say((bot.next)(&Heard { me: "me", operator: &operator, chat: &chat, is_late }, strength, 1))
}
