//! `global-average`: a player's mean over challenge types. Each challenge type has the same weight, regardless of its
//! number of games.

use std::collections::{BTreeMap, BTreeSet};

use crate::BoardId;

use super::measure::Measure;
use super::{Metric, MetricFormat, MetricKind, PlayerStandings, ScoringEntry, ScoringError, Tally, find};

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
    let tallies: Vec<&Tally> = boards
        .iter()
        .filter_map(|board| standings.get(board.as_str()))
        .filter_map(|standing| standing.get(source).filter(|tally| tally.fits(strategy)))
        .collect();
    if tallies.is_empty() {
        return None;
    }
    let (mut metrics, mut intervals) = (BTreeMap::new(), BTreeMap::new());
    for (at, (own, source)) in METRICS.iter().zip(strategy.metrics).enumerate() {
        let means: Vec<(&Measure, u64)> = tallies.iter().map(|tally| (&tally.measures[at], tally.games)).collect();
        let sum: f64 = means.iter().map(|(measure, games)| measure.value(*games)).sum();
        metrics.insert(own.key, sum / means.len() as f64);
        intervals.extend(Measure::interval_of_average(source.kind, &means).map(|interval| (own.key, interval)));
    }
    Some(ScoringEntry {
        games_played: tallies.iter().map(|tally| tally.games).sum(),
        metrics,
        intervals,
        outcomes: None,
    })
}
