//! The coverage of intervals of rare events: by simulation, and exactly for events in whole clusters.
//!
//! `ARENA_COVERAGE_RUNS` is the number of simulations of each case. `cargo xtask soak coverage` has 20,000.

use crate::bradley_terry::Interval;
use crate::clustered::{Cluster, interval_of};
use crate::testing::Random;
use crate::{ClusteredMean, PairedDifference};

const LEAST: f64 = 0.93;
const RATES: [f64; 7] = [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
const FEWER_RATES: [f64; 4] = [0.005, 0.02, 0.1, 0.2];
const CLUSTERS: [usize; 4] = [5, 10, 20, 50];

/// The dependence of the values within a cluster.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Four values, of which each has the event independently.
    Independent,
    /// One to six values. In half of the clusters, all values are equal.
    Mixed,
    /// One value: 0.25 with a standard deviation of 0.05, or 1 in the case of the event.
    Noise,
}

impl Kind {
    fn truth(self, rate: f64) -> f64 {
        if matches!(self, Kind::Noise) { rate + (1.0 - rate) * 0.25 } else { rate }
    }

    fn cluster(self, rate: f64, random: &mut Random) -> Cluster {
        let is_equal = matches!(self, Kind::Mixed) && random.unit() < 0.5;
        let count = match self {
            Kind::Independent => 4,
            Kind::Mixed => 1 + random.word() as usize % 6,
            Kind::Noise => 1,
        };
        let event = |random: &mut Random| f64::from(random.unit() < rate);
        let first = event(random);
        let sum = match self {
            Kind::Noise if first == 0.0 => 0.25 + 0.05 * random.normal(),
            _ if is_equal => first * count as f64,
            _ => first + (1..count).map(|_| event(random)).sum::<f64>(),
        };
        Cluster { count, sum }
    }

    fn mean(self, clusters: usize, rate: f64, random: &mut Random) -> ClusteredMean {
        let clusters: Vec<Cluster> = (0..clusters).map(|_| self.cluster(rate, random)).collect();
        ClusteredMean::of_clusters(&clusters).unwrap().within(0.0, 1.0)
    }
}

/// Simulates intervals of `truth`, and requires the least coverage.
fn check(case: &str, truth: f64, mut simulate: impl FnMut(&mut Random) -> Interval) {
    let runs: u32 = option_env!("ARENA_COVERAGE_RUNS").map_or(250, |runs| runs.parse().unwrap());
    // The streams of different cases begin at different places.
    let start = case.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut random = Random(start);
    let held = (0..runs)
        .filter(|_| {
            let interval = simulate(&mut random);
            interval.low - 1e-12 <= truth && truth <= interval.high + 1e-12
        })
        .count();
    let found = held as f64 / f64::from(runs);
    assert!(found >= LEAST, "{found} of intervals contain the mean: {case}");
}

#[test]
fn intervals_of_events_in_whole_clusters_contain_the_rate() {
    for clusters in [5, 10, 15, 20, 30, 50, 100, 200] {
        let interval = |events: usize| {
            let cluster = |at: usize| Cluster { count: 3, sum: if at < events { 3.0 } else { 0.0 } };
            let all: Vec<Cluster> = (0..clusters).map(cluster).collect();
            interval_of(&[(1.0, ClusteredMean::of_clusters(&all).unwrap().within(0.0, 1.0))]).unwrap()
        };
        let intervals: Vec<Interval> = (0..=clusters).map(interval).collect();
        for thousandth in 0..=350 {
            let rate = f64::from(thousandth) / 1000.0;
            let (mut chance, mut found) = ((1.0 - rate).powi(clusters as i32), 0.0);
            for (events, interval) in intervals.iter().enumerate() {
                found += if interval.holds(rate) { chance } else { 0.0 };
                chance *= (clusters - events) as f64 / (events + 1) as f64 * rate / (1.0 - rate);
            }
            assert!(found >= LEAST, "{clusters} clusters, rate {rate}: {found}");
        }
    }
}

