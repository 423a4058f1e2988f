//! Agents that share no games are fitted apart, so that the numbers of one group don't depend on the games of another.

use super::fit::fit;
use super::{Fit, FitError, FitOptions};
use crate::results::{AgentIndex, Results};

/// Agents that share games, directly or through others, and their fit.
#[derive(Debug, Clone)]
pub struct Group {
    /// The agents, by number. Within the group they are numbered by their places in this list.
    pub agents: Vec<AgentIndex>,
    /// Their games.
    pub results: Results,
    /// Their ratings.
    pub fit: Fit,
}

impl Group {
    /// The number of an agent within the group; `None` if it isn't in the group.
    pub fn place(&self, agent: AgentIndex) -> Option<AgentIndex> {
        self.agents.binary_search(&agent).ok().map(AgentIndex)
    }
}

/// Fits each group of agents that share games by itself. The largest group comes first.
///
/// # Errors
/// As [`fit`] for any of the groups.
pub fn groups(results: &Results, options: &FitOptions) -> Result<Vec<Group>, FitError> {
    let group = |agents: Vec<AgentIndex>| {
        let results = results.among(&agents);
        let fit = fit(&results, options)?;
        Ok(Group { agents, results, fit })
    };
    results.groups().into_iter().map(group).collect()
}
