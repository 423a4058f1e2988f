//! Elo ratings of a tournament's agents, with 95 % intervals and ranks.

use arena_ratings::bradley_terry::{FitOptions, Group, Interval, Rank, groups};
use arena_ratings::{AgentIndex, Results};
use arena_tournament::{Record, results};
use serde_json::{Value, json};

/// Agents that games link, directly or through a chain of agents, form a group; each group is rated separately.
pub struct Ratings {
    groups: Vec<Group>,
    /// The agents' groups and ranks, by agent number.
    agents: Vec<Rated>,
}

#[derive(Clone, Copy)]
struct Rated {
    group: usize,
    index: AgentIndex,
    ranks: Rank,
}

/// The rating of one agent, in Elo.
#[derive(Debug, Clone, Copy)]
pub struct Rating {
    /// The rating, relative to the mean of the core of the agent's group: see [`arena_ratings::bradley_terry`]. The
    /// core usually consists of all agents in the group except those that won or lost every game.
    pub elo: f64,
    /// The 95 % interval of the rating, unbounded on each side for which the games give no bound.
    pub interval: Interval,
    /// The rank within the group, and the range of ranks among all agents that the intervals permit. Agents of other
    /// groups may rank above or below, since no games link the groups.
    pub ranks: Rank,
}

impl Ratings {
    /// Rates the agents of a record. `None` without games, or with too many agents to be rated together.
    pub fn of(record: &Record) -> Option<Ratings> {
        Ratings::of_results(&results(&record.schedule))
    }

    /// Rates agents from these results. `None` without games, or with too many agents to be rated together.
    pub fn of_results(results: &Results) -> Option<Ratings> {
        if results.is_empty() {
            return None;
        }
        let groups = groups(results, &FitOptions::default()).ok()?;
        let unrated = Rank { place: 1, tie: 0, best: 1, worst: results.agents() };
        let mut agents = vec![Rated { group: 0, index: AgentIndex(0), ranks: unrated }; results.agents()];
        for (number, group) in groups.iter().enumerate() {
            let others = results.agents() - group.agents.len();
            for (place, (agent, ranks)) in group.agents.iter().zip(group.fit.ranking().ranks).enumerate() {
                let ranks = Rank { worst: ranks.worst + others, ..ranks };
                agents[agent.0] = Rated { group: number, index: AgentIndex(place), ranks };
            }
        }
        Some(Ratings { groups, agents })
    }

    pub fn rating(&self, agent: usize) -> Rating {
        let Rated { group, index, ranks } = self.agents[agent];
        let fit = &self.groups[group].fit;
        Rating { elo: fit.rating(index), interval: fit.interval(index), ranks }
    }

    /// Returns all agent numbers, group by group, the highest rating of each group first.
    pub fn order(&self) -> Vec<usize> {
        let of_group = |group: &Group| group.fit.order().into_iter().map(|index| group.agents[index.0].0).collect();
        self.groups.iter().flat_map(|group| -> Vec<usize> { of_group(group) }).collect()
    }

    /// Returns the group of an agent, from 0 for the largest.
    pub fn group(&self, agent: usize) -> usize {
        self.agents[agent].group
    }

    /// Returns an agent's rank by Elo in its group: `2`, or `2=` if other agents share the rank.
    pub fn place(&self, agent: usize) -> String {
        let Rated { group, ranks, .. } = self.agents[agent];
        let shares = |other: &&Rated| (other.group, other.ranks.place) == (group, ranks.place);
        let is_shared = self.agents.iter().filter(shares).count() > 1;
        format!("{}{}", ranks.place, if is_shared { "=" } else { "" })
    }

    /// Returns the groups that have games, the largest first.
    fn groups_with_games(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.results.is_empty())
    }

    /// Lists in a sentence the groups of agents between which no games were played; `None` if there is only one group.
    pub fn apart<'n>(&self, name: impl Fn(usize) -> &'n str) -> Option<String> {
        let groups: Vec<Vec<&str>> =
            self.groups_with_games().map(|group| group.agents.iter().map(|agent| name(agent.0)).collect()).collect();
        apart(&groups)
    }

    /// Returns a sentence with the width of the lead in games, or with the agents that share first place.
    pub fn lead(&self, record: &Record) -> Option<String> {
        self.lead_among(|agent| record.name(agent))
    }

    pub fn lead_among<'n>(&self, name: impl Fn(usize) -> &'n str) -> Option<String> {
        let mut groups = self.groups_with_games();
        // With several groups there is no overall lead, since their ratings can't be compared.
        let (Some(group), None) = (groups.next(), groups.next()) else { return None };
        let games = group.fit.games_to_lose_lead()?;
        let name = |index: &AgentIndex| name(group.agents[index.0].0);
        if games == 0 {
            let leaders: Vec<&str> = group.fit.leaders().iter().map(name).collect();
            return Some(format!("no leader in Elo: {} share first place", listed(&leaders)));
        }
        let order = group.fit.order();
        Some(lead_width(name(order.first()?), "Elo lead", games, name(order.get(1)?)))
    }
}

impl Rating {
    /// Adds the rating to an agent's object in JSON. `group` is the group's number, from 0.
    pub(crate) fn add_to(&self, row: &mut Value, group: usize) {
        let Rating { elo, interval, ranks } = self;
        // An unbounded end is null.
        row["elo"] = json!({"rating": elo, "low": interval.low, "high": interval.high});
        row["rank_may_be"] = json!({"best": ranks.best, "worst": ranks.worst});
        // Ratings of different groups can't be compared.
        row["group"] = (1 + group).into();
    }

    /// Formats the margin after `±`: one number, or one for each side if they differ.
    pub fn margin(&self) -> String {
        let side = |margin: f64| if margin.is_finite() { format!("{margin:.0}") } else { "∞".to_owned() };
        let (below, above) = (side(self.elo - self.interval.low), side(self.interval.high - self.elo));
        if below == above { below } else { format!("-{below} +{above}") }
    }

    /// Formats the range of ranks: `2`, or `1-3`.
    pub fn range(&self) -> String {
        match (self.ranks.best, self.ranks.worst) {
            (best, worst) if best == worst => best.to_string(),
            (best, worst) => format!("{best}-{worst}"),
        }
    }
}

/// The largest number of names that a sentence lists in full.
const NAMES: usize = 5;

/// Returns a sentence that lists the groups of agents between which no games were played; `None` if there are fewer
/// than two groups.
pub fn apart(groups: &[Vec<&str>]) -> Option<String> {
    if groups.len() < 2 {
        return None;
    }
    let groups: Vec<String> = groups.iter().map(|names| format!("({})", listed(names))).collect();
    Some(format!(
        "{} groups of agents share no games; each group is rated separately, and ratings of different groups cannot be compared: {}",
        groups.len(),
        listed(&groups)
    ))
}

/// Returns a sentence with the width of a lead: the games in a row that `second` has to win against `first` to end it.
pub fn lead_width(first: &str, lead: &str, games: u64, second: &str) -> String {
    let (width, next) = match games {
        1 => ("1 game".to_owned(), "the next game".to_owned()),
        _ => (format!("{games} games"), format!("the next {games} games")),
    };
    format!("{first}'s {lead} is {width} wide: it would end if {second} won {next} between them")
}

/// Joins names for a sentence: all of them, or the first few and the number of the rest.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] if names.len() <= NAMES => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMES - 1].join(", "), names.len() - (NAMES - 1)),
    }
}
