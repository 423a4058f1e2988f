//! The built-in games, one folder or file each. A new game is a folder and two lines here.
//!
//! A game is determined by its config, the seed and its agents' actions. `arena-match` runs the agents and their
//! clocks; `arena-model` defines the interface of games.

mod cherry_picker;
mod chess;
mod digits;
mod food_catcher;
mod foraging;
#[cfg(test)]
mod golden;
mod snake;

use arena_model::{OptionsError, Setting, SettingRange};
use serde::Serialize;

use crate::Playable;

/// All games, in the order in which lists show them.
pub static GAMES: &[Playable] = &[snake::PLAYABLE, chess::PLAYABLE, food_catcher::PLAYABLE, cherry_picker::PLAYABLE];

/// Description of the option `players`, the same in every game.
const PLAYERS: &str = "Number of players.";

/// Description of the option `n_epochs` in the games that end by it.
const EPOCHS: &str = "Number of epochs.";

/// Options that aren't part of the config, such as `players`, are skipped.
fn check_bounds<'s>(
    config: &impl Serialize,
    settings: impl IntoIterator<Item = &'s Setting>,
) -> Result<(), OptionsError> {
    let config = serde_json::to_value(config).map_err(|error| OptionsError(error.to_string()))?;
    for Setting { name, range, .. } in settings {
        let (least, most) = match *range {
            SettingRange::Real(least, most) => (least, most),
            SettingRange::Whole(least, most) => (least as f64, most as f64),
            SettingRange::Text | SettingRange::Wholes(..) => continue,
        };
        let Some(value) = config.get(name) else { continue };
        // A config value that isn't a JSON number counts as infinite, and so fails the check.
        let number = value.as_f64().unwrap_or(f64::INFINITY);
        if !(least..=most).contains(&number) {
            return Err(OptionsError(format!("{name} must be {least} to {most}, not {number}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arena_model::{AnyGame, Events, Hosted as _, Seat};
    use serde_json::{Value, json};

    use super::golden::{start, state, transcript};
    use super::{cherry_picker, chess, food_catcher, snake};

    // The verification of a replay may play more epochs than the match had.
    #[test]
    fn actions_after_the_end_change_nothing() {
        for game_type in crate::colosseum_games() {
            let mut game = start(game_type, 2, 1, json!({"n_epochs": 3}));
            let act = |state: &Value| {
                let to = state["legal_moves"][0].as_str().unwrap_or("UP");
                json!([{"action": "move", "move": to, "actor_id": state["actors"][0]["id"], "target": [20, 20]}])
            };
            transcript(&mut *game, 2, 5, |_, state| Some(act(state).to_string()));
            let see = |game: &dyn AnyGame| {
                let states = [0, 1].map(|seat| state(game, Seat(seat)));
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

    #[test]
    fn the_manual_has_the_rules_that_players_get() {
        let joined = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
        for (game, prompt, manual) in [
            ("snake", snake::Snake::PROMPT, include_str!("../../../docs/games/snake.md")),
            ("chess", chess::Chess::PROMPT, include_str!("../../../docs/games/chess.md")),
            ("food_catcher", food_catcher::FoodCatcher::PROMPT, include_str!("../../../docs/games/food_catcher.md")),
            (
                "cherry_picker",
                cherry_picker::CherryPicker::PROMPT,
                include_str!("../../../docs/games/cherry_picker.md"),
            ),
        ] {
            // The manual describes the state in a table.
            let rules = prompt.split("\n\n").filter(|paragraph| !paragraph.starts_with("The state:"));
            for paragraph in rules {
                assert!(joined(manual).contains(&joined(paragraph)), "docs/games/{game}.md lacks: {paragraph}");
            }
        }
    }
}
