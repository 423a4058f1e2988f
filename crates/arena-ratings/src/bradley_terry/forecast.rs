//! Which games to play next, so that the widest interval becomes narrower.

use super::Fit;
use super::pairs::weight;
use crate::distributions::student_quantile;
use crate::elo::ELO_PER_LOGIT;
use crate::linear::Matrix;
use crate::results::AgentIndex;

/// Values whose difference is a smaller part of them are equal: another order of sums may make as much.
const EQUAL: f64 = 1e-9;

/// How sure strengths will be after games that aren't played yet. How much a game tells doesn't depend on who wins it, only on
/// how strong its agents are; so several games can be chosen before any of them is played.
#[derive(Debug, Clone)]
pub struct Forecast<'f> {
    fit: &'f Fit,
    seats: usize,
    games: f64,
    /// In squares of log-odds.
    covariance: Matrix,
    freedom: Vec<f64>,
    /// Of Student's distribution, for each agent.
    quantiles: Vec<f64>,
    /// Which agents can be chosen.
    can_play: Vec<bool>,
}

/// The agents, as many as `seats`, whose next game narrows the widest interval most: the one whose rating is least sure, and those
/// against whom a game tells most about it, one after the other. All are different; none if there aren't so many agents, or fewer
/// than two seats.
///
/// What a game will tell is taken from the model: more against an opponent of equal strength, and more against one whose own
/// rating is sure. Equal ones are taken in their own order, as all are while there are no games.
pub fn next_game(fit: &Fit, seats: usize) -> Vec<AgentIndex> {
    Forecast::new(fit, seats, 1).next(|_, _| true)
}

impl<'f> Forecast<'f> {
    /// What the fit says now. A meeting that is to be chosen has so many seats and games.
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

    /// The same, but nobody is chosen for whom `can_play` doesn't say so. Their results count all the same.
    pub fn among(self, can_play: impl Fn(AgentIndex) -> bool) -> Forecast<'f> {
        let can_play = (0..self.fit.agents()).map(|agent| can_play(AgentIndex(agent))).collect();
        Forecast { can_play, ..self }
    }

    /// Half the width that an agent's interval will have, in Elo, if both of its ends are bounded then.
    pub fn half_width(&self, agent: AgentIndex) -> f64 {
        let agent = agent.0;
        self.quantiles[agent] * ELO_PER_LOGIT * self.covariance.at(agent, agent).max(0.0).sqrt()
    }

    /// Chooses a meeting as [`next_game`] does, and takes it as played. Its first agent is one of those for which `is_wanted`,
    /// which is told the half width of the interval too, says so; if there is none, nobody is chosen.
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

    /// Takes a meeting of these agents as played, whoever chose it.
    pub fn take(&mut self, agents: &[AgentIndex]) {
        let agents: Vec<usize> = agents.iter().map(|agent| agent.0).collect();
        for (place, agent) in agents.iter().enumerate() {
            self.join(&agents[..place], *agent);
        }
        self.end(&agents);
    }

    /// What is known once another one has played those that are seated.
    fn join(&mut self, seated: &[usize], other: usize) {
        for &one in seated {
            let information = self.information(one, other);
            observe(&mut self.covariance, one, other, information);
        }
    }

    /// One observation more for each of them.
    fn end(&mut self, seated: &[usize]) {
        for &agent in seated {
            self.freedom[agent] += 1.0;
            self.quantiles[agent] = student_quantile(self.freedom[agent]);
        }
    }

    /// By how much the variance of the first one falls if another one joins those that are seated.
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

    /// What a meeting will tell of the difference of two of its agents.
    fn information(&self, one: usize, two: usize) -> f64 {
        let [information, ..] = self.fit.odds(one, two).information();
        self.games * weight(self.seats) * information
    }
}

/// What becomes of a covariance when a difference is observed with this information.
fn observe(covariance: &mut Matrix, one: usize, two: usize, information: f64) {
    let told: Vec<f64> =
        covariance.row(one).iter().zip(covariance.row(two)).map(|(with_one, with_two)| with_one - with_two).collect();
    let share = information / (1.0 + information * (told[one] - told[two]).max(0.0));
    for (row, &of_row) in told.iter().enumerate() {
        for (column, &of_column) in told.iter().enumerate() {
            covariance.add(row, column, -share * of_row * of_column);
        }
    }
}

/// Whoever has the greatest value, the first one of equals.
fn greatest(values: impl Iterator<Item = (f64, usize)>) -> Option<usize> {
    let better = |best: Option<(f64, usize)>, (value, agent): (f64, usize)| match best {
        Some((most, _)) if value <= most + EQUAL * most.abs() => best,
        _ => Some((value, agent)),
    };
    values.fold(None, better).map(|(_, agent)| agent)
}
