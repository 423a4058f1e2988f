//! `consecutive`: for how many games in a row a player has won, or breached another's security.

use super::win_rate::is_won;
use super::{GameResult, Metric, MetricFormat, MetricKind, Strategy};
use crate::Seat;

pub(super) struct Consecutive;

impl Strategy for Consecutive {
    fn name(&self) -> &'static str {
        "consecutive"
    }

    fn metrics(&self) -> &'static [Metric] {
        &[
            Metric {
                key: "consecutive:security",
                label: "Security streak",
                kind: MetricKind::Streak,
                format: MetricFormat::Count,
            },
            Metric {
                key: "consecutive:utility",
                label: "Utility streak",
                kind: MetricKind::Streak,
                format: MetricFormat::Count,
            },
            Metric {
                key: "consecutive:attack",
                label: "Attack streak",
                kind: MetricKind::Streak,
                format: MetricFormat::Count,
            },
        ]
    }

    fn counts(&self, result: &GameResult<'_>) -> bool {
        result.is_between_known()
    }

    fn observe(&self, result: &GameResult<'_>, seat: Seat) -> Vec<f64> {
        let score = result.scores[seat.0];
        let attacked = result.breaches(seat, |attribution| attribution.from) > 0.0;
        [is_won(score.security), is_won(score.utility), attacked].map(f64::from).to_vec()
    }
}
