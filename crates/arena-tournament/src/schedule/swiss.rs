//! Swiss format: each round pairs agents with similar points, without rematches if possible.

use std::collections::BTreeMap;

use super::{Scheduled, Scheduler, halves};
use crate::format::FormatInfo;
use crate::matching::Matching;
use crate::shape::Shape;

pub const SWISS: FormatInfo = FormatInfo {
    name: "swiss",
    help: "Agents with similar points play each other, without rematches if possible",
    rounds: "rounds",
    is_adaptive: false,
    is_of_pairs: true,
    // With fewer rounds, several agents could finish with only wins.
    usual_rounds: |agents| agents.max(2).next_power_of_two().trailing_zeros() as usize,
    meetings: |shape| Some(shape.agents as u64 / 2),
    check: |_| Ok(()),
    start: Some(|_, order| Box::new(Swiss { order, round: 0 })),
};

#[derive(Debug, Clone)]
struct Swiss {
    /// The agents, in the order of the draw, which breaks ties.
    order: Vec<usize>,
    round: usize,
}

/// The standings before a round.
struct Field<'a> {
    /// The agents, the best first.
    agents: Vec<usize>,
    /// The half points, by agent.
    halves: Vec<u64>,
    met: &'a BTreeMap<(usize, usize), usize>,
}

impl Scheduler for Swiss {
    fn pair(&mut self, shape: &Shape, results: &[Option<Vec<usize>>], _: &[Option<usize>], scheduled: &mut Scheduled) {
        if self.round == shape.rounds {
            return;
        }
        self.round += 1;
        let mut met: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut points: Vec<u64> =
            scheduled.byes.iter().map(|byes| (byes * shape.games_a_meeting() * 2) as u64).collect();
        // For each agent, the number of games on the first seat minus the number on the second seat.
        let mut firsts = vec![0i64; shape.agents];
        let mut last_meeting = 0;
        for (pairing, ranks) in scheduled.pairings.iter().zip(results) {
            let (a, b) = (pairing.agents[0], pairing.agents[1]);
            for (seat, ranks) in ranks.iter().flat_map(|ranks| [(0, ranks), (1, ranks)]) {
                points[pairing.agents[seat]] += halves(ranks, seat);
            }
            firsts[a] += 1;
            firsts[b] -= 1;
            if pairing.meeting != last_meeting {
                last_meeting = pairing.meeting;
                *met.entry((a.min(b), a.max(b))).or_default() += 1;
            }
        }
        // The sort is stable: agents with equal points stay in the order of the draw.
        let mut agents = self.order.clone();
        agents.sort_by_key(|agent| std::cmp::Reverse(points[*agent]));
        let field = Field { agents, halves: points, met: &met };
        let (bye, pairs) = field.pair(&scheduled.byes);
        if let Some(agent) = bye {
            scheduled.byes[agent] += 1;
        }
        for (a, b) in pairs {
            let pair = if firsts[a] > firsts[b] { [b, a] } else { [a, b] };
            scheduled.meet(self.round, &pair);
        }
    }
}

impl Field<'_> {
    fn met(&self, a: usize, b: usize) -> usize {
        self.met.get(&(a.min(b), a.max(b))).copied().unwrap_or(0)
    }

    /// Returns the agent with a bye, if any, and the pairs.
    fn pair(&self, byes: &[usize]) -> (Option<usize>, Vec<(usize, usize)>) {
        // The search first permits no earlier meetings of a pair, then one, and so on.
        for most in 0.. {
            if self.agents.len().is_multiple_of(2) {
                if let Some(pairs) = self.pair_all(&self.agents, most) {
                    return (None, pairs);
                }
                continue;
            }
            // The bye goes to the lowest-ranked agent among those with the fewest byes for which a pairing of the
            // others exists.
            let least = byes.iter().min().copied().unwrap_or(0);
            for bye in self.agents.iter().rev().filter(|agent| byes[**agent] == least) {
                let rest: Vec<usize> = self.agents.iter().copied().filter(|agent| agent != bye).collect();
                if let Some(pairs) = self.pair_all(&rest, most) {
                    return (Some(*bye), pairs);
                }
            }
        }
        unreachable!("a pairing exists once rematches are allowed often enough")
    }

    /// Pairs these agents, which are sorted from the best, without pairs that have played each other more than `most`
    /// times. `None` if there is no such pairing.
    fn pair_all(&self, agents: &[usize], most: usize) -> Option<Vec<(usize, usize)>> {
        let mut matching = Matching::of(agents.len(), |a, b| self.met(agents[a], agents[b]) <= most);
        if !matching.is_perfect() {
            return None;
        }
        let mut pairs = Vec::new();
        let mut left: Vec<usize> = (0..agents.len()).collect();
        while let Some(&top) = left.first() {
            let of = |place: usize| self.halves[agents[place]];
            // Within a group of equal points, the upper half plays the lower half.
            let group = left.iter().filter(|place| of(**place) == of(top)).count();
            let mut others: Vec<(usize, usize)> = left.iter().copied().enumerate().skip(1).collect();
            others.sort_by_key(|(at, place)| {
                let met = self.met(agents[top], agents[*place]);
                (met, of(*place).abs_diff(of(top)), at.abs_diff((group / 2).max(1)))
            });
            let found = others.into_iter().map(|(_, place)| place).find(|place| matching.take(top, *place));
            let other = found.expect("a perfect matching pairs every agent");
            pairs.push((agents[top], agents[other]));
            left.retain(|place| *place != top && *place != other);
        }
        Some(pairs)
    }
}
