//! The covariance of fitted strengths: the inverse of the model's information, or a sandwich estimate from the scatter
//! of observations.

use super::fit::Parameters;
use super::pairs::weight;
use crate::linear::Matrix;
use crate::results::{Game, Results};

/// The estimated covariance of a fit's parameters, in squared log-odds.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    /// The covariance of all strengths, relative to the mean of the core.
    pub(super) covariance: Matrix,
    /// The degrees of freedom of each agent's variance.
    pub(super) freedom: Vec<f64>,
    /// The variance of the first seat's advantage; 0 if the fit doesn't estimate the advantage.
    pub(super) of_advantage: f64,
}

/// The weight of the model-based covariance in the sandwich estimate, as a number of observations.
const MIXED: f64 = 2.0;

/// The factor from values to integers. Values are rounded to multiples of 2⁻³² and summed as integers, so that sums
/// don't depend on the order of games.
const UNIT: f64 = (1u64 << 32) as f64;

/// The lower bound of 1 minus an observation's leverage, the share of its scatter that the fit absorbs.
const LEAST_LEFT: f64 = 0.1;

/// Correct for independent games. `inverse` is the inverse of the information.
pub(super) fn model(parameters: &Parameters, inverse: &Matrix, core: &[bool]) -> Spread {
    Spread {
        covariance: against_core(inverse, core),
        freedom: vec![f64::INFINITY; parameters.agents],
        of_advantage: parameters.advantage.map_or(0.0, |at| inverse.at(at, at)),
    }
}

/// An observation is all games of a pair, or one unpaired game. Reads only the lower triangle of `information`.
pub(super) fn sandwich(
    results: &Results,
    parameters: &Parameters,
    information: &Matrix,
    inverse: &Matrix,
    core: &[bool],
) -> Spread {
    let scatter = Scatter::of(results, parameters, inverse);
    let len = parameters.values.len();
    let freedom: Vec<f64> = (0..len).map(|at| scatter.freedom(at)).collect();
    let shares: Vec<f64> = freedom.iter().map(|freedom| MIXED / (freedom + MIXED)).collect();
    let mut filling = Matrix::zero(len);
    for row in 0..len {
        for column in 0..=row {
            let seen = ((1.0 - shares[row]) * (1.0 - shares[column])).sqrt() * scatter.square(row, column);
            // The strengths' block of `information` includes the gauge constant, which isn't information from games.
            let gauge = if row < parameters.agents { super::fit::GAUGE } else { 0.0 };
            let modeled = (shares[row] * shares[column]).sqrt() * (information.at(row, column) - gauge);
            filling.add(row, column, seen + modeled);
        }
    }
    filling.mirror();
    let covariance = inverse.times_symmetric(&filling).times_symmetric(inverse);
    Spread {
        covariance: against_core(&covariance, core),
        // The model-based part of the mixture has no sampling error, so it raises the degrees of freedom.
        freedom: (0..parameters.agents).map(|at| freedom[at].max(1.0) / (1.0 - shares[at]).powi(2)).collect(),
        of_advantage: parameters.advantage.map_or(0.0, |at| covariance.at(at, at)),
    }
}

/// Returns the covariance of the strengths relative to the mean of the core.
fn against_core(whole: &Matrix, core: &[bool]) -> Matrix {
    let agents = core.len();
    let members: Vec<usize> = (0..agents).filter(|agent| core[*agent]).collect();
    let count = members.len().max(1) as f64;
    let with_mean: Vec<f64> =
        (0..agents).map(|agent| members.iter().map(|member| whole.at(agent, *member)).sum::<f64>() / count).collect();
    let of_mean = members.iter().map(|member| with_mean[*member]).sum::<f64>() / count;
    let mut covariance = Matrix::zero(agents);
    for row in 0..agents {
        for column in 0..=row {
            covariance.add(row, column, whole.at(row, column) - with_mean[row] - with_mean[column] + of_mean);
        }
    }
    covariance.mirror();
    covariance
}

/// Sums over all observations, from which the sandwich estimate is computed.
struct Scatter {
    len: usize,
    /// For every two parameters, the sum over all observations of the product of the two scores.
    squares: Vec<i128>,
    /// For each parameter, the sum of the observations' information on it, and the sum of the squares of this
    /// information.
    information: Vec<[i128; 2]>,
}

