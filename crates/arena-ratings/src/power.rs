//! The number of clusters, such as seeds, that a comparison needs.

use crate::clustered::MIN_CLUSTERS;
use crate::distributions::{Z, chi_density, normal_below, student_quantile};

/// The probability with which the planned comparison finds a true difference.
pub const POWER: f64 = 0.8;

/// The 80th percentile of the normal distribution.
const Z_POWER: f64 = 0.841_621_233_572_914_2;

/// The largest number of clusters that is planned.
const MOST: f64 = 1e9;

/// The number above which the normal distribution replaces Student's. The difference is below 0.1 %.
const MANY: f64 = 5_000.0;

/// Returns the probability that a two-sided t test at level 0.05 with this number of clusters finds a difference.
/// `effect` is the difference divided by the standard deviation between clusters. 0 for fewer than two clusters.
pub fn power(effect: f64, clusters: u64) -> f64 {
    if clusters < 2 {
        return 0.0;
    }
    let freedom = clusters as f64 - 1.0;
    let (shift, least) = (effect.abs() * (clusters as f64).sqrt(), student_quantile(freedom));
    // The noncentral t-distribution: the mean of normal tails over the distribution of the estimated deviation, by
    // Simpson's rule.
    const STEPS: u32 = 256;
    let deviation = (2.0 * freedom).sqrt().recip();
    let (low, high) = ((1.0 - 12.0 * deviation).max(0.0), 1.0 + 12.0 * deviation);
    let width = (high - low) / f64::from(STEPS);
    let mut sum = 0.0;
    for step in 0..=STEPS {
        let at = low + width * f64::from(step);
        let weight = if step == 0 || step == STEPS { 1.0 } else { 2.0 + 2.0 * f64::from(step % 2) };
        let found = normal_below(shift - least * at) + normal_below(-shift - least * at);
        sum += weight * found * chi_density(at, freedom);
    }
    (sum * width / 3.0).clamp(0.0, 1.0)
}

/// Returns the total number of clusters with which a difference of this size is found with the probability [`POWER`] at
/// level 0.05. `error` is the standard error of the difference with the present number of clusters; their variance is
/// assumed for all clusters. The number is at least [`MIN_CLUSTERS`].
///
/// `None` if the difference is 0, if a number isn't finite, or if more than 10⁹ clusters are needed.
pub fn clusters_needed(difference: f64, error: f64, clusters: usize) -> Option<u64> {
    let deviation = error * (clusters as f64).sqrt();
    if difference == 0.0 || !difference.is_finite() || !deviation.is_finite() {
        return None;
    }
    let effect = difference.abs() / deviation;
    // Student's distribution needs a few clusters more than the normal distribution.
    let normal = ((Z + Z_POWER) / effect).powi(2).ceil();
    if normal > MOST {
        return None;
    }
    let mut needed = (normal as u64).max(MIN_CLUSTERS as u64);
    while (needed as f64) < MANY && power(effect, needed) < POWER {
        needed += 1;
    }
    Some(needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clustered::ClusteredMean;
    use crate::testing::Random;

    #[test]
    fn hopeless_and_clear_comparisons() {
        assert_eq!(clusters_needed(0.0, 0.1, 20), None);
        assert_eq!(clusters_needed(f64::NAN, 0.1, 20), None);
        assert_eq!(clusters_needed(1e-9, 0.1, 20), None);
        assert_eq!(clusters_needed(5.0, 0.0, 20), Some(10));
        assert_eq!(clusters_needed(-5.0, 0.1, 20), Some(10));
        assert_eq!((power(1.0, 0), power(1.0, 1)), (0.0, 0.0));
        assert!((power(0.0, 20) - 0.05).abs() < 1e-9, "{}", power(0.0, 20));
    }

    /// Returns the share of simulated comparisons that find the difference 0.4 with a standard deviation of 1 between
    /// clusters. Each cluster has four values that share half of its variance.
    fn found(clusters: u64, random: &mut Random) -> f64 {
        let (runs, mut found) = (3_000, 0);
        for _ in 0..runs {
            let mut values = Vec::new();
            for number in 0..clusters {
                let shared = 0.4 + 0.5_f64.sqrt() * random.normal();
                values.extend((0..4).map(|_| (number, shared + 2.0_f64.sqrt() * random.normal())));
            }
            found += u32::from(ClusteredMean::of(values).unwrap().p_value().unwrap() < 0.05);
        }
        f64::from(found) / f64::from(runs)
    }

    #[test]
    fn predicted_numbers_are_within_fifteen_percent() {
        let mut random = Random(17);
        // A large pilot determines the variance between clusters.
        let mut pilot = Vec::new();
        for number in 0..5_000 {
            let shared = 0.4 + 0.5_f64.sqrt() * random.normal();
            pilot.extend((0..4).map(|_| (number, shared + 2.0_f64.sqrt() * random.normal())));
        }
        let pilot = ClusteredMean::of(pilot).unwrap();
        let needed = clusters_needed(0.4, pilot.error.unwrap(), pilot.clusters).unwrap() as f64;
        let (fewer, more) = (found((needed * 0.85) as u64, &mut random), found((needed * 1.15) as u64, &mut random));
        assert!(fewer < POWER && more > POWER, "{needed}: {fewer} {more}");
    }
}
