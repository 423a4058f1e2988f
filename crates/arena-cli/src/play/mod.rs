//! `arena play`: a person, a bot or a language model takes a seat in a session and plays it to its end. Their
//! seat is an [`HttpSeat`]. The decisions of each are in `person`, `bot`, `built_in` and `model`; `agent` parses the
//! option that chooses among them.

mod agent;
pub mod args;
mod bot;
mod built_in;
mod game;
mod keyboard;
mod model;
mod person;
mod queue;
mod seat;
mod typed;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arena_players::http::{Arena, HttpSeat, Inbox};
use arena_wire::SessionState;
use serde_json::{Value, json};

use crate::command_line::Global;
use crate::exit::Failure;
use crate::interrupt;
use crate::output::{Style, Table, print};

pub use bot::BotPlayer;
pub use keyboard::play_together;

use self::args::{ModelArgs, SeatArgs};
use agent::AgentSpec;
use built_in::BuiltInPlayer;
use model::Model;

/// The player of a seat.
enum SeatPlayer {
    Person,
    Bot(Box<BotPlayer>),
    BuiltIn(BuiltInPlayer),
    Model(Box<Model>),
}

impl SeatPlayer {
    /// Returns the player that the command line specifies: the person at the keyboard if it names no other.
    fn of(args: &SeatArgs) -> Result<SeatPlayer, Failure> {
        let agent = args.bot.agent.as_deref().map(AgentSpec::parse).transpose()?;
        let is_program = matches!(agent, Some(AgentSpec::Program)) || !args.bot.command.is_empty();
        let is_model = matches!(agent, Some(AgentSpec::Model(_))) || args.model.model.is_some();
        if let Some(option) = args.bot.first_option().filter(|_| !is_program) {
            let sentence = format!("{option} is only for programs; remove it, or give a program with --agent PATH");
            return Err(Failure::usage(sentence));
        }
        if let Some(option) = args.model.first_option().filter(|_| !is_model) {
            let sentence = format!("{option} is only for language models; remove it, or give one with --model NAME");
            return Err(Failure::usage(sentence));
        }
        Ok(match agent {
            Some(AgentSpec::Model(address)) => SeatPlayer::Model(Box::new(Model::of(&args.model, Some(address))?)),
            Some(AgentSpec::BuiltIn(agent)) => SeatPlayer::BuiltIn(BuiltInPlayer(agent)),
            None if is_model => SeatPlayer::Model(Box::new(Model::of(&args.model, None)?)),
            _ if is_program => SeatPlayer::Bot(Box::new(BotPlayer::of(&args.bot)?)),
            _ => SeatPlayer::Person,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlayEnd {
    ToTheEnd,
    Left,
}

pub fn run(args: &SeatArgs, global: Global, style: Style) -> Result<(), Failure> {
    // Bots and models are checked before the seat is taken, since a seat can't be given back.
    let player = SeatPlayer::of(args)?;
    let global = global.with(&args.key);
    let arena = global.arena()?;
    let called_off = interrupt::flag()?;
    let mut seat = take_seat(args, global.from.as_deref(), &arena, &player, &called_off)?;
    let follow = |seat: &HttpSeat| Inbox::open(&seat.arena, &seat.session, called_off.clone());
    let ending = |played, inbox: &Inbox| (played == PlayEnd::ToTheEnd).then(|| inbox.ending());
    match player {
        SeatPlayer::Person => {
            let mut inbox = follow(&seat)?;
            let played = person::play(&mut seat, &mut inbox, style)?;
            print_session(&seat, ending(played, &inbox), None, style)
        }
        SeatPlayer::Bot(mut bot) => {
            let mut inbox = follow(&seat)?;
            let played = bot.play(&mut seat, &mut inbox, &called_off)?;
            print_session(&seat, ending(played, &inbox), None, style)
        }
        SeatPlayer::BuiltIn(player) => print_session(&seat, player.play(&seat, &called_off)?, None, style),
        SeatPlayer::Model(mut model) => {
            let mut inbox = follow(&seat)?;
            let played = model.play(&mut seat, &mut inbox)?;
            print_session(&seat, ending(played, &inbox), Some(model.summary()), style)?;
            model.verdict(&seat, played)
        }
    }
}

/// Takes a new seat, or returns to the seat that was taken with the invite `from`.
fn take_seat(
    args: &SeatArgs,
    from: Option<&str>,
    arena: &Arena,
    player: &SeatPlayer,
    called_off: &AtomicBool,
) -> Result<HttpSeat, Failure> {
    let refuse = |sentence: &str| Err(Failure::usage(sentence));
    if let (SeatPlayer::BuiltIn(player), Some(challenge)) = (player, &args.queue) {
        player.check(challenge)?;
    }
    let invite = match (&args.queue, from) {
        (Some(_), Some(_)) => {
            return refuse("--queue takes a new seat and --from returns to yours; give only one of them");
        }
        (Some(challenge), None) => Some(queue::wait_for_invite(arena, challenge, args.house_after, called_off)?),
        (None, _) => args.invite.clone(),
    };
    match (invite, from) {
        (Some(invite), None) => {
            if let SeatPlayer::BuiltIn(player) = player {
                player.check_invite(arena, &invite)?;
            }
            seat::take(arena, &invite, &args.join)
        }
        (None, Some(_)) if args.join.user_id.is_some() || args.join.sign.is_some() => {
            refuse("--user-id and --sign need an invite; your seat has its identity already")
        }
        (None, Some(from)) => seat::find(arena, from),
        (Some(_), Some(_)) => refuse("an invite takes a new seat and --from returns to yours; give only one of them"),
        (None, None) => {
            refuse("no seat given; give an invite, --queue CHALLENGE, or --from INVITE to return to a seat")
        }
    }
}

/// Lets a language model play a taken seat to the end of the session. `arena` is the client of the seat's player.
/// Returns the model's cost in US dollars besides the result.
pub fn play_model(arena: &Arena, invite: &str, args: &ModelArgs) -> (f64, Result<(), Failure>) {
    let mut cost = 0.0;
    let mut play = || {
        let mut model = Model::of(args, None)?;
        let mut seat = seat::find(arena, invite)?;
        let mut inbox = Inbox::open(&seat.arena, &seat.session, Arc::new(AtomicBool::new(false)))?;
        let played = model.play(&mut seat, &mut inbox);
        cost = model.cost().unwrap_or(0.0);
        model.verdict(&seat, played?)
    };
    let played = play();
    (cost, played)
}

/// Prints the result of the session, if it has ended.
fn print_session(
    seat: &HttpSeat,
    ending: Option<SessionState>,
    spent: Option<Value>,
    style: Style,
) -> Result<(), Failure> {
    if style == Style::Json {
        let mut result = match &ending {
            Some(ending) => seat.result(ending),
            None => json!({
                "session": seat.session, "challenge": seat.challenge, "you": seat.you, "left": true, "back": seat.back(),
            }),
        };
        if let Some(spent) = spent {
            result["model"] = spent;
        }
        return print(&result.to_string());
    }
    let Some(ending) = ending else { return Ok(()) };
    if ending.abandoned {
        return print("the session was closed because no player acted; it doesn't count");
    }
    let mut table = Table::new(&["", "security", "utility"]);
    for (number, score) in ending.scores.iter().enumerate() {
        let you = if seat.players_at(&ending).get(number) == Some(&seat.you) { " (you)" } else { "" };
        table.row([format!("Player {}{you}", number + 1), score["security"].to_string(), score["utility"].to_string()]);
    }
    print(&table.right([1, 2]).to_string())
}
