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
        Measure::interval_of_average(kind, &[(self, games)])
    }

    /// Returns the 95 % interval of the average of several true means with equal weights, each with its number of
    /// games. `None` for other measures.
    pub(super) fn interval_of_average(kind: MetricKind, means: &[(&Measure, u64)]) -> Option<[f64; 2]> {
        let MetricKind::Mean { low, high } = kind else { return None };
        let means: Option<Vec<(&Mean, u64)>> = means
            .iter()
            .map(|(measure, games)| if let Measure::Mean(mean) = measure { Some((mean, *games)) } else { None })
            .collect();
        Some(interval(&means?, low, high))
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

/// Returns Student's interval of the average of several means, each with its number of games, after adding two virtual
/// games at either end of `low..=high`. The means share them equally.
///
/// Without virtual games, three wins of three would give an interval of width zero. The virtual games are those
/// of Agresti and Coull ("Approximate is better than 'exact' for interval estimation of binomial proportions",
/// 1998), for several means those of Price and Bonett ("An improved confidence interval for a linear function of
/// binomial proportions", 2004). With one mean, observations of `low` or `high` only, and many games, the result is the
/// Agresti-Coull interval. If observations lie between the two, the result is wider than necessary. It always contains
/// the average of the games played.
fn interval(means: &[(&Mean, u64)], low: f64, high: f64) -> [f64; 2] {
    let count = means.len() as f64;
    let virtual_games = VIRTUAL_GAMES / count;
    let (mut average, mut center, mut ends) = (0.0, 0.0, [0.0, 0.0]);
    // The sum of the variances, and the sum of their squares divided by their degrees of freedom.
    let (mut variance, mut parts) = (0.0, 0.0);
    for (mean, games) in means {
        let (low, high) = (low.min(mean.min), high.max(mean.max));
        let n = *games as f64 + 2.0 * virtual_games;
        let own = (mean.sum + virtual_games * (low + high)) / n;
        let squares = mean.squares + virtual_games * (low * low + high * high);
        // The divisor is n for one mean, as in the interval of Agresti and Coull. The variance is then too small by
        // the factor (n − 1)/n, which shows in the average of many means of few games: for many, it tends to n − 1.
        let part = (squares / n - own * own).max(0.0) / (n - 1.0 + 1.0 / count);
        variance += part;
        parts += part * part / (n - 1.0).max(1.0);
        average += mean.sum / *games as f64 / count;
        center += own / count;
        ends = [ends[0] + low / count, ends[1] + high / count];
    }
    // The degrees of freedom of Welch and Satterthwaite.
    let half = if parts > 0.0 { student(variance * variance / parts) * variance.sqrt() / count } else { 0.0 };
    let [low, high] = ends;
    [(center - half).clamp(low, high).min(average), (center + half).clamp(low, high).max(average)]
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
