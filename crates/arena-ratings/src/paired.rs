//! Differences of two agents in matched games: the same seed, opponents and seat. Matching removes the variation of
//! seeds, opponents and seats from the difference.

use std::collections::BTreeMap;

use crate::clustered::{Cluster, ClusteredMean, MIN_CLUSTERS, cluster};
use crate::permutation::sign_flips;

/// The mean difference of two agents.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedDifference {
    /// The mean of the first agent's values minus the matched values of the second agent. `values` counts the matched
    /// pairs of games.
    pub mean: ClusteredMean,
    /// The sum of the differences in each cluster, in ascending order of the clusters' numbers.
    sums: Vec<f64>,
}

impl PairedDifference {
    /// Matches the values of two agents that have equal keys, and computes the difference. `cluster_of` returns the
    /// cluster of a key, such as its seed. Several values with one key are averaged. `None` if no keys are equal.
    pub fn of<K: Ord>(
        first: impl IntoIterator<Item = (K, f64)>,
        second: impl IntoIterator<Item = (K, f64)>,
        cluster_of: impl Fn(&K) -> u64,
    ) -> Option<PairedDifference> {
        let (first, second) = (by_key(first), by_key(second));
        let differences = first.iter().filter_map(|(key, one)| {
            let two = second.get(key)?;
            Some((cluster_of(key), one.sum / one.count as f64 - two.sum / two.count as f64))
        });
        let clusters = cluster(differences);
        let mean = ClusteredMean::of_clusters(&clusters)?;
        Some(PairedDifference { mean, sums: clusters.iter().map(|cluster| cluster.sum).collect() })
    }

    /// Returns the part of each cluster in the mean difference. The parts add up to the mean.
    pub fn parts(&self) -> Vec<f64> {
        let count = self.mean.values as f64;
        self.sums.iter().map(|sum| sum / count).collect()
    }

    /// Returns the two-sided p value of the hypothesis that the agents are equal: by Student's t-distribution, or by
    /// sign flips if the differences of all clusters are the same. `None` below [`MIN_CLUSTERS`] clusters. `random`
    /// returns random words.
    pub fn p_value(&self, random: &mut dyn FnMut() -> u64) -> Option<f64> {
        if self.mean.clusters < MIN_CLUSTERS {
            return None;
        }
        self.mean.p_value().or_else(|| Some(self.sign_flip_p_value(random)))
    }

    /// Returns the two-sided p value by flips of the signs of whole clusters: see [`sign_flips`].
    pub fn sign_flip_p_value(&self, random: &mut dyn FnMut() -> u64) -> f64 {
        sign_flips(&self.sums, random)
    }
}

fn by_key<K: Ord>(values: impl IntoIterator<Item = (K, f64)>) -> BTreeMap<K, Cluster> {
    let mut keys: BTreeMap<K, Cluster> = BTreeMap::new();
    for (key, value) in values {
        let entry = keys.entry(key).or_default();
        entry.count += 1;
        entry.sum += value;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn values_are_matched_by_key() {
        let first = [((0, 'a'), 1.0), ((0, 'b'), 2.0), ((1, 'a'), 5.0), ((2, 'a'), 9.0), ((0, 'a'), 3.0)];
        let second = [((0, 'a'), 0.5), ((1, 'a'), 1.0), ((1, 'b'), 7.0)];
        let found = PairedDifference::of(first, second, |(seed, _)| *seed).unwrap();
        assert_eq!((found.mean.values, found.mean.clusters, found.mean.mean), (2, 2, 2.75));
        assert_eq!(found.sums, [1.5, 4.0]);
        assert_eq!(found.p_value(&mut || 0), None);
        assert_eq!(PairedDifference::of([(1, 1.0)], [(2, 1.0)], |key| *key), None);
    }

    #[test]
    fn matching_removes_the_variation_of_seeds() {
        let mut random = Random(3);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for seed in 0..20_u64 {
            let shared = 10.0 * random.normal();
            first.push((seed, shared + 0.5 + 0.1 * random.normal()));
            second.push((seed, shared + 0.1 * random.normal()));
        }
        let found = PairedDifference::of(first, second, |seed| *seed).unwrap();
        let interval = found.mean.interval.unwrap();
        assert!(interval.holds(0.5) && interval.high - interval.low < 0.3, "{interval:?}");
        assert!(found.p_value(&mut || 0).unwrap() < 1e-6);
    }

    #[test]
    fn equal_differences_have_the_p_value_of_sign_flips() {
        let values = |shift: f64| (0..10_u64).map(move |seed| (seed, shift));
        let found = PairedDifference::of(values(1.0), values(0.0), |seed| *seed).unwrap();
        assert_eq!(found.p_value(&mut || 0), Some(2.0 / 1024.0));
        let same = PairedDifference::of(values(1.0), values(1.0), |seed| *seed).unwrap();
        assert_eq!(same.p_value(&mut || 0), Some(1.0));
    }

    #[test]
    fn five_of_a_hundred_equal_agents_seem_different() {
        let mut random = Random(11);
        let (runs, mut student, mut flips) = (600, 0, 0);
        for _ in 0..runs {
            let mut values = || -> Vec<((u64, u64), f64)> {
                let mut values = Vec::new();
                for seed in 0..20 {
                    values.extend((0..1 + seed % 3).map(|seat| ((seed, seat), random.normal())));
                }
                values
            };
            let (first, second) = (values(), values());
            let found = PairedDifference::of(first, second, |(seed, _)| *seed).unwrap();
            student += u32::from(found.p_value(&mut || random.word()).unwrap() < 0.05);
            flips += u32::from(found.sign_flip_p_value(&mut || random.word()) < 0.05);
        }
        for (name, found) in [("t", student), ("flips", flips)] {
            let share = f64::from(found) / f64::from(runs);
            assert!((0.025..=0.08).contains(&share), "{name}: {share}");
        }
    }
}
