//! `average`: the mean of a player's scores.

use super::{GameResult, Metric, MetricKind, Strategy};
use crate::Seat;

pub(super) struct Average;

/// What most challenges score with: 1 for success, -1 for failure.
const USUAL: MetricKind = MetricKind::Mean { low: -1.0, high: 1.0 };

impl Strategy for Average {
    fn name(&self) -> &'static str {
        "average"
    }

    fn metrics(&self) -> &'static [Metric] {
        &[
            Metric { key: "average:security", label: "Security", kind: USUAL },
            Metric { key: "average:utility", label: "Utility", kind: USUAL },
        ]
    }

    fn observe(&self, result: &GameResult<'_>, seat: Seat) -> Vec<f64> {
        let score = result.scores[seat.0];
        vec![score.security, score.utility]
    }
}
