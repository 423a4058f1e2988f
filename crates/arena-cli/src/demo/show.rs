//! Games with boards that house bots play for whoever looks at the page: one of each kind, one after the other, at a pace that can be
//! followed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::account::Session;
use super::players::{Player, players_of};
use super::table::{self, Manner};
use crate::client::{Arena, CallError};

/// A kind of game, and how it is shown.
#[derive(Debug)]
struct Exhibit {
    challenge: &'static str,
    /// What a session of it is made with.
    options: fn() -> Value,
    /// Between being asked and answering.
    pace: Duration,
}

/// What is shown.
const EXHIBITS: [Exhibit; 2] = [
    Exhibit { challenge: "chess", options: || json!({}), pace: Duration::from_millis(900) },
    Exhibit {
        challenge: "snake",
        options: || json!({"grid_width": 16, "grid_height": 16, "n_epochs": 400}),
        pace: Duration::from_millis(260),
    },
];

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
        let threads = EXHIBITS.iter().map(|exhibit| {
            let arena = arena.own_connection();
            let name = format!("show-{}", exhibit.challenge);
            thread::Builder::new().name(name).spawn(move || exhibit.go_on(&arena, stop))
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

impl Exhibit {
    fn go_on(&'static self, arena: &Arena, stop: &AtomicBool) {
        let Some(mut players) = players_of(self.challenge) else { return };
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
        let options: Option<Map<String, Value>> = (self.options)().as_object().cloned();
        let session: Session = arena.create(self.challenge, options.as_ref())?.read()?;
        let manner = Manner { pace: self.pace, stop };
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
