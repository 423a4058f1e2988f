//! The house bots of the challenges of words, one file each: a pure function from the messages to the next step. The
//! bots of `psi` are in `house/bots`.

mod dining_cryptographers;
mod millionaire;
mod ultimatum;

use super::talk::Talker;

/// Returns the bot of a challenge, if it is one of words.
pub fn find(challenge: &str) -> Option<&'static Talker> {
    match challenge {
        "dining-cryptographers" => Some(&dining_cryptographers::BOT),
        "millionaire" => Some(&millionaire::BOT),
        "ultimatum" => Some(&ultimatum::BOT),
        _ => None,
    }
}

/// Messages for tests: `from > to: text`, where `all` means no recipient.
#[cfg(test)]
fn messages(lines: &[&str]) -> Vec<arena_wire::Message> {
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

/// Returns the next step of the bot `me` after these messages, in one line.
#[cfg(test)]
fn next(bot: &Talker, strength: arena_server::Strength, operator: &[&str], chat: &[&str], is_late: bool) -> String {
    use super::talk::{Heard, Step};
    let (operator, chat) = (messages(operator), messages(chat));
    let heard = Heard { me: "me", operator: &operator, chat: &chat, strength, random: 1, is_late };
    match (bot.next)(&heard) {
        None => "wait".to_owned(),
        Some(Step::Say { content, to }) => format!("to {}: {content}", to.as_deref().unwrap_or("all")),
        Some(Step::Act { method, content }) => format!("{method} {content}"),
    }
}
