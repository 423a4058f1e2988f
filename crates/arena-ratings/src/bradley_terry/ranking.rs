//! Who can be told apart, and so who may hold which rank.

use serde::Serialize;

use super::Fit;
use crate::distributions::LEVEL;
use crate::results::AgentIndex;

/// The order of all agents, as far as the results bear it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ranking {
    /// The highest rating first.
    pub order: Vec<AgentIndex>,
    /// Of each agent, by its index.
    pub ranks: Vec<Rank>,
}

/// Where one agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// Its place, from 1; the agents of a tie group share the best of their places.
    pub place: usize,
    /// Its tie group, from 0 for the best. See [`Fit::ranking`].
    pub group: usize,
    /// The best rank that the results allow: one more than there are agents certainly above it.
    pub best: usize,
    /// The worst: the number of agents less those that are certainly below it.
    pub worst: usize,
}

impl Fit {
    /// The order of all agents, with ties and with the ranks that the results allow.
    ///
    /// One agent is certainly above another if their difference is significant at 5 % after Holm's correction for all
    /// pairs of agents. So in 95 of 100 tournaments all true ranks lie from `best` to `worst`, those of all agents at
    /// once (Mogstad, Romano, Shaikh, Wilhelm, *Inference for Ranks*, 2024; Holm, 1979).
    ///
    /// A tie group begins with the highest agent that is in none yet, and takes in those that follow until one is
    /// certainly below its first.
    pub fn ranking(&self) -> Ranking {
        let agents = self.agents();
        let mut pairs: Vec<(f64, AgentIndex, AgentIndex)> = Vec::with_capacity(agents * agents.saturating_sub(1) / 2);
        let order = self.order();
        for (place, &above) in order.iter().enumerate() {
            pairs.extend(order[place + 1..].iter().map(|&below| (self.p_value(above, below), above, below)));
        }
        pairs.sort_by(|one, two| one.0.total_cmp(&two.0));
        let mut ranks = vec![Rank { place: 0, group: 0, best: 1, worst: agents }; agents];
        let mut is_above = vec![false; agents * agents];
        let count = pairs.len();
        for (place, (p_value, above, below)) in pairs.into_iter().enumerate() {
            if p_value > (1.0 - LEVEL) / (count - place) as f64 {
                break;
            }
            is_above[above.0 * agents + below.0] = true;
            ranks[below.0].best += 1;
            ranks[above.0].worst -= 1;
        }
        let (mut head, mut group) = (0, 0);
        for (place, agent) in order.iter().enumerate() {
            if is_above[order[head].0 * agents + agent.0] {
                (head, group) = (place, group + 1);
            }
            let rank = &mut ranks[agent.0];
            (rank.place, rank.group) = (head + 1, group);
        }
        Ranking { order, ranks }
    }
}
