//! Boards of games in a terminal: pure functions from the states of a match to rows of characters.
//!
//! A game registers its board as `terminal` of its [`Kit`](crate::Kit). A game without one is shown without a board.

pub mod row;

use serde_json::{Map, Value};

use crate::find;
use row::Row;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// From left to right.
    pub columns: usize,
    /// From top to bottom.
    pub rows: usize,
}

/// The facts of a match that stay the same from the first epoch to the last: the game and its agents.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The game's name.
    pub game: String,
    /// Its constants.
    pub config: Map<String, Value>,
    /// The agents' ids, by seat.
    pub ids: Vec<String>,
    /// The side of each seat, where the game names sides.
    pub sides: Vec<Option<&'static str>>,
}

/// A board, with a note on each agent.
#[derive(Debug, Default)]
pub struct Board {
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// By seat.
    pub notes: Vec<Note>,
}

/// A note on an agent.
#[derive(Debug, Default)]
pub struct Note {
    /// Its sign on the board.
    pub mark: String,
    /// Its score, where the state tells it.
    pub score: Option<f64>,
    /// Further facts: `3 actors`.
    pub words: String,
}

/// One moment of a match.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The match.
    pub stage: &'a Stage,
    /// The first state that there is: the state of all, where all see the same.
    pub state: &'a Value,
    /// The states of the seats, where each sees a world of its own.
    pub states: &'a [Value],
    /// The room for the board.
    pub room: Room,
}

/// A function that draws a game's board.
pub type Draw = fn(&View<'_>) -> Board;

impl Stage {
    /// Draws what the agents see, by seat. Where all see the same, the first state counts that there is.
    pub fn draw(&self, states: &[Value], room: Room) -> Board {
        let is_something = |state: &&Value| state.as_object().is_some_and(|state| !state.is_empty());
        let first = states.iter().find(is_something).unwrap_or(&Value::Null);
        let draw = find(&self.game).and_then(|playable| playable.kit.terminal);
        let mut board =
            draw.map_or_else(Board::default, |draw| draw(&View { stage: self, state: first, states, room }));
        board.notes.resize_with(self.ids.len(), Note::default);
        board
    }

    /// The seat of the agent with this id.
    pub(crate) fn seat_of(&self, id: &Value) -> Option<usize> {
        let id = id.as_str()?;
        self.ids.iter().position(|known| known == id)
    }
}

/// A whole number below `most` that isn't negative.
pub(crate) fn index(value: &Value, most: usize) -> Option<usize> {
    let number = usize::try_from(value.as_u64()?).ok()?;
    (number < most).then_some(number)
}
