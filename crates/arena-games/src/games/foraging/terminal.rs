//! The maps of food_catcher and cherry_picker, scaled to the available room. Bases are capital letters, actors
//! lower-case ones; sources of food are `.` below 10, `+` below 30 and else `*`; an entity that died in the last epoch
//! is `x`.

use serde_json::Value;

use crate::board::row::{Ink, Row, framed, number};
use crate::board::{Board, BoardInput, Note, Stage, TerminalSize};

/// The minimum width of a recognizable map, in characters.
const MIN_WIDTH: usize = 16;

/// The space between maps side by side.
const GAP: usize = 2;

pub fn draw_shared(input: &BoardInput<'_>) -> Board {
    let BoardInput { stage, state, room, .. } = *input;
    let notes = (0..stage.ids.len()).map(|seat| note(stage, state, seat)).collect();
    Board { rows: map(stage, state, room), notes }
}

/// Draws the maps side by side if they fit, or else the first one.
pub fn draw_worlds(input: &BoardInput<'_>) -> Board {
    let BoardInput { stage, states: worlds, room, .. } = *input;
    let shown: Vec<(usize, &Value)> =
        worlds.iter().enumerate().filter(|(_, world)| world["bases"].is_array()).collect();
    let each = (room.columns + GAP) / shown.len().max(1);
    let (shown, columns) = match each >= MIN_WIDTH + 2 + GAP {
        true => (&shown[..], each - GAP),
        false => (&shown[..shown.len().min(1)], room.columns),
    };
    let mut rows: Vec<Row> = Vec::new();
    for (place, (seat, world)) in shown.iter().enumerate() {
        let mut column = vec![Row::default()];
        column[0].text(Ink::Seat(*seat), &format!("The world of {}", letter(*seat)));
        column.extend(map(stage, world, TerminalSize { columns, rows: room.rows.saturating_sub(1) }));
        rows.resize_with(rows.len().max(column.len()), Row::default);
        let start = rows.iter().map(Row::width).max().unwrap_or(0) + if place > 0 { GAP } else { 0 };
        for (row, part) in rows.iter_mut().zip(&column) {
            row.pad(start).row(part);
        }
    }
    let nothing = Value::Null;
    let notes = (0..stage.ids.len()).map(|seat| note(stage, worlds.get(seat).unwrap_or(&nothing), seat)).collect();
    Board { rows, notes }
}

fn map(stage: &Stage, state: &Value, room: TerminalSize) -> Vec<Row> {
    let side = |key: &str| stage.config.get(key).and_then(Value::as_f64).filter(|side| *side > 0.0);
    let (Some(width), Some(height)) = (side("grid_width"), side("grid_height")) else { return Vec::new() };
    let most = |room: usize| room.saturating_sub(2).max(1) as f64;
    // A character is about twice as high as wide.
    let scale = (width / most(room.columns)).max(height / 2.0 / most(room.rows)).max(1.0);
    // The result is limited again, because rounding may make the quotient larger than the room.
    let count = |side: f64, room: usize| ((side / scale).ceil().min(most(room)) as usize).clamp(1, 1024);
    let (columns, rows) = (count(width, room.columns), count(height / 2.0, room.rows));
    let mut cells = vec![vec![(Ink::Plain, ' '); columns]; rows];
    let mut put = |thing: &Value, ink: Ink, char: char| {
        let (Some(x), Some(y)) = (thing["position"][0].as_f64(), thing["position"][1].as_f64()) else { return };
        // Positions beyond the map are drawn on its edge.
        let column = (x / scale) as usize;
        let row = (y / scale / 2.0) as usize;
        cells[row.min(rows - 1)][column.min(columns - 1)] = (ink, char);
    };
    for food in things(state, "foods") {
        let char = match food["quantity"].as_f64().unwrap_or(0.0) {
            quantity if quantity < 10.0 => '.',
            quantity if quantity < 30.0 => '+',
            _ => '*',
        };
        put(food, Ink::Food, char);
    }
    for dead in things(state, "dead_entities") {
        put(dead, Ink::Alarm, 'x');
    }
    for (key, is_base) in [("actors", false), ("bases", true)] {
        for thing in things(state, key) {
            let Some(seat) = stage.seat_of(&thing["owner_id"]) else { continue };
            let letter = letter(seat);
            put(thing, Ink::Seat(seat), if is_base { letter } else { letter.to_ascii_lowercase() });
        }
    }
    let row = |cells: &Vec<(Ink, char)>| {
        let mut row = Row::default();
        for &(ink, char) in cells {
            row.char(ink, char);
        }
        row
    };
    framed(cells.iter().map(row).collect(), columns)
}

fn note(stage: &Stage, state: &Value, seat: usize) -> Note {
    let own = |key: &'static str| {
        things(state, key).filter(move |thing| stage.seat_of(&thing["owner_id"]) == Some(seat)).collect::<Vec<_>>()
    };
    let (actors, bases) = (own("actors"), own("bases"));
    let food = |things: &[&Value]| things.iter().filter_map(|thing| thing["food"].as_f64()).sum::<f64>();
    let counted = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let is_told = state["actors"].is_array();
    let words = [
        counted(actors.len(), "actor", "actors"),
        counted(bases.len(), "base", "bases"),
        format!("{} carried", number(food(&actors))),
    ];
    Note {
        mark: letter(seat).to_string(),
        score: is_told.then(|| food(&bases)),
        words: if is_told { words.join(", ") } else { String::new() },
    }
}

fn things<'a>(state: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    state[key].as_array().into_iter().flatten()
}

fn letter(seat: usize) -> char {
    char::from(b'A' + (seat % 26) as u8)
}
