//! The picture of a position, White at the bottom.

use serde_json::Value;

use super::terminal::square;
use crate::svg::{HEIGHT, SvgDrawing, WIDTH};

/// The size of a square, and the upper left corner of the board.
const SQUARE: f64 = 28.0;
const LEFT: f64 = (WIDTH - 8.0 * SQUARE) / 2.0;
const TOP: f64 = (HEIGHT - 8.0 * SQUARE) / 2.0;

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
    drawing.add("</g>");
    for (row, rank) in fen.split(' ').next().unwrap_or_default().split('/').take(8).enumerate() {
        let mut file = 0;
        for piece in rank.chars() {
            if let Some(empty) = piece.to_digit(10) {
                file += empty;
                continue;
            }
            let (sign, paint) = match (sign_of(piece), piece.is_ascii_uppercase()) {
                (Some(sign), true) => (sign, r##"fill="#fff" stroke="#17191c" stroke-width=".8""##),
                (Some(sign), false) => (sign, r##"fill="#17191c" stroke="#f4efe4" stroke-width=".4""##),
                (None, _) => continue,
            };
            let place = (LEFT + SQUARE * (f64::from(file) + 0.5), TOP + SQUARE * (row as f64 + 0.8));
            drawing.text(place, &format!(r#"font-size="24" {paint}"#), sign);
            file += 1;
        }
    }
    let turn = match state["turn"].as_bool() {
        _ if state["legal_moves"].as_array().is_some_and(Vec::is_empty) => "",
        Some(true) => ", White to move",
        Some(false) => ", Black to move",
        None => "",
    };
    Some(drawing.finish(&format!("Chess board{turn}")))
}

/// Returns the filled symbol of a piece, given by its letter in FEN. The second character requests text style, because
/// some systems show pawns as emoji.
fn sign_of(piece: char) -> Option<&'static str> {
    match piece.to_ascii_lowercase() {
        'k' => Some("♚\u{fe0e}"),
        'q' => Some("♛\u{fe0e}"),
        'r' => Some("♜\u{fe0e}"),
        'b' => Some("♝\u{fe0e}"),
        'n' => Some("♞\u{fe0e}"),
        'p' => Some("♟\u{fe0e}"),
        _ => None,
    }
}
