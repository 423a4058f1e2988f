//! Ratings of a tournament: how strong its games say that the agents are, and how sure that is.

use arena_ratings::bradley_terry::{FitOptions, Group, Interval, Rank, groups};
use arena_ratings::{AgentIndex, Results};
use arena_tournament::{Record, results};

/// The ratings of all agents, in groups that share games. Each group is rated by itself.
pub struct Ratings {
    groups: Vec<Group>,
    /// By agent.
    agents: Vec<Rated>,
}

/// An agent's group and ranks.
#[derive(Clone, Copy)]
struct Rated {
    group: usize,
    /// Its number in the group.
    index: AgentIndex,
    ranks: Rank,
}

/// The rating of one agent, in Elo.
#[derive(Debug, Clone, Copy)]
pub struct Rating {
    /// The mean is 0 of the agents of its group, but for those that the results don't tie to the others: most often those that won or
    /// lost everything.
    pub elo: f64,
    /// Where it lies with 95 % confidence; unbounded where the games leave it open.
    pub interval: Interval,
    /// The ranks that the games allow, among all agents. The games don't compare agents of different groups.
    pub ranks: Rank,
}

impl Ratings {
    /// The ratings, once there are games; `None` also with more agents than can be rated together.
    pub fn of(record: &Record) -> Option<Ratings> {
        Ratings::of_results(&results(&record.schedule))
    }

    /// The ratings by these results, once there are some; `None` also with more agents than can be rated together.
    pub fn of_results(results: &Results) -> Option<Ratings> {
        if results.is_empty() {
            return None;
        }
        let groups = groups(results, &FitOptions::default()).ok()?;
        let nobody = Rank { place: 1, tie: 0, best: 1, worst: results.agents() };
        let mut agents = vec![Rated { group: 0, index: AgentIndex(0), ranks: nobody }; results.agents()];
        for (number, group) in groups.iter().enumerate() {
            let others = results.agents() - group.agents.len();
            for (place, (agent, ranks)) in group.agents.iter().zip(group.fit.ranking().ranks).enumerate() {
                let ranks = Rank { worst: ranks.worst + others, ..ranks };
                agents[agent.0] = Rated { group: number, index: AgentIndex(place), ranks };
            }
        }
        Some(Ratings { groups, agents })
    }

    /// The rating of the agent of this number.
    pub fn rating(&self, agent: usize) -> Rating {
        let Rated { group, index, ranks } = self.agents[agent];
        let fit = &self.groups[group].fit;
        Rating { elo: fit.rating(index), interval: fit.interval(index), ranks }
    }

    /// All agents, by number: group by group, in each the highest rating first.
    pub fn order(&self) -> Vec<usize> {
        let of_group = |group: &Group| group.fit.order().into_iter().map(|index| group.agents[index.0].0).collect();
        self.groups.iter().flat_map(|group| -> Vec<usize> { of_group(group) }).collect()
    }

    /// The group of an agent, from 0 for the largest.
    pub fn group(&self, agent: usize) -> usize {
        self.agents[agent].group
    }

    /// The place of an agent by its rating in its group: `2`, or `2=` if the games don't separate it from others with that place.
    pub fn place(&self, agent: usize) -> String {
        let Rated { group, ranks, .. } = self.agents[agent];
        let shares = |other: &&Rated| (other.group, other.ranks.place) == (group, ranks.place);
        let is_shared = self.agents.iter().filter(shares).count() > 1;
        format!("{}{}", ranks.place, if is_shared { "=" } else { "" })
    }

    /// The groups of agents with games, by number; the largest first.
    fn groups_with_games(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| !group.results.is_empty())
    }

    /// A sentence for agents that share no games; `None` if all that have games do.
    pub fn apart<'n>(&self, name: impl Fn(usize) -> &'n str) -> Option<String> {
        let groups: Vec<Vec<&str>> =
            self.groups_with_games().map(|group| group.agents.iter().map(|agent| name(agent.0)).collect()).collect();
        apart(&groups)
    }

    /// What it would take for another to lead, in a sentence; or that nobody leads.
    pub fn lead(&self, record: &Record) -> Option<String> {
        self.lead_among(|agent| record.name(agent))
    }

    /// The same of agents that bear these names.
    pub fn lead_among<'n>(&self, name: impl Fn(usize) -> &'n str) -> Option<String> {
        let mut groups = self.groups_with_games();
        // Between groups that share no games there is no lead.
        let (Some(group), None) = (groups.next(), groups.next()) else { return None };
        let games = group.fit.games_to_lose_lead()?;
        let order = group.fit.order();
        let name = |index: AgentIndex| name(group.agents[index.0].0);
        let (first, second) = (name(*order.first()?), name(*order.get(1)?));
        if games == 0 {
            return Some(format!("nobody leads in Elo: {first} and {second} share the first place"));
        }
        let games = if games == 1 { "1 game".to_owned() } else { format!("{games} games") };
        Some(format!("{games} more, if {second} won them all against {first}, would end the lead of {first} in Elo"))
    }
}

impl Rating {
    /// What stands behind `±`: one number, or one to either side where they differ.
    pub fn margin(&self) -> String {
        let side = |margin: f64| if margin.is_finite() { format!("{margin:.0}") } else { "∞".to_owned() };
        let (below, above) = (side(self.elo - self.interval.low), side(self.interval.high - self.elo));
        if below == above { below } else { format!("-{below} +{above}") }
    }

    /// The ranks that the games allow.
    pub fn range(&self) -> String {
        match (self.ranks.best, self.ranks.worst) {
            (best, worst) if best == worst => best.to_string(),
            (best, worst) => format!("{best}-{worst}"),
        }
    }
}

/// More names than these aren't listed in a sentence.
const NAMES: usize = 5;

/// A sentence for groups of agents that share no games, by the names of their agents; `None` if there is one group.
pub fn apart(groups: &[Vec<&str>]) -> Option<String> {
    if groups.len() < 2 {
        return None;
    }
    let groups: Vec<String> = groups.iter().map(|names| format!("({})", listed(names))).collect();
    Some(format!(
        "{} groups of agents share no games; each is rated by itself, and ratings of different groups can't be compared: {}",
        groups.len(),
        listed(&groups)
    ))
}

/// A list for a sentence, cut where it gets too long.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] if names.len() <= NAMES => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMES - 1].join(", "), names.len() - (NAMES - 1)),
    }
}
