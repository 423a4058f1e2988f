//! All ratings side by side.

use serde::{Deserialize, Serialize};

use crate::bradley_terry::{self, FitError, FitOptions, Group, Interval, Rank};
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

/// The ratings of all agents.
#[derive(Debug, Clone)]
pub struct Standings {
    /// Group by group; in each the highest rating of Bradley–Terry first.
    pub rows: Vec<Standing>,
    /// The groups of agents that share games, the largest first. Each is rated by itself, by every system: numbers of different groups
    /// can't be compared.
    pub groups: Vec<Group>,
}

/// The ratings of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Standing {
    /// The agent.
    pub agent: AgentIndex,
    /// Its group, from 0.
    pub group: usize,
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
    /// The interval of the rating, with 95 % confidence.
    pub interval: Interval,
    /// The ranks that the results allow, among the agents of its group.
    pub rank: Rank,
}

/// All ratings of all agents.
///
/// # Errors
/// [`FitError`] if Bradley–Terry can't be fitted as asked.
pub fn standings(results: &Results, options: &RatingOptions) -> Result<Standings, FitError> {
    let groups = bradley_terry::groups(results, &options.bradley_terry)?;
    let mut rows = Vec::with_capacity(results.agents());
    for (number, group) in groups.iter().enumerate() {
        let games = &group.results;
        let ranking = group.fit.ranking();
        let (tallies, elo) = (tallies(games), elo(games, &options.elo));
        let (glicko2, openskill) = (glicko2(games, &options.glicko2), openskill(games, &options.openskill));
        rows.extend(ranking.order.iter().map(|&agent| Standing {
            agent: group.agents[agent.0],
            group: number,
            tally: tallies[agent.0],
            elo: elo[agent.0],
            glicko2: glicko2[agent.0],
            openskill: openskill[agent.0],
            rating: group.fit.rating(agent),
            interval: group.fit.interval(agent),
            rank: ranking.ranks[agent.0],
        }));
    }
    Ok(Standings { rows, groups })
}
