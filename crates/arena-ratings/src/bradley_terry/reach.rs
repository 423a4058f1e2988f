//! The relation "has won points from", directly or through a chain of agents. The relation determines the bounded
//! intervals: results bound the strength of A minus that of B from above only if B has won points from A, directly or
//! through a chain (Ford, 1957).

use super::pairs::PairCounts;

/// The transitive closure of the relation "has won points from".
#[derive(Debug, Clone)]
pub(super) struct Reach {
    agents: usize,
    /// A bit matrix. The row of an agent marks the agents that have won points from it, directly or through a chain,
    /// and the agent itself.
    above: Vec<u64>,
    words: usize,
    /// True for each agent of the largest groups in which each agent has won points from every other, directly or
    /// through a chain.
    core: Vec<bool>,
}

impl Reach {
    pub(super) fn new(agents: usize, pairs: &[PairCounts]) -> Reach {
        let mut takers: Vec<Vec<usize>> = vec![Vec::new(); agents];
        for pair in pairs {
            let [won, tied, lost] = pair.counts.map(|count| count > 0.0);
            if won || tied {
                takers[pair.second].push(pair.first);
            }
            if lost || tied {
                takers[pair.first].push(pair.second);
            }
        }
        let words = agents.div_ceil(64);
        let mut reach = Reach { agents, above: vec![0; words * agents], words, core: vec![false; agents] };
        let mut waiting = Vec::new();
        for agent in 0..agents {
            reach.mark(agent, agent);
            waiting.push(agent);
            while let Some(at) = waiting.pop() {
                for &taker in &takers[at] {
                    if !reach.is_above(taker, agent) {
                        reach.mark(agent, taker);
                        waiting.push(taker);
                    }
                }
            }
        }
        let sizes: Vec<usize> =
            (0..agents).map(|agent| (0..agents).filter(|other| reach.are_tied(agent, *other)).count()).collect();
        let largest = sizes.iter().copied().max().unwrap_or(0);
        reach.core = sizes.iter().map(|size| *size == largest).collect();
        reach
    }

    fn mark(&mut self, of: usize, agent: usize) {
        self.above[of * self.words + agent / 64] |= 1 << (agent % 64);
    }

    /// Returns true if `agent` has won points from `of`, directly or through a chain.
    fn is_above(&self, agent: usize, of: usize) -> bool {
        self.above[of * self.words + agent / 64] >> (agent % 64) & 1 == 1
    }

    fn are_tied(&self, one: usize, two: usize) -> bool {
        self.is_above(one, two) && self.is_above(two, one)
    }

    /// Returns true if the results give an upper bound for the strength of `one` minus that of `two`.
    pub(super) fn bounds(&self, one: usize, two: usize) -> bool {
        self.is_above(two, one)
    }

    /// Returns the core as a flag for each agent. Ratings are relative to the core's mean.
    pub(super) fn core(&self) -> &[bool] {
        &self.core
    }

    /// Returns two flags: true if the results bound an agent's strength against the core from below, and from above.
    pub(super) fn bounds_against_core(&self, agent: usize) -> [bool; 2] {
        let core = || (0..self.agents).filter(|other| self.core[*other]);
        [core().all(|other| self.is_above(agent, other)), core().all(|other| self.is_above(other, agent))]
    }

    /// Returns true if each agent has won points from every other, directly or through a chain. Then the likelihood has
    /// a maximum.
    pub(super) fn is_whole(&self) -> bool {
        (1..self.agents).all(|agent| self.are_tied(0, agent))
    }
}
