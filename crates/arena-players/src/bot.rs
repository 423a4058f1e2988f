//! House bots and random bots at a seat.

use arena_house::{Bot, Step, Style};
use arena_model::{ChallengeType, Channel, ChatMessage, MemorySession, Seat, Seed};
use arena_wire::Message;
use serde_json::Value;

use crate::{Answer, Answering, Heard, Player, SeatEnd, StepResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotKind {
    House(Style),
    /// A bot that chooses among valid actions at random.
    Random,
}

pub struct BotPlayer {
    bot: Box<dyn Bot>,
    operator: Vec<Message>,
    chat: Vec<Message>,
    /// The number of messages that the bot has received.
    read: usize,
    /// The number of consecutive refusals.
    refused: u32,
}

impl BotPlayer {
    /// Creates a bot for one seat. `seed` determines its choices.
    ///
    /// # Errors
    /// If there is no such bot for the challenge, as one sentence.
    pub fn new(
        kind: BotKind,
        challenge: &dyn ChallengeType,
        options: &Value,
        seed: &Seed,
    ) -> Result<BotPlayer, String> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&seed.0[..8]);
        let random = u64::from_be_bytes(bytes);
        let bot = match kind {
            BotKind::House(style) => arena_house::house_bot(challenge, options, style, random),
            BotKind::Random => arena_house::random_bot(challenge, random),
        };
        let bot = bot.ok_or_else(|| format!("there is no house bot for the challenge {}", challenge.id()))?;
        Ok(BotPlayer { bot, operator: Vec::new(), chat: Vec::new(), read: 0, refused: 0 })
    }

    fn step(&mut self, heard: Heard<'_>) -> Answer {
        let Heard { session, seat, is_reminded, policy } = heard;
        if self.bot.needs_news_only() {
            self.operator.clear();
            self.chat.clear();
        }
        // Bots count their seat by the recipients of private messages, so they receive redacted messages too.
        for message in &session.messages()[self.read..] {
            match message.channel {
                Channel::Chat(_) => self.chat.push(message_for(session, message, seat)),
                Channel::Operator(_) => self.operator.push(message_for(session, message, seat)),
                Channel::Invites | Channel::Inputs(_) => {}
            }
        }
        self.read = session.messages().len();
        let heard = arena_house::Heard {
            me: &session.names()[seat.0],
            operator: &self.operator,
            chat: &self.chat,
            is_late: is_reminded,
        };
        let step = if self.refused < policy.refusals { self.bot.next(&heard) } else { None };
        Answer::Steps { waits: step.is_none(), steps: step.into_iter().collect(), call: None }
    }
}

impl Player for BotPlayer {
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a> {
        let answer = self.step(heard);
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn learn(&mut self, steps: &[Step], results: &[StepResult]) -> Option<SeatEnd> {
        for (step, result) in steps.iter().zip(results) {
            match result {
                Ok(()) => self.refused = 0,
                Err(_) => {
                    self.refused += 1;
                    self.bot.refused(step);
                }
            }
        }
        None
    }

    fn is_free(&self) -> bool {
        true
    }
}

/// Returns a message as the player at a seat receives it.
pub fn message_for(session: &MemorySession, message: &ChatMessage, seat: Seat) -> Message {
    let is_readable = session.is_readable(message, seat);
    Message {
        channel: message.channel.to_string(),
        from: session.name_of(&message.from).to_owned(),
        to: message.to.as_ref().map(|to| session.name_of(to).to_owned()),
        content: if is_readable { message.content.clone() } else { String::new() },
        index: message.index,
        timestamp: message.at,
        redacted: !is_readable,
        content_sha256: None,
        method: message.method.clone().filter(|_| is_readable),
    }
}
