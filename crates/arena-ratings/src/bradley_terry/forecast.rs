//! The choice of the next games: the games that are expected to narrow the widest rating interval most. In this file, a
//! *meeting* is the games of one set of agents with one seed, with rotated seats.

use super::Fit;
use super::pairs::weight;
use crate::distributions::student_quantile;
use crate::elo::ELO_PER_LOGIT;
use crate::linear::Matrix;
use crate::results::AgentIndex;

/// The relative difference below which values count as equal. A different order of summation can cause such a
/// difference.
const EQUAL: f64 = 1e-9;

/// The forecast covariance of strengths, after games that are chosen but not yet played. The information of a game
/// depends on the strengths of its agents, not on the result, so several games can be chosen before any is played.
#[derive(Debug, Clone)]
pub struct Forecast<'f> {
    fit: &'f Fit,
    seats: usize,
    games: f64,
    /// The covariance of the strengths, in squared log-odds.
    covariance: Matrix,
    freedom: Vec<f64>,
    /// The quantile of Student's distribution for each agent.
    quantiles: Vec<f64>,
    /// True for each agent that can be chosen.
    can_play: Vec<bool>,
}

impl<'f> Forecast<'f> {
    /// Creates a forecast from a fit, for meetings with these numbers of seats and games.
    pub fn new(fit: &'f Fit, seats: usize, games: usize) -> Forecast<'f> {
        let spread = fit.spread();
        let freedom = spread.freedom.clone();
        let quantiles = freedom.iter().map(|freedom| student_quantile(*freedom)).collect();
        let can_play = vec![true; fit.agents()];
        Forecast {
            fit,
            seats,
            games: games as f64,
            covariance: spread.covariance.clone(),
            freedom,
            quantiles,
            can_play,
        }
    }

    /// Restricts the choice to agents for which `can_play` returns true. Results of the other agents still affect the
    /// covariance.
    pub fn among(self, can_play: impl Fn(AgentIndex) -> bool) -> Forecast<'f> {
        let can_play = (0..self.fit.agents()).map(|agent| can_play(AgentIndex(agent))).collect();
        Forecast { can_play, ..self }
    }

    /// Returns the forecast half-width of an agent's interval, in Elo. Applies if both ends are bounded.
    pub fn half_width(&self, agent: AgentIndex) -> f64 {
        let agent = agent.0;
        self.quantiles[agent] * ELO_PER_LOGIT * self.covariance.at(agent, agent).max(0.0).sqrt()
    }

    /// Chooses the distinct agents of the meeting that is expected to narrow the widest interval most, and updates the
    /// forecast as if the meeting had been played. The first agent has the widest interval of those for which
    /// `is_wanted` returns true; its arguments are the agent and the half-width of the agent's interval. Each further
    /// agent is the opponent that narrows this interval most. The list is empty if no agent is wanted, there are too few
    /// agents, or fewer than two seats.
    ///
    /// The information of a game follows from the model. It is largest against an opponent of equal strength with a
    /// narrow interval. Of equal candidates, the agent with the lowest number is chosen; before the first game, all
    /// agents are equal.
    pub fn next(&mut self, is_wanted: impl Fn(AgentIndex, f64) -> bool) -> Vec<AgentIndex> {
        let agents: Vec<usize> = (0..self.fit.agents()).filter(|agent| self.can_play[*agent]).collect();
        if self.seats < 2 || self.seats > agents.len() {
            return Vec::new();
        }
        let widths = agents.iter().copied().map(|agent| (self.half_width(AgentIndex(agent)), agent));
        let Some(widest) = greatest(widths.filter(|(width, agent)| is_wanted(AgentIndex(*agent), *width))) else {
            return Vec::new();
        };
        let mut seated = vec![widest];
        while seated.len() < self.seats {
            let others = agents.iter().copied().filter(|other| !seated.contains(other));
            let Some(next) = greatest(others.map(|other| (self.gain(&seated, other), other))) else { break };
            self.join(&seated, next);
            seated.push(next);
        }
        self.end(&seated);
        seated.into_iter().map(AgentIndex).collect()
    }

    /// Updates the forecast as if a meeting of these agents had been played.
    pub fn take(&mut self, agents: &[AgentIndex]) {
        let agents: Vec<usize> = agents.iter().map(|agent| agent.0).collect();
        for (place, agent) in agents.iter().enumerate() {
            self.join(&agents[..place], *agent);
        }
        self.end(&agents);
    }

    /// Updates the covariance for the games of `other` against each agent in `seated`.
    fn join(&mut self, seated: &[usize], other: usize) {
        for &one in seated {
            let information = self.information(one, other);
            observe(&mut self.covariance, one, other, information);
        }
    }

    /// Adds one observation to each agent's degrees of freedom.
    fn end(&mut self, seated: &[usize]) {
        for &agent in seated {
            self.freedom[agent] += 1.0;
            self.quantiles[agent] = student_quantile(self.freedom[agent]);
        }
    }

    /// Returns the decrease of the first seated agent's variance if `other` joins the agents in `seated`.
    fn gain(&self, seated: &[usize], other: usize) -> f64 {
        let members: Vec<usize> = seated.iter().copied().chain([other]).collect();
        let mut covariance = Matrix::zero(members.len());
        for (row, one) in members.iter().enumerate() {
            for (column, two) in members.iter().enumerate() {
                covariance.add(row, column, self.covariance.at(*one, *two));
            }
        }
        let before = covariance.at(0, 0);
        for (place, &one) in seated.iter().enumerate() {
            observe(&mut covariance, place, seated.len(), self.information(one, other));
        }
        before - covariance.at(0, 0)
    }

    /// Returns the information that a meeting gives on the difference of two of its agents' strengths.
    fn information(&self, one: usize, two: usize) -> f64 {
        let [information, ..] = self.fit.odds(one, two).information();
        self.games * weight(self.seats) * information
    }
}

/// Updates a covariance for an observation of the difference between two strengths, where `information` is the inverse
/// variance of the observation.
fn observe(covariance: &mut Matrix, one: usize, two: usize, information: f64) {
    let gain: Vec<f64> =
        covariance.row(one).iter().zip(covariance.row(two)).map(|(with_one, with_two)| with_one - with_two).collect();
    let share = information / (1.0 + information * (gain[one] - gain[two]).max(0.0));
    for (row, &of_row) in gain.iter().enumerate() {
        for (column, &of_column) in gain.iter().enumerate() {
            covariance.add(row, column, -share * of_row * of_column);
        }
    }
}

/// Returns the agent with the greatest value; of equal values, the first.
fn greatest(values: impl Iterator<Item = (f64, usize)>) -> Option<usize> {
    let better = |best: Option<(f64, usize)>, (value, agent): (f64, usize)| match best {
        Some((most, _)) if value <= most + EQUAL * most.abs() => best,
        _ => Some((value, agent)),
    };
    values.fold(None, better).map(|(_, agent)| agent)
}
