//! Bradley–Terry and Elo ratings side by side.

use serde::{Deserialize, Serialize};

use crate::bradley_terry::{self, FitError, FitOptions, Group, Interval, Rank};
use crate::elo::{EloOptions, elo};
use crate::results::{AgentIndex, Results, Tally, tallies};

/// The constants of both rating systems.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RatingOptions {
    pub elo: EloOptions,
    pub bradley_terry: FitOptions,
}

#[derive(Debug, Clone)]
pub struct RatingTable {
    /// The agents, group by group. Within a group, agents are in descending order of Bradley–Terry rating.
    pub rows: Vec<RatingRow>,
    /// The groups of agents that games link, directly or through a chain of agents. The largest group comes first. Both
    /// systems rate each group separately, so ratings of different groups can't be compared.
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatingRow {
    pub agent: AgentIndex,
    /// The number of the agent's group, from 0.
    pub group: usize,
    #[serde(flatten)]
    pub tally: Tally,
    /// The Elo rating after the last game.
    pub elo: f64,
    /// The Bradley–Terry rating, in Elo.
    pub rating: f64,
    /// The 95 % interval of `rating`.
    pub interval: Interval,
    /// The agent's rank within its group, with the range of ranks that the rating intervals permit.
    pub rank: Rank,
}

/// Rates all agents by both systems.
///
/// # Errors
/// [`FitError`] if the Bradley–Terry model can't be fitted with these options.
pub fn rate_all(results: &Results, options: &RatingOptions) -> Result<RatingTable, FitError> {
    let groups = bradley_terry::groups(results, &options.bradley_terry)?;
    let mut rows = Vec::with_capacity(results.agents());
    for (number, group) in groups.iter().enumerate() {
        let games = &group.results;
        let ranking = group.fit.ranking();
        let (tallies, elo) = (tallies(games), elo(games, &options.elo));
        rows.extend(ranking.order.iter().map(|&agent| RatingRow {
            agent: group.agents[agent.0],
            group: number,
            tally: tallies[agent.0],
            elo: elo[agent.0],
            rating: group.fit.rating(agent),
            interval: group.fit.interval(agent),
            rank: ranking.ranks[agent.0],
        }));
    }
    Ok(RatingTable { rows, groups })
}