impl Scatter {
    fn of(results: &Results, parameters: &Parameters, inverse: &Matrix) -> Scatter {
        let len = parameters.values.len();
        let mut scatter = Scatter { len, squares: vec![0; len * len], information: vec![[0; 2]; len] };
        let mut observation = Observation::new(len);
        let mut in_pairs: Vec<(u64, usize)> = Vec::new();
        for (place, game) in results.games().enumerate().filter(|(_, game)| !game.is_repeat) {
            match game.pair {
                Some(pair) => in_pairs.push((pair, place)),
                None => {
                    observation.add(&game, parameters, inverse);
                    scatter.take(&mut observation);
                }
            }
        }
        in_pairs.sort_unstable();
        for pair in in_pairs.chunk_by(|one, two| one.0 == two.0) {
            for (_, place) in pair {
                observation.add(&results.game(*place), parameters, inverse);
            }
            scatter.take(&mut observation);
        }
        scatter
    }

    fn take(&mut self, observation: &mut Observation) {
        let widening = 1.0 / (1.0 - observation.leverage).max(LEAST_LEFT).sqrt();
        let whole = |value: f64| (value * UNIT).round() as i128;
        let scores: Vec<(usize, i128)> =
            observation.touched.iter().map(|&at| (at, whole(widening * observation.scores[at]))).collect();
        for &(row, one) in &scores {
            for &(column, two) in scores.iter().filter(|(column, _)| *column <= row) {
                self.squares[row * self.len + column] += one * two;
            }
            let information = whole(observation.information[row]);
            self.information[row][0] += information;
            self.information[row][1] += information * information;
        }
        observation.clear();
    }

    fn square(&self, row: usize, column: usize) -> f64 {
        self.squares[row * self.len + column] as f64 / (UNIT * UNIT)
    }

    /// Returns the effective number of observations of a parameter: (sum of information)² / (sum of squared
    /// information).
    fn freedom(&self, at: usize) -> f64 {
        let [sum, squares] = self.information[at];
        if squares == 0 { 0.0 } else { (sum as f64).powi(2) / squares as f64 }
    }
}

/// The score vector and the information of one observation.
struct Observation {
    /// The score vector: the derivatives of the observation's log-likelihood.
    scores: Vec<f64>,
    /// The diagonal of the observation's information matrix.
    information: Vec<f64>,
    /// The parameters that the observation depends on.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    /// The share of the observation's scatter that the fit absorbs.
    leverage: f64,
}

impl Observation {
    fn new(len: usize) -> Observation {
        Observation {
            scores: vec![0.0; len],
            information: vec![0.0; len],
            touched: Vec::new(),
            is_touched: vec![false; len],
            leverage: 0.0,
        }
    }

    fn add(&mut self, game: &Game<'_>, parameters: &Parameters, inverse: &Matrix) {
        let seats = game.seats.len();
        let weight = weight(seats);
        let advantage = parameters.advantage.filter(|_| seats == 2);
        for (one, two, outcome) in game.comparisons() {
            let (one, two) = (one.0, two.0);
            let odds = parameters.odds(one, two, seats == 2);
            let [of_difference, _, of_ties] = odds.information();
            let score = weight * (outcome.points() - 0.5 - odds.mean());
            self.note(one, score, weight * of_difference);
            self.note(two, -score, weight * of_difference);
            if let Some(at) = advantage {
                self.note(at, score, weight * of_difference);
            }
            if let Some(at) = parameters.ties {
                let is_tie = f64::from(outcome == crate::PairOutcome::Draw);
                self.note(at, weight * (is_tie - odds.shares[1]), weight * of_ties);
            }
            let variance = inverse.at(one, one) + inverse.at(two, two) - 2.0 * inverse.at(one, two);
            // A game of N seats has N - 1 independent differences of strengths.
            self.leverage += weight * of_difference * variance / (seats - 1) as f64;
        }
    }

    fn note(&mut self, at: usize, score: f64, information: f64) {
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(at);
        }
        self.scores[at] += score;
        self.information[at] += information;
    }

    fn clear(&mut self) {
        for at in self.touched.drain(..) {
            self.scores[at] = 0.0;
            self.information[at] = 0.0;
            self.is_touched[at] = false;
        }
        self.leverage = 0.0;
    }
}
