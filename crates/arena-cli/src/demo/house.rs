//! Opponents for visitors. A person who requests an opponent on a challenge's page gets one seat, in the browser; bots
//! get the other seats.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use arena_games::bots::HouseBot;
use arena_server::{House, HouseSeat};

use super::bots::{DemoBot, HOUSE};
use super::seat::{self, Patience};
use super::show::unless_stopped;
use super::table::{self, Manner};
use crate::client::{Arena, CallError};
use crate::exit::Failure;

/// The maximum number of seats that bots play at the same time, each on its own thread.
const SEATS: usize = 16;

/// The pause before a bot's action.
const PACE: Duration = Duration::from_millis(500);

/// A bot that plays with visitors.
enum Opponent {
    /// A bot for `psi`, which chats.
    Talker(&'static DemoBot),
    /// A bot for a board game, which moves.
    Player(&'static HouseBot),
}

/// Returns the opponent for a challenge, or `None` if there is none. The opponents take turns by `number`.
fn opponent(challenge: &str, number: usize) -> Option<Opponent> {
    if challenge == "psi" {
        // Only bots that send no digests, since people can't compute hashes by hand.
        let talkers: Vec<&'static DemoBot> =
            HOUSE.iter().filter(|bot| ["open-book", "cautious"].contains(&bot.name)).collect();
        return Some(Opponent::Talker(talkers[number % talkers.len()]));
    }
    let players = arena_games::all().find(|playable| playable.id == challenge)?.kit.bots?;
    Some(Opponent::Player(players[number % 2]))
}

/// Returns the ids of the challenges that have opponents.
fn challenges() -> impl Iterator<Item = String> {
    arena_games::challenges().filter(|challenge| opponent(challenge, 0).is_some()).map(str::to_owned)
}

/// Starts the thread that plays for visitors. Returns the list of opponents, which the server offers on its pages.
///
/// # Errors
/// If no thread can be started.
pub fn open(arena: &Arena, stop: &'static AtomicBool) -> std::io::Result<House> {
    let (house, seats) = House::open(challenges(), SEATS);
    let arena = arena.own_connection();
    let number = AtomicUsize::new(0);
    thread::Builder::new().name("house".to_owned()).spawn(move || {
        // The loop ends when the server drops the sender.
        for seat in seats {
            let arena = arena.own_connection();
            let Some(opponent) = opponent(&seat.challenge, number.fetch_add(1, Ordering::Relaxed)) else { continue };
            let name = format!("house-{}", seat.challenge);
            let started = thread::Builder::new().name(name).spawn(move || {
                let played = play(&arena, &opponent, &seat, stop).or_else(|error| unless_stopped(error, stop));
                if let Err(error) = played {
                    Failure::from(error).print();
                }
            });
            if let Err(error) = started {
                tracing::warn!(%error, "cannot start a thread for a house bot: {error}");
            }
        }
    })?;
    Ok(house)
}

fn play(arena: &Arena, opponent: &Opponent, seat: &HouseSeat, stop: &AtomicBool) -> Result<(), CallError> {
    match opponent {
        Opponent::Talker(bot) => seat::play(arena, bot, &seat.invite, Patience::WITH_PEOPLE, stop),
        Opponent::Player(player) => table::play(arena, player, &seat.invite, Manner { pace: PACE, stop }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_challenge_that_is_offered_has_opponents() {
        assert!(["psi", "snake", "chess"].iter().all(|known| challenges().any(|challenge| challenge == *known)));
        for challenge in challenges() {
            assert!((0..3).all(|number| opponent(&challenge, number).is_some()), "{challenge}");
        }
        assert!(opponent("golf", 0).is_none());
    }
}
