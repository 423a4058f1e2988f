//! The board of snake: a cell of the grid is two characters wide, so that it is about square. Heads are capital
//! letters, bodies lower-case ones.

use serde_json::Value;

use crate::board::row::{Ink, Row, framed};
use crate::board::{Board, BoardInput, Note, index};

/// The maximum number of cells that are drawn in each direction. No terminal is larger.
const MAX_SIZE: usize = 256;

pub fn draw(input: &BoardInput<'_>) -> Board {
    let BoardInput { stage, state, .. } = *input;
    let side = |key: &str| state["grid"][key].as_u64().map_or(0, |side| (side as usize).min(MAX_SIZE));
    let (width, height) = (side("width"), side("height"));
    let mut cells = vec![vec![(Ink::Faint, '·'); width]; height];
    let mut put = |place: &Value, ink: Ink, char: char| {
        if let (Some(x), Some(y)) = (index(&place[0], width), index(&place[1], height)) {
            cells[y][x] = (ink, char);
        }
    };
    for food in state["foods"].as_array().into_iter().flatten() {
        put(food, Ink::Food, '*');
    }
    // Dead snakes aren't obstacles, so live snakes are drawn over their cells.
    for id in &stage.ids {
        let snake = &state["snakes"][id];
        if snake["alive"] == false {
            put(&snake["head_position"], Ink::Alarm, 'x');
        }
    }
    for (seat, id) in stage.ids.iter().enumerate() {
        let snake = &state["snakes"][id];
        if snake["alive"] != true {
            continue;
        }
        for place in snake["positions"].as_array().into_iter().flatten().rev() {
            put(place, Ink::Seat(seat), letter(seat));
        }
        put(&snake["head_position"], Ink::Seat(seat), letter(seat).to_ascii_uppercase());
    }
    let row = |cells: &Vec<(Ink, char)>| {
        let mut row = Row::default();
        row.char(Ink::Plain, ' ');
        for &(ink, char) in cells {
            row.char(ink, char).char(Ink::Plain, ' ');
        }
        row
    };
    let note = |(seat, id): (usize, &String)| {
        let snake = &state["snakes"][id];
        let words = match snake["alive"].as_bool() {
            Some(true) => format!("length {}", snake["positions"].as_array().map_or(0, Vec::len)),
            Some(false) => "dead".to_owned(),
            None => String::new(),
        };
        Note { mark: letter(seat).to_ascii_uppercase().to_string(), score: state["score"][id].as_f64(), words }
    };
    Board {
        rows: framed(cells.iter().map(row).collect(), 2 * width + 1),
        notes: stage.ids.iter().enumerate().map(note).collect(),
    }
}

fn letter(seat: usize) -> char {
    char::from(b'a' + (seat % 26) as u8)
}
