//! Maximum matchings in graphs, by Edmonds's blossom algorithm. A breadth-first search finds augmenting paths from
//! unpaired nodes, and contracts each odd cycle to one node.
//!
//! Source: J. Edmonds, *Paths, Trees, and Flowers* (1965).

use std::collections::VecDeque;

/// A graph with a maximum matching.
pub struct Matching<A> {
    /// The predicate for edges: returns true if two nodes may be paired.
    allowed: A,
    mates: Vec<Option<usize>>,
    /// True for each removed node.
    gone: Vec<bool>,
}

impl<A: Fn(usize, usize) -> bool> Matching<A> {
    /// Creates a graph with the nodes `0..nodes`, and computes a maximum matching.
    pub fn of(nodes: usize, allowed: A) -> Matching<A> {
        let mut matching = Matching { allowed, mates: vec![None; nodes], gone: vec![false; nodes] };
        // A greedy matching pairs most nodes; augmenting paths pair the rest.
        for node in 0..nodes {
            if matching.mates[node].is_none() {
                let free =
                    (node + 1..nodes).find(|other| matching.mates[*other].is_none() && matching.can(node, *other));
                if let Some(other) = free {
                    matching.pair(node, other);
                }
            }
        }
        for node in 0..nodes {
            if matching.mates[node].is_none() {
                matching.augment(node);
            }
        }
        matching
    }

    /// Returns true if all remaining nodes are paired.
    pub fn is_perfect(&self) -> bool {
        (0..self.mates.len()).all(|node| self.gone[node] || self.mates[node].is_some())
    }

    /// Removes two matched nodes as a pair, if all other matched nodes can still be matched. A perfect matching stays
    /// perfect. Otherwise returns false and changes nothing.
    pub fn take(&mut self, a: usize, b: usize) -> bool {
        if self.gone[a] || self.gone[b] || !self.can(a, b) {
            return false;
        }
        let before = self.mates.clone();
        let left = [self.mates[a], self.mates[b]];
        self.gone[a] = true;
        self.gone[b] = true;
        if self.mates[a] == Some(b) {
            return true;
        }
        for node in left.into_iter().flatten() {
            self.mates[node] = None;
        }
        let is_paired = match left {
            [Some(node), Some(_)] => self.augment(node),
            _ => false,
        };
        if !is_paired {
            self.mates = before;
            self.gone[a] = false;
            self.gone[b] = false;
        }
        is_paired
    }

    fn can(&self, a: usize, b: usize) -> bool {
        a != b && !self.gone[a] && !self.gone[b] && (self.allowed)(a, b)
    }

    fn pair(&mut self, a: usize, b: usize) {
        self.mates[a] = Some(b);
        self.mates[b] = Some(a);
    }

    /// Searches for an augmenting path from `root`. If found, exchanges the pairs along it and returns true.
    fn augment(&mut self, root: usize) -> bool {
        let nodes = self.mates.len();
        let mut search = Search {
            parents: vec![None; nodes],
            bases: (0..nodes).collect(),
            seen: vec![false; nodes],
            queue: VecDeque::from([root]),
        };
        search.seen[root] = true;
        while let Some(node) = search.queue.pop_front() {
            for next in 0..nodes {
                if !self.can(node, next) || search.bases[node] == search.bases[next] || self.mates[node] == Some(next) {
                    continue;
                }
                let is_even = next == root || self.mates[next].is_some_and(|mate| search.parents[mate].is_some());
                if is_even {
                    search.contract(&self.mates, node, next);
                } else if search.parents[next].is_none() {
                    search.parents[next] = Some(node);
                    match self.mates[next] {
                        Some(mate) => {
                            search.seen[mate] = true;
                            search.queue.push_back(mate);
                        }
                        None => {
                            self.exchange(&search.parents, next);
                            return true;
                        }
                    }
                }
            }
        }
        false
    }

