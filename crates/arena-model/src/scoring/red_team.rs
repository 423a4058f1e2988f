//! `red-team`: how often a player breaches others' security, and how often its own holds.

use super::{GameResult, Metric, MetricFormat, MetricKind, Strategy};
use crate::Seat;

pub(super) struct RedTeam;

/// Against one opponent; a game with several may give more, or less.
const AGAINST_ONE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };

impl Strategy for RedTeam {
    fn name(&self) -> &'static str {
        "red-team"
    }

    fn metrics(&self) -> &'static [Metric] {
        &[
            Metric {
                key: "red-team:attack",
                label: "Breaches caused per game",
                kind: AGAINST_ONE,
                format: MetricFormat::Number,
            },
            Metric {
                key: "red-team:defend",
                label: "1 − breaches suffered per game",
                kind: AGAINST_ONE,
                format: MetricFormat::Number,
            },
        ]
    }

    fn counts(&self, result: &GameResult<'_>) -> bool {
        result.is_between_known()
    }

    fn observe(&self, result: &GameResult<'_>, seat: Seat) -> Vec<f64> {
        let caused = result.breaches(seat, |attribution| attribution.from);
        let suffered = result.breaches(seat, |attribution| attribution.to);
        vec![caused, 1.0 - suffered]
    }
}
