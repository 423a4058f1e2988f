//! Ratings of a tournament: how strong its games say that the agents are, and how sure that is.

use arena_match::tournament::Record;
use arena_ratings::bradley_terry::{Fit, FitOptions, Interval, Rank, fit};
use arena_ratings::{AgentIndex, Results};
use arena_tournament::results;

/// The ratings of all agents.
pub struct Ratings {
    fit: Fit,
    ranks: Vec<Rank>,
}

/// The rating of one agent, in Elo.
#[derive(Debug, Clone, Copy)]
pub struct Rating {
    /// The mean is 0 of all agents but those that the results don't tie to the others: most often those that won or lost everything.
    pub elo: f64,
    /// Where it lies with 95 % confidence; unbounded where the games leave it open.
    pub interval: Interval,
    /// The ranks that the games allow.
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
        let fit = fit(results, &FitOptions::default()).ok()?;
        let ranks = fit.ranking().ranks;
        Some(Ratings { fit, ranks })
    }

    /// The rating of the agent of this number.
    pub fn rating(&self, agent: usize) -> Rating {
        let index = AgentIndex(agent);
        Rating { elo: self.fit.rating(index), interval: self.fit.interval(index), ranks: self.ranks[agent] }
    }

    /// All agents, by number, the highest rating first.
    pub fn order(&self) -> Vec<usize> {
        self.fit.order().into_iter().map(|agent| agent.0).collect()
    }

    /// The place of an agent by its rating: `2`, or `2=` if others share it, whom the games don't tell from the best of them.
    pub fn place(&self, agent: usize) -> String {
        let place = self.ranks[agent].place;
        let shared = self.ranks.iter().filter(|rank| rank.place == place).count() > 1;
        format!("{place}{}", if shared { "=" } else { "" })
    }

    /// What it would take for another to lead, in a sentence; or that nobody leads.
    pub fn lead(&self, record: &Record) -> Option<String> {
        self.lead_among(|agent| record.name(agent))
    }

    /// The same of agents that bear these names.
    pub fn lead_among<'n>(&self, name: impl Fn(usize) -> &'n str) -> Option<String> {
        let games = self.fit.games_to_lose_lead()?;
        let order = self.fit.order();
        let (first, second) = (name(order.first()?.0), name(order.get(1)?.0));
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
