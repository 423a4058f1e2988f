//! Ratings of a tournament: how strong its games say that the agents are, and how sure that is.

use arena_match::tournament::Record;
use arena_ratings::AgentIndex;
use arena_ratings::bradley_terry::{Fit, FitOptions, Interval, Rank, fit};
use arena_tournament::results;

/// The ratings of all agents.
pub struct Ratings {
    fit: Fit,
    ranks: Vec<Rank>,
}

/// The rating of one agent, in Elo.
#[derive(Debug, Clone, Copy)]
pub struct Rating {
    /// The mean of all agents is 0.
    pub elo: f64,
    /// Where it lies with 95 % confidence; unbounded where the games leave it open.
    pub interval: Interval,
    /// The ranks that the games allow.
    pub ranks: Rank,
}

impl Ratings {
    /// The ratings, once there are games; `None` also with more agents than can be rated together.
    pub fn of(record: &Record) -> Option<Ratings> {
        let results = results(&record.schedule);
        if results.is_empty() {
            return None;
        }
        let fit = fit(&results, &FitOptions::default()).ok()?;
        let ranks = fit.ranking().ranks;
        Some(Ratings { fit, ranks })
    }

    /// The rating of the agent of this number.
    pub fn rating(&self, agent: usize) -> Rating {
        let index = AgentIndex(agent);
        Rating { elo: self.fit.rating(index), interval: self.fit.interval(index), ranks: self.ranks[agent] }
    }

    /// What it would take for another to lead, in a sentence.
    pub fn lead(&self, record: &Record) -> Option<String> {
        let games = self.fit.games_to_lose_lead().filter(|games| *games > 0)?;
        let order = self.fit.order();
        let (first, second) = (record.name(order.first()?.0), record.name(order.get(1)?.0));
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
