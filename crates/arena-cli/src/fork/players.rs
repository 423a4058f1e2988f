//! Agents on the seats of a fork, and the loop that asks them.

use arena_house::{Bot, Heard, Step, Style};
use arena_llm::ModelAddress;
use arena_model::{Channel, ChatMessage, Seed};
use arena_wire::Message;

use super::model::ForkModel;
use super::table::ForkTable;
use crate::exit::{Exit, Failure};

/// The number of consecutive refusals after which a bot only waits.
const MAX_REFUSED: u32 = 20;

/// The number of steps of one player in one turn.
const MAX_STEPS: usize = 32;

/// The number of consecutive rounds without an action after which no more chat is awaited.
const MAX_CHAT_ROUNDS: u32 = 200;

/// The number of consecutive deadlines without an action after which a fork has stalled.
const MAX_DEADLINES: u32 = 1000;

/// The number of reminders of a player without an action.
const MAX_REMINDERS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkAgent {
    House(Style),
    /// A bot that chooses among valid actions at random.
    Random,
    Model(ModelAddress),
}

impl ForkAgent {
    /// Parses the name of an agent.
    ///
    /// # Errors
    /// A usage error with the names that exist.
    pub fn parse(text: &str) -> Result<ForkAgent, Failure> {
        let wrong = |why: String| Failure::new(Exit::Usage, why);
        match text.split_once(':').unwrap_or((text, "")) {
            ("house", _) => Style::of_agent(text)
                .map(ForkAgent::House)
                .ok_or_else(|| wrong(format!("there is no house bot `{text}`; use one of {}", Style::agents()))),
            ("random", "") => Ok(ForkAgent::Random),
            ("model", address) => match ModelAddress::parse(address) {
                Ok(address) => Ok(ForkAgent::Model(address)),
                Err(error) => Err(wrong(error.to_string())),
            },
            _ => Err(wrong(format!("`{text}` can't play in a fork; use house, house:easy, random or model:NAME@URL"))),
        }
    }

    /// Creates the player of a seat. `seed` determines the choices of a bot.
    ///
    /// # Errors
    /// If there is no bot for the challenge, or the model's key is missing.
    pub fn seat(&self, table: &ForkTable, seat: usize, seed: &Seed) -> Result<Box<dyn ForkPlayer>, Failure> {
        let (challenge, options) = (table.challenge(), &table.session().facts.options);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&seed.derive(&format!("fork/bot/{seat}")).0[..8]);
        let random = u64::from_be_bytes(bytes);
        let bot = match self {
            ForkAgent::Model(address) => return Ok(Box::new(ForkModel::connect(address, table, seat)?)),
            ForkAgent::House(style) => arena_house::house_bot(challenge, options, *style, random),
            ForkAgent::Random => arena_house::random_bot(challenge, random),
        };
        let missing = || Failure::new(Exit::Usage, format_args!("there is no bot for {}", challenge.id()));
        let bot = bot.ok_or_else(missing)?;
        Ok(Box::new(BotSeat { bot, operator: Vec::new(), chat: Vec::new(), read: 0, refused: 0 }))
    }
}

/// The steps of a player, and true if it has nothing more to do before there is news.
pub struct ForkAnswer {
    pub steps: Vec<Step>,
    pub waits: bool,
}

pub trait ForkPlayer {
    /// Returns the next steps. `is_reminded` is true if no player has anything else to do.
    ///
    /// # Errors
    /// If the player can't go on, such as a model whose endpoint fails.
    fn answer(&mut self, table: &ForkTable, seat: usize, is_reminded: bool) -> Result<ForkAnswer, Failure>;

    /// Receives the results of the last steps: the refusals.
    fn learn(&mut self, steps: &[Step], results: &[Result<(), String>]);
}

struct BotSeat {
    bot: Box<dyn Bot>,
    operator: Vec<Message>,
    chat: Vec<Message>,
    /// The number of messages that the bot has received.
    read: usize,
    /// The number of consecutive refusals.
    refused: u32,
}

impl ForkPlayer for BotSeat {
    fn answer(&mut self, table: &ForkTable, seat: usize, is_reminded: bool) -> Result<ForkAnswer, Failure> {
        if self.bot.needs_news_only() {
            self.operator.clear();
            self.chat.clear();
        }
        // Bots count their seat by the recipients of private messages, so they receive redacted messages too.
        for message in table.messages()[self.read..].iter().filter(|message| !message.channel.is_inputs()) {
            let is_chat = matches!(message.channel, Channel::Chat(_));
            let list = if is_chat { &mut self.chat } else { &mut self.operator };
            list.push(table.message_for(message, seat));
        }
        self.read = table.messages().len();
        let heard =
            Heard { me: &table.names()[seat], operator: &self.operator, chat: &self.chat, is_late: is_reminded };
        let step = if self.refused < MAX_REFUSED { self.bot.next(&heard) } else { None };
        Ok(ForkAnswer { waits: step.is_none(), steps: step.into_iter().collect() })
    }

