//! The opponents of environments: house bots and random bots.

use arena_house::{MatchBot, Style, number_of};
use arena_model::GameType;
use serde_json::{Map, Value};

/// Seats a bot of this name (`house`, `house:NAME` or `random`) under an agent's id. In a match of the match runner, a
/// built-in agent of this name plays the same actions.
///
/// # Errors
/// If there is no such bot: the reason in a sentence.
pub fn seat(name: &str, game: &GameType, id: &str, config: &Value) -> Result<MatchBot, String> {
    let playable = arena_games::find(game.name).ok_or_else(|| format!("{} isn't built in", game.name))?;
    let random = number_of(id);
    let bot = match name {
        "random" => match arena_games::challenge(playable.id, &Map::new()) {
            Some(Ok(challenge)) => arena_house::random_bot(&*challenge, random),
            _ => None,
        },
        _ => Style::of_agent(name).and_then(|style| arena_house::bot(playable.id, style, random)),
    };
    let bot = bot
        .ok_or_else(|| format!("there is no house bot `{name}` for {}; use house, house:easy or random", game.name))?;
    Ok(MatchBot::new(bot, id, config))
}
