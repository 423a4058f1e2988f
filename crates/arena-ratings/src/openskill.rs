//! OpenSkill: ratings for games of any number of seats, by the method of Weng and Lin with full pairs. The crate
//! `skillratings` implements the formulas.

use serde::{Deserialize, Serialize};
use skillratings::MultiTeamOutcome;
use skillratings::weng_lin::{WengLinConfig, WengLinRating, weng_lin_multi_team};

use crate::results::Results;

/// The constants of OpenSkill.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpenSkillOptions {
    /// The difference of skill at which the better agent wins about two of three games. Games with more luck need a
    /// larger value.
    pub beta: f64,
}

impl Default for OpenSkillOptions {
    /// Returns the usual beta of 25/6.
    fn default() -> OpenSkillOptions {
        OpenSkillOptions { beta: 25.0 / 6.0 }
    }
}

/// An agent's OpenSkill rating.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OpenSkill {
    /// The estimated skill, 25 at the start.
    pub mu: f64,
    /// The standard deviation of the skill, 25/3 at the start.
    pub sigma: f64,
}

impl OpenSkill {
    /// Returns `mu` - 3 `sigma`, a lower bound of the skill by which leaderboards are usually sorted.
    pub fn ordinal(&self) -> f64 {
        self.mu - 3.0 * self.sigma
    }
}

/// Returns each agent's rating after all games, which are rated in playing order. Games that repeat earlier games are
/// left out, because they would narrow the deviation.
///
/// Source: R. Weng and C.-J. Lin, *A Bayesian Approximation Method for Online Ranking* (2011), algorithm 1.
pub fn openskill(results: &Results, options: &OpenSkillOptions) -> Vec<OpenSkill> {
    let config = WengLinConfig { beta: options.beta, ..WengLinConfig::new() };
    let mut ratings = vec![WengLinRating::new(); results.agents()];
    for game in results.distinct() {
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
