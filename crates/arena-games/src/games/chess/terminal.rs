//! The board of chess, White at the bottom. Pieces are the letters of FEN, capitals for White: chess symbols are too
//! small in terminals, and their apparent color depends on the background.

use crate::board::row::{Ink, Row};
use crate::board::{Board, BoardInput, Note};

pub fn draw(input: &BoardInput<'_>) -> Board {
    let BoardInput { stage, state, .. } = *input;
    let fen = state["fen"].as_str().unwrap_or_default();
    let last = state["last_move"].as_str().unwrap_or_default();
    let fresh: Vec<(usize, usize)> =
        [last.get(0..2), last.get(2..4)].into_iter().flatten().filter_map(square).collect();
    let is_white = |seat: usize| stage.sides.get(seat).copied().flatten() == Some("WHITE");
    let owner = |white: bool| (0..stage.ids.len()).find(|seat| is_white(*seat) == white);
    let ink = |piece: char| owner(piece.is_ascii_uppercase()).map_or(Ink::Plain, Ink::Seat);
    let mut rows = Vec::new();
    for (number, rank) in fen.split(' ').next().unwrap_or_default().split('/').take(8).enumerate() {
        let mut row = Row::default();
        row.text(Ink::Faint, &format!("{} ", 8 - number));
        let squares = rank.chars().flat_map(|char| match char.to_digit(10) {
            Some(empty) => std::iter::repeat_n('·', empty as usize),
            None => std::iter::repeat_n(char, 1),
        });
        for (file, piece) in squares.take(8).enumerate() {
            let is_fresh = fresh.contains(&(file, 7 - number));
            let ink = match (is_fresh, piece) {
                (true, _) => Ink::Fresh,
                (false, '·') => Ink::Faint,
                (false, piece) => ink(piece),
            };
            row.char(Ink::Plain, ' ').text(ink, piece.encode_utf8(&mut [0; 4]));
        }
        rows.push(row);
    }
    let mut files = Row::default();
    files.text(Ink::Faint, "   a b c d e f g h");
    rows.push(files);
    let to_move = state["turn"].as_bool();
    let notes = (0..stage.ids.len()).map(|seat| {
        let white = is_white(seat);
        let is_over = state["legal_moves"].as_array().is_some_and(Vec::is_empty);
        let words = match to_move {
            Some(turn) if turn == white && !is_over => "to move".to_owned(),
            Some(turn) if turn != white && !last.is_empty() => format!("played {last}"),
            _ => String::new(),
        };
        let mark = match stage.sides.get(seat).copied().flatten() {
            Some(_) if white => "White",
            Some(_) => "Black",
            None => "",
        };
        Note { mark: mark.to_owned(), score: None, words }
    });
    Board { rows, notes: notes.collect() }
}

/// Returns the file and rank, from 0, of the square with this name.
pub(super) fn square(name: &str) -> Option<(usize, usize)> {
    let [file @ b'a'..=b'h', rank @ b'1'..=b'8'] = name.as_bytes() else { return None };
    Some((usize::from(file - b'a'), usize::from(rank - b'1')))
}
