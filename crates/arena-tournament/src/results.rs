//! Conversion of a schedule's results into the input of `arena-ratings`.

use arena_ratings::{AgentIndex, Results};

use crate::schedule::{Pairing, Schedule};
use crate::shape::Shape;

/// Returns the games that count, in the order of their numbers. In a paired tournament, the games of a meeting (the
/// same agents and seed, with rotated seats) share a pair number.
pub fn results(schedule: &Schedule) -> Results {
    results_of(schedule.shape(), schedule.played(), &schedule.repeats())
}

/// Converts games of a tournament of this shape. For each game, `repeats` contains the number of the earlier game that
/// has the same moves, if any.
pub(crate) fn results_of<'a>(
    shape: &Shape,
    played: impl Iterator<Item = (&'a Pairing, &'a [usize])>,
    repeats: &[Option<usize>],
) -> Results {
    let mut results = Results::new(shape.agents);
    for (pairing, ranks) in played.filter(|(_, ranks)| !ranks.is_empty()) {
        let seats = pairing.agents.iter().zip(ranks);
        let seats: Vec<(AgentIndex, u32)> =
            seats.map(|(agent, rank)| (AgentIndex(*agent), u32::try_from(*rank).unwrap_or(u32::MAX))).collect();
        let pair = shape.paired.then_some(pairing.meeting);
        let is_repeat = repeats.get(pairing.number - 1).is_some_and(Option::is_some);
        let pushed = if is_repeat { results.push_repeat(&seats, pair) } else { results.push(&seats, pair) };
        pushed.expect("a schedule has valid ranks only");
    }
    results
}
