//! Games between house bots for visitors of the page. For each kind of game, a thread plays one game after the other, at a
//! speed that people can follow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arena_games::Exhibit;
use arena_house::Strength::{self, Easy, Normal};
use arena_house::{info, varied_bot};
use arena_players::http::{Arena, BotPolicy, CallError, HttpSeat, Identity, play_bot, random_bytes};
use arena_wire::Session;
use serde_json::json;

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
    /// The strengths of the seats.
    bots: &'static [Strength],
    exhibit: Exhibit,
}

/// The challenges of words, with the strengths of the seats.
const WORDS: [(&str, &[Strength]); 4] = [
    ("ultimatum", &[Normal, Easy]),
    ("psi", &[Normal, Normal]),
    ("dining-cryptographers", &[Normal, Normal, Normal]),
    ("millionaire", &[Normal, Easy]),
];

/// The time without news after which a bot doesn't wait for others.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the kinds of game that are shown, with their players.
fn games() -> impl Iterator<Item = ExhibitedGame> {
    let boards = arena_games::all().filter_map(|playable| {
        let (challenge, exhibit) = (playable.id, playable.kit.exhibit?);
        Some(ExhibitedGame { challenge, bots: &[Normal, Easy], exhibit })
    });
    let words = WORDS.into_iter().map(|(challenge, bots)| {
        let exhibit = Exhibit { options: || json!({}), pace: Duration::from_secs(2) };
        ExhibitedGame { challenge, bots, exhibit }
    });
    boards.chain(words)
}

/// Returns the names and the mottos of all players.
pub fn players() -> impl Iterator<Item = (String, &'static str)> {
    games().flat_map(|game| (0..game.bots.len()).filter_map(move |seat| game.player(seat)))
}

/// The threads that play the games. Each thread ends soon after `stop` is set.
pub struct Exhibition(Vec<JoinHandle<()>>);

impl Exhibition {
    /// Starts a thread for each kind of game.
    ///
    /// # Errors
    /// If no threads can be started.
    pub fn start(arena: &Arena, stop: &'static AtomicBool) -> Result<Exhibition, Failure> {
        let threads = games().map(|game| {
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
        while !stop.load(Ordering::Relaxed) {
            // A failed game, for example due to a full disk, doesn't end the exhibition.
            if let Err(error) = self.play(arena, stop).or_else(|error| unless_stopped(error, stop)) {
                Failure::from(error).print();
            }
            for _ in 0..PAUSE.as_millis() / CHECK.as_millis() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(CHECK);
            }
        }
    }

    /// Returns the name and the motto of the bot on a seat. Bots of one strategy in a game are numbered.
    fn player(&self, seat: usize) -> Option<(String, &'static str)> {
        let info = info(self.challenge, self.bots[seat])?;
        let number = self.bots[..seat].iter().filter(|other| **other == self.bots[seat]).count() + 1;
        Some((if number > 1 { format!("{}-{number}", info.name) } else { info.name.to_owned() }, info.motto))
    }

    fn play(&self, arena: &Arena, stop: &AtomicBool) -> Result<(), CallError> {
        let random = u64::from_be_bytes(random_bytes()?);
        let options = (self.exhibit.options)();
        let session: Session = arena.create(self.challenge, options.as_object())?.read()?;
        let is_over = &AtomicBool::new(false);
        let flags = [stop, is_over];
        let policy = BotPolicy { pace: self.exhibit.pace, patience: PATIENCE, poll: None, stop: &flags };
        thread::scope(|scope| {
            let seats = session.invites.iter().enumerate().map(|(number, invite)| {
                // The seats take turns at random.
                let seat = (number + random as usize) % self.bots.len();
                scope.spawn(move || {
                    let played = self.play_seat(arena, invite, seat, random, policy);
                    if played.is_err() {
                        // The others would wait for this bot.
                        is_over.store(true, Ordering::Relaxed);
                    }
                    played
                })
            });
            let seats: Vec<_> = seats.collect();
            let panicked = || CallError::Request(format!("a house bot panicked in a game of {}", self.challenge));
            seats.into_iter().try_for_each(|seat| seat.join().map_err(|_| panicked())?)
        })
    }

    fn play_seat(
        &self,
        arena: &Arena,
        invite: &str,
        seat: usize,
        random: u64,
        policy: BotPolicy<'_>,
    ) -> Result<(), CallError> {
        // The bots of a game share the upper half, by which bots of chess choose the opening.
        let own = u64::from(u32::from_be_bytes(random_bytes()?));
        let bot = varied_bot(self.challenge, self.bots[seat], random >> 32 << 32 | own);
        let missing = || CallError::Request(format!("there is no house bot for {}", self.challenge));
        let ((name, _), mut bot) = self.player(seat).zip(bot).ok_or_else(missing)?;
        let seat = HttpSeat::take(&arena.own_connection(), invite, Identity::Name(Some(&name)))?;
        play_bot(&seat, bot.as_mut(), policy).map(drop)
    }
}