    fn learn(&mut self, steps: &[Step], results: &[Result<(), String>]) {
        for (step, result) in steps.iter().zip(results) {
            match result {
                Ok(()) => self.refused = 0,
                Err(_) => {
                    self.refused += 1;
                    self.bot.refused(step);
                }
            }
        }
    }
}

/// A player with its place in the loop.
struct LoopSeat {
    player: Box<dyn ForkPlayer>,
    /// The number of messages at the last answer.
    heard: usize,
    waits: bool,
}

/// The counters since the last action.
#[derive(Default)]
struct QuietTime {
    rounds: u32,
    reminders: u32,
    deadlines: u32,
}

/// Plays a session on to its end. The players are asked in the order of their seats.
///
/// # Errors
/// If a player or the rules fail.
pub fn play_on(table: &mut ForkTable, players: Vec<Box<dyn ForkPlayer>>) -> Result<(), Failure> {
    let mut seats: Vec<LoopSeat> =
        players.into_iter().map(|player| LoopSeat { player, heard: 0, waits: false }).collect();
    let mut quiet = QuietTime::default();
    while !table.is_over() {
        let ready: Vec<usize> = match quiet.rounds < MAX_CHAT_ROUNDS {
            true => (0..seats.len()).filter(|seat| is_ready(table, &seats[*seat], *seat)).collect(),
            false => Vec::new(),
        };
        if !ready.is_empty() {
            quiet.rounds += 1;
            for seat in ready {
                take_turn(table, &mut seats[seat], seat, false, &mut quiet)?;
            }
            continue;
        }
        if quiet.reminders < MAX_REMINDERS {
            quiet.reminders += 1;
            let before = table.messages().len();
            let awaited: Vec<usize> = (0..seats.len()).filter(|seat| table.awaits(*seat)).collect();
            for seat in awaited {
                take_turn(table, &mut seats[seat], seat, true, &mut quiet)?;
            }
            if table.messages().len() > before {
                continue;
            }
        }
        if quiet.deadlines < MAX_DEADLINES && table.advance()? {
            quiet = QuietTime { deadlines: quiet.deadlines + 1, ..QuietTime::default() };
        } else if quiet.reminders == MAX_REMINDERS {
            // A session with a deadline isn't abandoned by inactivity, so the fork stays unfinished.
            if table.session().deadline.is_some() {
                return Ok(());
            }
            table.abandon()?;
            return Ok(());
        }
    }
    Ok(())
}

fn is_ready(table: &ForkTable, seat: &LoopSeat, number: usize) -> bool {
    let is_news = |message: &ChatMessage| !table.is_own(message, number) && table.is_readable(message, number);
    !seat.waits || table.messages()[seat.heard..].iter().any(is_news)
}

fn take_turn(
    table: &mut ForkTable,
    seat: &mut LoopSeat,
    number: usize,
    is_reminded: bool,
    quiet: &mut QuietTime,
) -> Result<(), Failure> {
    if table.is_over() {
        return Ok(());
    }
    seat.heard = table.messages().len();
    let ForkAnswer { steps, waits } = seat.player.answer(table, number, is_reminded)?;
    let mut results = Vec::with_capacity(steps.len());
    for step in steps.iter().take(MAX_STEPS) {
        if table.is_over() {
            break;
        }
        results.push(match step {
            Step::Act { method, content } => {
                let done = table.act(number, method, content)?;
                if done.is_ok() {
                    *quiet = QuietTime::default();
                }
                done
            }
            Step::Say { content, to } => table.say(number, content, to.as_deref()),
        });
    }
    seat.waits = waits && results.iter().all(Result::is_ok);
    seat.player.learn(&steps, &results);
    Ok(())
}

#[cfg(test)]
mod tests {
    use arena_house::Strength;

    use super::*;

    #[test]
    fn agents_have_names() {
        let model = ModelAddress::parse("m@ollama").unwrap();
        for (text, expected) in [
            ("house", Ok(ForkAgent::House(Style::default()))),
            ("house:easy", Ok(ForkAgent::House(Strength::Easy.into()))),
            ("random", Ok(ForkAgent::Random)),
            ("model:m@ollama", Ok(ForkAgent::Model(model))),
            ("house:strong", Err("there is no house bot `house:strong`")),
            ("random:5", Err("`random:5` can't play in a fork")),
            ("./bot", Err("`./bot` can't play in a fork")),
            ("model:", Err("`` has no model")),
        ] {
            match (ForkAgent::parse(text), expected) {
                (Ok(agent), Ok(expected)) => assert_eq!(agent, expected, "{text}"),
                (Err(error), Err(part)) => assert!(error.sentence().contains(part), "{text}: {}", error.sentence()),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
