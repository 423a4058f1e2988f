//! House bots and random bots as agents of matches.

use std::sync::Arc;

use arena_house::{Bot, MatchBot, Style};
use arena_model::GameType;
use serde_json::{Map, Value};

use super::{AgentText, BuiltInPlayer, PlayerAnswer, PlayerError, Recipe, SeatStart};

#[derive(Debug)]
struct BotRecipe {
    text: String,
    choice: BotChoice,
}

#[derive(Debug)]
enum BotChoice {
    /// The house bot of a game, or of the match's game.
    House {
        /// The game, with hyphens.
        game: Option<String>,
        style: Style,
    },
    /// A bot with random valid actions.
    Random,
}

/// Parses what follows `house:`: a game, a style, both, or nothing.
pub(super) fn read_house(AgentText { whole: text, rest, .. }: AgentText<'_>) -> Result<Arc<dyn Recipe>, String> {
    let (mut game, mut style) = (None, Style::default());
    for word in rest.split(':').filter(|word| !word.is_empty()) {
        if let Some(named) = Style::from_name(word) {
            style = named;
        } else {
            let found = arena_games::find(word).ok_or_else(|| format!("there is no game `{word}` for house:{rest}"))?;
            game = Some(found.id.to_owned());
        }
    }
    Ok(Arc::new(BotRecipe { text: text.to_owned(), choice: BotChoice::House { game, style } }))
}

/// Parses what follows `random`: nothing.
pub(super) fn read_random(AgentText { whole: text, rest, .. }: AgentText<'_>) -> Result<Arc<dyn Recipe>, String> {
    match rest {
        "" => Ok(Arc::new(BotRecipe { text: text.to_owned(), choice: BotChoice::Random })),
        _ => Err(format!("`random` has no options, so `random:{rest}` names no agent")),
    }
}

impl Recipe for BotRecipe {
    fn text(&self) -> &str {
        &self.text
    }

    fn check(&self, game: &GameType) -> Result<(), String> {
        self.bot(game, 0).map(drop)
    }

    fn bot(&self, game: &GameType, random: u64) -> Result<Box<dyn Bot>, String> {
        let text = &self.text;
        let playable = arena_games::find(game.name)
            .ok_or_else(|| format!("{text} plays built-in games only, not {}", game.name))?;
        let found = match &self.choice {
            BotChoice::House { game: Some(named), .. } if named != playable.id => {
                return Err(format!("{text} plays {named}, but the game is {}", game.name));
            }
            BotChoice::House { style, .. } => arena_house::bot(playable.id, *style, random),
            BotChoice::Random => match arena_games::challenge(playable.id, &Map::new()) {
                Some(Ok(challenge)) => arena_house::random_bot(&*challenge, random),
                _ => None,
            },
        };
        found.ok_or_else(|| format!("{text} cannot play {}", game.name))
    }

    fn player(&self, start: SeatStart<'_>) -> Result<Box<dyn BuiltInPlayer>, String> {
        let bot = self.bot(start.game, arena_house::number_of(start.id))?;
        Ok(Box::new(MatchBot::new(bot, start.id, start.config)))
    }
}

impl BuiltInPlayer for MatchBot {
    fn actions(&mut self, state: &Map<String, Value>) -> Result<PlayerAnswer, PlayerError> {
        Ok(MatchBot::actions(self, state).into())
    }
}
