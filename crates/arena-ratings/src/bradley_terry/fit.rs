//! The fit: the maximum of the likelihood, or of the likelihood times the prior, and the quantities derived from it.

use super::covariance::{self, Spread};
use super::pairs::{PairCounts, count_pairs};
use super::reach::Reach;
use super::{Covariance, Estimate, FitError, FitOptions, Interval, MAX_AGENTS};
use crate::distributions::{Z, student_quantile};
use crate::elo::ELO_PER_LOGIT;
use crate::linear::{Cholesky, Matrix};
use crate::results::{AgentIndex, Results};

/// The gauge constant: artificial information that fixes the sum of all strengths at 0. The likelihood doesn't depend
/// on this sum, so any positive number works.
pub(super) const GAUGE: f64 = 1.0;

/// The information of a normal prior with a standard deviation of 10,000 Elo. The fit uses this prior only if games
/// don't link all agents.
const LOOSE: f64 = 1.0 / ((10_000.0 / ELO_PER_LOGIT) * (10_000.0 / ELO_PER_LOGIT));

/// The step size at which the iteration stops, in log-odds: 2 · 10⁻⁷ Elo.
const PRECISION: f64 = 1e-9;

/// The difference in log-odds below which strengths count as equal, since rounding errors can be this large.
const EQUAL: f64 = 1e-8;

/// The largest number of iterations of a fit. Four to ten are usual.
const ROUNDS: usize = 1000;

/// The number of iterations after which steps are lengthened. With the prior and few games, steps are too short,
/// because the approximate curvature exceeds the curvature of the maximized function.
const USUAL_ROUNDS: usize = 20;

/// The largest factor by which a step is lengthened.
const LONGEST_SHARE: f64 = 64.0;

/// The fitted strengths, with their covariance.
#[derive(Debug, Clone)]
pub struct Fit {
    options: FitOptions,
    pairs: Vec<PairCounts>,
    /// The information of the weak prior that links agents without shared games; 0 if games link all agents.
    weak_prior: f64,
    parameters: Parameters,
    /// The strengths relative to the mean of the core, in log-odds.
    strengths: Vec<f64>,
    spread: Spread,
    reach: Reach,
}

/// The parameters of the model, in this order: the strengths, the seat advantage if the fit estimates it, and the
/// logarithm of ν if there are ties.
#[derive(Debug, Clone)]
pub(super) struct Parameters {
    pub(super) values: Vec<f64>,
    pub(super) agents: usize,
    /// The index of the first seat's advantage; `None` if the fit doesn't estimate it.
    pub(super) advantage: Option<usize>,
    /// The index of the logarithm of ν; `None` if there are no ties.
    pub(super) ties: Option<usize>,
}

/// The model's probabilities for one comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Odds {
    /// The probabilities of a win of the first agent, a tie and a loss.
    pub(super) shares: [f64; 3],
    /// The logarithm of the normalizing divisor.
    log_sum: f64,
    difference: f64,
    log_ties: f64,
}

/// The sufficient statistics of a win, a tie and a loss: plus or minus one half for the difference, and 1 for a tie.
const OBSERVED: [(f64, f64); 3] = [(0.5, 0.0), (0.0, 1.0), (-0.5, 0.0)];

impl Odds {
    fn new(difference: f64, log_ties: Option<f64>) -> Odds {
        let log_ties = log_ties.unwrap_or(f64::NEG_INFINITY);
        let half = difference / 2.0;
        let top = half.abs().max(log_ties);
        let terms = [(half - top).exp(), (log_ties - top).exp(), (-half - top).exp()];
        let sum = terms[0] + terms[1] + terms[2];
        Odds { shares: terms.map(|term| term / sum), log_sum: top + sum.ln(), difference, log_ties }
    }

    /// Returns the expected points of the first agent, minus one half.
    pub(super) fn mean(&self) -> f64 {
        (self.shares[0] - self.shares[2]) / 2.0
    }

    /// Returns the information of one comparison: on the difference, jointly on difference and ties, and on the ties.
    /// This is the covariance of the sufficient statistics.
    pub(super) fn information(&self) -> [f64; 3] {
        let ([win, tie, loss], mean) = (self.shares, self.mean());
        [(win + loss) / 4.0 - mean * mean, -mean * tie, tie * (1.0 - tie)]
    }

