//! The stored data of one metric of one player, and its confidence interval.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::MetricKind;

/// The stored data of one metric. In JSON, a streak is a number, and a mean is a list of its four fields in their
/// order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Measure {
    Streak(u64),
    Mean(Mean),
    /// A number of a script; it isn't stored with standings.
    Given(f64),
}

/// The data that determines the mean and the variance of the observations.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Mean {
    sum: f64,
    squares: f64,
    /// The least observation, at most 0.
    min: f64,
    /// The greatest observation, at least 0.
    max: f64,
}

impl Serialize for Mean {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.sum, self.squares, self.min, self.max].serialize(serializer)
    }
}

/// A manual implementation, because serde's derive for an untagged enum parses each value twice, and every counted
/// game parses measures.
impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Measure;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a streak or a list of four numbers")
            }

            fn visit_u64<E: Error>(self, length: u64) -> Result<Measure, E> {
                Ok(Measure::Streak(length))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Measure, A::Error> {
                let mut next = |place| numbers.next_element()?.ok_or_else(|| A::Error::invalid_length(place, &self));
                let mean = Mean { sum: next(0)?, squares: next(1)?, min: next(2)?, max: next(3)? };
                match numbers.next_element::<f64>()? {
                    None => Ok(Measure::Mean(mean)),
                    Some(_) => Err(A::Error::invalid_length(5, &self)),
                }
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl Measure {
    pub(super) fn new(kind: MetricKind) -> Measure {
        match kind {
            MetricKind::Mean { .. } => Measure::Mean(Mean::default()),
            MetricKind::Streak => Measure::Streak(0),
            MetricKind::Given => Measure::Given(f64::NAN),
        }
    }

    pub(super) fn fits(&self, kind: MetricKind) -> bool {
        match self {
            Measure::Streak(_) => matches!(kind, MetricKind::Streak),
            Measure::Mean(_) => matches!(kind, MetricKind::Mean { .. }),
            Measure::Given(_) => matches!(kind, MetricKind::Given),
        }
    }

    pub(super) fn observe(&mut self, value: f64) {
        match self {
            Measure::Streak(length) => *length = if value == 0.0 { 0 } else { *length + 1 },
            Measure::Given(given) => *given = value,
            Measure::Mean(mean) => {
                mean.sum += value;
                mean.squares += value * value;
                mean.min = mean.min.min(value);
                mean.max = mean.max.max(value);
            }
        }
    }

    pub(super) fn value(&self, games: u64) -> f64 {
        match self {
            Measure::Streak(length) => *length as f64,
            Measure::Given(given) => *given,
            Measure::Mean(mean) => mean.sum / games as f64,
        }
    }

    /// Returns the numbers of games won, drawn and lost, if the observations were 1, 0 and -1. Returns `None` if they
    /// can't have been.
    pub(super) fn outcomes(&self, games: u64) -> Option<[u64; 3]> {
        let Measure::Mean(Mean { sum, squares, .. }) = self else { return None };
        let (won, lost) = ((squares + sum) / 2.0, (squares - sum) / 2.0);
        let is_count = |number: f64| number >= 0.0 && number.fract() == 0.0;
        let drawn = games as f64 - squares;
        [won, drawn, lost].into_iter().all(is_count).then_some([won, drawn, lost].map(|number| number as u64))
    }

    /// Returns the 95 % interval of the true mean; other measures have none.
    pub(super) fn interval(&self, kind: MetricKind, games: u64) -> Option<[f64; 2]> {
        match (self, kind) {
            (Measure::Mean(mean), MetricKind::Mean { low, high }) => {
                Some(mean.interval(low.min(mean.min), high.max(mean.max), games))
            }
            _ => None,
        }
    }
}

/// The number of virtual games at either end of the range.
const VIRTUAL_GAMES: f64 = 2.0;

/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Returns the 97.5th percentile of Student's t distribution with `freedom` degrees of freedom. The function uses the
/// expansion around the percentile of the normal distribution (Fisher and Cornish, 1960).
fn student(freedom: f64) -> f64 {
    let z3 = Z.powi(3);
    let z5 = Z.powi(5);
    Z + (z3 + Z) / (4.0 * freedom) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * freedom.powi(2))
}

impl Mean {
    /// Returns Student's interval of the mean after adding two virtual games at either end of `low..=high`.
    ///
    /// Without virtual games, three wins of three would give an interval of width zero. The virtual games are those
    /// of Agresti and Coull ("Approximate is better than 'exact' for interval estimation of binomial proportions",
    /// 1998). If all observations are `low` or `high` and there are many, the result is the Agresti-Coull interval.
    /// If observations lie between the two, the result is wider than necessary. The result always contains the mean
    /// of the games played.
    fn interval(&self, low: f64, high: f64, games: u64) -> [f64; 2] {
        let played = games as f64;
        let n = played + 2.0 * VIRTUAL_GAMES;
        let center = (self.sum + VIRTUAL_GAMES * (low + high)) / n;
        let squares = self.squares + VIRTUAL_GAMES * (low * low + high * high);
        let variance = (squares / n - center * center).max(0.0);
        let half = student(n - 1.0) * (variance / n).sqrt();
        let mean = self.sum / played;
        [(center - half).clamp(low, high).min(mean), (center + half).clamp(low, high).max(mean)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    const SHARE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };

    fn measure(kind: MetricKind, values: &[f64]) -> (f64, Option<[f64; 2]>) {
        let mut measure = Measure::new(kind);
        for value in values {
            measure.observe(*value);
        }
        let games = values.len() as u64;
        (measure.value(games), measure.interval(kind, games))
    }

    #[test]
    fn a_share_has_the_interval_of_two_more_wins_and_losses() {
        // Nine wins in ten games: 11/14 ± 2.16 √(11/14 · 3/14 / 14), cut at 1.
        let mut values = vec![1.0; 9];
        values.push(0.0);
        let (mean, interval) = measure(SHARE, &values);
        let [low, high] = interval.expect("a mean has one");
        assert_eq!(mean, 0.9);
        assert!((low - 0.548_9).abs() < 1e-3 && high == 1.0, "{low} {high}");
    }

    #[test]
    fn results_are_counted_by_their_sum_and_squares() {
        let outcomes = |values: &[f64]| {
            let mut measure = Measure::new(MetricKind::Mean { low: -1.0, high: 1.0 });
            values.iter().for_each(|value| measure.observe(*value));
            measure.outcomes(values.len() as u64)
        };
        assert_eq!(outcomes(&[1.0, 0.0, -1.0, 1.0, 0.0, 1.0]), Some([3, 2, 1]));
        assert_eq!(outcomes(&[]), Some([0, 0, 0]));
        assert_eq!(outcomes(&[0.5, 0.5]), None);
        assert_eq!(outcomes(&[2.0]), None);
    }

    #[test]
    fn a_streak_ends_with_a_miss() {
        assert_eq!(measure(MetricKind::Streak, &[1.0, 0.0, 1.0, 1.0]), (2.0, None));
        assert_eq!(measure(MetricKind::Streak, &[1.0, 0.0]), (0.0, None));
    }

    #[test]
    fn percentiles_are_those_of_the_tables() {
        for (freedom, percentile) in [(4.0, 2.776), (10.0, 2.228), (30.0, 2.042), (1e9, 1.960)] {
            assert!((student(freedom) - percentile).abs() < 0.05, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn unexpected_values_widen_the_range() {
        let (mean, interval) = measure(SHARE, &[3.0, 3.0]);
        let [low, high] = interval.expect("a mean has one");
        assert_eq!(mean, 3.0);
        assert!(low > 0.0 && low < 3.0 && high == 3.0, "{low} {high}");
    }

    /// Simulates many seasons of a player whose true mean is known. Returns the share of seasons whose interval
    /// contains the true mean.
    fn coverage(kind: MetricKind, outcomes: &[(f64, u64)], games: usize) -> f64 {
        let weight: u64 = outcomes.iter().map(|(_, weight)| weight).sum();
        let truth = outcomes.iter().map(|(value, w)| value * *w as f64).sum::<f64>() / weight as f64;
        let mut rng = Seed([9; 32]).rng("coverage");
        let seasons = 2_000;
        let held = (0..seasons)
            .filter(|_| {
                let values: Vec<f64> = (0..games)
                    .map(|_| {
                        let mut draw = rng.below(weight);
                        let drawn = outcomes.iter().find(|(_, w)| {
                            let here = draw < *w;
                            draw = draw.saturating_sub(*w);
                            here
                        });
                        drawn.expect("weights add up").0
                    })
                    .collect();
                let [low, high] = measure(kind, &values).1.expect("a mean has one");
                low <= truth && truth <= high
            })
            .count();
        held as f64 / f64::from(seasons)
    }

    #[test]
    fn the_interval_has_its_nominal_coverage() {
        let usual = MetricKind::Mean { low: -1.0, high: 1.0 };
        for games in [1, 2, 3, 5, 10, 30, 100, 300] {
            for win in [1, 5, 20, 50, 80, 95, 99] {
                let share = coverage(SHARE, &[(0.0, 100 - win), (1.0, win)], games);
                assert!(share >= 0.94, "{share} of intervals after {games} games hold {win} %");
            }
            for outcomes in [
                [(-1.0, 10), (0.0, 80), (1.0, 10)],
                [(-1.0, 1), (0.0, 9), (1.0, 90)],
                [(-1.0, 45), (0.0, 10), (1.0, 45)],
                [(0.1, 1), (0.2, 1), (0.4, 1)],
            ] {
                let share = coverage(usual, &outcomes, games);
                assert!(share >= 0.94, "{share} of intervals after {games} games hold the mean of {outcomes:?}");
            }
        }
    }
}
