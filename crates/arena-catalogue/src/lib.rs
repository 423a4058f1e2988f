//! Everything that can be played, under both protocols: challenges and games, each also as the other.
//!
//! The rules are in `arena-challenges` and `arena-games`; what makes the one of the other is in `arena-model`.

use std::sync::Arc;

use arena_model::{ChallengeType, GameType, OptionsError};
use serde_json::{Map, Value};

/// The names of all challenge types that a server can host: the challenges, then the games.
pub fn challenges() -> impl Iterator<Item = &'static str> {
    arena_challenges::BUILTIN.iter().chain(arena_games::CHALLENGES).copied()
}

/// The challenge type called `id` with an arena's options for it; `None` if there is none of that name.
///
/// # Errors
/// If an option is unknown, mistyped, or makes the game impossible.
pub fn challenge(id: &str, options: &Map<String, Value>) -> Option<Result<Arc<dyn ChallengeType>, OptionsError>> {
    arena_challenges::builtin(id, options).or_else(|| arena_games::challenge(id, options))
}

/// All games that the match runner can play: the games, then the challenges.
pub fn games() -> impl Iterator<Item = &'static GameType> {
    arena_games::GAMES.iter().chain(&arena_challenges::GAMES)
}

/// Those that bots of the Colosseum protocol are written for.
pub fn colosseum_games() -> impl Iterator<Item = &'static GameType> {
    arena_games::GAMES.iter()
}

/// The game of this name. Hyphens and underscores are the same, since the two protocols write names differently.
pub fn game(name: &str) -> Option<&'static GameType> {
    let plain = |name: &str| name.replace('-', "_");
    games().find(|game| plain(game.name) == plain(name))
}

#[cfg(test)]
mod tests;
