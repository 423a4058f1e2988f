//! The measures of a leaderboard as pages show them: those that mean something in the game, the most important first.

use arena_games::ScoreKind;
use arena_model::{Board, Metric, MetricFormat, MetricKind, Score, ScoringEntry, Strategy};

use crate::arena::Arena;

/// The key of the mean utility, which is a share of points in games with results.
const MEAN_UTILITY: &str = "average:utility";

/// The ends of the keys of measures about secrets.
const ABOUT_SECRETS: [&str; 3] = [":security", ":attack", ":defend"];

/// The columns of a board.
pub(crate) struct Measures {
    pub(crate) metrics: Vec<Metric>,
    kind: ScoreKind,
}

/// Returns the meaning of a challenge's scores. Scripts may use both scores.
pub(crate) fn kind_of(challenge: &str) -> ScoreKind {
    let found = arena_games::all().find(|playable| playable.id == challenge);
    found.map_or(ScoreKind::Secrets, |playable| playable.kit.kind)
}

/// Returns a score in a challenge with secrets in a few words; `None` if the numbers say more.
pub(in crate::web) fn verdict(kind: ScoreKind, score: Score) -> Option<&'static str> {
    if kind != ScoreKind::Secrets {
        return None;
    }
    match (score.utility > 0.0, score.security < 0.0) {
        _ if score.utility == 0.0 => None,
        (true, false) => Some("Goal reached, secret kept"),
        (true, true) => Some("Goal reached, secret lost"),
        (false, false) => Some("Goal missed, secret kept"),
        (false, true) => Some("Goal missed, secret lost"),
    }
}

impl Measures {
    /// Returns the measures of a board; none if the board has no measure that means something in its game.
    pub(crate) fn of(arena: &Arena, board: &Board) -> Measures {
        let kind = match board {
            Board::Of { challenge, .. } => kind_of(challenge),
            Board::Global(_) => ScoreKind::Secrets,
        };
        Measures::of_kind(kind, arena.engine.scoring().metrics(board))
    }

    fn of_kind(kind: ScoreKind, metrics: &[Metric]) -> Measures {
        let mut metrics: Vec<Metric> = metrics.iter().map(|metric| renamed(kind, *metric)).collect();
        // The author of a script has chosen the order.
        metrics.sort_by_key(|metric| metric.kind != MetricKind::Given && !metric.key.ends_with(":utility"));
        let measures = Measures { metrics, kind };
        if kind == ScoreKind::Secrets { measures } else { measures.without_secrets() }
    }

    /// Drops the measures about secrets, for players that had none.
    pub(crate) fn without_secrets(mut self) -> Measures {
        let is_kept = |metric: &Metric| {
            metric.kind == MetricKind::Given || !ABOUT_SECRETS.iter().any(|end| metric.key.ends_with(end))
        };
        self.metrics.retain(is_kept);
        self
    }

    pub(crate) fn has_secrets(&self) -> bool {
        self.kind == ScoreKind::Secrets
    }

    /// True if the table has a column with the numbers of games won, drawn and lost.
    pub(crate) fn has_outcomes(&self) -> bool {
        self.kind == ScoreKind::Outcome && self.metrics.iter().any(|metric| metric.key == MEAN_UTILITY)
    }

    /// Converts a mean utility from -1 to 1 into a share of points if this board shows one.
    pub(crate) fn scaled(&self, mut entry: ScoringEntry) -> ScoringEntry {
        if self.has_outcomes() {
            let values = entry.metrics.get_mut(MEAN_UTILITY).into_iter();
            let ends = entry.intervals.get_mut(MEAN_UTILITY).into_iter().flatten();
            values.chain(ends).for_each(|value| *value = f64::midpoint(*value, 1.0));
        }
        entry
    }
}

/// Returns a metric with the words and the range of this kind of game.
fn renamed(kind: ScoreKind, metric: Metric) -> Metric {
    match (kind, metric.key) {
        (ScoreKind::Outcome, MEAN_UTILITY) => {
            let kind = MetricKind::Mean { low: 0.0, high: 1.0 };
            Metric { label: "Win share", kind, format: MetricFormat::Percent, ..metric }
        }
        (ScoreKind::Outcome, "win-rate:utility") => Metric { label: "Wins", ..metric },
        (ScoreKind::Outcome, "consecutive:utility") => Metric { label: "Winning streak", ..metric },
        _ => metric,
    }
}

/// Returns the title of a strategy's board of this challenge.
pub(crate) fn board_title(challenge: &str, strategy: &Strategy) -> &'static str {
    match (kind_of(challenge), strategy.name) {
        (ScoreKind::Outcome, "average") => "Results",
        _ => strategy.title,
    }
}

/// Returns the measure of a strategy's board of this challenge in one sentence.
pub(crate) fn board_summary(challenge: &str, strategy: &Strategy) -> &'static str {
    match (kind_of(challenge), strategy.name) {
        (ScoreKind::Outcome, "average") => {
            "Games won, drawn and lost (W–D–L). The win share counts 1 for a win and ½ for a draw."
        }
        (ScoreKind::Outcome, "win-rate") => "The share of a player's games that it won.",
        (ScoreKind::Outcome, "consecutive") => "Latest games won in a row.",
        (ScoreKind::Points, "average") => {
            "The mean utility of a player's games: its success at the task, from −1 to 1."
        }
        (ScoreKind::Points, "consecutive") => "Latest games in a row with the full score.",
        (ScoreKind::Secrets, "average") => {
            "The mean of a player's games. Utility measures success at the task, security whether private data stayed \
             private. Both range from −1 to 1; larger is better."
        }
        _ => strategy.summary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_depend_on_the_kind_of_game() {
        let labels = |kind: ScoreKind| -> String {
            let of = |strategy: &Strategy| {
                let measures = Measures::of_kind(kind, strategy.metrics);
                measures.metrics.iter().map(|metric| metric.label).collect::<Vec<_>>().join(", ")
            };
            arena_model::strategies().iter().map(of).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(labels(ScoreKind::Outcome), "Win share; Wins; ; Winning streak");
        assert_eq!(labels(ScoreKind::Points), "Utility; Utility wins; ; Utility streak");
        assert_eq!(
            labels(ScoreKind::Secrets),
            "Utility, Security; Utility wins, Security wins; Breaches caused per game, 1 − breaches suffered per game; \
             Utility streak, Security streak, Attack streak"
        );
    }

    #[test]
    fn a_challenge_with_secrets_has_a_verdict() {
        for (utility, security, expected) in [
            (1.0, 1.0, Some("Goal reached, secret kept")),
            (1.0, -1.0, Some("Goal reached, secret lost")),
            (-1.0, 0.0, Some("Goal missed, secret kept")),
            (-1.0, -1.0, Some("Goal missed, secret lost")),
            (0.0, 1.0, None),
        ] {
            let score = Score { utility, security };
            assert_eq!(verdict(ScoreKind::Secrets, score), expected, "{score:?}");
            assert_eq!(verdict(ScoreKind::Points, score), None);
        }
    }

    #[test]
    fn secrets_are_the_games_with_breaches() {
        let kinds: Vec<&str> = arena_games::challenges().filter(|id| kind_of(id) == ScoreKind::Secrets).collect();
        assert_eq!(kinds, ["psi", "millionaire", "dining-cryptographers"]);
    }
}
