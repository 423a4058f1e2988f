//! Ranks of agents, with the range of ranks that the rating intervals permit.

use serde::Serialize;

use super::Fit;
use crate::results::AgentIndex;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ranking {
    /// The agents, the highest rating first.
    pub order: Vec<AgentIndex>,
    /// The rank of each agent, by its index.
    pub ranks: Vec<Rank>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// The rank, from 1. Agents in the same tie share the best rank of the tie.
    pub place: usize,
    /// The number of the agent's tie, from 0 for the best tie. See [`Fit::ranking`].
    pub tie: usize,
    /// The best rank that the intervals allow: one more than the number of agents above the agent.
    pub best: usize,
    /// The worst rank that the intervals allow: the number of agents minus the number of agents below the agent.
    pub worst: usize,
}

impl Fit {
    /// Returns the order of all agents, with ties and the ranks that the intervals allow.
    ///
    /// An agent is above another if its interval lies entirely above the other's. An interval contains its agent's true
    /// rating in 95 of 100 tournaments. A range from `best` to `worst` contains its agent's true rank at least as
    /// often: in more than 99 of 100 if strengths differ. If many agents have exactly equal strength, a few intervals
    /// are apart by chance: about 5 % of the ranges of 8 equal agents leave out a rank, and 10 % of the ranges of 40.
    /// The benchmark scenario `coverage` measures this.
    ///
    /// A simultaneous test of all pairs (Holm) would need wider gaps than those between intervals. After few games,
    /// such a test would allow any rank for an agent that lost all its games, although its interval is far below the
    /// other intervals.
    ///
    /// Ties are formed from the top. A tie begins with the highest agent that isn't in a tie yet. It ends before the
    /// first agent with an interval entirely below that of the tie's first agent.
    pub fn ranking(&self) -> Ranking {
        let order = self.order();
        let intervals: Vec<_> = (0..self.agents()).map(|agent| self.interval(AgentIndex(agent))).collect();
        let is_above = |one: AgentIndex, two: AgentIndex| intervals[one.0].low > intervals[two.0].high;
        let sorted = |mut ends: Vec<f64>| {
            ends.sort_by(f64::total_cmp);
            ends
        };
        let lows = sorted(intervals.iter().map(|interval| interval.low).collect());
        let highs = sorted(intervals.iter().map(|interval| interval.high).collect());
        let mut ranks: Vec<Rank> = intervals
            .iter()
            .map(|interval| Rank {
                place: 0,
                tie: 0,
                best: 1 + lows.len() - lows.partition_point(|low| *low <= interval.high),
                worst: highs.len() - highs.partition_point(|high| *high < interval.low),
            })
            .collect();
        let (mut head, mut tie) = (0, 0);
        for (place, agent) in order.iter().enumerate() {
            if is_above(order[head], *agent) {
                (head, tie) = (place, tie + 1);
            }
            let rank = &mut ranks[agent.0];
            (rank.place, rank.tie) = (head + 1, tie);
        }
        Ranking { order, ranks }
    }
}
