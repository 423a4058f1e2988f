//! Games with boards that house bots play for whoever looks at the page: one of each kind, one after the other, at a pace that can be
//! followed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use arena_games::Exhibit;
use arena_games::bots::Player;
use serde_json::{Map, Value};

use super::account::Session;
use super::table::{self, Manner};
use crate::client::{Arena, CallError};

/// A game that is shown, with its players.
#[derive(Debug)]
struct Shown {
    challenge: &'static str,
    players: [&'static Player; 2],
    exhibit: Exhibit,
}

/// The games that are shown.
fn exhibits() -> impl Iterator<Item = Shown> {
    arena_games::all().filter_map(|playable| {
        Some(Shown { challenge: playable.id, players: playable.kit.bots?, exhibit: playable.kit.exhibit? })
    })
}

/// Between two games, so that one can see how it ended.
const PAUSE: Duration = Duration::from_secs(4);

/// How often a pause looks whether it is all over.
const LOOK: Duration = Duration::from_millis(100);

/// The threads that play. Each ends soon after `stop` was raised.
pub struct Show(Vec<thread::JoinHandle<()>>);

impl Show {
    /// Begins, one game of each kind.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start(arena: &Arena, stop: &'static AtomicBool) -> std::io::Result<Show> {
        let threads = exhibits().map(|shown| {
            let arena = arena.own_connection();
            let name = format!("show-{}", shown.challenge);
            thread::Builder::new().name(name).spawn(move || shown.go_on(&arena, stop))
        });
        threads.collect::<std::io::Result<_>>().map(Show)
    }

    /// Waits for the last moves.
    pub fn end(self) {
        for thread in self.0 {
            // A panic was reported by its thread.
            let _ = thread.join();
        }
    }
}

impl Shown {
    fn go_on(&self, arena: &Arena, stop: &AtomicBool) {
        let mut players = self.players;
        while !stop.load(Ordering::Relaxed) {
            // One game that fails, say because the disk is full for a while, is no reason to end the show.
            if let Err(error) = self.game(arena, players, stop).or_else(|error| unless_stopped(error, stop)) {
                crate::exit::Failure::from(error).print();
            }
            players.reverse();
            for _ in 0..PAUSE.as_millis() / LOOK.as_millis() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(LOOK);
            }
        }
    }

    fn game(&self, arena: &Arena, players: [&'static Player; 2], stop: &AtomicBool) -> Result<(), CallError> {
        let options: Option<Map<String, Value>> = (self.exhibit.options)().as_object().cloned();
        let session: Session = arena.create(self.challenge, options.as_ref())?.read()?;
        let manner = Manner { pace: self.exhibit.pace, stop };
        thread::scope(|scope| {
            let seats: Vec<_> = (session.invites.iter().zip(players))
                .map(|(invite, player)| scope.spawn(|| table::play(&arena.own_connection(), player, invite, manner)))
                .collect();
            let panicked = || CallError::Request(format!("a house bot panicked in a game of {}", self.challenge));
            seats.into_iter().try_for_each(|seat| seat.join().map_err(|_| panicked())?)
        })
    }
}

/// What goes wrong while the server stops is no news.
pub fn unless_stopped(error: CallError, stop: &AtomicBool) -> Result<(), CallError> {
    if stop.load(Ordering::Relaxed) { Ok(()) } else { Err(error) }
}
