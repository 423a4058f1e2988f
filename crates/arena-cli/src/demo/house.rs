//! The house's opponents: whoever asks for one on a challenge's page gets a seat in the browser, and a bot at each other seat.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use arena_games::bots::Player;
use arena_server::{House, HouseSeat};

use super::bots::{Bot, HOUSE};
use super::seat::{self, Patience};
use super::show::unless_stopped;
use super::table::{self, Manner};
use crate::client::{Arena, CallError};
use crate::exit::Failure;

/// Seats that are played for guests at a time, each on a thread.
const SEATS: usize = 16;

/// How long a bot seems to think.
const PACE: Duration = Duration::from_millis(500);

/// Who plays a challenge with guests.
enum Opponent {
    /// Somebody who talks.
    Talker(&'static Bot),
    /// Somebody who moves.
    Player(&'static Player),
}

/// The opponent of a challenge, another one each time.
fn opponent(challenge: &str, number: usize) -> Option<Opponent> {
    if challenge == "psi" {
        // Those who don't speak in digests; nobody hashes by hand.
        let talkers: Vec<&'static Bot> =
            HOUSE.iter().filter(|bot| ["open-book", "cautious"].contains(&bot.name)).collect();
        return Some(Opponent::Talker(talkers[number % talkers.len()]));
    }
    let players = arena_games::all().find(|playable| playable.id == challenge)?.kit.bots?;
    Some(Opponent::Player(players[number % 2]))
}

/// The challenges with opponents.
fn challenges() -> impl Iterator<Item = String> {
    arena_games::challenges().filter(|challenge| opponent(challenge, 0).is_some()).map(str::to_owned)
}

/// Lets a server offer the house's opponents.
///
/// # Errors
/// When the system gives no thread.
pub fn open(arena: &Arena, stop: &'static AtomicBool) -> std::io::Result<House> {
    let (house, seats) = House::open(challenges(), SEATS);
    let arena = arena.own_connection();
    let number = AtomicUsize::new(0);
    thread::Builder::new().name("house".to_owned()).spawn(move || {
        // Ends with the server.
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
                tracing::warn!(%error, "no thread for a house bot: {error}");
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
