//! The mean of values that depend on each other within clusters, such as the scores of all games that share a seed.
//!
//! The standard error is the estimate CR2 of a model that has an intercept only (Bell and McCaffrey, 2002):
//! V = 1/n² Σ_g (Σ e)² / (1 − n_g/n), where e are the residuals of cluster g, n_g is its size and n is the number of
//! all values. Intervals use Student's t-distribution with G − 1 degrees of freedom for G clusters.
//!
//! If a few clusters have most of the values, intervals are too narrow. For example, if three of twelve clusters are
//! eight times as large as the others, 89 of 100 intervals contain the mean.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bradley_terry::Interval;
use crate::distributions::{student_outside, student_quantile};

/// The smallest number of clusters with an interval. With fewer clusters, the estimated error is too uncertain.
pub const MIN_CLUSTERS: usize = 10;

/// A mean with its error over clusters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusteredMean {
    pub values: usize,
    pub clusters: usize,
    pub mean: f64,
    /// The standard error of the mean; `None` with a single cluster.
    pub error: Option<f64>,
    /// The degrees of freedom of the error.
    pub freedom: f64,
    /// The 95 % interval of the mean; `None` below [`MIN_CLUSTERS`] clusters.
    pub interval: Option<Interval>,
    /// The number of additional clusters that are needed for an interval; 0 if there is one.
    pub clusters_missing: usize,
}

/// The number and the sum of a cluster's values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cluster {
    pub(crate) count: usize,
    pub(crate) sum: f64,
}

/// Returns the clusters of these values, in ascending order of the clusters' numbers.
pub(crate) fn cluster(values: impl IntoIterator<Item = (u64, f64)>) -> Vec<Cluster> {
    let mut clusters: BTreeMap<u64, Cluster> = BTreeMap::new();
    for (number, value) in values {
        let cluster = clusters.entry(number).or_default();
        cluster.count += 1;
        cluster.sum += value;
    }
    clusters.into_values().collect()
}

impl ClusteredMean {
    /// Computes the mean of these values, each with the number of its cluster. `None` without values.
    pub fn of(values: impl IntoIterator<Item = (u64, f64)>) -> Option<ClusteredMean> {
        ClusteredMean::of_clusters(&cluster(values))
    }

    /// Computes the share of true values, each with the number of its cluster. The interval is Wilson's, for the number
    /// of independent values that have the same error, so it stays between 0 and 1. Without variation, each cluster
    /// counts as one value. `None` without values.
    pub fn share(values: impl IntoIterator<Item = (u64, bool)>) -> Option<ClusteredMean> {
        let share = ClusteredMean::of(values.into_iter().map(|(cluster, value)| (cluster, f64::from(value))))?;
        let ClusteredMean { mean, clusters, freedom, .. } = share;
        let variance = mean * (1.0 - mean);
        let interval = share.error.filter(|_| clusters >= MIN_CLUSTERS).map(|error| {
            let is_varied = error > 1e-12 && variance > 0.0;
            let count = if is_varied { (variance / error.powi(2)).min(share.values as f64) } else { clusters as f64 };
            let square = student_quantile(freedom).powi(2) / count;
            let middle = mean + square / 2.0;
            let reach = (square * (variance + square / 4.0)).sqrt();
            let end = |end: f64| (end / (1.0 + square)).clamp(0.0, 1.0);
            Interval { low: end(middle - reach), high: end(middle + reach) }
        });
        Some(ClusteredMean { interval, ..share })
    }

    pub(crate) fn of_clusters(clusters: &[Cluster]) -> Option<ClusteredMean> {
        let values: usize = clusters.iter().map(|cluster| cluster.count).sum();
        if values == 0 {
            return None;
        }
        let count = values as f64;
        let mean = clusters.iter().map(|cluster| cluster.sum).sum::<f64>() / count;
        let share = |cluster: &Cluster| cluster.count as f64 / count;
        let of = |cluster: &Cluster| (cluster.sum - cluster.count as f64 * mean).powi(2) / (1.0 - share(cluster));
        let error = (clusters.len() > 1).then(|| clusters.iter().map(of).sum::<f64>().sqrt() / count);
        let freedom = clusters.len() as f64 - 1.0;
        Some(ClusteredMean::with(values, clusters.len(), mean, error, freedom))
    }

