//! Krippendorff's alpha: the agreement of several judges, from 1 (perfect) over 0 (chance) to negative values
//! (systematic disagreement). Judges may leave out units.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The scale of the scores, which determines the size of a disagreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Names: two scores are equal or different.
    Nominal,
    /// Ranks: the number of scores between two scores counts.
    Ordinal,
    /// Numbers: the square of the difference counts.
    Interval,
}

/// Returns Krippendorff's alpha of these units. A unit has the scores of its judges in any order, without missing
/// scores; units with fewer than two scores are left out. `None` if there are no such units, if all their scores are
/// equal, or if a score isn't finite.
pub fn krippendorff_alpha(units: &[Vec<f64>], scale: Scale) -> Option<f64> {
    let units: Vec<&[f64]> = units.iter().map(Vec::as_slice).filter(|unit| unit.len() > 1).collect();
    let scores = || units.iter().copied().flatten().copied();
    if !scores().all(f64::is_finite) {
        return None;
    }
    // The number of each score, in ascending order. Positive zero equals negative zero.
    let mut counts: BTreeMap<Key, u64> = BTreeMap::new();
    for score in scores() {
        *counts.entry(Key(score + 0.0)).or_default() += 1;
    }
    let total: u64 = counts.values().sum();
    if counts.len() < 2 {
        return None;
    }
    let count = total as f64;
    let (observed, expected) = match scale {
        Scale::Nominal => {
            let observed: f64 = units.iter().map(|unit| different(unit) / (unit.len() as f64 - 1.0)).sum();
            let same: f64 = counts.values().map(|count| (*count as f64).powi(2)).sum();
            (observed / count, (count * count - same) / (count * (count - 1.0)))
        }
        Scale::Ordinal | Scale::Interval => {
            // The ordinal difference of two scores is the difference of their middle ranks.
            let (mut places, mut below) = (BTreeMap::new(), 0.0);
            let mean = scores().sum::<f64>() / count;
            for (key, count) in &counts {
                let place = if scale == Scale::Ordinal { below + *count as f64 / 2.0 } else { key.0 - mean };
                places.insert(*key, place);
                below += *count as f64;
            }
            let squares = |unit: &[f64]| {
                let (mut sum, mut squares) = (0.0, 0.0);
                for score in unit {
                    let place = places[&Key(*score + 0.0)];
                    sum += place;
                    squares += place * place;
                }
                // The sum of the squared differences of all ordered pairs.
                2.0 * (unit.len() as f64 * squares - sum * sum)
            };
            let observed: f64 = units.iter().map(|unit| squares(unit) / (unit.len() as f64 - 1.0)).sum();
            let all: Vec<f64> = scores().collect();
            (observed / count, squares(&all) / (count * (count - 1.0)))
        }
    };
    Some(1.0 - observed / expected)
}

/// Returns the number of ordered pairs of different scores in a unit.
fn different(unit: &[f64]) -> f64 {
    let mut scores = unit.to_vec();
    scores.sort_by(f64::total_cmp);
    let same: f64 = scores.chunk_by(|one, two| one == two).map(|equal| (equal.len() as f64).powi(2)).sum();
    (unit.len() as f64).powi(2) - same
}

/// A finite score as a key.
#[derive(Debug, Clone, Copy)]
struct Key(f64);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALES: [Scale; 3] = [Scale::Nominal, Scale::Ordinal, Scale::Interval];

    #[test]
    fn perfect_agreement_is_one_and_disagreement_is_negative() {
        for scale in SCALES {
            let agreed = [vec![1.0, 1.0], vec![2.0, 2.0, 2.0], vec![5.0, 5.0]];
            assert!((krippendorff_alpha(&agreed, scale).unwrap() - 1.0).abs() < 1e-12);
            let opposed = [vec![0.0, 1.0], vec![1.0, 0.0], vec![0.0, 1.0]];
            assert!(krippendorff_alpha(&opposed, scale).unwrap() < 0.0);
        }
    }

    #[test]
    fn nothing_to_compare_has_no_alpha() {
        for scale in SCALES {
            assert_eq!(krippendorff_alpha(&[], scale), None);
            assert_eq!(krippendorff_alpha(&[vec![1.0], vec![2.0]], scale), None);
            assert_eq!(krippendorff_alpha(&[vec![1.0, 1.0], vec![1.0, 1.0]], scale), None);
            assert_eq!(krippendorff_alpha(&[vec![0.0, -0.0], vec![0.0, 0.0]], scale), None);
            assert_eq!(krippendorff_alpha(&[vec![1.0, f64::NAN]], scale), None);
        }
    }
}
