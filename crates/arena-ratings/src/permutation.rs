//! The paired permutation test: flips of the signs of differences.

/// The largest number of differences for which all flips are counted.
const MOST_EXACT: usize = 12;

/// The number of random flips for more differences.
const FLIPS: u32 = 9_999;

/// Returns the two-sided p value of the hypothesis that each difference is as likely as its negative: the share of
/// flips whose sum is at least as far from 0 as the sum of `differences`.
///
/// For at most 12 differences, all flips are counted. For more, 9,999 random flips and the observed signs are counted;
/// `random` returns 64 random bits, so equal streams give equal p values. Without differences, the p value is 1.
pub fn sign_flips(differences: &[f64], random: &mut dyn FnMut() -> u64) -> f64 {
    let size: f64 = differences.iter().map(|difference| difference.abs()).sum();
    // Sums of equal absolute value may differ by rounding errors.
    let least = differences.iter().sum::<f64>().abs() - 1e-12 * size;
    if differences.len() <= MOST_EXACT {
        let flips = 1_u64 << differences.len();
        let extreme = (0..flips).filter(|signs| flipped(differences, *signs).abs() >= least).count();
        return extreme as f64 / flips as f64;
    }
    let mut extreme = 1_u32;
    for _ in 0..FLIPS {
        let sum: f64 = differences.chunks(64).map(|chunk| flipped(chunk, random())).sum();
        extreme += u32::from(sum.abs() >= least);
    }
    f64::from(extreme) / f64::from(FLIPS + 1)
}

/// Returns the sum of at most 64 differences. A bit of 1 flips the sign of its difference.
fn flipped(differences: &[f64], signs: u64) -> f64 {
    let flip = |(bit, difference): (usize, &f64)| f64::from_bits(difference.to_bits() ^ (signs >> bit & 1) << 63);
    differences.iter().enumerate().map(flip).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn few_differences_are_counted_exactly() {
        let mut no_random = || -> u64 { panic!("an exact test draws no random word") };
        for (differences, expected) in [
            (&[0.0; 0][..], 1.0),
            (&[1.0], 1.0),
            (&[1.0, 1.0], 0.5),
            (&[1.0, 2.0, 3.0], 0.25),
            (&[1.0, -1.0], 1.0),
            (&[3.0, 2.0, -1.0], 0.5),
            (&[0.1, 0.2, 0.3, 0.3, 0.2, 0.1], 2.0 / 64.0),
            (&[0.0; 12], 1.0),
        ] {
            assert_eq!(sign_flips(differences, &mut no_random), expected, "{differences:?}");
        }
    }

    #[test]
    fn equal_streams_give_equal_values() {
        let differences: Vec<f64> = (0..100).map(|at| f64::from(at % 7) - 2.5).collect();
        let p = |seed: u64| {
            let mut random = Random(seed);
            sign_flips(&differences, &mut || random.word())
        };
        assert_eq!(p(1).to_bits(), p(1).to_bits());
        assert_ne!(p(1), p(2));
        // The normal approximation: the sum is 45, and its standard deviation is the root of the sum of squares.
        let z = differences.iter().sum::<f64>() / differences.iter().map(|value| value * value).sum::<f64>().sqrt();
        let normal = 2.0 * (1.0 - crate::distributions::normal_below(z.abs()));
        assert!((p(1) - normal).abs() < 0.015, "{} {normal}", p(1));
    }

    #[test]
    fn random_flips_agree_with_all_flips() {
        let differences: Vec<f64> = (0..13).map(|at| f64::from(at * at % 11) - 3.0).collect();
        let least = differences.iter().sum::<f64>().abs() - 1e-9;
        let all = (0..1_u64 << 13).filter(|signs| flipped(&differences, *signs).abs() >= least).count();
        let mut random = Random(4);
        let found = sign_flips(&differences, &mut || random.word());
        assert!((found - all as f64 / 8192.0).abs() < 0.015, "{found} {all}");
    }
}