    /// Computes the mean of means with equal weights, such as the mean over several challenges. The means are
    /// independent. The degrees of freedom are those of Welch and Satterthwaite. `clusters` is the smallest number of
    /// clusters. `None` without means.
    pub fn equal_weights(means: &[ClusteredMean]) -> Option<ClusteredMean> {
        let clusters = means.iter().map(|mean| mean.clusters).min()?;
        let count = means.len() as f64;
        let values = means.iter().map(|mean| mean.values).sum();
        let mean = means.iter().map(|mean| mean.mean).sum::<f64>() / count;
        let variances: Option<Vec<f64>> = means.iter().map(|mean| mean.error.map(|error| error * error)).collect();
        let error = variances.as_ref().map(|variances| variances.iter().sum::<f64>().sqrt() / count);
        let freedom = variances.map_or(0.0, |variances| satterthwaite(&variances, means));
        Some(ClusteredMean::with(values, clusters, mean, error, freedom))
    }

    /// Computes the difference of two independent means: `self` minus `other`. `values` is the sum of both, and
    /// `clusters` the smaller number.
    pub fn minus(&self, other: &ClusteredMean) -> ClusteredMean {
        let variances = self.error.zip(other.error).map(|(one, two)| [one * one, two * two]);
        let error = variances.map(|[one, two]| (one + two).sqrt());
        let freedom = variances.map_or(0.0, |variances| satterthwaite(&variances, &[*self, *other]));
        let clusters = self.clusters.min(other.clusters);
        ClusteredMean::with(self.values + other.values, clusters, self.mean - other.mean, error, freedom)
    }

    fn with(values: usize, clusters: usize, mean: f64, error: Option<f64>, freedom: f64) -> ClusteredMean {
        let interval = error.filter(|_| clusters >= MIN_CLUSTERS).map(|error| {
            let reach = if error > 0.0 { student_quantile(freedom) * error } else { 0.0 };
            Interval { low: mean - reach, high: mean + reach }
        });
        let clusters_missing = MIN_CLUSTERS.saturating_sub(clusters);
        ClusteredMean { values, clusters, mean, error, freedom, interval, clusters_missing }
    }

    /// Returns the two-sided p value of the hypothesis that the mean is 0, by Student's t-distribution. `None` below
    /// [`MIN_CLUSTERS`] clusters, or if the clusters don't vary.
    pub fn p_value(&self) -> Option<f64> {
        // Equal clusters have an error of 0, apart from rounding errors.
        let least = 1e-12 * self.mean.abs();
        let error = self.error.filter(|error| self.clusters >= MIN_CLUSTERS && *error > least)?;
        Some(student_outside(self.mean / error, self.freedom))
    }
}

