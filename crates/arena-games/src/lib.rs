//! The built-in challenges and games. Each can be played under both protocols.
//!
//! A challenge is a file in `challenges/`, a game a folder in `games/`; each contains its rules and its [`Kit`]. The
//! adapters between the two kinds are in `arena-model`.

pub mod board;
pub mod bots;
mod challenges;
mod games;
mod playable;
mod svg;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arena_model::{ChallengeType, GameType, OptionsError};
use serde_json::{Map, Value};

pub use challenges::CHALLENGES;
pub use games::GAMES;
pub use playable::{Exhibit, Kit, Module, Playable, ReadScores, Sample, ScoreKind, SeatControls};

/// Returns all entries in the order of a server's lists: challenges, then games.
pub fn all() -> impl Iterator<Item = &'static Playable> + Clone {
    CHALLENGES.iter().chain(GAMES)
}

/// Returns all entries in the order of the match runner's lists: games, then challenges.
fn all_games() -> impl Iterator<Item = &'static Playable> + Clone {
    GAMES.iter().chain(CHALLENGES)
}

/// Returns the identifiers of all challenge types for a server, in the order of [`all`].
pub fn challenges() -> impl Iterator<Item = &'static str> {
    all().map(|playable| playable.id)
}

/// Returns the challenge type `id` with an arena's options for it, or `None` if no challenge type has this id.
///
/// # Errors
/// If an option is unknown, has the wrong type, or makes the game impossible.
pub fn challenge(id: &str, options: &Map<String, Value>) -> Option<Result<Arc<dyn ChallengeType>, OptionsError>> {
    all().find(|playable| playable.id == id).map(|playable| playable.challenge_type(options))
}

/// Returns all games for the match runner: games, then challenges.
pub fn games() -> impl Iterator<Item = &'static GameType> {
    all_games().map(|playable| &playable.game)
}

pub fn colosseum_games() -> impl Iterator<Item = &'static GameType> {
    GAMES.iter().map(|playable| &playable.game)
}

/// Returns the entry with this name. Hyphens and underscores in `name` are equivalent, because the match runner
/// writes `food_catcher` and a server writes `food-catcher`.
pub fn find(name: &str) -> Option<&'static Playable> {
    let plain = |name: &str| name.replace('-', "_");
    all().find(|playable| plain(playable.game.name) == plain(name))
}

/// Returns the names of the games with a sample agent in a file that ends in `.extension`, in the order of the match
/// runner's lists.
pub fn sampled(extension: &str) -> impl Iterator<Item = &'static str> {
    all_games().filter(move |playable| playable.sample(extension).is_some()).map(|playable| playable.game.name)
}

/// Returns the game with this name, which is looked up as in [`find`].
pub fn game(name: &str) -> Option<&'static GameType> {
    find(name).map(|playable| &playable.game)
}
