//! Several seats of one session at one keyboard, with bots on the other seats. For authors who try out a challenge.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use arena_players::http::{ChannelKind, HttpSeat, Inbox, InboxMessage, Next};
use arena_wire::SessionState;
use serde_json::json;

use super::person::{GameSetup, PersonOutput, greeting, perform};
use super::{BotPlayer, PlayEnd, print_session};
use crate::exit::{Exit, Failure};
use crate::output::{Style, print};

/// After the end of the input: the time to wait for the end of the session, without bots and with bots that may still
/// play.
const AFTER_INPUT: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(15)];

/// The time to wait for the channels to end after the server lists the session as ended.
const NEWS: Duration = Duration::from_secs(20);

enum KeyboardEvent {
    /// An event for a seat of the keyboard, with the seat's index in the keyboard's list.
    Next(usize, Result<Next, Failure>),
    Over(SessionState),
    /// The bot on a seat, from 1, has failed.
    BotFailed(usize, Failure),
}

/// A seat of the keyboard.
struct OwnSeat {
    seat: HttpSeat,
    /// The seat's number, from 1.
    number: usize,
    game: GameSetup,
    /// Messages that arrived while another seat was selected.
    unseen: Vec<InboxMessage>,
}

/// Lets all players play, and prints the result. `seats` contains the seats in order, with the bots on them. The person
/// at the keyboard has the other seats, at least one.
///
/// # Errors
/// If the server fails, or the play was interrupted.
pub fn play_together(
    seats: Vec<(HttpSeat, Option<BotPlayer>)>,
    style: Style,
    called_off: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let (events, news) = channel();
    let (mut own, mut inboxes, mut bots) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (mut seat, bot)) in (1..).zip(seats) {
        seat.look_for_others()?;
        let mut inbox = Inbox::open(&seat.arena, &seat.session, called_off.clone())?;
        let Some(mut bot) = bot else {
            own.push(OwnSeat { seat, number, game: GameSetup::default(), unseen: Vec::new() });
            inboxes.push(inbox);
            continue;
        };
        let (events, called_off) = (events.clone(), called_off.clone());
        let play = move || {
            if let Err(failure) = bot.play(&mut seat, &mut inbox, &called_off)
                && failure.exit != Exit::Interrupted
            {
                // The receiver of the events may have been dropped.
                let _ = events.send(KeyboardEvent::BotFailed(number, failure));
            }
        };
        bots.push(spawn(format!("bot {number}"), play)?);
    }
    let mut output = PersonOutput::open(inboxes[0].sender(), style)?;
    let has_bots = !bots.is_empty();
    for (place, inbox) in inboxes.into_iter().enumerate() {
        forward(place, inbox, events.clone())?;
    }
    let ended = Keyboard { own, at: 0, seen: BTreeSet::new(), style }.play(&news, &mut output, has_bots);
    // Remaining bots are stopped.
    called_off.store(true, Ordering::Relaxed);
    for bot in bots {
        // The result of the thread isn't needed: failures of bots have been printed, and a panic prints its own
        // message.
        let _ = bot.join();
    }
    drop(output);
    let (seat, ending) = ended?;
    print_session(&seat, ending, None, style)
}

