//! The picture of a position, White at the bottom.

use std::fmt::Write;

use serde_json::Value;

use super::terminal::square;
use crate::svg::{HEIGHT, SvgDrawing, WIDTH};

/// The size of a square, and the upper left corner of the board.
const SQUARE: f64 = 28.0;
const LEFT: f64 = (WIDTH - 8.0 * SQUARE) / 2.0;
const TOP: f64 = (HEIGHT - 8.0 * SQUARE) / 2.0;

/// The size of a unit of the outlines, in squares.
const PIECE: f64 = 0.028;

pub fn draw(states: &[Value]) -> Option<String> {
    let state = states.first()?;
    let fen = state["fen"].as_str()?;
    let mut drawing = SvgDrawing::default();
    let dark: String = (0..64)
        .filter(|place| (place / 8 + place % 8) % 2 == 1)
        .map(|place| format!("M{} {}h1v1h-1z", place % 8, place / 8))
        .collect();
    drawing.add(&format!(
        r##"<g transform="translate({LEFT} {TOP}) scale({SQUARE})"><rect width="8" height="8" fill="#efe7d8"/><path d="{dark}" fill="#b9a687"/>"##
    ));
    let last = state["last_move"].as_str().unwrap_or_default();
    for (file, rank) in [last.get(0..2), last.get(2..4)].into_iter().flatten().filter_map(square) {
        let row = 7 - rank;
        drawing
            .add(&format!(r##"<rect x="{file}" y="{row}" width="1" height="1" fill="#d9a400" fill-opacity=".55"/>"##));
    }
    let mut sides = [String::new(), String::new()];
    for (row, rank) in fen.split(' ').next().unwrap_or_default().split('/').take(8).enumerate() {
        let mut file = 0;
        for piece in rank.chars() {
            if let Some(empty) = piece.to_digit(10) {
                file += empty;
                continue;
            }
            let Some(outline) = outline_of(piece) else { continue };
            // An outline is drawn around (20, 19.5).
            let (x, y) = (f64::from(file) - 20.0 * PIECE + 0.5, row as f64 - 19.5 * PIECE + 0.5);
            let side = usize::from(piece.is_ascii_lowercase());
            let _ = write!(sides[side], r#"<path transform="translate({x:.2} {y:.3}) scale({PIECE})" d="{outline}"/>"#);
            file += 1;
        }
    }
    let [white, black] = sides;
    drawing.add(&format!(
        r##"<g stroke-linejoin="round"><g fill="#fff" stroke="#17191c" stroke-width="1.5">{white}</g><g fill="#17191c" stroke="#f4efe4" stroke-width="1.1">{black}</g></g></g>"##
    ));
    let turn = match state["turn"].as_bool() {
        _ if state["legal_moves"].as_array().is_some_and(Vec::is_empty) => "",
        Some(true) => ", White to move",
        Some(false) => ", Black to move",
        None => "",
    };
    Some(drawing.finish(&format!("Chess board{turn}")))
}

/// Returns the outline of a piece, given by its letter in FEN, from the board for browsers.
fn outline_of(piece: char) -> Option<&'static str> {
    let line = format!("\n  {}: \"", piece.to_ascii_lowercase());
    let (_, rest) = include_str!("board.js").split_once(&line)?;
    Some(rest.split_once('"')?.0)
}
