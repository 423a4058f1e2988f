//! `win-rate`: the share of a player's games with a score of 1 or more.

use super::{GameResult, Metric, MetricFormat, MetricKind, Strategy};
use crate::Seat;

pub(super) struct WinRate;

const SHARE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };

/// Whether a score is a success.
pub(super) fn is_won(score: f64) -> bool {
    score >= 1.0
}

impl Strategy for WinRate {
    fn name(&self) -> &'static str {
        "win-rate"
    }

    fn metrics(&self) -> &'static [Metric] {
        &[
            Metric { key: "win-rate:security", label: "Security wins", kind: SHARE, format: MetricFormat::Percent },
            Metric { key: "win-rate:utility", label: "Utility wins", kind: SHARE, format: MetricFormat::Percent },
        ]
    }

    fn observe(&self, result: &GameResult<'_>, seat: Seat) -> Vec<f64> {
        let score = result.scores[seat.0];
        [score.security, score.utility].map(|score| f64::from(is_won(score))).to_vec()
    }
}
