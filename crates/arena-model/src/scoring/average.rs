//! `average`: the mean of a player's scores.

use super::measure::Measure;
use super::{Metric, MetricFormat, MetricKind, Strategy};

/// The usual range of scores: 1 for success, -1 for failure.
const USUAL: MetricKind = MetricKind::Mean { low: -1.0, high: 1.0 };

pub(super) const UTILITY: &str = "average:utility";

/// Returns the mean of these utilities or securities and its 95 % interval, as on a leaderboard. Returns `None` if
/// there are no values.
pub fn mean_score(values: &[f64]) -> Option<(f64, [f64; 2])> {
    let games = values.len() as u64;
    let mut measure = Measure::new(USUAL);
    for value in values {
        measure.observe(*value);
    }
    let interval = measure.interval(USUAL, games).filter(|_| games > 0)?;
    Some((measure.value(games), interval))
}

pub(super) const AVERAGE: Strategy = Strategy {
    name: "average",
    title: "Average score",
    summary: "The mean security and utility of a player's games.",
    metrics: &[
        Metric { key: "average:security", label: "Security", kind: USUAL, format: MetricFormat::Number },
        Metric { key: UTILITY, label: "Utility", kind: USUAL, format: MetricFormat::Number },
    ],
    needs_known_players: false,
    observe: Some(|result, seat| {
        let score = result.scores[seat.0];
        vec![score.security, score.utility]
    }),
};
