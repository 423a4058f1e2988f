//! One seat of a demo game: joins with its invite, tells the bot what it sees, and does over HTTP what the bot says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_wire::{Message, Messages};
use serde::Deserialize;

use super::bots::{Action, Bot, View};
use super::convention::{Line, numbers_in};
use crate::client::{Answer, Arena, CallError, Read, random_hex};

/// How long a bot waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the operator to deal, which it does when the other has taken its seat.
    deal: Duration,
    /// For what the other says, before it is taken to have passed.
    words: Duration,
    /// Whether the other may be somebody who doesn't know the convention: then numbers in a text are the numbers that it has.
    reads_numbers: bool,
}

impl Patience {
    /// Both seats are taken at the same time, so this is generous.
    pub const AMONG_BOTS: Patience =
        Patience { deal: Duration::from_secs(30), words: Duration::from_secs(5), reads_numbers: false };

    /// People read first, and type.
    pub const WITH_PEOPLE: Patience =
        Patience { deal: Duration::from_secs(600), words: Duration::from_secs(300), reads_numbers: true };
}

/// Seconds that one request waits for news. Short, so that a demo that is stopped needn't wait long for its bots.
pub const WAIT_S: u8 = 2;

/// The answer to a join.
#[derive(Debug, Deserialize)]
pub struct Joined {
    /// The session that the seat is in.
    #[serde(rename = "ChallengeID")]
    pub session: String,
}

/// Plays `bot` in the seat of `invite`, up to and including its guess. It gives up when `stop` is raised, or nobody comes.
pub fn play(arena: &Arena, bot: &Bot, invite: &str, patience: Patience, stop: &AtomicBool) -> Result<(), CallError> {
    let Joined { session } = arena.join(invite, Some(bot.name))?.read()?;
    let arena = arena.seen_by(invite);

    let dealt = first(
        patience.deal,
        stop,
        |read| arena.operator_messages(&session, read),
        |message| message.content.strip_prefix("Your private set is:").map(numbers_in),
        || Ok(false),
    )?;
    let Some(set) = dealt else {
        // People are asked for nothing: whoever doesn't come, doesn't come.
        if patience.reads_numbers || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        return Err(CallError::Request(format!("{} was dealt no set within {:?}", bot.name, patience.deal)));
    };
    let mut view = View { set, salt: random_hex()?, said: false, heard: None };
    loop {
        match (bot.next)(&view) {
            Action::Say(line) => {
                arena.say(&session, &line.to_string(), None)?;
                view.said = true;
            }
            Action::Listen => {
                let line = first(
                    patience.words,
                    stop,
                    |read| arena.chat_messages(&session, read),
                    |message| {
                        if message.from == invite { None } else { heard(&message.content, patience) }
                    },
                    || Ok(patience.reads_numbers && has_guessed(&arena, &session, invite)?),
                )?;
                view.heard = Some(line.unwrap_or(Line::Pass));
            }
            Action::Guess(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                arena.act(&session, "guess", &numbers.join(", "))?;
                return Ok(());
            }
        }
    }
}

/// What a text of the other's means.
fn heard(content: &str, patience: Patience) -> Option<Line> {
    let numbers = || Some(numbers_in(content)).filter(|numbers| patience.reads_numbers && !numbers.is_empty());
    content.parse().ok().or_else(|| numbers().map(Line::Plain))
}

/// Whether the other has guessed: it won't say anything more that helps.
fn has_guessed(arena: &Arena, session: &str, own: &str) -> Result<bool, CallError> {
    let Messages { messages, .. } = arena.operator_messages(session, Read { index: None, wait: None })?.read()?;
    let is_told = |message: &Message| message.content.ends_with("sent a guess") && !message.content.contains(own);
    Ok(messages.iter().any(|message| message.from == "operator" && is_told(message)))
}

/// The first message of a channel in which `find` finds something, or nothing if none comes within `patience` or before `is_over`.
fn first<T>(
    patience: Duration,
    stop: &AtomicBool,
    read: impl Fn(Read) -> Result<Answer, CallError>,
    find: impl Fn(&Message) -> Option<T>,
    is_over: impl Fn() -> Result<bool, CallError>,
) -> Result<Option<T>, CallError> {
    let until = Instant::now() + patience;
    let mut index = 1;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        let Messages { messages, .. } = read(Read { index: Some(index), wait: Some(WAIT_S) })?.read()?;
        if let Some(found) = messages.iter().find_map(&find) {
            return Ok(Some(found));
        }
        if is_over()? {
            break;
        }
        index = messages.last().map_or(index, |message| message.index + 1);
    }
    Ok(None)
}
