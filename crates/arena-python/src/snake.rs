//! Boards of snake as arrays. They are made here because making them in Python would take longer than the rules.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arena_model::AgentId;
use serde::Deserialize;

/// The parts of a state that make up the board.
#[derive(Deserialize)]
struct SnakeState<'a> {
    #[serde(borrow)]
    snakes: BTreeMap<Cow<'a, str>, SnakeBody>,
    foods: Vec<(i32, i32)>,
    grid: Grid,
}

#[derive(Deserialize)]
struct SnakeBody {
    alive: bool,
    positions: Vec<(i32, i32)>,
}

#[derive(Deserialize)]
struct Grid {
    width: i32,
    height: i32,
}

/// The values of cells. An opponent's part has the value of the own part, plus 3.
const FOOD: u8 = 1;
const HEAD: u8 = 2;
const BODY: u8 = 3;
const TAIL: u8 = 4;
const TO_OPPONENTS: u8 = 3;

/// Returns the board of each seat, one after the other, row by row: 0 for an empty cell, 1 for food, 2 to 4 for the own
/// head, body and tail, 5 to 7 for those of opponents. Dead snakes aren't on the board.
///
/// # Errors
/// If the state isn't one of snake.
pub fn boards(state: &[u8], ids: &[AgentId]) -> Result<Vec<u8>, serde_json::Error> {
    let SnakeState { snakes, foods, grid: Grid { width, height } } = serde_json::from_slice(state)?;
    let size = usize::try_from(width * height).unwrap_or_default();
    let mut boards = vec![0; size * ids.len()];
    let mut put = |board: usize, (x, y): (i32, i32), value: u8| {
        if (0..width).contains(&x)
            && let Ok(cell) = usize::try_from(y * width + x)
            && cell < size
        {
            boards[board * size + cell] = value;
        }
    };
    for (board, own) in ids.iter().enumerate() {
        for food in &foods {
            put(board, *food, FOOD);
        }
        for (id, snake) in snakes.iter().filter(|(_, snake)| snake.alive) {
            let shift = if *id == own.as_str() { 0 } else { TO_OPPONENTS };
            let last = snake.positions.len().saturating_sub(1);
            for (place, cell) in snake.positions.iter().enumerate().rev() {
                let part = match place {
                    0 => HEAD,
                    _ if place == last => TAIL,
                    _ => BODY,
                };
                put(board, *cell, part + shift);
            }
        }
    }
    Ok(boards)
}
