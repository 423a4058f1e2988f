//! `global-average`: a player's mean over challenge types. Each challenge type has the same weight, regardless of its
//! number of games.

use std::collections::{BTreeMap, BTreeSet};

use crate::BoardId;

use super::{Metric, MetricFormat, MetricKind, PlayerStandings, ScoringEntry, ScoringError, entry, find};

/// The strategy's name in settings.
pub const GLOBAL_AVERAGE: &str = "global-average";

/// The kind of the global metrics. Its bounds aren't used: the metrics of the source strategy set the range.
const MEAN: MetricKind = MetricKind::Mean { low: -1.0, high: 1.0 };

pub(super) const METRICS: &[Metric] = &[
    Metric { key: "global-average:security", label: "Security", kind: MEAN, format: MetricFormat::Number },
    Metric { key: "global-average:utility", label: "Utility", kind: MEAN, format: MetricFormat::Number },
];

/// Returns the name of the strategy `name`, or an error if the global board can't average it.
pub(super) fn source(name: &str) -> Result<&'static str, ScoringError> {
    let strategy = find(name).ok_or_else(|| ScoringError::Unknown(name.to_owned()))?;
    let averages = |kind: MetricKind| matches!(kind, MetricKind::Mean { .. });
    match strategy.metrics {
        [security, utility, ..]
            if security.key.ends_with(":security")
                && utility.key.ends_with(":utility")
                && averages(security.kind)
                && averages(utility.kind) =>
        {
            Ok(strategy.name)
        }
        _ => Err(ScoringError::NoSource(name.to_owned())),
    }
}

/// Returns the global entry of a player over these boards, or `None` if the strategy `source` has counted no game of
/// the player on them.
pub(super) fn entry_of(source: &str, boards: &BTreeSet<BoardId>, standings: &PlayerStandings) -> Option<ScoringEntry> {
    let strategy = find(source)?;
    let entries: Vec<ScoringEntry> = boards
        .iter()
        .filter_map(|board| standings.get(board.as_str()))
        .filter_map(|standing| standing.get(source).filter(|tally| tally.fits(strategy)))
        .map(|tally| entry(strategy, tally))
        .collect();
    if entries.is_empty() {
        return None;
    }
    let (mut metrics, mut intervals) = (BTreeMap::new(), BTreeMap::new());
    for (own, source) in METRICS.iter().zip(strategy.metrics) {
        let averages = || entries.iter().map(|entry| (entry.metrics[source.key], entry.intervals[source.key]));
        let mean = averages().map(|(value, _)| value).sum::<f64>() / entries.len() as f64;
        metrics.insert(own.key, mean);
        intervals.insert(own.key, interval(mean, averages().map(|(_, interval)| interval)));
    }
    Some(ScoringEntry {
        games_played: entries.iter().map(|entry| entry.games_played).sum(),
        metrics,
        intervals,
        outcomes: None,
    })
}

/// Returns the interval of `mean`, the mean of independent averages with these intervals. The center is the mean of
/// the intervals' centers; the half-width is the root of the sum of the squared half-widths, divided by their number.
fn interval(mean: f64, intervals: impl ExactSizeIterator<Item = [f64; 2]>) -> [f64; 2] {
    let n = intervals.len() as f64;
    let (mut center, mut square) = (0.0, 0.0);
    for [low, high] in intervals {
        center += (low + high) / 2.0;
        square += ((high - low) / 2.0).powi(2);
    }
    let (center, half) = (center / n, square.sqrt() / n);
    // An interval that was cut at an end of the range isn't centered on its average, so `mean` may lie outside of the
    // computed interval. The result is extended to contain `mean`.
    [(center - half).min(mean), (center + half).max(mean)]
}
