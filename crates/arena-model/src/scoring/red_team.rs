//! `red-team`: a player's breaches of others' security, and its own defense.

use super::{Metric, MetricFormat, MetricKind, Strategy};

/// The range of a metric in a game with one opponent. A game with several opponents may exceed this range.
const AGAINST_ONE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };

pub(super) const RED_TEAM: Strategy = Strategy {
    name: "red-team",
    title: "Attack and defense",
    summary: "Secrets learned from opponents per game, and own secrets kept.",
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
    observe: Some(|result, seat| {
        let caused = result.breaches(seat, |attribution| attribution.from);
        let suffered = result.breaches(seat, |attribution| attribution.to);
        vec![caused, 1.0 - suffered]
    }),
};
