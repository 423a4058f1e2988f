//! `red-team`: how often a player breaches others' security, and how often its own holds.

use super::{Metric, MetricFormat, MetricKind, Strategy};

/// Against one opponent; a game with several may give more, or less.
const AGAINST_ONE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };

/// The strategy.
pub(super) const RED_TEAM: Strategy = Strategy {
    name: "red-team",
    metrics: &[
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
    ],
    needs_known_players: true,
    observe: |result, seat| {
        let caused = result.breaches(seat, |attribution| attribution.from);
        let suffered = result.breaches(seat, |attribution| attribution.to);
        vec![caused, 1.0 - suffered]
    },
};