    /// Returns the derivatives of the sum of `information` weighted by `weights`, with respect to the difference and to
    /// the ties parameter.
    fn information_slope(&self, weights: [f64; 3]) -> [f64; 2] {
        let (mean, tie) = (self.mean(), self.shares[1]);
        let mut slope = [0.0; 2];
        for (share, (sign, tied)) in self.shares.iter().zip(OBSERVED) {
            let (a, b) = (sign - mean, tied - tie);
            let weighted = share * (weights[0] * a * a + 2.0 * weights[1] * a * b + weights[2] * b * b);
            slope[0] += weighted * a;
            slope[1] += weighted * b;
        }
        slope
    }

    fn log_likelihood(&self, pair: &PairCounts) -> f64 {
        let [wins, ties, losses] = pair.counts;
        let of_ties = if ties > 0.0 { ties * self.log_ties } else { 0.0 };
        pair.weight * (0.5 * (wins - losses) * self.difference + of_ties - (wins + ties + losses) * self.log_sum)
    }
}

impl Parameters {
    fn new(agents: usize, options: &FitOptions, pairs: &[PairCounts]) -> Parameters {
        let has_ties = pairs.iter().any(|pair| pair.counts[1] > 0.0);
        let has_seats = options.seat_advantage && pairs.iter().any(|pair| pair.has_advantage);
        let advantage = has_seats.then_some(agents);
        let ties = has_ties.then_some(agents + usize::from(has_seats));
        let len = agents + usize::from(has_seats) + usize::from(has_ties);
        Parameters { values: vec![0.0; len], agents, advantage, ties }
    }

    pub(super) fn odds(&self, first: usize, second: usize, has_advantage: bool) -> Odds {
        let advantage = self.advantage.filter(|_| has_advantage).map_or(0.0, |at| self.values[at]);
        let difference = self.values[first] - self.values[second] + advantage;
        Odds::new(difference, self.ties.map(|at| self.values[at]))
    }

    /// Returns the parameters that add up to the difference of strengths in these comparisons, with their signs. A
    /// [`PairCounts`] is all comparisons of two agents in one seat order.
    fn parts(&self, pair: &PairCounts) -> impl Iterator<Item = (usize, f64)> + Clone + use<> {
        let advantage = self.advantage.filter(|_| pair.has_advantage);
        [(pair.first, 1.0), (pair.second, -1.0)].into_iter().chain(advantage.map(|at| (at, 1.0)))
    }

    /// Returns the lower triangle of the information matrix of all comparisons, in which each pair has the weight
    /// `counted`.
    fn information(
        &self,
        pairs: &[PairCounts],
        weak_prior: f64,
        counted: impl Fn(&PairCounts, &Odds) -> f64,
    ) -> Matrix {
        let mut matrix = Matrix::zero(self.values.len());
        for row in 0..self.agents {
            for column in 0..=row {
                matrix.add(row, column, GAUGE);
            }
            matrix.add(row, row, weak_prior);
        }
        for pair in pairs {
            let odds = self.odds(pair.first, pair.second, pair.has_advantage);
            let count = counted(pair, &odds);
            let [of_difference, of_both, of_ties] = odds.information().map(|value| value * count);
            let parts = self.parts(pair);
            for (row, sign) in parts.clone() {
                for (column, other) in parts.clone().filter(|(column, _)| *column <= row) {
                    matrix.add(row, column, sign * other * of_difference);
                }
                if let Some(ties) = self.ties {
                    matrix.add(ties, row, sign * of_both);
                }
            }
            if let Some(ties) = self.ties {
                matrix.add(ties, ties, of_ties);
            }
        }
        matrix
    }

    /// Returns the variance of the difference of strengths of a pair, its covariance with the ties parameter, and
    /// the variance of the ties parameter.
    fn variances(&self, pair: &PairCounts, covariance: &Matrix) -> [f64; 3] {
        let parts = self.parts(pair);
        let mut variances = [0.0; 3];
        for (row, sign) in parts.clone() {
            for (column, other) in parts.clone() {
                variances[0] += sign * other * covariance.at(row, column);
            }
            variances[1] += self.ties.map_or(0.0, |ties| sign * covariance.at(ties, row));
        }
        variances[2] = self.ties.map_or(0.0, |ties| covariance.at(ties, ties));
        variances
    }
}

