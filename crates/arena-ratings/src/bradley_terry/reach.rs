//! Who has points from whom, directly or through others. It decides what the results bound: the difference of two agents
//! can be as large as one likes, as far as the results say, unless the lesser one has points from the greater one by some
//! way (Ford, 1957).

use super::pairs::Meeting;

/// Who has points from whom.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    agents: usize,
    /// Row by row: the agents that have points, by some way, from the agent of the row; it is among them itself.
    above: Vec<u64>,
    words: usize,
    /// Whether each agent belongs to a largest group in which everybody has points from everybody.
    core: Vec<bool>,
}

impl Reach {
    pub(super) fn new(agents: usize, meetings: &[Meeting]) -> Reach {
        let mut takers: Vec<Vec<usize>> = vec![Vec::new(); agents];
        for meeting in meetings {
            let [won, tied, lost] = meeting.counts.map(|count| count > 0.0);
            if won || tied {
                takers[meeting.second].push(meeting.first);
            }
            if lost || tied {
                takers[meeting.first].push(meeting.second);
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

    /// Whether `agent` has points from `of`, by some way.
    fn is_above(&self, agent: usize, of: usize) -> bool {
        self.above[of * self.words + agent / 64] >> (agent % 64) & 1 == 1
    }

    fn are_tied(&self, one: usize, two: usize) -> bool {
        self.is_above(one, two) && self.is_above(two, one)
    }

    /// Whether the results bound from above by how much `one` is stronger than `two`.
    pub(super) fn bounds(&self, one: usize, two: usize) -> bool {
        self.is_above(two, one)
    }

    /// The agents against whose mean ratings are given.
    pub(super) fn core(&self) -> &[bool] {
        &self.core
    }

    /// Whether the results bound an agent's strength against the core, from below and from above.
    pub(super) fn bounds_against_core(&self, agent: usize) -> [bool; 2] {
        let core = || (0..self.agents).filter(|other| self.core[*other]);
        [core().all(|other| self.is_above(agent, other)), core().all(|other| self.is_above(other, agent))]
    }

    /// Whether all are tied to all, so that there is a maximum of likelihood.
    pub(super) fn is_whole(&self) -> bool {
        (1..self.agents).all(|agent| self.are_tied(0, agent))
    }
}
