//! Single games: who played, and what came of it, in a line.

use std::cmp::Ordering;

use arena_match::tournament::{GameLine, Record};

use crate::text::number_of;
use arena_model::printable;

/// A game in a line, as chess runners write it: `Finished game 3 of 56 (a vs b): 1-0 {CHECKMATE}`.
pub fn line(record: &Record, game: &GameLine) -> String {
    let (names, result) = named(record, game);
    let why = match game.outcome.tainted_reason {
        Some(reason) => format!("{}, {reason}", game.outcome.termination),
        None => game.outcome.termination.to_string(),
    };
    let (number, all) = (game.fixture, record.schedule.games());
    let of = if record.schedule.counts(number) { format!("of {all}") } else { "beyond the end".to_owned() };
    let repeated = match record.schedule.repeat_of(number) {
        Some(first) => format!(", repeats game {first}"),
        None => String::new(),
    };
    printable(&format!("Finished game {number} {of} ({}): {result} {{{why}}}{repeated}", names.join(" vs ")))
        .into_owned()
}

/// The names of those who played, White first where there is one, and the result in the same order.
pub fn named<'a>(record: &Record, game: &'a GameLine) -> (Vec<&'a str>, String) {
    let names: Vec<&str> = game.agents.iter().map(String::as_str).collect();
    match game.outcome.is_void() {
        true => (names, VOID.to_owned()),
        false => result(&names, &game.ranks, &game.scores, || record.first_seat(game.fixture)),
    }
}

/// The result of a game that counts for no agent.
pub const VOID: &str = "void";

/// The same of a game of these agents, whose names, ranks and scores stand by seat. Of two, the one on `first_seat` is named first.
pub fn result<'a>(
    names: &[&'a str],
    ranks: &[usize],
    scores: &[f64],
    first_seat: impl FnOnce() -> usize,
) -> (Vec<&'a str>, String) {
    let mut seats: Vec<usize> = (0..names.len()).collect();
    if seats.len() == 2 {
        seats.rotate_left(first_seat());
    }
    let names = seats.iter().map(|seat| names[*seat]).collect();
    let result = match seats[..] {
        [a, b] => match ranks[a].cmp(&ranks[b]) {
            Ordering::Less => "1-0".to_owned(),
            Ordering::Equal => "1/2-1/2".to_owned(),
            Ordering::Greater => "0-1".to_owned(),
        },
        _ => seats.iter().map(|seat| number_of(scores[*seat])).collect::<Vec<_>>().join(" : "),
    };
    (names, result)
}
