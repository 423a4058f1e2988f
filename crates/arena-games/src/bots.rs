//! House bots: pure functions from a state to the next action. A game registers two of them in its [`Kit`](crate::Kit).

use serde_json::{Map, Value};

/// A house bot for one game.
#[derive(Debug)]
pub struct HouseBot {
    /// The name, which is also the user id in the arena.
    pub name: &'static str,
    /// A description of the bot's strategy, for people.
    pub motto: &'static str,
    /// The challenge's method that makes the bot's moves.
    pub method: &'static str,
    pub(crate) think: fn(&BotInput<'_>) -> Option<String>,
}

/// The input of a bot's decision.
#[derive(Debug)]
pub(crate) struct BotInput<'s> {
    /// The bot's id in the state.
    pub me: &'s str,
    /// The game's constants, as the operator sent them; empty if the bot hasn't learned them.
    pub config: &'s Map<String, Value>,
    /// The state as the operator sent it.
    pub state: &'s Map<String, Value>,
    /// The positions at the bot's earlier moves, as FEN, if the states have a `fen`.
    pub past: &'s [String],
    /// The taste among moves of about equal value, with the opening in its upper half; 0 for a fixed order.
    pub taste: u64,
}

/// A house bot with its memory of one game.
#[derive(Debug)]
pub struct BotGame {
    player: &'static HouseBot,
    config: Map<String, Value>,
    past: Vec<String>,
    taste: u64,
}

impl BotGame {
    /// Returns the bot before its first move. Bots with different tastes play different games of chess; without a taste,
    /// which is 0, equal states give equal moves.
    pub fn of(player: &'static HouseBot, taste: u64) -> BotGame {
        BotGame { player, config: Map::new(), past: Vec::new(), taste }
    }

    /// Gives the bot the game's constants.
    pub fn learn(&mut self, config: Map<String, Value>) {
        self.config = config;
    }

    /// Returns the move in this state, as the content of [`HouseBot::method`], or `None` if the bot finds no move.
    pub fn decide(&mut self, me: &str, state: &Map<String, Value>) -> Option<String> {
        let BotGame { player, config, past, taste } = &*self;
        let decided = (player.think)(&BotInput { me, config, state, past, taste: *taste });
        if let Some(fen) = state.get("fen").and_then(Value::as_str) {
            self.past.push(fen.to_owned());
        }
        decided
    }
}
