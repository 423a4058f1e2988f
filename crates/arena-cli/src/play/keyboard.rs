//! Several seats of one session at one keyboard, and bots at the others: for those who try a challenge out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::news::{Ending, Inbox, Kind, Message, Next};
use super::person::{Game, Voice, greeting, obey};
use super::{Bot, Played, Seat, tell};
use crate::exit::{Exit, Failure};
use crate::output::{Style, print};

/// How long the end is waited for when there is no more input: without bots, and with bots that may still play.
const AFTER_INPUT: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];

/// How long to wait for the news of an end that the arena already lists.
const NEWS: Duration = Duration::from_secs(20);

/// Somebody at the table.
pub enum Sitter {
    /// Whoever is at the keyboard.
    Person,
    /// A bot.
    Bot(Box<Bot>),
}

/// What comes to the keyboard.
enum Event {
    /// Something for the player at a seat, by its place among those of the keyboard.
    Next(usize, Result<Next, Failure>),
    /// The session has ended.
    Over(Ending),
    /// The bot on a seat, from 1, has failed.
    BotFailed(usize, Failure),
}

/// A seat of the keyboard.
struct Own {
    seat: Seat,
    /// From 1.
    number: usize,
    game: Game,
    /// What was said while another seat was looked at.
    unseen: Vec<Message>,
}

/// Lets everybody play who sits at the table, in the order of the seats, and prints how it ended. At least one is a person.
///
/// # Errors
/// When the arena fails, or it was called off.
pub fn sit_down(table: Vec<(Seat, Sitter)>, style: Style, called_off: &Arc<AtomicBool>) -> Result<(), Failure> {
    let (events, news) = channel();
    let mut own = Vec::new();
    let mut bots = Vec::new();
    let mut inboxes = Vec::new();
    for (number, (mut seat, sitter)) in (1..).zip(table) {
        seat.look_for_others()?;
        let inbox = Inbox::open(&seat, called_off.clone())?;
        match sitter {
            Sitter::Person => {
                own.push(Own { seat, number, game: Game::default(), unseen: Vec::new() });
                inboxes.push(inbox);
            }
            Sitter::Bot(bot) => bots.push(start_bot(number, seat, *bot, inbox, called_off.clone(), events.clone())?),
        }
    }
    let mut voice = Voice::open(inboxes[0].sender(), style)?;
    let has_bots = !bots.is_empty();
    for (place, inbox) in inboxes.into_iter().enumerate() {
        pump(place, inbox, events.clone())?;
    }
    let ended = Keyboard { own, at: 0, seen: BTreeSet::new(), style }.play(&news, &mut voice, has_bots);
    // Whoever is at the table still is told to go.
    called_off.store(true, Ordering::Relaxed);
    for bot in bots {
        // What a bot had to say was said; a panic of its thread is a fault of ours, and printed by itself.
        let _ = bot.join();
    }
    drop(voice);
    let (seat, ending) = ended?;
    tell(&seat, ending, None, style)
}

fn start_bot(
    number: usize,
    mut seat: Seat,
    mut bot: Bot,
    mut inbox: Inbox,
    called_off: Arc<AtomicBool>,
    events: Sender<Event>,
) -> Result<thread::JoinHandle<()>, Failure> {
    let play = move || {
        if let Err(failure) = bot.play(&mut seat, &mut inbox, &called_off)
            && failure.exit != Exit::Interrupted
        {
            // Nobody is left to be told when the keyboard has gone.
            let _ = events.send(Event::BotFailed(number, failure));
        }
    };
    spawn(format!("bot {number}"), play)
}

