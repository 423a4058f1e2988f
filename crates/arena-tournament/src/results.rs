//! Results as ratings take them.

use arena_ratings::{AgentIndex, Results};

use crate::schedule::{Pairing, Schedule};
use crate::shape::Shape;

/// The games that count, in the order of their numbers. Games of a meeting are a pair: they share their luck.
pub fn results(schedule: &Schedule) -> Results {
    results_of(schedule.shape(), schedule.played(), &schedule.repeats())
}

/// These games of a tournament of this shape. `repeats` has, by number, the games that repeat earlier ones.
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
        pushed.expect("a schedule takes no other ranks than those of its games");
    }
    results
}
