//! Plays a bot's seat in a game of `psi`: passes the bot its view, and sends the bot's actions over HTTP.
//!
//! # How bots talk
//!
//! A chat is free text, so bots need a convention to understand each other. The convention has three kinds of line
//! ([`ChatLine`]). Each bot sends one such line as soon as it has received its set of numbers:
//!
//! ```text
//! PLAIN 101 205 880 …                   the whole set
//! DIGESTS salt=5f0c… 8a31… 90be… …      for each number, SHA-256 of `salt:number`, cut to 16 hex digits
//! PASS                                  no information
//! ```
//!
//! The speaker chooses the salt. The listener hashes its own numbers with the same salt; equal digests show the numbers
//! that the speaker has too. Bots ignore any other text and keep waiting; a silent player counts as having passed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_wire::{Message, Messages};

use super::bots::{Action, DemoBot, View};
use super::convention::{ChatLine, numbers_in};
use super::seat::{TakenSeat, WAIT_S};
use crate::client::{Answer, Arena, CallError, Read, random_hex};

/// The time limits of a bot's waits.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The time limit for the operator's message with the bot's set. The operator sends this message when the opponent
    /// has joined.
    deal: Duration,
    /// The time limit for the opponent's line. After this time, the line counts as [`ChatLine::Pass`].
    words: Duration,
    /// True if the opponent is a person, who needn't follow the convention. In that case, the numbers in any text of
    /// the opponent count as the opponent's set.
    reads_numbers: bool,
}

impl Patience {
    /// The limits for games between bots. They are generous, since both bots join at the same time.
    pub const AMONG_BOTS: Patience =
        Patience { deal: Duration::from_secs(30), words: Duration::from_secs(5), reads_numbers: false };

    /// The limits for games with people. People need time to read and type.
    pub const WITH_PEOPLE: Patience =
        Patience { deal: Duration::from_secs(600), words: Duration::from_secs(300), reads_numbers: true };
}

/// Plays `bot` on a seat until its guess. Gives up if `stop` is set, or if the opponent doesn't join in
/// time.
pub fn play(seat: &TakenSeat, bot: &DemoBot, patience: Patience, stop: &AtomicBool) -> Result<(), CallError> {
    let TakenSeat { arena, session, invite } = seat;
    let dealt = first(
        patience.deal,
        stop,
        |read| arena.operator_messages(session, read),
        |message| message.content.strip_prefix("Your private set is:").map(numbers_in),
        || Ok(false),
    )?;
    let Some(set) = dealt else {
        // If the opponent is a person, a missing opponent isn't an error.
        if patience.reads_numbers || stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        return Err(CallError::Request(format!("{} was dealt no set within {:?}", bot.name, patience.deal)));
    };
    let mut view = View { set, salt: random_hex()?, said: false, heard: None };
    loop {
        match (bot.next)(&view) {
            Action::Say(line) => {
                arena.say(session, &line.to_string(), None)?;
                view.said = true;
            }
            Action::Listen => {
                let line = first(
                    patience.words,
                    stop,
                    |read| arena.chat_messages(session, read),
                    |message| {
                        if message.from == *invite { None } else { heard(&message.content, patience) }
                    },
                    || Ok(patience.reads_numbers && has_guessed(arena, session, invite)?),
                )?;
                view.heard = Some(line.unwrap_or(ChatLine::Pass));
            }
            Action::Guess(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                arena.act(session, "guess", &numbers.join(", "))?;
                return Ok(());
            }
        }
    }
}

/// Parses a chat message of the opponent.
fn heard(content: &str, patience: Patience) -> Option<ChatLine> {
    let numbers = || Some(numbers_in(content)).filter(|numbers| patience.reads_numbers && !numbers.is_empty());
    content.parse().ok().or_else(|| numbers().map(ChatLine::Plain))
}

/// Returns true if the opponent has sent its guess. After that, the bot needn't wait for a line.
fn has_guessed(arena: &Arena, session: &str, own: &str) -> Result<bool, CallError> {
    let Messages { messages, .. } = arena.operator_messages(session, Read { index: None, wait: None })?.read()?;
    let is_told = |message: &Message| message.content.ends_with("sent a guess") && !message.content.contains(own);
    Ok(messages.iter().any(|message| message.from == "operator" && is_told(message)))
}

/// Waits for the first message of a channel for which `find` returns a value, and returns this value. Returns `None`
/// after the time `patience`, or if `stop` is set or `is_over` returns true.
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