#[test]
fn intervals_of_means_contain_them() {
    for kind in [Kind::Independent, Kind::Mixed, Kind::Noise] {
        for (clusters, rate) in CLUSTERS.into_iter().flat_map(|clusters| RATES.map(|rate| (clusters, rate))) {
            check(&format!("{kind:?}, {clusters} clusters, rate {rate}"), kind.truth(rate), |random| {
                interval_of(&[(1.0, kind.mean(clusters, rate, random))]).unwrap()
            });
        }
    }
}

#[test]
fn intervals_of_paired_differences_contain_them() {
    // In seven of ten clusters, chance is the same for both values of the pair.
    for shared in [0.0, 0.7] {
        for (clusters, one) in [10, 50].into_iter().flat_map(|clusters| FEWER_RATES.map(|rate| (clusters, rate))) {
            for two in [0.0, 0.02, 0.2] {
                check(&format!("shared {shared}, {clusters} clusters, rates {one} and {two}"), one - two, |random| {
                    let pair = |random: &mut Random| {
                        let first = random.unit();
                        let second = if random.unit() < shared { first } else { random.unit() };
                        Cluster { count: 1, sum: f64::from(first < one) - f64::from(second < two) }
                    };
                    let pairs: Vec<Cluster> = (0..clusters).map(|_| pair(random)).collect();
                    ClusteredMean::of_clusters(&pairs).unwrap().within(-1.0, 1.0).interval.unwrap()
                });
            }
        }
    }
}

#[test]
fn equal_agents_with_rare_events_seem_different_in_one_of_twenty_simulations() {
    let mut random = Random(5);
    for (clusters, rate) in [10, 20, 50].into_iter().flat_map(|clusters| FEWER_RATES.map(|rate| (clusters, rate))) {
        let mut wrong = 0;
        for _ in 0..400 {
            let mut agent = |number: u64| -> Vec<(u64, f64)> {
                (0..number).map(|at| (at, Kind::Independent.cluster(rate, &mut random).sum)).collect()
            };
            let (one, two) = (agent(clusters), agent(clusters));
            let found = PairedDifference::of(one, two, |key| *key).unwrap();
            wrong += u32::from(found.p_value(&mut || random.word()).unwrap() < 0.05);
        }
        // Two standard errors above 5 %.
        assert!(wrong <= 29, "{clusters} clusters, rate {rate}: {wrong}");
    }
}

#[test]
fn intervals_of_several_means_contain_their_combination() {
    for (means, kind) in [2, 10].into_iter().flat_map(|means| [(means, Kind::Mixed), (means, Kind::Noise)]) {
        for (clusters, rate) in [10, 50].into_iter().flat_map(|clusters| FEWER_RATES.map(|rate| (clusters, rate))) {
            let case = format!("{means} of {kind:?}, {clusters} clusters, rate {rate}");
            check(&case, kind.truth(rate), |random| {
                let all: Vec<ClusteredMean> = (0..means).map(|_| kind.mean(clusters, rate, random)).collect();
                ClusteredMean::equal_weights(&all).unwrap().interval.unwrap()
            });
            check(&format!("difference, {case}"), 0.0, |random| {
                kind.mean(clusters, rate, random).minus(&kind.mean(clusters, rate, random)).interval.unwrap()
            });
        }
    }
}

#[test]
fn intervals_of_spread_values_are_little_wider_than_students() {
    let mut random = Random(3);
    for (deviation, most) in [(0.15, 1.2), (0.2, 1.15), (0.3, 1.1)] {
        let values: Vec<f64> = (0..50).map(|_| (0.5 + deviation * random.normal()).clamp(0.0, 1.0)).collect();
        let student = ClusteredMean::of((0..).zip(values)).unwrap();
        let [plain, within] = [student, student.within(0.0, 1.0)].map(|mean| {
            let interval = mean.interval.unwrap();
            interval.high - interval.low
        });
        assert!(within / plain <= most, "{deviation}: {within} {plain}");
    }
}
