//! House bots of games: pure functions from a state to the next action. A game registers its two in its [`Kit`](crate::Kit).

use serde_json::{Map, Value};

/// A player of the house, for one game.
#[derive(Debug)]
pub struct Player {
    /// Its name, and its user id in the arena.
    pub name: &'static str,
    /// Its way of playing, for people.
    pub motto: &'static str,
    pub(crate) think: fn(&View<'_>) -> Option<String>,
}

/// The knowledge of a player when it has to move.
#[derive(Debug)]
pub(crate) struct View<'s> {
    /// Its id in the state.
    pub me: &'s str,
    /// The state, as the operator sends it.
    pub state: &'s Map<String, Value>,
    /// The positions at its earlier moves, where states have a `fen`.
    pub past: &'s [String],
}

/// A player in the middle of a game.
#[derive(Debug)]
pub struct Mind {
    player: &'static Player,
    past: Vec<String>,
}

impl Mind {
    /// The player before its first move.
    pub fn of(player: &'static Player) -> Mind {
        Mind { player, past: Vec::new() }
    }

    /// The move in this state, as the content of the method `move`; `None` where the bot sees no move.
    pub fn decide(&mut self, me: &str, state: &Map<String, Value>) -> Option<String> {
        let decided = (self.player.think)(&View { me, state, past: &self.past });
        if let Some(fen) = state.get("fen").and_then(Value::as_str) {
            self.past.push(fen.to_owned());
        }
        decided
    }
}
