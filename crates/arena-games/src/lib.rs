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
mod hosted;
mod snake;

use std::sync::Arc;

use arena_model::{Builtin, ChallengeType, GameOperator, GameType, Hosted, OptionsError};
use serde_json::{Map, Value};

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

/// The names of the games as challenges of a server.
pub const CHALLENGES: &[&str] = &[
    snake::Snake::CHALLENGE,
    chess::Chess::CHALLENGE,
    food_catcher::FoodCatcher::CHALLENGE,
    cherry_picker::CherryPicker::CHALLENGE,
];

/// The game that is called `id` as a challenge, with an arena's options for it; `None` if there is none of that name.
///
/// # Errors
/// If an option is unknown, mistyped, or makes the game impossible.
pub fn challenge(id: &str, options: &Map<String, Value>) -> Option<Result<Arc<dyn ChallengeType>, OptionsError>> {
    match id {
        snake::Snake::CHALLENGE => Some(make::<snake::Snake>(options)),
        chess::Chess::CHALLENGE => Some(make::<chess::Chess>(options)),
        food_catcher::FoodCatcher::CHALLENGE => Some(make::<food_catcher::FoodCatcher>(options)),
        cherry_picker::CherryPicker::CHALLENGE => Some(make::<cherry_picker::CherryPicker>(options)),
        _ => None,
    }
}

fn make<G: Hosted>(options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
    Builtin::<GameOperator<G>>::new(options).map(|challenge| Arc::new(challenge) as Arc<dyn ChallengeType>)
}

#[cfg(test)]
mod tests {
    use arena_model::Events;
    use serde_json::json;

    use super::*;
    use crate::golden::{start, state, transcript};

    // Whoever plays a replay again may be given more epochs than were played.
    #[test]
    fn what_comes_after_the_end_of_a_game_changes_nothing() {
        for game_type in &GAMES {
            let mut game = start(game_type, 2, 1, json!({"n_epochs": 3}));
            let act = |state: &Value| {
                let to = state["legal_moves"][0].as_str().unwrap_or("UP");
                json!([{"action": "move", "move": to, "actor_id": state["actors"][0]["id"], "target": [20, 20]}])
            };
            transcript(&mut *game, 2, 5, |_, state| Some(act(state).to_string()));
            let see = |game: &dyn arena_model::AnyGame| {
                let states = [0, 1].map(|seat| state(game, arena_model::Seat(seat)));
                (game.termination(), game.scores(), states)
            };
            let before = see(&*game);
            assert!(before.0.is_some(), "{}", game_type.name);
            let (mut taken, mut events) = (Vec::new(), Events::default());
            for _ in 0..3 {
                let replies = [0, 1].map(|seat| act(&serde_json::from_str(&before.2[seat]).unwrap()).to_string());
                game.play(&[Some(&replies[0]), Some(&replies[1])], &mut taken, &mut events);
                assert_eq!(see(&*game), before, "{}", game_type.name);
                assert!(events.forfeits().is_empty(), "{}", game_type.name);
            }
        }
    }
}
