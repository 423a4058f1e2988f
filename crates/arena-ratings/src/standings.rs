//! All ratings side by side.

use serde::{Deserialize, Serialize};

use crate::bradley_terry::{self, Fit, FitError, FitOptions, Interval, Rank};
use crate::elo::{EloOptions, elo};
use crate::glicko2::{Glicko2, Glicko2Options, glicko2};
use crate::openskill::{OpenSkill, OpenSkillOptions, openskill};
use crate::results::{AgentIndex, Results, Tally, tallies};

/// How results become ratings.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RatingOptions {
    /// Of Elo.
    pub elo: EloOptions,
    /// Of Glicko-2.
    pub glicko2: Glicko2Options,
    /// Of OpenSkill.
    pub openskill: OpenSkillOptions,
    /// Of Bradley–Terry.
    pub bradley_terry: FitOptions,
}

/// What is to be said of all agents.
#[derive(Debug, Clone)]
pub struct Standings {
    /// The highest rating of Bradley–Terry first.
    pub rows: Vec<Standing>,
    /// The fit, for differences and whatever else it can tell.
    pub fit: Fit,
    /// See [`Fit::games_to_lose_lead`].
    pub games_to_lose_lead: Option<u64>,
}

/// What is to be said of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Standing {
    /// Which.
    pub agent: AgentIndex,
    /// Games and points.
    #[serde(flatten)]
    pub tally: Tally,
    /// After the last game.
    pub elo: f64,
    /// After the last game.
    pub glicko2: Glicko2,
    /// After the last game.
    pub openskill: OpenSkill,
    /// From all games together, in Elo.
    pub rating: f64,
    /// Where the true rating lies, with 95 % confidence.
    pub interval: Interval,
    /// Which ranks the results allow.
    pub rank: Rank,
}

/// All ratings of all agents.
///
/// # Errors
/// [`FitError`] if Bradley–Terry can't be fitted as asked.
pub fn standings(results: &Results, options: &RatingOptions) -> Result<Standings, FitError> {
    let fit = bradley_terry::fit(results, &options.bradley_terry)?;
    let ranking = fit.ranking();
    let (tallies, elo) = (tallies(results), elo(results, &options.elo));
    let (glicko2, openskill) = (glicko2(results, &options.glicko2), openskill(results, &options.openskill));
    let row = |agent: AgentIndex| Standing {
        agent,
        tally: tallies[agent.0],
        elo: elo[agent.0],
        glicko2: glicko2[agent.0],
        openskill: openskill[agent.0],
        rating: fit.rating(agent),
        interval: fit.interval(agent),
        rank: ranking.ranks[agent.0],
    };
    let rows = ranking.order.iter().map(|agent| row(*agent)).collect();
    Ok(Standings { rows, games_to_lose_lead: fit.games_to_lose_lead(), fit })
}
