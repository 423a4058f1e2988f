//! `win-rate`: the share of a player's games with a score of 1 or more.

use super::{Metric, MetricFormat, MetricKind, Strategy};

const SHARE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };

pub(super) fn is_won(score: f64) -> bool {
    score >= 1.0
}

pub(super) const WIN_RATE: Strategy = Strategy {
    name: "win-rate",
    title: "Win rate",
    summary: "The share of a player's games with the full score, 1 or more.",
    metrics: &[
        Metric { key: "win-rate:security", label: "Security wins", kind: SHARE, format: MetricFormat::Percent },
        Metric { key: "win-rate:utility", label: "Utility wins", kind: SHARE, format: MetricFormat::Percent },
    ],
    needs_known_players: false,
    observe: Some(|result, seat| {
        let score = result.scores[seat.0];
        [score.security, score.utility].map(|score| f64::from(is_won(score))).to_vec()
    }),
};
