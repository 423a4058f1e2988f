//! Boards of games in a terminal: pure functions from the states of a match to rows of characters.
//!
//! A game registers its board as `terminal` of its [`Kit`](crate::Kit). Without `terminal`, no board is shown.

pub mod row;

use serde_json::{Map, Value};

use crate::find;
use row::Row;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: usize,
    pub rows: usize,
}

/// The constant data of a match: the game and its agents.
#[derive(Debug, Clone)]
pub struct Stage {
    pub game: String,
    /// The game's constants.
    pub config: Map<String, Value>,
    /// The agents' ids, by seat.
    pub ids: Vec<String>,
    /// The side of each seat, if the game has sides.
    pub sides: Vec<Option<&'static str>>,
}

/// A board, with a note on each agent.
#[derive(Debug, Default)]
pub struct Board {
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// The notes by seat.
    pub notes: Vec<Note>,
}

#[derive(Debug, Default)]
pub struct Note {
    /// The agent's sign on the board.
    pub mark: String,
    /// The agent's score, if the state contains it.
    pub score: Option<f64>,
    /// A text about the agent, such as `3 actors`.
    pub words: String,
}

/// One moment of a match.
#[derive(Debug, Clone, Copy)]
pub struct BoardInput<'a> {
    pub stage: &'a Stage,
    /// The first available state of a seat. If the agents share a world, it is the state of all agents.
    pub state: &'a Value,
    /// The states of the seats, if each agent has its own world.
    pub states: &'a [Value],
    /// The room for the board.
    pub room: TerminalSize,
}

pub type Draw = fn(&BoardInput<'_>) -> Board;

impl Stage {
    /// Draws the agents' states, given by seat. If the agents share a world, the first available state is drawn.
    pub fn draw(&self, states: &[Value], room: TerminalSize) -> Board {
        let is_something = |state: &&Value| state.as_object().is_some_and(|state| !state.is_empty());
        let first = states.iter().find(is_something).unwrap_or(&Value::Null);
        let draw = find(&self.game).and_then(|playable| playable.kit.terminal);
        let mut board =
            draw.map_or_else(Board::default, |draw| draw(&BoardInput { stage: self, state: first, states, room }));
        board.notes.resize_with(self.ids.len(), Note::default);
        board
    }

    pub(crate) fn seat_of(&self, id: &Value) -> Option<usize> {
        let id = id.as_str()?;
        self.ids.iter().position(|known| known == id)
    }
}

/// Returns `value` as an integer in `0..most`, or `None` if it isn't one.
pub(crate) fn index(value: &Value, most: usize) -> Option<usize> {
    let number = usize::try_from(value.as_u64()?).ok()?;
    (number < most).then_some(number)
}
