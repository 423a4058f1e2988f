//! `arena match games`: the games, or the options of one.

use arena_model::GameType;
use serde_json::{Map, Value, json};

use super::settings::{find_game, try_start};
use crate::exit::Failure;
use crate::output::{Style, Table, print, print_json};

/// Lists the games.
pub fn list(style: Style) -> Result<(), Failure> {
    let mut table = Table::new(&["game", "agents", "turns", "step ms", "bank ms", ""]);
    let mut list = Vec::new();
    for game in arena_games::games() {
        let mode = serde_json::to_value(game.mode).unwrap_or_default();
        let seats = match game.seats.start() == game.seats.end() {
            true => game.seats.start().to_string(),
            false => format!("{} to {}", game.seats.start(), game.seats.end()),
        };
        table.row([
            game.name.to_owned(),
            seats,
            mode.as_str().unwrap_or_default().to_lowercase(),
            game.limits.step_ms.to_string(),
            game.limits.bank_ms.to_string(),
            game.description.to_owned(),
        ]);
        list.push(describe(game)?);
    }
    match style {
        Style::Pretty | Style::Compact => print(&table.right([3, 4]).to_string()),
        Style::Json => print_json(&Value::Array(list).to_string(), style),
    }
}

/// Prints a game with its options.
pub fn print_one(name: &str, style: Style) -> Result<(), Failure> {
    print_json(&describe(find_game(name)?)?.to_string(), style)
}

/// Returns a game's name, seats and limits, and each option with its default.
fn describe(game: &'static GameType) -> Result<Value, Failure> {
    let options = try_start(game, &Map::new(), *game.seats.start())?.config();
    Ok(json!({
        "name": game.name,
        "description": game.description,
        "update_mode": game.mode,
        "agents": {"least": game.seats.start(), "most": game.seats.end()},
        "limits": game.limits,
        "options": options,
    }))
}
