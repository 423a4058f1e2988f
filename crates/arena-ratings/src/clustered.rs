//! The mean of values that depend on each other within clusters, such as the scores of all games that share a seed.
//!
//! The standard error is the estimate CR2 of a model that has an intercept only (Bell and McCaffrey, 2002):
//! V = 1/n² Σ_g (Σ e)² / (1 − n_g/n), where e are the residuals of cluster g, n_g is its size and n is the number of
//! all values. Intervals use Student's t-distribution with G − 1 degrees of freedom for G clusters.
//!
//! # Values on a scale
//!
//! This interval is too narrow for rare events: if the event is in none of the clusters, its width is 0. If the values'
//! range is known ([`ClusteredMean::within`]), the interval is Student's after adding one virtual cluster at either end
//! of the range. Virtual observations are those of Agresti and Coull ("Approximate is better than 'exact' for interval
//! estimation of binomial proportions", 1998), with the number that Agresti and Caffo ("Simple and effective confidence
//! intervals for proportions and differences of proportions", 2000) add to each sample. A linear combination of several
//! means shares these two clusters equally among its means, as in Price and Bonett ("An improved confidence interval
//! for a linear function of binomial proportions", 2004). In simulations of rates from 0 to 35 % with 5 to 200 clusters,
//! at least 93 of 100 intervals contain the mean: see `tests/coverage.rs`.
//!
//! Without a known range, intervals are too narrow as well if a few clusters have most of the values. For example, if
//! three of twelve clusters are eight times as large as the others, 89 of 100 intervals contain the mean.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bradley_terry::Interval;
use crate::distributions::{LEVEL, student_outside, student_quantile};

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
    /// The range of the values; infinite if it is unknown.
    #[serde(skip)]
    scale: Interval,
    /// The number of clusters of equal size whose mean has the same error: n² / Σ n_g² (Kish, 1965).
    #[serde(skip)]
    equal_clusters: f64,
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

    /// Returns the mean of values that are between `low` and `high`, with the interval for such values. It is within
    /// this range.
    pub fn within(self, low: f64, high: f64) -> ClusteredMean {
        let bounded = ClusteredMean { scale: Interval { low, high }, ..self };
        ClusteredMean { interval: bounded.interval.and_then(|_| interval_of(&[(1.0, bounded)])), ..bounded }
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
        let squares: f64 = clusters.iter().map(|cluster| (cluster.count as f64).powi(2)).sum();
        let found = ClusteredMean {
            values,
            clusters: clusters.len(),
            mean,
            error,
            freedom: clusters.len() as f64 - 1.0,
            interval: None,
            clusters_missing: MIN_CLUSTERS.saturating_sub(clusters.len()),
            scale: Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
            equal_clusters: count * count / squares,
        };
        let interval = interval_of(&[(1.0, found)]).filter(|_| clusters.len() >= MIN_CLUSTERS);
        Some(ClusteredMean { interval, ..found })
    }

    /// Computes the mean of means with equal weights, such as the mean over several challenges. The means are
    /// independent. The degrees of freedom are those of Welch and Satterthwaite. `clusters` is the smallest number of
    /// clusters. `None` without means.
    pub fn equal_weights(means: &[ClusteredMean]) -> Option<ClusteredMean> {
        let weight = 1.0 / means.len() as f64;
        combination(&means.iter().map(|mean| (weight, *mean)).collect::<Vec<_>>())
    }

    /// Computes the difference of two independent means: `self` minus `other`. `values` is the sum of both, and
    /// `clusters` the smaller number.
    pub fn minus(&self, other: &ClusteredMean) -> ClusteredMean {
        combination(&[(1.0, *self), (-1.0, *other)]).expect("two means")
    }

    /// Returns the estimate of the mean, its variance and the variance's degrees of freedom, after adding `count`
    /// virtual clusters at either end of the scale. An infinite scale has no virtual clusters.
    fn with_virtual(&self, count: f64) -> Option<[f64; 3]> {
        let (Interval { low, high }, own, variance) = (self.scale, self.equal_clusters, self.error?.powi(2));
        if !(high - low).is_finite() {
            return Some([self.mean, variance, self.freedom]);
        }
        let all = own + 2.0 * count;
        let center = (own * self.mean + count * (low + high)) / all;
        let square = |value: f64| (value - center).powi(2);
        // The sum of the clusters' squared distances from the center.
        let squares = variance * own * (own - 1.0) + own * square(self.mean) + count * (square(low) + square(high));
        Some([center, squares / (all * (all - 1.0)), all - 1.0])
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

/// Returns the sum of independent means with these weights. `None` without means.
fn combination(means: &[(f64, ClusteredMean)]) -> Option<ClusteredMean> {
    let clusters = means.iter().map(|(_, mean)| mean.clusters).min()?;
    let errors: Option<Vec<[f64; 2]>> =
        means.iter().map(|(weight, mean)| Some([(weight * mean.error?).powi(2), mean.freedom])).collect();
    Some(ClusteredMean {
        values: means.iter().map(|(_, mean)| mean.values).sum(),
        clusters,
        mean: means.iter().map(|(weight, mean)| weight * mean.mean).sum(),
        error: errors.as_ref().map(|errors| errors.iter().map(|[variance, _]| variance).sum::<f64>().sqrt()),
        freedom: errors.map_or(0.0, |errors| satterthwaite(&errors)),
        interval: interval_of(means).filter(|_| clusters >= MIN_CLUSTERS),
        clusters_missing: MIN_CLUSTERS.saturating_sub(clusters),
        scale: scale_of(means),
        equal_clusters: means.iter().map(|(_, mean)| mean.equal_clusters).sum(),
    })
}

/// Returns the range of a sum of means with these weights.
fn scale_of(means: &[(f64, ClusteredMean)]) -> Interval {
    let ends = means.iter().map(|(weight, mean)| [weight * mean.scale.low, weight * mean.scale.high]);
    let start = Interval { low: 0.0, high: 0.0 };
    ends.fold(start, |sum, [one, two]| Interval { low: sum.low + one.min(two), high: sum.high + one.max(two) })
}

/// Returns the 95 % interval of a sum of independent means with these weights: see the documentation of this module.
/// `None` if a mean has no error.
pub(crate) fn interval_of(means: &[(f64, ClusteredMean)]) -> Option<Interval> {
    let share = 1.0 / means.len() as f64;
    let (mut mean, mut center, mut variances) = (0.0, 0.0, Vec::new());
    for (weight, of) in means {
        let [own, variance, freedom] = of.with_virtual(share)?;
        mean += weight * of.mean;
        center += weight * own;
        variances.push([weight * weight * variance, freedom]);
    }
    let error = variances.iter().map(|[variance, _]| variance).sum::<f64>().sqrt();
    let reach = if error > 0.0 { student_quantile(satterthwaite(&variances)) * error } else { 0.0 };
    let scale = scale_of(means);
    Some(Interval { low: (center - reach).max(scale.low).min(mean), high: (center + reach).min(scale.high).max(mean) })
}

/// Returns the degrees of freedom of a sum of independent variances, each with its degrees of freedom. If all variances
/// are 0, returns the sum of the degrees.
fn satterthwaite(variances: &[[f64; 2]]) -> f64 {
    let sum: f64 = variances.iter().map(|[variance, _]| variance).sum();
    let parts: f64 = variances.iter().map(|[variance, freedom]| variance * variance / freedom).sum();
    if parts > 0.0 { sum * sum / parts } else { variances.iter().map(|[_, freedom]| freedom).sum() }
}

/// Returns the exact upper 95 % bound, one-sided, of the rate of an event that was in none of `count` independent
/// trials: the rate at which this has probability 0.05 (Clopper and Pearson, "The use of confidence or fiducial limits
/// illustrated in the case of the binomial", 1934).
pub fn bound_without_events(count: usize) -> f64 {
    1.0 - (1.0 - LEVEL).powf(1.0 / count as f64)
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
    fn a_scale_adds_a_cluster_at_either_end() {
        // From scipy: stats.t.interval(0.95, 11, mean, sem) of the values with the two ends of the scale.
        let values = [1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.25, 0.0];
        for (scale, low, high) in [((-1.0, 1.0), -0.138_445, 0.596_778), ((0.0, 1.0), 0.032_215, 0.592_785)] {
            let interval = ClusteredMean::of((0..).zip(values)).unwrap().within(scale.0, scale.1).interval.unwrap();
            assert!((interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6, "{interval:?}");
        }
        // The interval ends with the scale, and contains the mean.
        for (value, low, high) in [(0.0, 0.0, 0.266_749), (1.0, 0.733_251, 1.0)] {
            let interval = ClusteredMean::of((0..40).map(|at| (at % 10, value))).unwrap().within(0.0, 1.0).interval;
            let interval = interval.unwrap();
            assert!((interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6, "{interval:?}");
        }
        assert_eq!(ClusteredMean::of((0..40).map(|at| (at % 9, 1.0))).unwrap().within(0.0, 1.0).interval, None);
    }

    #[test]
    fn a_rate_without_events_is_bounded() {
        // scipy: stats.beta.ppf(0.95, 1, count).
        for (count, bound) in [(1, 0.95), (10, 0.258_865_6), (20, 0.139_108_3), (300, 0.009_936_1)] {
            assert!((bound_without_events(count) - bound).abs() < 1e-7, "{count}: {}", bound_without_events(count));
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
