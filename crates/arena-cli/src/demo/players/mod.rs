//! The house's players of games with boards: a file for each game, and in it one function from a state to the action.

mod chess;
mod snake;

use serde_json::{Map, Value};

/// A player of the house, for one game.
#[derive(Debug)]
pub struct Player {
    /// Its name, and its user id in the arena.
    pub name: &'static str,
    /// The challenge that it plays.
    pub challenge: &'static str,
    /// How it plays, for people.
    pub motto: &'static str,
    think: fn(&View<'_>) -> Option<String>,
}

/// All that a player knows when it has to move.
#[derive(Debug)]
struct View<'s> {
    /// Its id in the state.
    me: &'s str,
    /// What the operator shows to it.
    state: &'s Map<String, Value>,
    /// What stood before it at its earlier moves, as far as that tells anything: in chess, positions.
    past: &'s [String],
}

/// All players, two for each game, so that they can play each other.
pub static PLAYERS: [Player; 4] = [chess::PLANNER, chess::GRABBER, snake::CAREFUL, snake::HUNGRY];

/// The two players of a game.
pub fn players_of(challenge: &str) -> Option<[&'static Player; 2]> {
    let mut players = PLAYERS.iter().filter(|player| player.challenge == challenge);
    Some([players.next()?, players.next()?])
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

    /// What it does in this state: the content of the method `move`. Nothing where it sees no move.
    pub fn decide(&mut self, me: &str, state: &Map<String, Value>) -> Option<String> {
        let decided = (self.player.think)(&View { me, state, past: &self.past });
        if let Some(fen) = state.get("fen").and_then(Value::as_str) {
            self.past.push(fen.to_owned());
        }
        decided
    }
}
