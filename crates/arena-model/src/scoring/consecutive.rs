//! `consecutive`: a player's streaks of games won and of games with a breach of another's security.

use super::win_rate::is_won;
use super::{Metric, MetricFormat, MetricKind, Strategy};

pub(super) const CONSECUTIVE: Strategy = Strategy {
    name: "consecutive",
    title: "Streaks",
    summary: "Latest games in a row with the full score, or with a secret learned from an opponent.",
    metrics: &[
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
    ],
    needs_known_players: true,
    observe: Some(|result, seat| {
        let score = result.scores[seat.0];
        let attacked = result.breaches(seat, |attribution| attribution.from) > 0.0;
        [is_won(score.security), is_won(score.utility), attacked].map(f64::from).to_vec()
    }),
};
