//! `global-average`: a player's mean over challenge types, each type counting the same however often it was played.

use std::collections::{BTreeMap, BTreeSet};

use crate::BoardId;

use super::{Metric, MetricFormat, MetricKind, ScoringEntry, ScoringError, Standings, entry, find};

/// Its name in settings.
pub const GLOBAL_AVERAGE: &str = "global-average";

/// Means of means: what the source's metrics are expected to give says its own.
const MEAN: MetricKind = MetricKind::Mean { low: -1.0, high: 1.0 };

pub(super) const METRICS: &[Metric] = &[
    Metric { key: "global-average:security", label: "Security", kind: MEAN, format: MetricFormat::Number },
    Metric { key: "global-average:utility", label: "Utility", kind: MEAN, format: MetricFormat::Number },
];

/// The name of a strategy that can be averaged.
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

/// The global entry of a player over these boards; `None` if the source has counted no game of it there.
pub(super) fn entry_of(source: &str, boards: &BTreeSet<BoardId>, standings: &Standings) -> Option<ScoringEntry> {
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
    Some(ScoringEntry { games_played: entries.iter().map(|entry| entry.games_played).sum(), metrics, intervals })
}

/// The interval of `mean`, the mean of independent averages, from theirs: centres are averaged, half-widths add as
/// squares.
fn interval(mean: f64, intervals: impl ExactSizeIterator<Item = [f64; 2]>) -> [f64; 2] {
    let n = intervals.len() as f64;
    let (mut centre, mut square) = (0.0, 0.0);
    for [low, high] in intervals {
        centre += (low + high) / 2.0;
        square += ((high - low) / 2.0).powi(2);
    }
    let (centre, half) = (centre / n, square.sqrt() / n);
    // Intervals that are cut at the end of the range aren't around their averages.
    [(centre - half).min(mean), (centre + half).max(mean)]
}
