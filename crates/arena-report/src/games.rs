//! One line of text per game.

use std::cmp::Ordering;
use std::fmt::Display;

use arena_model::{MatchOutcome, MatchResult};
use arena_tournament::{GameLine, Record};

use crate::text::number_of;
use arena_model::printable;

/// Formats a game as one line, in the style of chess runners: `Finished game 3 of 56 (a vs b): 1-0 {CHECKMATE}`.
pub fn line(record: &Record, game: &GameLine) -> String {
    let (names, result) = of_game(record, game);
    let (number, all) = (game.number, record.schedule.games());
    let of = if record.schedule.counts(number) { format!("of {all}") } else { "after the end".to_owned() };
    let line = finished(format_args!("{number} {of}"), &names, &result, &game.result.outcome);
    match record.schedule.repeat_of(number) {
        Some(first) => format!("{line}, repeats game {first}"),
        None => line,
    }
}

/// Formats a game as one line from its number, the names of its agents and its result.
pub fn finished(number: impl Display, names: &[&str], result: &str, outcome: &MatchOutcome) -> String {
    let (names, why) = (names.join(" vs "), outcome.describe());
    printable(&format!("Finished game {number} ({names}): {result} {{{why}}}")).into_owned()
}

/// Returns the names of a game's agents, White first if the game has one, and the result in the same order.
pub(crate) fn of_game<'a>(record: &Record, game: &'a GameLine) -> (Vec<&'a str>, String) {
    named(game.result.names(), &game.result, || record.first_seat(game.number))
}

/// The text for the result of a game that counts for no agent.
pub const VOID: &str = "void";

/// In a game of two, the agent on `first_seat` comes first.
pub(crate) fn named<'a, A>(
    mut names: Vec<&'a str>,
    result: &MatchResult<A>,
    first_seat: impl FnOnce() -> usize,
) -> (Vec<&'a str>, String) {
    if result.outcome.is_void() {
        return (names, VOID.to_owned());
    }
    let mut seats: Vec<_> = result.seats.iter().collect();
    if let ([_, _], [_, _]) = (&seats[..], &names[..]) {
        let first = first_seat();
        seats.rotate_left(first);
        names.rotate_left(first);
    }
    let result = match seats[..] {
        [a, b] => match a.rank.cmp(&b.rank) {
            Ordering::Less => "1-0".to_owned(),
            Ordering::Equal => "1/2-1/2".to_owned(),
            Ordering::Greater => "0-1".to_owned(),
        },
        _ => seats.iter().map(|seat| number_of(seat.score)).collect::<Vec<_>>().join(" : "),
    };
    (names, result)
}
