//! `red-team`: a player's breaches of others' security, and its own defense.

use super::{Metric, MetricFormat, MetricKind, Strategy};

const fn rate(key: &'static str, label: &'static str) -> Metric {
    // The range in a game with one opponent. A game with several opponents may exceed it.
    Metric { key, label, kind: MetricKind::Mean { low: 0.0, high: 1.0 }, format: MetricFormat::Number }
}

pub(super) const RED_TEAM: Strategy = Strategy {
    name: "red-team",
    title: "Attack and defense",
    summary: "Secrets learned from opponents per game, and own secrets kept.",
    metrics: &[
        rate("red-team:attack", "Breaches caused per game"),
        rate("red-team:defend", "1 − breaches suffered per game"),
    ],
    needs_known_players: true,
    observe: Some(|result, seat| {
        let caused = result.breaches(seat, |attribution| attribution.from);
        let suffered = result.breaches(seat, |attribution| attribution.to);
        vec![caused, 1.0 - suffered]
    }),
};
