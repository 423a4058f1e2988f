//! Counts of outcomes for each pair of agents: the sufficient statistics of the likelihood.

use crate::results::{PairOutcome, Results};

/// All comparisons of two agents in one seat order, in games with the same number of seats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PairCounts {
    /// The agent on the earlier seat.
    pub(super) first: usize,
    /// The agent on the later seat.
    pub(super) second: usize,
    /// True if the seat advantage of the model applies to the first agent.
    pub(super) has_advantage: bool,
    /// The weight of each comparison.
    pub(super) weight: f64,
    /// The numbers of comparisons that the first agent won, tied and lost.
    pub(super) counts: [f64; 3],
}

impl PairCounts {
    /// Returns the total weight of the comparisons.
    pub(super) fn total(&self) -> f64 {
        self.weight * (self.counts[0] + self.counts[1] + self.counts[2])
    }
}

pub(super) fn weight(seats: usize) -> f64 {
    1.0 / (seats - 1) as f64
}

/// Ordered by agents and seats, so that sums don't depend on the order of games.
pub(super) fn count_pairs(results: &Results) -> Vec<PairCounts> {
    let mut keys: Vec<(u32, u32, u32, PairOutcome)> = Vec::with_capacity(results.len());
    for game in results.distinct() {
        // The casts can't truncate: there are at most MAX_AGENTS agents, and no agent has two seats.
        let seats = game.seats.len() as u32;
        keys.extend(game.comparisons().map(|(one, two, outcome)| (one.0 as u32, two.0 as u32, seats, outcome)));
    }
    keys.sort_unstable();
    keys.chunk_by(|one, two| (one.0, one.1, one.2) == (two.0, two.1, two.2))
        .map(|same| {
            let (first, second, seats, _) = same[0];
            let mut counts = [0.0; 3];
            for equal in same.chunk_by(|one, two| one.3 == two.3) {
                counts[equal[0].3 as usize] = equal.len() as f64;
            }
            PairCounts {
                first: first as usize,
                second: second as usize,
                has_advantage: seats == 2,
                weight: weight(seats as usize),
                counts,
            }
        })
        .collect()
}