/// A point of the iteration, with the quantities that are computed there.
struct Iterate {
    parameters: Parameters,
    information: Cholesky,
    height: f64,
}

/// The function to maximize: the log-likelihood, or the logarithm of likelihood times prior.
struct Objective<'m> {
    pairs: &'m [PairCounts],
    estimate: Estimate,
    /// The information of the weak prior that links agents without shared games; 0 if games link all agents.
    weak_prior: f64,
}

impl Objective<'_> {
    fn evaluate(&self, parameters: Parameters) -> Option<Iterate> {
        let information = parameters.information(self.pairs, self.weak_prior, |pair, _| pair.total()).cholesky()?;
        let of_results: f64 = self
            .pairs
            .iter()
            .map(|pair| parameters.odds(pair.first, pair.second, pair.has_advantage).log_likelihood(pair))
            .sum();
        let squares: f64 = parameters.values[..parameters.agents].iter().map(|value| value * value).sum();
        let of_prior = match self.estimate {
            Estimate::BiasReduced => 0.5 * information.log_determinant(),
            Estimate::MaximumLikelihood => 0.0,
        };
        let height = of_results + of_prior - 0.5 * self.weak_prior * squares;
        height.is_finite().then_some(Iterate { parameters, information, height })
    }

    /// Returns the Newton step. Approximates the prior's curvature by the curvature of the additional comparisons to
    /// which the prior is equivalent.
    fn step(&self, iterate: &Iterate) -> Option<Vec<f64>> {
        let parameters = &iterate.parameters;
        let covariance = match self.estimate {
            Estimate::BiasReduced => Some(iterate.information.inverse()),
            Estimate::MaximumLikelihood => None,
        };
        let mut gradient: Vec<f64> = vec![0.0; parameters.values.len()];
        for (slope, value) in gradient[..parameters.agents].iter_mut().zip(&parameters.values) {
            *slope = -self.weak_prior * value;
        }
        for pair in self.pairs {
            let odds = parameters.odds(pair.first, pair.second, pair.has_advantage);
            let [wins, ties, losses] = pair.counts;
            let played = wins + ties + losses;
            let mut of_difference = pair.weight * (0.5 * (wins - losses) - played * odds.mean());
            let mut of_ties = pair.weight * (ties - played * odds.shares[1]);
            if let Some(covariance) = &covariance {
                let slope = odds.information_slope(parameters.variances(pair, covariance));
                of_difference += 0.5 * pair.total() * slope[0];
                of_ties += 0.5 * pair.total() * slope[1];
            }
            for (at, sign) in parameters.parts(pair) {
                gradient[at] += sign * of_difference;
            }
            if let Some(at) = parameters.ties {
                gradient[at] += of_ties;
            }
        }
        match covariance {
            None => Some(iterate.information.solve(&gradient)),
            Some(covariance) => Some(self.curvature(parameters, &covariance).cholesky()?.solve(&gradient)),
        }
    }

    /// Returns the approximate curvature of the likelihood times the prior. The prior counts as additional comparisons.
    /// Their number for each pair is the leverage of the pair, and their total is the number of parameters.
    fn curvature(&self, parameters: &Parameters, covariance: &Matrix) -> Matrix {
        parameters.information(self.pairs, self.weak_prior, |pair, odds| {
            let variances = parameters.variances(pair, covariance);
            let [on_difference, on_both, on_ties] = odds.information();
            let leverage = on_difference * variances[0] + 2.0 * on_both * variances[1] + on_ties * variances[2];
            pair.total() * (1.0 + leverage)
        })
    }

    /// Iterates from `start` until steps are negligible. `None` if the iteration doesn't converge.
    fn climb(&self, start: Parameters) -> Option<Iterate> {
        let mut iterate = self.evaluate(start)?;
        let mut before: Option<(Vec<f64>, f64)> = None;
        for round in 0..ROUNDS {
            let step = self.step(&iterate)?;
            let length = step.iter().fold(0.0, |most: f64, step| most.max(step.abs()));
            if !length.is_finite() {
                return None;
            }
            // Far from the maximum, a Newton step can be much too long, so its length is limited.
            let scale = match &before {
                Some((last, share)) if round >= USUAL_ROUNDS => share * lengthening(last, &step),
                _ => 1.0,
            };
            let mut share = (3.0 / length).min(scale);
            let next = loop {
                let mut parameters = iterate.parameters.clone();
                for (value, step) in parameters.values.iter_mut().zip(&step) {
                    *value += share * step;
                }
                let next = self.evaluate(parameters);
                // At the maximum, rounding can lower the height, so very short steps are always accepted.
                match next {
                    Some(next) if next.height >= iterate.height || length * share < 1e-6 => break next,
                    _ if length * share < PRECISION => return None,
                    _ => share /= 2.0,
                }
            };
            iterate = next;
            before = Some((step, share));
            if length < PRECISION {
                return Some(iterate);
            }
        }
        None
    }
}

