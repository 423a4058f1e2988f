//! Elo, game by game in playing order. The ratings depend on the order of games, follow recent form and have no
//! intervals. For strength over all games, see [`crate::bradley_terry`].

use serde::{Deserialize, Serialize};

use crate::results::{PairOutcome, Results};

/// The Elo points of one unit of natural log-odds: 400 / ln 10.
pub const ELO_PER_LOGIT: f64 = 400.0 / std::f64::consts::LN_10;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EloOptions {
    /// The rating of all agents before the first game.
    pub start: f64,
    /// The points at stake in a game (the K-factor).
    pub k: f64,
    /// True if the change of each game is rounded to an integer, halves to even.
    pub rounded: bool,
}

impl Default for EloOptions {
    /// Returns the constants of Colosseum tournaments: 1200, 24, rounded. The games use the protocol of Colosseum.
    fn default() -> EloOptions {
        EloOptions { start: 1200.0, k: 24.0, rounded: true }
    }
}

/// Returns the expected score, 0 to 1, of an agent that is rated `difference` above its opponent.
pub fn expected_score(difference: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-difference / 400.0))
}

/// Returns the rating difference with this expected score; infinite for 0 and 1.
pub fn difference(score: f64) -> f64 {
    ELO_PER_LOGIT * (score / (1.0 - score)).ln()
}

/// Returns each agent's rating after all games.
///
/// A game of N seats is one comparison of every two seats, with `k / (N - 1)` points at stake. An agent's changes in a
/// game are added up, and the sum is rounded if `rounded` is true. The sum over all agents stays the same, apart from
/// rounding.
///
/// Source: A. Elo, *The Rating of Chessplayers, Past and Present* (1978).
pub fn elo(results: &Results, options: &EloOptions) -> Vec<f64> {
    let mut ratings = vec![options.start; results.agents()];
    let mut changes = Vec::new();
    for game in results.games() {
        let stake = options.k / (game.seats.len() - 1) as f64;
        changes.clear();
        changes.extend(game.seats.iter().enumerate().map(|(seat, own)| {
            let others = game.seats.iter().enumerate().filter(|(other, _)| *other != seat);
            let change: f64 = others
                .map(|(_, other)| {
                    let expected = expected_score(ratings[own.agent.0] - ratings[other.agent.0]);
                    stake * (PairOutcome::of(own.rank, other.rank).points() - expected)
                })
                .sum();
            if options.rounded { change.round_ties_even() } else { change }
        }));
        for (seat, change) in game.seats.iter().zip(&changes) {
            ratings[seat.agent.0] += change;
        }
    }
    ratings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentIndex;

    fn results(agents: usize, games: &[&[(usize, u32)]]) -> Results {
        let mut results = Results::new(agents);
        for game in games {
            let seats: Vec<_> = game.iter().map(|&(agent, rank)| (AgentIndex(agent), rank)).collect();
            results.push(&seats, None).unwrap();
        }
        results
    }

    #[test]
    fn a_win_between_equals_moves_half_of_k() {
        let played = results(2, &[&[(0, 1), (1, 2)]]);
        assert_eq!(elo(&played, &EloOptions::default()), [1212.0, 1188.0]);
    }

    // Reference: the same games in Python, with `round(24 * (score - 1 / (1 + 10 ** (difference / 400))))`, which
    // rounds halves to even: the first agent's changes are 12, -13, -12, 1 and 13.
    #[test]
    fn changes_are_rounded_as_in_the_reference() {
        let played = results(
            2,
            &[&[(0, 1), (1, 2)], &[(1, 1), (0, 2)], &[(1, 1), (0, 2)], &[(0, 1), (1, 1)], &[(0, 1), (1, 2)]],
        );
        assert_eq!(elo(&played, &EloOptions::default()), [1201.0, 1199.0]);
        let exact = elo(&played, &EloOptions { rounded: false, ..EloOptions::default() });
        assert!(
            (exact[0] - 1_200.930_163_671_863_5).abs() < 1e-9 && (exact[0] + exact[1] - 2400.0).abs() < 1e-9,
            "{exact:?}"
        );
    }

    #[test]
    fn a_game_of_three_is_three_comparisons() {
        let played = results(3, &[&[(0, 1), (1, 2), (2, 3)]]);
        assert_eq!(elo(&played, &EloOptions { rounded: false, ..EloOptions::default() }), [1212.0, 1200.0, 1188.0]);
    }

    #[test]
    fn difference_and_expected_score_undo_each_other() {
        for score in [0.01, 0.3, 0.5, 0.64, 0.99] {
            assert!((expected_score(difference(score)) - score).abs() < 1e-12);
        }
    }
}
