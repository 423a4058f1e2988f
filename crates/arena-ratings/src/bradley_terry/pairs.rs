//! How often which two agents met with which outcome: all that the likelihood depends on.

use crate::results::{Outcome, Results};

/// All meetings of two agents in games of equally many seats, the agents in seat order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Meeting {
    /// The agent in the earlier seat.
    pub(super) first: usize,
    /// The agent in the later one.
    pub(super) second: usize,
    /// Whether the first one has the advantage of the seat.
    pub(super) has_advantage: bool,
    /// What each comparison counts.
    pub(super) weight: f64,
    /// Comparisons that the first one won, tied, and lost.
    pub(super) counts: [f64; 3],
}

impl Meeting {
    /// What all comparisons count.
    pub(super) fn total(&self) -> f64 {
        self.weight * (self.counts[0] + self.counts[1] + self.counts[2])
    }
}

/// What a comparison in a game of `seats` seats counts.
pub(super) fn weight(seats: usize) -> f64 {
    1.0 / (seats - 1) as f64
}

/// All meetings, ordered by agents and seats, so that the order of games leaves no trace in any sum over them.
pub(super) fn meetings(results: &Results) -> Vec<Meeting> {
    let mut keys: Vec<(u32, u32, u32, Outcome)> = Vec::with_capacity(results.len());
    for game in results.distinct() {
        // Agents are fewer than MAX_AGENTS, and no agent sits twice.
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
            Meeting {
                first: first as usize,
                second: second as usize,
                has_advantage: seats == 2,
                weight: weight(seats as usize),
                counts,
            }
        })
        .collect()
}
