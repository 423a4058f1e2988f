//! The loop of a house bot on a seat: passes the bot all messages that its player may read, and performs its steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arena_house::{Bot, Heard};
use arena_wire::{Message, SessionState};

use super::ChannelKind;
use super::client::CallError;
use super::inbox::result_in;
use super::seat::HttpSeat;

/// Waiting time of a long poll, in seconds. It is short, so that a server can stop its bots quickly.
const WAIT_S: u8 = 2;

/// The time without news after which a bot leaves the session. People may think long or leave; the server's own
/// deadlines come earlier.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The maximum pause before another try after a refusal.
const RETRY_PACE: Duration = Duration::from_millis(200);

/// The settings of a house bot on a seat.
#[derive(Debug, Clone, Copy)]
pub struct BotPolicy<'p> {
    /// The pause before a step, so that people can follow.
    pub pace: Duration,
    /// The time without news after which the bot is late. It doubles each time until there is news.
    pub patience: Duration,
    /// The interval of polling. If `None`, the bot waits on the operator channel, and notices a chat message up to two
    /// seconds later.
    pub poll: Option<Duration>,
    /// The flags of which one is set when the bot must leave.
    pub stop: &'p [&'p AtomicBool],
}

/// The messages of a channel that a bot receives.
struct BotInbox {
    kind: ChannelKind,
    messages: Vec<Message>,
    next: u64,
    /// True if messages are dropped after the bot has received them.
    drops: bool,
}

impl BotInbox {
    fn new(kind: ChannelKind, drops: bool) -> BotInbox {
        BotInbox { kind, messages: Vec::new(), next: 1, drops }
    }

    fn receive(&mut self, seat: &HttpSeat, wait_s: u8) -> Result<&[Message], CallError> {
        let messages = seat.messages(self.kind, self.next, wait_s)?;
        if self.drops {
            self.messages.clear();
        }
        let known = self.messages.len();
        self.next = messages.last().map_or(self.next, |message| message.index + 1);
        self.messages.extend(messages);
        Ok(&self.messages[known..])
    }
}

/// Plays a seat until the session is over or the bot must leave. Returns the result of the session, if it is over.
///
/// # Errors
/// If a request fails.
pub fn play_bot(seat: &HttpSeat, bot: &mut dyn Bot, policy: BotPolicy<'_>) -> Result<Option<SessionState>, CallError> {
    let has_chat = !bot.needs_news_only();
    let mut operator = BotInbox::new(ChannelKind::Operator, !has_chat);
    let mut chat = BotInbox::new(ChannelKind::Chat, false);
    let (mut news_at, mut late_since, mut patience) = (Instant::now(), Instant::now(), policy.patience);
    let (mut wait_s, mut has_stepped, mut was_refused) = (0, false, false);
    while !is_set(policy.stop) && news_at.elapsed() < IDLE_TIMEOUT {
        // The operator's messages right after a step are usually its result, so they aren't news.
        let is_news = |message: &Message| message.from != seat.you && !(has_stepped && message.from == "operator");
        let new = operator.receive(seat, wait_s)?;
        if let Some(last) = new.iter().find(|message| is_end(message)) {
            return Ok(Some(result_in(&last.content)));
        }
        let mut has_news = new.iter().any(is_news);
        if has_chat {
            has_news |= chat.receive(seat, 0)?.iter().any(is_news);
        }
        if has_news {
            (news_at, late_since, patience) = (Instant::now(), Instant::now(), policy.patience);
        }
        let is_late = late_since.elapsed() >= patience;
        if is_late {
            (late_since, patience) = (Instant::now(), patience.saturating_mul(2));
        }
        let heard = Heard { me: &seat.you, operator: &operator.messages, chat: &chat.messages, is_late };
        let Some(step) = bot.next(&heard) else {
            (has_stepped, was_refused) = (false, false);
            match policy.poll {
                Some(interval) => thread::sleep(interval),
                None => wait_s = WAIT_S,
            }
            continue;
        };
        wait_s = 0;
        thread::sleep(if was_refused { policy.pace.min(RETRY_PACE) } else { policy.pace });
        // The server may refuse a step that the game no longer needs.
        was_refused = seat.perform(&step)?.is_some();
        has_stepped = !was_refused;
        if was_refused {
            bot.refused(&step);
        }
    }
    Ok(None)
}

/// Waits until all players have joined, and returns the player's seat, from 0. Returns `None` if the server doesn't
/// find the session, or if the bot must leave.
///
/// # Errors
/// If a request fails.
pub fn wait_for_start(seat: &HttpSeat, stop: &[&AtomicBool]) -> Result<Option<usize>, CallError> {
    let mut operator = BotInbox::new(ChannelKind::Operator, true);
    let mut news_at = Instant::now();
    while !is_set(stop) && news_at.elapsed() < IDLE_TIMEOUT {
        match seat.state()? {
            Some(state) if state.status == "open" => {}
            state => return Ok(state.and_then(|state| state.players.iter().position(|player| *player == seat.you))),
        }
        if !operator.receive(seat, WAIT_S)?.is_empty() {
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
