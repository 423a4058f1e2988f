//! The built-in games: a file or folder each, and the list of them.
//!
//! Everything here is pure: a game is its config, the seed and what its agents did, and nothing else. Who runs the agents and
//! keeps their clocks is `arena-match`; what a game is, is `arena-model`'s.

mod chess;
mod digits;
#[cfg(test)]
mod golden;
mod snake;

use arena_model::GameType;

/// All games, in the order in which people are told of them.
pub static GAMES: [GameType; 2] = [GameType::of::<snake::Snake>(), GameType::of::<chess::Chess>()];

/// The game of this name.
pub fn find(name: &str) -> Option<&'static GameType> {
    GAMES.iter().find(|game| game.name == name)
}
