//! `arena play`: a person, a bot or a language model takes a seat in a session, and plays it to its end. What all three have in common,
//! the seat and the news of the session, is in `seat` and `news`; each has a file of its own for how it decides.

mod bot;
mod follow;
mod game;
mod keyboard;
mod model;
mod news;
mod person;
mod seat;
mod typed;

use serde_json::{Value, json};

use crate::args::{Global, SeatArgs};
use crate::client::Arena;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::{Style, Table, print, printable};

use model::Model;
use news::{Ending, Inbox};

pub use bot::Bot;
pub use game::Said;
pub use keyboard::{Sitter, sit_down};
pub use seat::Seat;

/// Who plays.
enum Mind {
    Person,
    Bot(Box<Bot>),
    Model(Box<Model>),
}

/// How playing ended, where nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Played {
    /// With the session.
    ToTheEnd,
    /// Before it.
    Left,
}

/// Takes a seat and plays.
pub fn run(args: SeatArgs, global: Global, style: Style) -> Result<(), Failure> {
    // Before a seat is taken, since that can't be undone.
    let mut mind = if args.model.model.is_some() {
        Mind::Model(Box::new(Model::of(&args.model)?))
    } else if args.bot.agent.is_some() || !args.bot.command.is_empty() {
        Mind::Bot(Box::new(Bot::of(&args.bot)?))
    } else {
        Mind::Person
    };
    let global = global.with(args.key);
    let arena = Arena::of(&global)?;
    let mut seat = match (&args.invite, &global.from) {
        (Some(invite), None) => Seat::take(&arena, invite, &args.join)?,
        (None, Some(_)) if args.join.user_id.is_some() || args.join.sign.is_some() => {
            let sentence = "--user-id and --sign are for an invite; a seat that was taken before has its player";
            return Err(Failure::new(Exit::Usage, sentence));
        }
        (None, Some(from)) => Seat::take_up(&arena, from)?,
        (Some(_), Some(_)) => {
            let sentence = "an invite takes its seat and --from takes up one that was taken before; give one of them";
            return Err(Failure::new(Exit::Usage, sentence));
        }
        (None, None) => {
            let sentence = "whose seat? give an invite, or --from INVITE to take up a seat again";
            return Err(Failure::new(Exit::Usage, sentence));
        }
    };
    let called_off = interrupt::flag()?;
    let mut inbox = Inbox::open(&seat, called_off.clone())?;
    let played = match &mut mind {
        Mind::Person => person::play(&mut seat, &mut inbox, style),
        Mind::Bot(bot) => bot.play(&mut seat, &mut inbox, &called_off),
        Mind::Model(model) => model.play(&mut seat, &mut inbox),
    }?;
    let spent = match &mind {
        Mind::Model(model) => Some(model.summary()),
        Mind::Person | Mind::Bot(_) => None,
    };
    tell(&seat, (played == Played::ToTheEnd).then(|| inbox.ending()), spent, style)?;
    match &mind {
        Mind::Model(model) => model.verdict(&seat, played),
        Mind::Person | Mind::Bot(_) => Ok(()),
    }
}

/// Prints how the session ended, if it did.
fn tell(seat: &Seat, ending: Option<Ending>, spent: Option<Value>, style: Style) -> Result<(), Failure> {
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
        return print("the session was broken off, since nobody did anything any more; it doesn't count");
    }
    let mut table = Table::new(&["", "security", "utility"]);
    for (number, score) in ending.scores.iter().enumerate() {
        let you = if seat.players_at(&ending).get(number) == Some(&seat.you) { " (you)" } else { "" };
        table.row([format!("Player {}{you}", number + 1), score["security"].to_string(), score["utility"].to_string()]);
    }
    print(&table.right([1, 2]).to_string())?;
    tell_costs(seat, &ending)
}

/// Prints what the players say that their play has cost, if anybody does.
fn tell_costs(seat: &Seat, ending: &Ending) -> Result<(), Failure> {
    let mut table = Table::new(&["as reported", "model", "requests", "tokens in", "tokens out", "USD"]);
    let mut is_empty = true;
    for (player, total) in seat.players_at(ending).iter().zip(&ending.reported_usage) {
        // What another arena tells may be anything, and what isn't there is left open.
        if total["reports"].as_u64().unwrap_or(0) == 0 {
            continue;
        }
        let models: Vec<&str> = total["models"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let number = |name: &str| total[name].as_u64().map(|number| number.to_string()).unwrap_or_default();
        let cost = total["costUsd"].as_f64().map(|cost| format!("{cost:.4}")).unwrap_or_default();
        let models = printable(&models.join(", ")).into_owned();
        let [requests, input, output] = ["reports", "inputTokens", "outputTokens"].map(number);
        table.row([seat.name_of(player), models, requests, input, output, cost]);
        is_empty = false;
    }
    if is_empty { Ok(()) } else { print(&table.right([2, 3, 4, 5]).to_string()) }
}
