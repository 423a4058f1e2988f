//! Players of a game: the interface of the driver, and the house bots behind it.

use std::pin::Pin;

use arena_house::{Bot, Step};
use arena_model::{ChallengeType, Seed};
use arena_wire::Message;
use serde_json::Value;

use crate::plan::EvalAgentKind;
use crate::table::Table;
use crate::{Cause, Measured};

/// The number of consecutive refusals after which a house bot only waits.
const MAX_REFUSED: u32 = 20;

/// The situation of a player that is asked for its next steps.
#[derive(Clone, Copy)]
pub(crate) struct Heard<'h> {
    pub(crate) table: &'h Table,
    pub(crate) seat: usize,
    /// True if no player has anything else to do, and the game waits for this player.
    pub(crate) is_reminded: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// The player takes these steps, in order.
    Steps {
        steps: Vec<Step>,
        /// True if the player has nothing to do before there is news.
        waits: bool,
        /// The number of the model's call, from 1.
        call: Option<u32>,
    },
    /// The player doesn't play on.
    Ended(SeatEnd),
}

/// The end of a seat before the end of its game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeatEnd {
    pub(crate) cause: Cause,
    pub(crate) detail: String,
}

impl SeatEnd {
    pub(crate) fn new(cause: Cause, detail: impl Into<String>) -> SeatEnd {
        SeatEnd { cause, detail: detail.into() }
    }
}

/// The reason why a game can't go on in this invocation of the run. No player caused it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Halt {
    /// The endpoint of an agent fails.
    Suspended {
        agent: String,
        /// The name of the fault's class.
        class: String,
        why: String,
    },
    /// A model may not be called any more, because its cap is reached.
    Capped,
    /// A cap of the run is reached, by its key in the run file.
    Budget(&'static str),
    Stopped,
    /// The rules or the arena failed.
    Failed(String),
    /// The files of the run can't be written. The run ends.
    Broken(String),
}

/// The result of a player's step: the refusal, if there is one.
pub(crate) type StepResult = Result<(), String>;

pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Halt>> + Send + 'a>>;

/// A player at a seat.
pub(crate) trait Player: Send {
    /// Returns the next steps. Equal situations give equal steps, whatever time they take.
    fn answer<'a>(&'a mut self, heard: Heard<'a>) -> Answering<'a>;

    /// Informs the player of the results of the steps of its last answer, in order. Returns the end of the seat if the
    /// player has made too many mistakes.
    fn learn(&mut self, steps: &[Step], results: &[StepResult]) -> Option<SeatEnd>;

    /// Returns true if answers cost nothing. The driver then asks the player whenever there is news.
    fn is_free(&self) -> bool {
        false
    }

    /// Returns the measured numbers so far.
    fn measured(&self) -> Measured {
        Measured::default()
    }
}

/// A house bot or a random bot at a seat.
pub(crate) struct HousePlayer {
    bot: Box<dyn Bot>,
    operator: Vec<Message>,
    chat: Vec<Message>,
    /// The number of messages of the table that the bot has received.
    read: usize,
    /// The number of consecutive refusals.
    refused: u32,
}

impl HousePlayer {
    /// Creates the bot of an agent for a seat. `seed` is the game's.
    ///
    /// # Errors
    /// If there is no such bot for the challenge, as one sentence.
    pub(crate) fn new(
        kind: &EvalAgentKind,
        challenge: &dyn ChallengeType,
        options: &Value,
        seat: usize,
        seed: &Seed,
    ) -> Result<HousePlayer, String> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&seed.derive(&format!("eval/bot/{seat}")).0[..8]);
        let random = u64::from_be_bytes(bytes);
        let bot = match kind {
            EvalAgentKind::House { style } => arena_house::house_bot(challenge, options, *style, random),
            EvalAgentKind::Random => arena_house::random_bot(challenge, random),
            EvalAgentKind::Model(_) | EvalAgentKind::Program(_) => None,
        };
        let bot = bot.ok_or_else(|| format!("there is no bot for the challenge {}", challenge.id()))?;
        Ok(HousePlayer { bot, operator: Vec::new(), chat: Vec::new(), read: 0, refused: 0 })
    }

    fn step(&mut self, heard: Heard<'_>) -> Answer {
        let Heard { table, seat, is_reminded } = heard;
        if self.bot.needs_news_only() {
            self.operator.clear();
            self.chat.clear();
        }
        for posted in &table.messages()[self.read..] {
            let message = table.message_for(posted, seat);
            if posted.is_chat() { self.chat.push(message) } else { self.operator.push(message) }
        }
        self.read = table.messages().len();
        let heard = arena_house::Heard {
            me: &table.names()[seat],
            operator: &self.operator,
            chat: &self.chat,
            is_late: is_reminded,
        };
        let step = if self.refused < MAX_REFUSED { self.bot.next(&heard) } else { None };
        Answer::Steps { waits: step.is_none(), steps: step.into_iter().collect(), call: None }
    }
}

impl Player for HousePlayer {
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
