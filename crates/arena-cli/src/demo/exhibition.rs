//! Board games between house bots for visitors of the page. For each kind of game, a thread plays one game after the
//! other, at a speed that people can follow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arena_games::Exhibit;
use arena_games::bots::HouseBot;
use arena_house::board_bot;
use arena_players::http::{Arena, BotPolicy, CallError, HttpSeat, Identity, play_bot};
use arena_wire::Session;

use crate::exit::Failure;
use crate::serve::house::unless_stopped;

/// The pause between two games, so that visitors can see the result.
const PAUSE: Duration = Duration::from_secs(4);

/// The interval at which a thread checks for the end of the demo during a pause.
const CHECK: Duration = Duration::from_millis(100);

/// A kind of game that is shown, with its players.
#[derive(Debug)]
struct ExhibitedGame {
    challenge: &'static str,
    players: [&'static HouseBot; 2],
    exhibit: Exhibit,
}

/// The threads that play the games. Each thread ends soon after `stop` is set.
pub struct Exhibition(Vec<JoinHandle<()>>);

impl Exhibition {
    /// Starts a thread for each kind of game.
    ///
    /// # Errors
    /// If no threads can be started.
    pub fn start(arena: &Arena, stop: &'static AtomicBool) -> Result<Exhibition, Failure> {
        let games = arena_games::all().filter_map(|playable| {
            let (players, exhibit) = (playable.kit.bots?, playable.kit.exhibit?);
            Some(ExhibitedGame { challenge: playable.id, players, exhibit })
        });
        let threads = games.map(|game| {
            let arena = arena.own_connection();
            let name = format!("show-{}", game.challenge);
            thread::Builder::new().name(name).spawn(move || game.repeat(&arena, stop))
        });
        let threads = threads.collect::<std::io::Result<_>>();
        threads.map(Exhibition).map_err(|error| Failure::cannot("start a thread", error))
    }

    /// Waits until all threads have ended.
    pub fn end(self) {
        for thread in self.0 {
            // A panic of the thread has printed its own message.
            let _ = thread.join();
        }
    }
}

impl ExhibitedGame {
    /// Plays game after game until `stop` is set.
    fn repeat(&self, arena: &Arena, stop: &AtomicBool) {
        let mut players = self.players;
        while !stop.load(Ordering::Relaxed) {
            // A failed game, for example due to a full disk, doesn't end the exhibition.
            if let Err(error) = self.play(arena, players, stop).or_else(|error| unless_stopped(error, stop)) {
                Failure::from(error).print();
            }
            players.reverse();
            for _ in 0..PAUSE.as_millis() / CHECK.as_millis() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(CHECK);
            }
        }
    }

    fn play(&self, arena: &Arena, players: [&'static HouseBot; 2], stop: &AtomicBool) -> Result<(), CallError> {
        let options = (self.exhibit.options)();
        let session: Session = arena.create(self.challenge, options.as_object())?.read()?;
        // Bots of board games wait for no player but the one to move.
        let policy = BotPolicy { pace: self.exhibit.pace, patience: Duration::MAX, poll: None, stop: &[stop] };
        thread::scope(|scope| {
            let seats: Vec<_> = (session.invites.iter().zip(players))
                .map(|(invite, player)| {
                    scope.spawn(move || {
                        let seat = HttpSeat::take(&arena.own_connection(), invite, Identity::Name(Some(player.name)))?;
                        play_bot(&seat, board_bot(player).as_mut(), policy).map(drop)
                    })
                })
                .collect();
            let panicked = || CallError::Request(format!("a house bot panicked in a game of {}", self.challenge));
            seats.into_iter().try_for_each(|seat| seat.join().map_err(|_| panicked())?)
        })
    }
}