/// Forwards the events of one inbox to the keyboard, until the inbox or the keyboard ends.
fn forward(place: usize, mut inbox: Inbox, events: Sender<KeyboardEvent>) -> Result<(), Failure> {
    let run = move || {
        loop {
            let event = match inbox.next(None) {
                Ok(Next::Over) => KeyboardEvent::Over(inbox.ending()),
                next => KeyboardEvent::Next(place, next.map_err(Failure::from)),
            };
            let is_last = matches!(&event, KeyboardEvent::Over(_) | KeyboardEvent::Next(_, Err(_) | Ok(Next::Leave)));
            if events.send(event).is_err() || is_last {
                return;
            }
        }
    };
    spawn(format!("seat {place}"), run).map(drop)
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<thread::JoinHandle<()>, Failure> {
    thread::Builder::new().name(name).spawn(run).map_err(|error| Failure::cannot("start a thread", error))
}

struct Keyboard {
    own: Vec<OwnSeat>,
    /// The index of the selected seat in the list.
    at: usize,
    /// Messages that were shown at one seat and needn't be shown again at another. Each is identified by its channel
    /// and index.
    seen: BTreeSet<(bool, u64)>,
    style: Style,
}

impl Keyboard {
    /// Plays until the session ends or the person leaves. Returns the seat that was selected last.
    fn play(
        mut self,
        news: &Receiver<KeyboardEvent>,
        output: &mut PersonOutput,
        has_bots: bool,
    ) -> Result<(HttpSeat, Option<SessionState>), Failure> {
        output.print_text(&greeting(&self.own[0].seat))?;
        if self.own.len() > 1 {
            output.print_text(&format!("You play Players {}; /seat N switches to Player N.", self.numbers()))?;
        }
        let (mut patience, mut over) = (None, 0);
        let ending = loop {
            let event = match patience {
                None => news.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(patience) => news.recv_timeout(patience),
            };
            match event {
                Ok(KeyboardEvent::Next(place, Ok(Next::Message(message)))) => self.hear(place, message, output)?,
                Ok(KeyboardEvent::Next(_, Ok(Next::Typed(Some(line))))) => {
                    if self.perform(&line, output)? == PlayEnd::Left {
                        break None;
                    }
                }
                Ok(KeyboardEvent::Next(_, Ok(Next::Typed(None)))) => {
                    patience = Some(AFTER_INPUT[usize::from(has_bots)])
                }
                Ok(KeyboardEvent::Next(_, Ok(Next::Nothing | Next::Over))) => {}
                Ok(KeyboardEvent::Next(_, Ok(Next::Leave))) => break None,
                Ok(KeyboardEvent::Next(_, Err(failure))) => return Err(failure),
                // One seat may receive the end of the session before another seat has received the last messages.
                Ok(KeyboardEvent::Over(ending)) => {
                    over += 1;
                    if over == self.own.len() {
                        break Some(ending);
                    }
                }
                Ok(KeyboardEvent::BotFailed(number, failure)) => {
                    output.print_remark(&format!("the agent on seat {number} failed: {}", failure.sentence()))?;
                }
                Err(RecvTimeoutError::Timeout) if patience != Some(NEWS) && has_ended(&self.own[0].seat) => {
                    patience = Some(NEWS);
                }
                Err(RecvTimeoutError::Timeout) => {
                    output.print_remark(match patience {
                        Some(NEWS) => "the session has ended, but the server sent no result",
                        _ => "no more input, and the session hasn't ended",
                    })?;
                    break None;
                }
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        Ok((self.own.swap_remove(self.at).seat, ending))
    }

    /// Lists the numbers of the own seats.
    fn numbers(&self) -> String {
        self.own.iter().map(|own| own.number.to_string()).collect::<Vec<_>>().join(", ")
    }

    fn hear(&mut self, place: usize, message: InboxMessage, output: &mut PersonOutput) -> Result<(), Failure> {
        let own = &mut self.own[place];
        own.seat.meet(&message.from)?;
        match place == self.at {
            true => self.show(message, output),
            false => {
                own.unseen.push(message);
                Ok(())
            }
        }
    }

    /// Shows a message at the selected seat, unless the message was already shown at another seat.
    fn show(&mut self, message: InboxMessage, output: &mut PersonOutput) -> Result<(), Failure> {
        let is_new = self.seen.insert((message.channel == ChannelKind::Chat, message.index));
        let OwnSeat { seat, number, game, .. } = &mut self.own[self.at];
        match (is_new, self.style) {
            (false, _) => Ok(()),
            (true, Style::Json) => {
                let mut line = json!(message);
                line["seat"] = json!(number);
                print(&line.to_string())
            }
            (true, Style::Pretty | Style::Compact) => output.print_message(seat, &message, game),
        }
    }

    fn perform(&mut self, line: &str, output: &mut PersonOutput) -> Result<PlayEnd, Failure> {
        let Some(rest) = line.trim().strip_prefix("/seat") else {
            return perform(&mut self.own[self.at].seat, line, output);
        };
        let wanted = rest.trim().parse::<usize>().ok();
        match wanted.and_then(|number| self.own.iter().position(|own| own.number == number)) {
            Some(place) => {
                self.at = place;
                output.print_remark(&format!("you are Player {} now", self.own[place].number))?;
                for message in std::mem::take(&mut self.own[place].unseen) {
                    self.show(message, output)?;
                }
            }
            None => output.print_remark(&format!("/seat needs the number of one of your seats: {}", self.numbers()))?,
        }
        Ok(PlayEnd::ToTheEnd)
    }
}

/// Returns true if the server lists the session as ended.
fn has_ended(seat: &HttpSeat) -> bool {
    matches!(seat.state(), Ok(Some(state)) if state.status == "ended")
}
