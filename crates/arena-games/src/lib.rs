//! The built-in games: a file or folder each, and the list of them.
//!
//! Everything here is pure: a game is its config, the seed and what its agents did, and nothing else. Who runs the agents and
//! keeps their clocks is `arena-match`; what a game is, is `arena-model`'s.

mod cherry_picker;
mod chess;
mod digits;
mod food_catcher;
mod foraging;
#[cfg(test)]
mod golden;
mod snake;

use arena_model::GameType;

/// All games, in the order in which people are told of them.
pub static GAMES: [GameType; 4] = [
    GameType::of::<snake::Snake>(),
    GameType::of::<chess::Chess>(),
    GameType::of::<food_catcher::FoodCatcher>(),
    GameType::of::<cherry_picker::CherryPicker>(),
];

/// The game of this name.
pub fn find(name: &str) -> Option<&'static GameType> {
    GAMES.iter().find(|game| game.name == name)
}
