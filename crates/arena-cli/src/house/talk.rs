//! Plays a bot's seat in a challenge of words: passes the bot all messages that its player may read, and sends the
//! bot's steps over HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_server::Strength;
use arena_wire::{Message, Messages};

use super::PACE;
use super::seat::{TakenSeat, WAIT_S};
use crate::client::{CallError, Read, random_hex};

/// The time without a new message after which a bot stops waiting for others. People need time to read and type.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time without a new message after which a bot leaves the session.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A bot that plays in words.
#[derive(Debug)]
pub struct Talker {
    /// A description of the strategy of each strength, for people: `easy`, then `normal`.
    pub mottos: [&'static str; 2],
    /// The function from the messages to the next step; `None` while the bot waits for others.
    pub next: fn(&Heard<'_>) -> Option<Step>,
}

/// The data from which a bot chooses its next step.
#[derive(Debug)]
pub struct Heard<'h> {
    /// The bot's public name.
    pub me: &'h str,
    /// The messages of the operator channel.
    pub operator: &'h [Message],
    /// The messages of the chat.
    pub chat: &'h [Message],
    /// The strength of the bot's play.
    pub strength: Strength,
    /// A random number, the same for the whole game.
    pub random: u64,
    /// True if nothing was written for so long that the bot shouldn't wait for others.
    pub is_late: bool,
}

/// A step of a bot.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a chat message.
    Say {
        /// The text.
        content: String,
        /// The recipient; all players if `None`.
        to: Option<String>,
    },
    /// Calls a method of the challenge.
    Act {
        /// The method.
        method: &'static str,
        /// The content.
        content: String,
    },
}

impl Heard<'_> {
    /// Returns the operator's texts that the bot may read, in order.
    pub fn operator_texts(&self) -> impl Iterator<Item = &str> {
        self.operator.iter().filter(|message| message.from == "operator").map(|message| message.content.as_str())
    }

    /// Returns the recipients of the operator's private messages, in order. The messages themselves may be redacted.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.operator.iter().filter(|message| message.from == "operator").filter_map(|message| message.to.as_deref())
    }

    /// Returns true if the bot has called a method.
    pub fn has_acted(&self) -> bool {
        self.operator.iter().any(|message| message.from == self.me)
    }

    /// Returns true if the bot has sent a chat message to all players.
    pub fn has_spoken(&self) -> bool {
        self.chat.iter().any(|message| message.from == self.me && message.to.is_none())
    }
}

/// Plays a seat until the game is over or `stop` is set.
pub fn play(seat: &TakenSeat, talker: &Talker, strength: Strength, stop: &AtomicBool) -> Result<(), CallError> {
    let random = u64::from_str_radix(&random_hex()?[..16], 16).unwrap_or_default();
    let (mut operator, mut chat) = (Vec::new(), Vec::new());
    let mut news_at = Instant::now();
    let mut wait_s = 0;
    // The number of messages at the last refusal. The bot repeats a refused step only after new messages.
    let mut refused_at = None;
    while !stop.load(Ordering::Relaxed) && news_at.elapsed() < IDLE_TIMEOUT {
        let known = operator.len() + chat.len();
        extend(&mut operator, |read| seat.arena.operator_messages(&seat.session, read)?.read(), wait_s)?;
        extend(&mut chat, |read| seat.arena.chat_messages(&seat.session, read)?.read(), 0)?;
        let count = operator.len() + chat.len();
        if count > known {
            news_at = Instant::now();
        }
        let is_over = |message: &Message| message.from == "operator" && message.content.starts_with("Game ended.");
        if operator.iter().any(is_over) {
            return Ok(());
        }
        let is_late = news_at.elapsed() >= PATIENCE;
        let heard = Heard { me: &seat.invite, operator: &operator, chat: &chat, strength, random, is_late };
        let step = if refused_at == Some(count) { None } else { (talker.next)(&heard) };
        let Some(step) = step else {
            wait_s = WAIT_S;
            continue;
        };
        wait_s = 0;
        thread::sleep(PACE);
        let done = match step {
            Step::Say { content, to } => seat.arena.say(&seat.session, &content, to.as_deref()),
            Step::Act { method, content } => seat.arena.act(&seat.session, method, &content),
        };
        match done {
            Ok(_) => {}
            Err(CallError::Refused { .. }) => refused_at = Some(count),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Adds a channel's new messages to the known ones.
pub fn extend(
    known: &mut Vec<Message>,
    read: impl Fn(Read) -> Result<Messages, CallError>,
    wait_s: u8,
) -> Result<(), CallError> {
    let index = known.last().map_or(1, |message| message.index + 1);
    known.extend(read(Read { index: Some(index), wait: Some(wait_s) })?.messages);
    Ok(())
}
