//! Bradley–Terry with ties, after Davidson: the strengths under which all results together are likeliest, and how sure
//! they are. The order of games doesn't matter.
//!
//! # The model
//!
//! With `d` the difference of two strengths, in natural log-odds, plus the advantage of the first seat if that is
//! estimated, win, tie and loss are as e^(d/2) : ν : e^(-d/2). An agent's rating is 400/ln 10 times its strength.
//! A game of N seats counts as a comparison of every two of them, with the weight 1/(N - 1), so that it is one game for
//! each agent in it, as it is in points and in Elo. That weight says nothing about how much a game tells: the intervals
//! take the whole game for one observation, and would be the same with another weight.
//!
//! # The estimate
//!
//! By default the likelihood is multiplied with Jeffreys' prior, the root of the determinant of the information (Firth,
//! *Bias reduction of maximum likelihood estimates*, 1993). That takes away the leading bias of maximum likelihood, by
//! which strong agents look stronger than they are after few games, and it keeps everybody finite: with two agents and no
//! ties it is the same as half a game more won by each. With many games it makes no difference. [`Estimate::MaximumLikelihood`]
//! is without it, as other programs do it, and fails where the likeliest rating is infinite.
//!
//! Ratings are given against the mean of the agents that the results tie to each other: the largest group in which
//! everybody has points, by some way through others, from everybody. That is all agents, unless somebody never lost a
//! point, or never won one. Agents that share no games, directly or through others, are fitted apart ([`groups`]).
//!
//! # The intervals
//!
//! Games that share a seed, and comparisons of one game, depend on each other. So the covariance is by default a sandwich
//! with a pair of games as one observation (Liang and Zeger, 1986), with the scores of each widened by what the fit
//! took out of them (Bell and McCaffrey, 2002), and mixed with two observations' worth of the model's own covariance, so
//! that a few pairs that happen to agree don't make it vanish. Quantiles are Student's, with the number of observations
//! that an agent's rating rests on. Where every game is alone and has two seats, the model's own covariance is right, and
//! is used. Both are taken at the curvature of what was made as great as possible, with the prior if it has a part in it:
//! without that, intervals after few games hold the truth more often than they say. How often they do is what the
//! scenario `coverage` of the benchmark measures.
//!
//! An interval is unbounded where the results leave it open: upwards for an agent that lost no point to those it is
//! compared with, whatever its rating says. See [`Fit::interval`].

mod covariance;
mod fit;
mod forecast;
mod groups;
mod pairs;
mod ranking;
mod reach;

pub use fit::{Fit, fit};
pub use forecast::{Forecast, next_game};
pub use groups::{Group, groups};
pub use ranking::{Rank, Ranking};

use serde::{Deserialize, Serialize};

/// How a fit is made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FitOptions {
    /// What the ratings are.
    pub estimate: Estimate,
    /// How sure they are.
    pub covariance: Covariance,
    /// Whether the advantage of the first of two seats is estimated too, such as White's in chess. Games of more seats
    /// have none.
    pub seat_advantage: bool,
    /// The mean of the ratings.
    pub mean: f64,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions { estimate: Estimate::BiasReduced, covariance: Covariance::Auto, seat_advantage: false, mean: 0.0 }
    }
}

/// What the ratings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimate {
    /// The maximum of the likelihood times Jeffreys' prior: less biased, and always finite.
    #[default]
    BiasReduced,
    /// The maximum of the likelihood alone, where there is one.
    MaximumLikelihood,
}

/// How the covariance of the ratings is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covariance {
    /// The sandwich if games come in pairs or have more than two seats, else the model's.
    #[default]
    Auto,
    /// The inverse of the Fisher information: what it is if the model holds and games are independent.
    Fisher,
    /// What the scatter of pairs of games says it is.
    Sandwich,
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Time and memory grow with the square and the cube of their number.
    #[error("there are {0} agents, and at most {MAX_AGENTS} can be fitted together")]
    TooManyAgents(usize),
    /// Somebody's likeliest rating is infinite.
    #[error("the results have no maximum of likelihood: some agents took no point from the others, or never met them")]
    NoMaximum,
    /// Strength and seat can't be told apart.
    #[error("the advantage of the first seat can't be told from the agents' strengths: they don't change seats")]
    SeatAdvantage,
}

/// The most agents that can be fitted together.
pub const MAX_AGENTS: usize = 2_000;

/// An interval, on either side of which there may be no bound: then the end is infinite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it.
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