/// Returns the degrees of freedom of a sum of independent variances. If all variances are 0, returns the sum of the
/// means' degrees of freedom.
fn satterthwaite(variances: &[f64], means: &[ClusteredMean]) -> f64 {
    let sum: f64 = variances.iter().sum();
    let parts: f64 = variances.iter().zip(means).map(|(variance, mean)| variance * variance / mean.freedom).sum();
    if parts > 0.0 { sum * sum / parts } else { means.iter().map(|mean| mean.freedom).sum() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn clusters_of_one_value_give_students_interval() {
        // From R: t.test(c(1, 2, 4, 5, 3, 6, 2, 4, 5, 8)).
        let values = [1.0, 2.0, 4.0, 5.0, 3.0, 6.0, 2.0, 4.0, 5.0, 8.0];
        let mean = ClusteredMean::of((0..).zip(values)).unwrap();
        let plain = crate::Mean::of(&values, 1).unwrap();
        let interval = mean.interval.unwrap();
        assert!((interval.low - plain.low).abs() < 1e-12 && (interval.high - plain.high).abs() < 1e-12, "{mean:?}");
        assert_eq!((mean.values, mean.clusters, mean.freedom, mean.clusters_missing), (10, 10, 9.0, 0));
    }

    #[test]
    fn few_clusters_have_no_interval() {
        for (clusters, missing) in [(1, 9), (2, 8), (9, 1), (10, 0), (11, 0)] {
            let mean = ClusteredMean::of((0..40).map(|at| (at % clusters, at as f64))).unwrap();
            assert_eq!((mean.interval.is_some(), mean.clusters_missing), (missing == 0, missing), "{clusters}");
            assert_eq!(mean.error.is_some(), clusters > 1);
            assert_eq!(mean.p_value().is_some(), missing == 0);
        }
        assert_eq!(ClusteredMean::of([]), None);
        assert_eq!(ClusteredMean::equal_weights(&[]), None);
    }

    #[test]
    fn equal_values_have_an_interval_of_no_width() {
        let mean = ClusteredMean::of((0..30).map(|at| (at % 15, 0.5))).unwrap();
        assert_eq!(mean.interval, Some(Interval { low: 0.5, high: 0.5 }));
        assert_eq!(mean.p_value(), None);
        let difference = mean.minus(&mean);
        assert_eq!((difference.mean, difference.freedom), (0.0, 28.0));
    }

    /// Returns the share of simulated intervals that contain the true mean 0. The sizes of the clusters repeat.
    fn coverage(clusters: u64, sizes: &[u64], skewed: bool) -> f64 {
        let mut random = Random(clusters * 1_000 + sizes.len() as u64);
        let (runs, mut hits) = (4_000, 0);
        for _ in 0..runs {
            let mut values = Vec::new();
            for number in 0..clusters {
                // The values of a cluster share half of their variance.
                let shared = if skewed { -(random.unit().ln()) - 1.0 } else { random.normal() };
                for _ in 0..sizes[number as usize % sizes.len()] {
                    values.push((number, shared + random.normal()));
                }
            }
            hits += usize::from(ClusteredMean::of(values).unwrap().interval.unwrap().holds(0.0));
        }
        hits as f64 / f64::from(runs)
    }

    #[test]
    fn intervals_hold_the_mean_in_95_of_100_simulations() {
        for (clusters, sizes, skewed) in [
            (10, &[4][..], false),
            (20, &[4], false),
            (20, &[1, 2, 3, 4, 5, 6], false),
            (40, &[2, 3, 4], true),
            (80, &[1, 2, 8], false),
        ] {
            let found = coverage(clusters, sizes, skewed);
            assert!((0.93..=0.97).contains(&found), "{clusters} {sizes:?}: {found}");
        }
    }

    #[test]
    fn a_share_has_an_interval_between_0_and_1() {
        for (value, low, high) in [(false, 0.0, 0.338), (true, 0.662, 1.0)] {
            let share = ClusteredMean::share((0..40).map(|at| (at % 10, value))).unwrap();
            let interval = share.interval.unwrap();
            // Wilson's interval of 0 of 10 values, with Student's quantile for 9 degrees of freedom.
            assert!((interval.low - low).abs() < 1e-3 && (interval.high - high).abs() < 1e-3, "{interval:?}");
        }
        assert_eq!(ClusteredMean::share((0..40).map(|at| (at % 9, true))).unwrap().interval, None);
        assert_eq!(ClusteredMean::share([]), None);
    }

    #[test]
    fn intervals_hold_the_share_in_95_of_100_simulations() {
        // In half of the simulations, all values of a cluster are equal.
        for (clusters, share, is_equal) in [(10, 0.3, false), (20, 0.1, false), (20, 0.5, true), (40, 0.1, true)] {
            let mut random = Random(clusters + 7);
            let (runs, mut hits) = (4_000, 0);
            for _ in 0..runs {
                let mut values = Vec::new();
                for number in 0..clusters {
                    let first = random.unit() < share;
                    for _ in 0..4 {
                        values.push((number, if is_equal { first } else { random.unit() < share }));
                    }
                }
                hits += usize::from(ClusteredMean::share(values).unwrap().interval.unwrap().holds(share));
            }
            let found = hits as f64 / f64::from(runs);
            assert!((0.93..=0.99).contains(&found), "{clusters} {share} {is_equal}: {found}");
        }
    }

    #[test]
    fn independent_values_would_be_overconfident_in_clusters() {
        // The same data as one cluster per value: the interval is too narrow, which the test of coverage can see.
        let mut random = Random(5);
        let mut hits = 0;
        for _ in 0..1_000 {
            let mut values = Vec::new();
            for _ in 0..20 {
                let shared = random.normal();
                values.extend((0..6).map(|_| shared + random.normal()));
            }
            hits += usize::from(ClusteredMean::of((0..).zip(values)).unwrap().interval.unwrap().holds(0.0));
        }
        assert!(hits < 800, "{hits}");
    }

    #[test]
    fn intervals_of_equal_weights_hold_the_mean() {
        let mut random = Random(9);
        let (runs, mut hits) = (4_000, 0);
        for _ in 0..runs {
            let means: Vec<ClusteredMean> = [(12, 0.2), (15, 1.0), (20, 3.0)]
                .into_iter()
                .map(|(clusters, deviation)| {
                    ClusteredMean::of((0..clusters).map(|number| (number, 1.0 + deviation * random.normal()))).unwrap()
                })
                .collect();
            hits += usize::from(ClusteredMean::equal_weights(&means).unwrap().interval.unwrap().holds(1.0));
        }
        let found = f64::from(u32::try_from(hits).unwrap()) / f64::from(runs);
        assert!((0.93..=0.97).contains(&found), "{found}");
    }
}
