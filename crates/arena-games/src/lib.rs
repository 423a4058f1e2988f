//! Everything built in that can be played, under both protocols: challenges and games, each also as the other.
//!
//! A challenge is a file in `challenges/`, a game a folder in `games/`; each brings its rules and the rest of its [`Kit`].
//! The adapters that make the one of the other are in `arena-model`.

pub mod board;
pub mod bots;
mod challenges;
mod games;
mod playable;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arena_model::{ChallengeType, GameType, OptionsError};
use serde_json::{Map, Value};

pub use challenges::CHALLENGES;
pub use games::GAMES;
pub use playable::{Exhibit, Kit, Module, Playable, ReadScores, Sample};

/// All that is built in, in the order of a server's lists: the challenges, then the games.
pub fn all() -> impl Iterator<Item = &'static Playable> + Clone {
    CHALLENGES.iter().chain(GAMES)
}

/// All that is built in, in the order of the match runner's lists: the games, then the challenges.
fn all_games() -> impl Iterator<Item = &'static Playable> + Clone {
    GAMES.iter().chain(CHALLENGES)
}

/// The identifiers of all challenge types that a server can host, in the same order.
pub fn challenges() -> impl Iterator<Item = &'static str> {
    all().map(|playable| playable.id)
}

/// The challenge type called `id` with an arena's options for it; `None` if there is none of that name.
///
/// # Errors
/// If an option is unknown, mistyped, or makes the game impossible.
pub fn challenge(id: &str, options: &Map<String, Value>) -> Option<Result<Arc<dyn ChallengeType>, OptionsError>> {
    all().find(|playable| playable.id == id).map(|playable| playable.challenge_type(options))
}

/// All games that the match runner can play: the games, then the challenges.
pub fn games() -> impl Iterator<Item = &'static GameType> {
    all_games().map(|playable| &playable.game)
}

/// The games that bots of the Colosseum protocol are written for.
pub fn colosseum_games() -> impl Iterator<Item = &'static GameType> {
    GAMES.iter().map(|playable| &playable.game)
}

/// The entry of a game by its name in the match runner, or by its identifier on a server: hyphens and underscores are the
/// same here, since the two protocols write names differently.
pub fn find(name: &str) -> Option<&'static Playable> {
    let plain = |name: &str| name.replace('-', "_");
    all().find(|playable| plain(playable.game.name) == plain(name))
}

/// The names of the games with a sample agent whose file ends in `.extension`, in the order of the match runner's lists.
pub fn sampled(extension: &str) -> impl Iterator<Item = &'static str> {
    all_games().filter(move |playable| playable.sample(extension).is_some()).map(|playable| playable.game.name)
}

/// The game of this name, found as by [`find`].
pub fn game(name: &str) -> Option<&'static GameType> {
    find(name).map(|playable| &playable.game)
}
