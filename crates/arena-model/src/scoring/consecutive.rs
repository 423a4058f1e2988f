//! `consecutive`: a player's streaks of games won and of games with a breach of another's security.

use super::win_rate::is_won;
use super::{Metric, MetricFormat, MetricKind, Strategy};

const fn streak(key: &'static str, label: &'static str) -> Metric {
    Metric { key, label, kind: MetricKind::Streak, format: MetricFormat::Count }
}

pub(super) const CONSECUTIVE: Strategy = Strategy {
    name: "consecutive",
    title: "Streaks",
    summary: "Latest games in a row with the full score, or with a secret learned from an opponent.",
    metrics: &[
        streak("consecutive:security", "Security streak"),
        streak("consecutive:utility", "Utility streak"),
        streak("consecutive:attack", "Attack streak"),
    ],
    needs_known_players: true,
    observe: Some(|result, seat| {
        let score = result.scores[seat.0];
        let attacked = result.breaches(seat, |attribution| attribution.from) > 0.0;
        [is_won(score.security), is_won(score.utility), attacked].map(f64::from).to_vec()
    }),
};