/// Brings what comes to one inbox to the keyboard, until it is over or nobody is there any more.
fn pump(place: usize, mut inbox: Inbox, events: Sender<Event>) -> Result<(), Failure> {
    let carry = move || {
        loop {
            let event = match inbox.next(None) {
                Ok(Next::Over) => Event::Over(inbox.ending()),
                next => Event::Next(place, next),
            };
            let is_last = matches!(&event, Event::Over(_) | Event::Next(_, Err(_) | Ok(Next::Leave)));
            if events.send(event).is_err() || is_last {
                return;
            }
        }
    };
    spawn(format!("seat {place}"), carry).map(|_| ())
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>, Failure> {
    thread::Builder::new()
        .name(name)
        .spawn(run)
        .map_err(|error| Failure::new(Exit::Internal, format_args!("the system gives no thread: {error}")))
}

/// The keyboard, and the seats that are played from it.
struct Keyboard {
    own: Vec<Own>,
    /// The seat that is looked at, by its place in the list.
    at: usize,
    /// Messages that have been shown at one seat, and needn't be at another.
    seen: BTreeSet<(bool, u64)>,
    style: Style,
}

impl Keyboard {
    /// Plays to the end, or until whoever is at the keyboard leaves. The seat that was looked at last comes back.
    fn play(
        mut self,
        news: &Receiver<Event>,
        voice: &mut Voice,
        has_bots: bool,
    ) -> Result<(Seat, Option<Ending>), Failure> {
        voice.say(&greeting(&self.own[0].seat))?;
        if self.own.len() > 1 {
            let numbers: Vec<String> = self.own.iter().map(|own| own.number.to_string()).collect();
            voice.say(&format!("You play Players {}: /seat N changes.", numbers.join(", ")))?;
        }
        let (mut patience, mut over) = (None, 0);
        let ending = loop {
            let event = match patience {
                None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(patience) => news.recv_timeout(patience),
            };
            match event {
                Ok(Event::Next(place, Ok(Next::Message(message)))) => self.hear(place, message, voice)?,
                Ok(Event::Next(_, Ok(Next::Typed(Some(line))))) => {
                    if self.obey(&line, voice)? == Played::Left {
                        break None;
                    }
                }
                Ok(Event::Next(_, Ok(Next::Typed(None)))) => patience = Some(AFTER_INPUT[usize::from(has_bots)]),
                Ok(Event::Next(_, Ok(Next::Nothing | Next::Over))) => {}
                Ok(Event::Next(_, Ok(Next::Leave))) => break None,
                Ok(Event::Next(_, Err(failure))) => return Err(failure),
                // One seat may have heard of the end before another has been shown what led to it.
                Ok(Event::Over(ending)) => {
                    over += 1;
                    if over == self.own.len() {
                        break Some(ending);
                    }
                }
                Ok(Event::BotFailed(number, failure)) => {
                    voice.remark(&format!("the bot on seat {number} has failed: {}", failure.sentence()))?;
                }
                Err(RecvTimeoutError::Timeout)
                    if patience != Some(NEWS) && self.own[0].seat.has_ended().unwrap_or(false) =>
                {
                    patience = Some(NEWS);
                }
                Err(RecvTimeoutError::Timeout) => {
                    voice.remark(match patience {
                        Some(NEWS) => "the session has ended, but the arena doesn't say how",
                        _ => "no more input, and the session hasn't ended",
                    })?;
                    break None;
                }
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        Ok((self.own.swap_remove(self.at).seat, ending))
    }

    fn hear(&mut self, place: usize, message: Message, voice: &mut Voice) -> Result<(), Failure> {
        let own = &mut self.own[place];
        own.seat.meet(&message.from)?;
        match place == self.at {
            true => self.show(message, voice),
            false => {
                own.unseen.push(message);
                Ok(())
            }
        }
    }

    /// Shows a message at the seat that is looked at, unless it was seen at another.
    fn show(&mut self, message: Message, voice: &mut Voice) -> Result<(), Failure> {
        let is_new = self.seen.insert((message.channel == Kind::Chat, message.index));
        let Own { seat, number, game, .. } = &mut self.own[self.at];
        match (is_new, self.style) {
            (false, _) => Ok(()),
            (true, Style::Json) => {
                let mut line = json!(message);
                line["seat"] = json!(number);
                print(&line.to_string())
            }
            (true, Style::Pretty | Style::Compact) => voice.tell(seat, &message, game),
        }
    }

    fn obey(&mut self, line: &str, voice: &mut Voice) -> Result<Played, Failure> {
        let Some(rest) = line.trim().strip_prefix("/seat") else {
            return obey(&mut self.own[self.at].seat, line, voice);
        };
        let wanted = rest.trim().parse::<usize>().ok();
        match wanted.and_then(|number| self.own.iter().position(|own| own.number == number)) {
            Some(place) => {
                self.at = place;
                voice.remark(&format!("you are Player {} now", self.own[place].number))?;
                for message in std::mem::take(&mut self.own[place].unseen) {
                    self.show(message, voice)?;
                }
            }
            None => {
                let numbers: Vec<String> = self.own.iter().map(|own| own.number.to_string()).collect();
                voice.remark(&format!("your seats are {}", numbers.join(", ")))?;
            }
        }
        Ok(Played::ToTheEnd)
    }
}