/// Returns the factor by which to lengthen steps, computed from two consecutive steps (Barzilai and Borwein, *Two-point
/// step size gradient methods*, 1988).
fn lengthening(last: &[f64], step: &[f64]) -> f64 {
    let square: f64 = last.iter().map(|value| value * value).sum();
    let bend: f64 = last.iter().zip(step).map(|(last, step)| last * (last - step)).sum();
    if bend > 0.0 { (square / bend).min(LONGEST_SHARE) } else { 1.0 }
}

/// Fits the strengths of all agents together. If games don't link all agents, directly or through a chain of agents, a
/// very weak prior does. Reports fit groups of linked agents separately; see [`groups`](super::groups).
///
/// # Errors
/// [`FitError`] if there are too many agents, if the requested estimate doesn't exist, or if the results can't separate
/// the seat advantage from strength.
pub fn fit(results: &Results, options: &FitOptions) -> Result<Fit, FitError> {
    let agents = results.agents();
    if agents > MAX_AGENTS {
        return Err(FitError::TooManyAgents(agents));
    }
    let pairs = count_pairs(results);
    let reach = Reach::new(agents, &pairs);
    if options.estimate == Estimate::MaximumLikelihood && !reach.is_whole() {
        return Err(FitError::NoMaximum);
    }
    let start = Parameters::new(agents, options, &pairs);
    let has_advantage = start.advantage.is_some();
    let weak_prior = if results.groups().len() > 1 { LOOSE } else { 0.0 };
    let objective = Objective { pairs: &pairs, estimate: options.estimate, weak_prior };
    let failure = if has_advantage { FitError::SeatAdvantage } else { FitError::NoMaximum };
    // At equal strengths, only the seat advantage can make the information singular.
    objective.evaluate(start.clone()).ok_or(failure)?;
    let iterate = objective.climb(start).ok_or(FitError::NoMaximum)?;
    let of_likelihood = iterate.information.inverse();
    let model = match options.estimate {
        Estimate::MaximumLikelihood => of_likelihood,
        Estimate::BiasReduced => {
            objective.curvature(&iterate.parameters, &of_likelihood).cholesky().ok_or(FitError::NoMaximum)?.inverse()
        }
    };
    let use_sandwich = match options.covariance {
        Covariance::Fisher => false,
        Covariance::Sandwich => true,
        Covariance::Auto => results.distinct().any(|game| game.seats.len() > 2 || game.pair.is_some()),
    };
    let spread = if use_sandwich {
        let information = iterate.parameters.information(&pairs, 0.0, |pair, _| pair.total());
        covariance::sandwich(results, &iterate.parameters, &information, &model, reach.core())
    } else {
        covariance::model(&iterate.parameters, &model, reach.core())
    };
    let strengths = against_core(&iterate.parameters.values[..agents], reach.core());
    Ok(Fit { options: *options, parameters: iterate.parameters, pairs, weak_prior, strengths, spread, reach })
}

