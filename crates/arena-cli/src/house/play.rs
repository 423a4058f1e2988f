//! Plays a bot's seat over HTTP like any player: passes the bot all messages that its player may read, and performs the
//! bot's steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_house::{Bot, Heard, Step};
use arena_wire::{Message, Messages};

use super::seat::{TakenSeat, WAIT_S};
use crate::client::{Answer, CallError, Read};

/// The time without news after which a bot leaves the session. People may think long or leave; the server's own
/// deadlines come earlier.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The maximum pause before another try after a refusal.
const RETRY_PACE: Duration = Duration::from_millis(200);

/// The settings for playing a seat.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// The pause before a step, so that people can follow.
    pub pace: Duration,
    /// The time without news after which the bot is late. It doubles each time until there is news.
    pub patience: Duration,
    /// The interval of polling. If `None`, the bot waits on the operator channel, and notices a chat message up to
    /// [`WAIT_S`] later.
    pub poll: Option<Duration>,
    /// The flags of which one is set when the bot must leave.
    pub stop: &'a [&'a AtomicBool],
}

/// The messages of a channel that a bot receives.
struct BotInbox {
    messages: Vec<Message>,
    next: u64,
    /// True if messages are dropped after the bot has received them.
    drops: bool,
}

impl BotInbox {
    fn new(drops: bool) -> BotInbox {
        BotInbox { messages: Vec::new(), next: 1, drops }
    }

    fn receive(
        &mut self,
        read: impl Fn(Read) -> Result<Answer, CallError>,
        wait_s: u8,
    ) -> Result<&[Message], CallError> {
        let Messages { messages, .. } = read(Read { index: Some(self.next), wait: Some(wait_s) })?.read()?;
        if self.drops {
            self.messages.clear();
        }
        let known = self.messages.len();
        self.next = messages.last().map_or(self.next, |message| message.index + 1);
        self.messages.extend(messages);
        Ok(&self.messages[known..])
    }
}

/// Plays a seat until the game is over or `stop` is set.
pub fn play(seat: &TakenSeat, bot: &mut dyn Bot, manner: Manner<'_>) -> Result<(), CallError> {
    let TakenSeat { arena, session, invite } = seat;
    let has_chat = !bot.needs_news_only();
    let (mut operator, mut chat) = (BotInbox::new(!has_chat), BotInbox::new(false));
    let is_news = |message: &Message| message.from != *invite;
    let (mut news_at, mut late_since, mut patience) = (Instant::now(), Instant::now(), manner.patience);
    let (mut wait_s, mut has_stepped, mut was_refused) = (0, false, false);
    while !is_set(manner.stop) && news_at.elapsed() < IDLE_TIMEOUT {
        // The operator's messages right after a step are usually its result, so they aren't news.
        let is_news = |message: &Message| is_news(message) && !(has_stepped && message.from == "operator");
        let new = operator.receive(|read| arena.operator_messages(session, read), wait_s)?;
        if new.iter().any(is_end) {
            return Ok(());
        }
        let mut has_news = new.iter().any(is_news);
        if has_chat {
            has_news |= chat.receive(|read| arena.chat_messages(session, read), 0)?.iter().any(is_news);
        }
        if has_news {
            (news_at, late_since, patience) = (Instant::now(), Instant::now(), manner.patience);
        }
        let is_late = late_since.elapsed() >= patience;
        if is_late {
            (late_since, patience) = (Instant::now(), patience.saturating_mul(2));
        }
        let heard = Heard { me: invite, operator: &operator.messages, chat: &chat.messages, is_late };
        let Some(step) = bot.next(&heard) else {
            (has_stepped, was_refused) = (false, false);
            match manner.poll {
                Some(interval) => thread::sleep(interval),
                None => wait_s = WAIT_S,
            }
            continue;
        };
        wait_s = 0;
        thread::sleep(if was_refused { manner.pace.min(RETRY_PACE) } else { manner.pace });
        let done = match &step {
            Step::Say { content, to } => arena.say(session, content, to.as_deref()),
            Step::Act { method, content } => arena.act(session, method, content),
        };
        was_refused = matches!(done, Err(CallError::Refused { .. }));
        has_stepped = !was_refused;
        match done {
            Ok(_) => {}
            // The server may refuse a step that the game no longer needs.
            Err(CallError::Refused { .. }) => bot.refused(&step),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until all players have joined, and returns the bot's seat, from 0. Returns `None` if the list of sessions
/// doesn't show the seat, or if the bot needn't wait any longer.
pub fn wait_for_start(seat: &TakenSeat, challenge: &str, stop: &[&AtomicBool]) -> Result<Option<usize>, CallError> {
    let TakenSeat { arena, session, invite } = seat;
    let mut operator = BotInbox::new(true);
    let mut news_at = Instant::now();
    while !is_set(stop) && news_at.elapsed() < IDLE_TIMEOUT {
        let listed = seat.find_listed(challenge)?;
        match listed {
            Some(state) if state.status == "open" => {}
            Some(state) => return Ok(state.players.iter().position(|player| player == invite)),
            None => return Ok(None),
        }
        if !operator.receive(|read| arena.operator_messages(session, read), WAIT_S)?.is_empty() {
            news_at = Instant::now();
        }
    }
    Ok(None)
}

fn is_set(flags: &[&AtomicBool]) -> bool {
    flags.iter().any(|flag| flag.load(Ordering::Relaxed))
}

fn is_end(message: &Message) -> bool {
    message.from == "operator" && message.content.starts_with("Game ended.")
}