    /// Exchanges matched and unmatched edges along the augmenting path that ends at `node`.
    fn exchange(&mut self, parents: &[Option<usize>], node: usize) {
        let mut at = Some(node);
        while let Some(node) = at {
            let Some(parent) = parents[node] else { return };
            at = self.mates[parent];
            self.pair(node, parent);
        }
    }
}

struct Search {
    parents: Vec<Option<usize>>,
    /// For each node, the base of the contracted cycle that contains the node, or the node itself.
    bases: Vec<usize>,
    /// True for each node that an alternating path from the root reaches after an even number of edges.
    seen: Vec<bool>,
    queue: VecDeque<usize>,
}

impl Search {
    /// Contracts the odd cycle that arises from an edge between `a` and `b`, two nodes at even distance from the root.
    fn contract(&mut self, mates: &[Option<usize>], a: usize, b: usize) {
        let root = self.common_base(mates, a, b);
        let mut in_cycle = vec![false; mates.len()];
        self.mark(mates, &mut in_cycle, a, root, b);
        self.mark(mates, &mut in_cycle, b, root, a);
        for node in 0..mates.len() {
            if in_cycle[self.bases[node]] {
                self.bases[node] = root;
                if !self.seen[node] {
                    self.seen[node] = true;
                    self.queue.push_back(node);
                }
            }
        }
    }

    fn common_base(&self, mates: &[Option<usize>], a: usize, b: usize) -> usize {
        let up = |base: usize| mates[base].and_then(|mate| self.parents[mate]).map(|parent| self.bases[parent]);
        let mut above = vec![false; mates.len()];
        let mut at = Some(self.bases[a]);
        while let Some(base) = at {
            above[base] = true;
            at = up(base);
        }
        let mut base = self.bases[b];
        while !above[base] {
            base = up(base).expect("the paths of two even nodes meet at the root at the latest");
        }
        base
    }

    fn mark(&mut self, mates: &[Option<usize>], in_cycle: &mut [bool], from: usize, root: usize, child: usize) {
        let (mut node, mut child) = (from, child);
        while self.bases[node] != root {
            let mate = mates[node].expect("only the root of a search is unpaired");
            in_cycle[self.bases[node]] = true;
            in_cycle[self.bases[mate]] = true;
            self.parents[node] = Some(child);
            child = mate;
            node = self.parents[mate].expect("an odd node has a parent");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Returns true if a perfect matching of `nodes` exists. Tries all pairings.
    pub fn can_pair(nodes: &[usize], allowed: &dyn Fn(usize, usize) -> bool) -> bool {
        let Some((first, rest)) = nodes.split_first() else { return true };
        rest.iter().any(|other| {
            let left: Vec<usize> = rest.iter().copied().filter(|node| node != other).collect();
            allowed(*first, *other) && can_pair(&left, allowed)
        })
    }

    proptest! {
        #[test]
        fn all_are_paired_exactly_if_they_can_be(
            nodes in (0usize..=5).prop_map(|half| half * 2),
            edges in prop::collection::btree_set((0usize..10, 0usize..10), 0..30),
            takes in prop::collection::vec((0usize..10, 0usize..10), 0..6),
        ) {
            let edges: BTreeSet<(usize, usize)> = edges.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
            let allowed = |a: usize, b: usize| edges.contains(&(a, b));
            let mut left: Vec<usize> = (0..nodes).collect();
            let mut matching = Matching::of(nodes, allowed);
            prop_assert_eq!(matching.is_perfect(), can_pair(&left, &allowed));
            if !matching.is_perfect() {
                return Ok(());
            }
            for (a, b) in takes {
                let rest: Vec<usize> = left.iter().copied().filter(|node| *node != a && *node != b).collect();
                let can = a != b && left.contains(&a) && left.contains(&b) && allowed(a, b) && can_pair(&rest, &allowed);
                if a < nodes && b < nodes {
                    prop_assert_eq!(matching.take(a, b), can);
                    prop_assert!(matching.is_perfect());
                    left = if can { rest } else { left };
                }
            }
        }
    }
}