fn against_core(strengths: &[f64], core: &[bool]) -> Vec<f64> {
    let in_core = || strengths.iter().zip(core).filter(|(_, is_core)| **is_core).map(|(strength, _)| *strength);
    let mean = in_core().sum::<f64>() / in_core().count().max(1) as f64;
    strengths.iter().map(|strength| strength - mean).collect()
}

impl Fit {
    pub fn agents(&self) -> usize {
        self.strengths.len()
    }

    /// Returns the agents of the core. The mean of their ratings is the requested one.
    pub fn core(&self) -> impl Iterator<Item = AgentIndex> + '_ {
        (0..self.agents()).filter(|agent| self.reach.core()[*agent]).map(AgentIndex)
    }

    pub fn rating(&self, agent: AgentIndex) -> f64 {
        self.options.mean + ELO_PER_LOGIT * self.strengths[agent.0]
    }

    /// Returns the standard error of an agent's rating.
    pub fn error(&self, agent: AgentIndex) -> f64 {
        ELO_PER_LOGIT * self.variance(agent.0).sqrt()
    }

    /// Returns the 95 % interval of an agent's rating, relative to the mean of the core.
    ///
    /// The interval has no upper end if some agent of the core hasn't won points from this agent, directly or through a
    /// chain of agents. It has no lower end if this agent hasn't won points, in the same sense, from some agent of the
    /// core. The opposite end is valid in both cases.
    pub fn interval(&self, agent: AgentIndex) -> Interval {
        self.bounded(self.rating(agent), self.half_width(agent), self.reach.bounds_against_core(agent.0))
    }

    /// Returns the half-width of an agent's interval. Applies if both ends are bounded.
    fn half_width(&self, agent: AgentIndex) -> f64 {
        student_quantile(self.spread.freedom[agent.0]) * self.error(agent)
    }

    /// Returns the rating of `one` minus that of `two`.
    pub fn difference(&self, one: AgentIndex, two: AgentIndex) -> f64 {
        ELO_PER_LOGIT * (self.strengths[one.0] - self.strengths[two.0])
    }

    /// Returns the 95 % interval of [`Fit::difference`]; unbounded on each side for which the results give no bound.
    pub fn difference_interval(&self, one: AgentIndex, two: AgentIndex) -> Interval {
        let (variance, freedom) = self.difference_variance(one.0, two.0);
        let half = student_quantile(freedom) * ELO_PER_LOGIT * variance.sqrt();
        let bounded = [self.reach.bounds(two.0, one.0), self.reach.bounds(one.0, two.0)];
        self.bounded(self.difference(one, two), half, bounded)
    }

    /// Returns the advantage of the first of two seats, in Elo, with its 95 % interval; `None` if the fit didn't
    /// estimate the advantage.
    pub fn seat_advantage(&self) -> Option<(f64, Interval)> {
        let value = ELO_PER_LOGIT * self.parameters.values[self.parameters.advantage?];
        Some((value, self.bounded(value, Z * ELO_PER_LOGIT * self.spread.of_advantage.sqrt(), [true; 2])))
    }

    /// Returns the expected score of `one` against `two`, 0 to 1, without a seat advantage.
    pub fn expected_score(&self, one: AgentIndex, two: AgentIndex) -> f64 {
        0.5 + self.odds(one.0, two.0).mean()
    }

    /// Returns the agents that share the highest rating: one agent if there is a leader, and none without agents.
    pub fn leaders(&self) -> Vec<AgentIndex> {
        let mut leaders = self.order();
        if let Some(&first) = leaders.first() {
            leaders.retain(|agent| self.strengths[first.0] - self.strengths[agent.0] < EQUAL);
        }
        leaders
    }

    /// Returns the width of the lead in games: the least number of consecutive wins of the second agent against the
    /// first that would end the first agent's lead. 0 if the two already share the lead, `None` with fewer than two
    /// agents.
    ///
    /// A search finds the number: for each candidate, a new fit includes as many additional wins, without a seat
    /// advantage.
    pub fn games_to_lose_lead(&self) -> Option<u64> {
        let order = self.order();
        let (&first, &second) = (order.first()?, order.get(1)?);
        if self.strengths[first.0] - self.strengths[second.0] < EQUAL {
            return Some(0);
        }
        let keeps_lead = |start: &mut Parameters, games: u64| -> bool {
            let mut pairs = self.pairs.clone();
            let counts = [games as f64, 0.0, 0.0];
            pairs.push(PairCounts { first: second.0, second: first.0, has_advantage: false, weight: 1.0, counts });
            let objective = Objective { pairs: &pairs, estimate: self.options.estimate, weak_prior: self.weak_prior };
            let Some(iterate) = objective.climb(start.clone()) else { return true };
            *start = iterate.parameters;
            let strengths = &start.values[..self.agents()];
            let most = strengths[first.0] - EQUAL;
            strengths.iter().enumerate().all(|(agent, strength)| agent == first.0 || *strength < most)
        };
        // One Newton step gives the first guess. From there, the stride doubles until the lead ends, and bisection
        // finds the number.
        let (variance, _) = self.difference_variance(first.0, second.0);
        let gain = variance * (0.5 - self.odds(second.0, first.0).mean());
        let gap = self.strengths[first.0] - self.strengths[second.0];
        let guess = (gap / gain.max(1e-9)).clamp(1.0, 1e9) as u64;
        let mut start = self.parameters.clone();
        let (mut kept, mut lost) = (0, None);
        let mut games = guess;
        let mut stride = (guess / 8).max(1);
        loop {
            if keeps_lead(&mut start, games) {
                kept = games;
            } else {
                lost = Some(games);
            }
            games = match lost {
                Some(lost) if lost - kept <= 1 => return Some(lost),
                // The guess was too high, so the search goes down, at least to 1.
                Some(lost) if kept == 0 => lost.saturating_sub(stride).max(lost / 2).max(1),
                Some(lost) => kept + (lost - kept) / 2,
                None => kept.checked_add(stride)?,
            };
            stride = stride.saturating_mul(2);
        }
    }

    /// Returns all agents in descending order of rating. Agents with equal ratings are in ascending order of number.
    pub fn order(&self) -> Vec<AgentIndex> {
        let mut order: Vec<AgentIndex> = (0..self.agents()).map(AgentIndex).collect();
        order.sort_by(|one, two| self.strengths[two.0].total_cmp(&self.strengths[one.0]));
        order
    }

    pub(super) fn odds(&self, one: usize, two: usize) -> Odds {
        Odds::new(self.strengths[one] - self.strengths[two], self.log_ties())
    }

    fn log_ties(&self) -> Option<f64> {
        self.parameters.ties.map(|at| self.parameters.values[at])
    }

    fn variance(&self, agent: usize) -> f64 {
        self.spread.covariance.at(agent, agent).max(0.0)
    }

    fn covariance(&self, one: usize, two: usize) -> f64 {
        self.spread.covariance.at(one, two)
    }

    /// Returns the covariance of the strengths, with its degrees of freedom.
    pub(super) fn spread(&self) -> &Spread {
        &self.spread
    }

    /// Returns the variance of a difference of strengths, and the degrees of freedom of this variance estimate by
    /// Welch's formula. The formula assumes independent variances, so a term for shared games is added: two agents that
    /// play mostly each other have nearly the same variance.
    fn difference_variance(&self, one: usize, two: usize) -> (f64, f64) {
        let own = [one, two].map(|agent| self.variance(agent));
        let variance = own[0] + own[1] - 2.0 * self.covariance(one, two);
        let freedom = [one, two].map(|agent| self.spread.freedom[agent]);
        let shared = 2.0 * self.covariance(one, two).abs() * ((own[0] / freedom[0]) * (own[1] / freedom[1])).sqrt();
        let parts = own[0] * own[0] / freedom[0] + own[1] * own[1] / freedom[1] + shared;
        let freedom = if parts > 0.0 { (own[0] + own[1]).powi(2) / parts } else { f64::INFINITY };
        (variance.max(0.0), freedom)
    }

    fn bounded(&self, value: f64, half: f64, [below, above]: [bool; 2]) -> Interval {
        Interval {
            low: if below { value - half } else { f64::NEG_INFINITY },
            high: if above { value + half } else { f64::INFINITY },
        }
    }
}
