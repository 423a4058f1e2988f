//! OpenSkill: ratings for games of any number of seats, by the method of Weng and Lin with full pairs. The formulas are
//! those of the crate `skillratings`.

use serde::{Deserialize, Serialize};
use skillratings::MultiTeamOutcome;
use skillratings::weng_lin::{WengLinConfig, WengLinRating, weng_lin_multi_team};

use crate::results::Results;

/// How ratings move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenSkillOptions {
    /// The difference of skill that gives the better one about two wins of three; more, the more luck a game has.
    pub beta: f64,
}

impl Default for OpenSkillOptions {
    /// The usual 25/6.
    fn default() -> OpenSkillOptions {
        OpenSkillOptions { beta: 25.0 / 6.0 }
    }
}

/// What OpenSkill thinks of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OpenSkill {
    /// Skill, 25 at the beginning.
    pub mu: f64,
    /// One standard deviation, 25/3 at the beginning.
    pub sigma: f64,
}

impl OpenSkill {
    /// `mu` - 3 `sigma`: what the agent is worth at least. It is what boards are usually sorted by.
    pub fn ordinal(&self) -> f64 {
        self.mu - 3.0 * self.sigma
    }
}

/// The rating of each agent after all games, in playing order, without those that repeat earlier ones: each would make surer.
///
/// Source: R. Weng and C.-J. Lin, *A Bayesian Approximation Method for Online Ranking* (2011), algorithm 1.
pub fn openskill(results: &Results, options: &OpenSkillOptions) -> Vec<OpenSkill> {
    let config = WengLinConfig { beta: options.beta, ..WengLinConfig::new() };
    let mut ratings = vec![WengLinRating::new(); results.agents()];
    for game in results.distinct() {
        // The list of a game is of references into the ratings, so it can't be kept from game to game.
        let teams: Vec<_> = game
            .seats
            .iter()
            .map(|seat| {
                let team = std::slice::from_ref(&ratings[seat.agent.0]);
                (team, MultiTeamOutcome::new(seat.rank as usize))
            })
            .collect();
        let after = weng_lin_multi_team(&teams, &config);
        for (seat, team) in game.seats.iter().zip(after) {
            ratings[seat.agent.0] = team[0];
        }
    }
    ratings.into_iter().map(|known| OpenSkill { mu: known.rating, sigma: known.uncertainty }).collect()
}
