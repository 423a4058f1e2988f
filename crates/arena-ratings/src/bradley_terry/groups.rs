//! Separate fits for groups of agents that aren't linked by games, so that the ratings of one group don't depend on the
//! games of another.

use super::fit::fit;
use super::{Fit, FitError, FitOptions};
use crate::results::{AgentIndex, Results};

/// A group of agents that games link, directly or through a chain of agents, with the group's fit.
#[derive(Debug, Clone)]
pub struct Group {
    /// The agents, in ascending order of number. An agent's number within the group is its index in this list.
    pub agents: Vec<AgentIndex>,
    pub results: Results,
    pub fit: Fit,
}

impl Group {
    /// Returns the number of an agent within the group; `None` if the agent isn't in the group.
    pub fn place(&self, agent: AgentIndex) -> Option<AgentIndex> {
        self.agents.binary_search(&agent).ok().map(AgentIndex)
    }
}

/// Splits the agents into groups that games link, and fits each group separately. The largest group comes first.
///
/// # Errors
/// [`FitError`] if the fit of a group fails.
pub fn groups(results: &Results, options: &FitOptions) -> Result<Vec<Group>, FitError> {
    let group = |agents: Vec<AgentIndex>| {
        let results = results.among(&agents);
        let fit = fit(&results, options)?;
        Ok(Group { agents, results, fit })
    };
    results.groups().into_iter().map(group).collect()
}
