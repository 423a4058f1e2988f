//! The difference of two agents in Elo, and the sequential probability ratio test (SPRT) of this difference. Both take
//! single games (trinomial), or pairs of games with swapped seats and dependent results (pentanomial).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::distributions::{Z, normal_below};
use crate::elo::{ELO_PER_LOGIT, difference, expected_score};
use crate::results::{AgentIndex, PairOutcome, Results};

/// The factor from (score - 0.5) / (standard deviation of a game) to normalized Elo: 800 / ln 10.
const ELO_PER_DEVIATION: f64 = 2.0 * ELO_PER_LOGIT;

/// The limit of the target in one round of the iteration, as a share of the farthest target for which a distribution
/// exists.
const REACHED: f64 = 0.9;

/// The largest absolute value of a hypothesis, in Elo.
const MOST_ELO: f64 = 1_000.0;

/// The replacement for a count of 0, so that results without an observation remain possible. Fastchess uses the same
/// value.
const UNSEEN: f64 = 1e-3;

/// The counts of results from the view of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scores {
    /// Single games: losses, draws, wins.
    Trinomial([u64; 3]),
    /// Pairs of games with 0, 0.5, 1, 1.5 and 2 points.
    Pentanomial([u64; 5]),
}

impl Scores {
    /// Counts the results of two-seat games between two agents as single games, from the view of `one`.
    pub fn trinomial(results: &Results, one: AgentIndex, two: AgentIndex) -> Scores {
        let mut counts = [0; 3];
        for (_, outcome) in between(results, one, two) {
            counts[half_points(outcome)] += 1;
        }
        Scores::Trinomial(counts)
    }

    /// Counts the pairs of two-seat games between two agents, from the view of `one`. Games without a pair, and pairs
    /// without exactly two games, are left out.
    pub fn pentanomial(results: &Results, one: AgentIndex, two: AgentIndex) -> Scores {
        let mut games: Vec<(u64, usize)> = between(results, one, two)
            .filter_map(|(pair, outcome)| pair.map(|pair| (pair, half_points(outcome))))
            .collect();
        games.sort_unstable();
        let mut counts = [0; 5];
        for pair in games.chunk_by(|one, two| one.0 == two.0) {
            if let [(_, one), (_, two)] = pair {
                counts[one + two] += 1;
            }
        }
        Scores::Pentanomial(counts)
    }

    /// Counts one more observation, a game or a pair of games, with this number of half points.
    ///
    /// # Panics
    /// If `half_points` exceeds 2 for a game or 4 for a pair.
    pub fn add(&mut self, half_points: usize) {
        match self {
            Scores::Trinomial(counts) => counts[half_points] += 1,
            Scores::Pentanomial(counts) => counts[half_points] += 1,
        }
    }

    /// Returns the number of observations for each number of half points, from 0.
    pub fn counts(&self) -> &[u64] {
        match self {
            Scores::Trinomial(counts) => counts,
            Scores::Pentanomial(counts) => counts,
        }
    }

    /// Returns the number of games in an observation: 1 or 2.
    fn games_each(&self) -> f64 {
        match self {
            Scores::Trinomial(_) => 1.0,
            Scores::Pentanomial(_) => 2.0,
        }
    }

    /// Returns the possible scores of an observation, 0 to 1, with their counts.
    fn observed(&self) -> Vec<(f64, f64)> {
        let counts = self.counts();
        let top = (counts.len() - 1) as f64;
        counts.iter().enumerate().map(|(place, count)| (place as f64 / top, *count as f64)).collect()
    }

    /// Returns the difference in Elo with its interval; `None` before the first game.
    pub fn difference(&self) -> Option<Difference> {
        let observed = self.observed();
        let count: f64 = observed.iter().map(|(_, count)| count).sum();
        if count == 0.0 {
            return None;
        }
        let score = observed.iter().map(|(score, count)| score * count).sum::<f64>() / count;
        let variance = observed.iter().map(|(value, count)| (value - score).powi(2) * count).sum::<f64>() / count;
        let error = (variance / count).sqrt();
        let [low, high] = [score - Z * error, score + Z * error].map(|score| score.clamp(0.0, 1.0));
        // The deviation of one game. The variance of a pair's mean is half of a game's if the two are independent.
        let deviation = (variance * self.games_each()).sqrt();
        let normalized = |score: f64| ELO_PER_DEVIATION * (score - 0.5) / deviation;
        let has_spread = variance > 0.0;
        Some(Difference {
            score,
            elo: difference(score),
            elo_low: difference(low),
            elo_high: difference(high),
            normalised: has_spread.then(|| normalized(score)),
            normalised_error: has_spread.then(|| normalized(0.5 + Z * error)),
            likelihood_of_superiority: if has_spread {
                normal_below((score - 0.5) / error)
            } else {
                0.5 + 0.5 * f64::from(score > 0.5) - 0.5 * f64::from(score < 0.5)
            },
        })
    }
}

/// Returns the two-seat games between two agents: each game's pair, and its outcome for `one`.
fn between(
    results: &Results,
    one: AgentIndex,
    two: AgentIndex,
) -> impl Iterator<Item = (Option<u64>, PairOutcome)> + '_ {
    results.distinct().filter_map(move |game| {
        let [first, second] = game.seats else { return None };
        let outcome = PairOutcome::of(first.rank, second.rank);
        if (first.agent, second.agent) == (one, two) {
            Some((game.pair, outcome))
        } else if (first.agent, second.agent) == (two, one) {
            Some((game.pair, outcome.reversed()))
        } else {
            None
        }
    })
}

fn half_points(outcome: PairOutcome) -> usize {
    match outcome {
        PairOutcome::Loss => 0,
        PairOutcome::Draw => 1,
        PairOutcome::Win => 2,
    }
}

/// The estimated difference of two agents.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The share of the points, 0 to 1.
    pub score: f64,
    /// The difference in logistic Elo; infinite if one agent has all points.
    pub elo: f64,
    /// The lower end of the 95 % interval of `elo`, from the normal interval of the score.
    pub elo_low: f64,
    /// The upper end of the 95 % interval of `elo`.
    pub elo_high: f64,
    /// The difference in normalized Elo, which is relative to the scatter of results; `None` without scatter.
    pub normalised: Option<f64>,
    /// Half the width of the 95 % interval of `normalised`.
    pub normalised_error: Option<f64>,
    /// The probability that the agent is the better one, 0 to 1.
    pub likelihood_of_superiority: f64,
}

impl Difference {
    /// Returns half the width of the 95 % interval of `elo`: the number after `±`.
    pub fn elo_error(&self) -> f64 {
        (self.elo_high - self.elo_low) / 2.0
    }
}

/// The unit of a test's hypotheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EloModel {
    /// Logistic Elo, a function of the expected score alone.
    Logistic,
    /// Elo in units of a game's standard deviation. With this unit, the length of a test doesn't depend on the rate of
    /// draws.
    #[default]
    Normalized,
}

impl EloModel {
    pub fn name(self) -> &'static str {
        match self {
            EloModel::Logistic => "logistic",
            EloModel::Normalized => "normalized",
        }
    }
}

/// A sequential test of two hypotheses: a difference of `elo0` (H0) or of `elo1` (H1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Numbers")]
pub struct Sprt {
    elo0: f64,
    elo1: f64,
    alpha: f64,
    beta: f64,
    model: EloModel,
}

impl fmt::Display for Sprt {
    /// Writes the test in the syntax of chess runners: `elo0=0 elo1=5 alpha=0.05 beta=0.05 model=normalized`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sprt { elo0, elo1, alpha, beta, model } = self;
        write!(f, "elo0={elo0} elo1={elo1} alpha={alpha} beta={beta} model={}", model.name())
    }
}

/// The numbers of a test, before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    elo0: f64,
    elo1: f64,
    alpha: f64,
    beta: f64,
    model: EloModel,
}

impl TryFrom<Numbers> for Sprt {
    type Error = SprtError;

    fn try_from(Numbers { elo0, elo1, alpha, beta, model }: Numbers) -> Result<Sprt, SprtError> {
        Sprt::new(elo0, elo1, alpha, beta, model)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SprtError {
    /// Hypotheses that aren't in ascending order.
    #[error("elo0 is {elo0} and elo1 is {elo1}, but elo0 must be less than elo1")]
    Hypotheses { elo0: f64, elo1: f64 },
    /// Hypotheses beyond ±1000 Elo.
    #[error("elo0 is {elo0} and elo1 is {elo1}, but both must lie between -{MOST_ELO} and {MOST_ELO}")]
    TooFar { elo0: f64, elo1: f64 },
    /// Error rates outside 0 to 0.5.
    #[error("alpha is {alpha} and beta is {beta}, but both must be more than 0 and less than 0.5")]
    Errors { alpha: f64, beta: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SprtState {
    /// The logarithm of the likelihood ratio of `elo1` against `elo0`.
    pub llr: f64,
    /// The bound at or below which `elo0` is accepted.
    pub lower: f64,
    /// The bound at or above which `elo1` is accepted.
    pub upper: f64,
    /// The verdict from `llr` and the bounds.
    pub verdict: SprtVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SprtVerdict {
    /// Neither hypothesis is accepted yet.
    Continue,
    /// H0 is accepted: the difference is `elo0` or less.
    AcceptH0,
    /// H1 is accepted: the difference is `elo1` or more.
    AcceptH1,
}

impl Sprt {
    /// Creates a test. `alpha` is the probability that the test accepts H1 although H0 is true, and `beta` the
    /// probability that it accepts H0 although H1 is true.
    ///
    /// # Errors
    /// [`SprtError`] if the numbers are invalid.
    pub fn new(elo0: f64, elo1: f64, alpha: f64, beta: f64, model: EloModel) -> Result<Sprt, SprtError> {
        if !(elo0.is_finite() && elo1.is_finite() && elo0 < elo1) {
            return Err(SprtError::Hypotheses { elo0, elo1 });
        }
        if elo0.abs().max(elo1.abs()) > MOST_ELO {
            return Err(SprtError::TooFar { elo0, elo1 });
        }
        if ![alpha, beta].iter().all(|rate| *rate > 0.0 && *rate < 0.5) {
            return Err(SprtError::Errors { alpha, beta });
        }
        Ok(Sprt { elo0, elo1, alpha, beta, model })
    }

    pub fn hypotheses(&self) -> [f64; 2] {
        [self.elo0, self.elo1]
    }

    /// Returns the unit of the hypotheses.
    pub fn model(&self) -> EloModel {
        self.model
    }

    /// Returns the state of the test after these results.
    ///
    /// The test uses the generalized likelihood ratio: each hypothesis is represented by the most likely distribution
    /// of results that has the hypothesized difference.
    ///
    /// Sources: A. Wald, *Sequential Tests of Statistical Hypotheses* (1945); M. Van den Bergh, *A practical
    /// introduction to the GSPRT*, and *Normalized Elo* (2020). Fastchess uses the same formulas.
    pub fn judge(&self, scores: &Scores) -> SprtState {
        let lower = (self.beta / (1.0 - self.alpha)).ln();
        let upper = ((1.0 - self.beta) / self.alpha).ln();
        let llr = if scores.counts().iter().all(|count| *count == 0) { 0.0 } else { self.llr(scores) };
        let verdict = if llr >= upper {
            SprtVerdict::AcceptH1
        } else if llr <= lower {
            SprtVerdict::AcceptH0
        } else {
            SprtVerdict::Continue
        };
        SprtState { llr, lower, upper, verdict }
    }

    fn llr(&self, scores: &Scores) -> f64 {
        let mut observed = scores.observed();
        for (_, count) in &mut observed {
            *count = count.max(UNSEEN);
        }
        let likeliest = |elo: f64| match self.model {
            EloModel::Logistic => likeliest_with_mean(&observed, expected_score(elo)),
            EloModel::Normalized => {
                likeliest_with_deviation(&observed, elo / ELO_PER_DEVIATION * scores.games_each().sqrt())
            }
        };
        let (under0, under1) = (likeliest(self.elo0), likeliest(self.elo1));
        observed.iter().zip(under0.iter().zip(&under1)).map(|((_, count), (p0, p1))| count * (p1 / p0).ln()).sum()
    }
}

/// Returns the maximum-likelihood distribution of scores among those with this mean.
fn likeliest_with_mean(observed: &[(f64, f64)], mean: f64) -> Vec<f64> {
    let gaps: Vec<f64> = observed.iter().map(|(score, _)| score - mean).collect();
    tilted(observed, &gaps)
}

/// Returns the maximum-likelihood distribution among those with a mean of 0.5 + `target` standard deviations. Each
/// round of the iteration linearizes this condition around the previous distribution. If no distribution satisfies the
/// linear condition, as may happen far from the solution, the round uses a nearer target.
fn likeliest_with_deviation(observed: &[(f64, f64)], target: f64) -> Vec<f64> {
    let mut shares = vec![1.0 / observed.len() as f64; observed.len()];
    for _ in 0..100 {
        let values = || observed.iter().zip(&shares).map(|((score, _), share)| (*score, *share));
        let mean: f64 = values().map(|(score, share)| score * share).sum();
        let variance: f64 = values().map(|(score, share)| (score - mean).powi(2) * share).sum();
        let scatter = |score: f64| 0.5 * (variance + (score - mean).powi(2)) / variance.sqrt();
        let reached = observed.iter().map(|(score, _)| REACHED * (score - 0.5) / scatter(*score));
        let (least, most) = reached.fold((0.0, 0.0), |(least, most): (f64, f64), at| (least.min(at), most.max(at)));
        let next_target = target.clamp(least, most);
        let gaps: Vec<f64> = observed.iter().map(|(score, _)| score - 0.5 - next_target * scatter(*score)).collect();
        let next = tilted(observed, &gaps);
        let moved = next.iter().zip(&shares).map(|(next, share)| (next - share).abs()).fold(0.0, f64::max);
        shares = next;
        if moved < 1e-9 {
            break;
        }
    }
    shares
}

/// Returns the maximum-likelihood distribution among those with a mean of 0 for `gaps`. It consists of the observed
/// shares, each divided by 1 + x · gap, with the x for which the mean is 0.
fn tilted(observed: &[(f64, f64)], gaps: &[f64]) -> Vec<f64> {
    let total: f64 = observed.iter().map(|(_, count)| count).sum();
    let top = gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bottom = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    // Between these bounds all divisors are positive, and the mean falls from +∞ to -∞.
    let (mut low, mut high) = (-1.0 / top, -1.0 / bottom);
    let mean = |x: f64| -> f64 {
        observed.iter().zip(gaps).map(|((_, count), gap)| count / total * gap / (1.0 + x * gap)).sum()
    };
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if mean(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let x = 0.5 * (low + high);
    observed.iter().zip(gaps).map(|((_, count), gap)| count / total / (1.0 + x * gap)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} instead of {expected}");
    }

    // Reference values from fastchess's own tests for these counts: 40.70 ± 30.43, nElo 49.77 ± 36.77, LOS 99.60 %; and
    // of pairs 55.58 ± 27.65, nElo 57.94 ± 28.28.
    #[test]
    fn difference_matches_fastchess() {
        let games = Scores::Trinomial([96, 111, 136]).difference().unwrap();
        near(games.elo, 40.70, 0.01);
        near(games.elo_error(), 30.43, 0.01);
        near(games.normalised.unwrap(), 49.77, 0.01);
        near(games.normalised_error.unwrap(), 36.77, 0.01);
        near(games.likelihood_of_superiority, 0.9960, 5e-5);
        let pairs = Scores::Pentanomial([34, 54, 63, 64, 75]).difference().unwrap();
        near(pairs.elo, 55.58, 0.01);
        near(pairs.elo_error(), 27.65, 0.01);
        near(pairs.normalised.unwrap(), 57.94, 0.01);
        near(pairs.normalised_error.unwrap(), 28.28, 0.01);
    }

    // Reference values from scipy 1.17: the most likely distributions of both hypotheses by `scipy.optimize.minimize`
    // (SLSQP) under the constraint of the hypothesis itself, with counts of 0 as 0.001.
    #[test]
    fn ratio_matches_a_general_optimizer() {
        let tests = [(EloModel::Logistic, 0.0, 5.0), (EloModel::Normalized, 0.0, 5.0), (EloModel::Logistic, -3.0, 1.0)];
        for (scores, ratios) in [
            (Scores::Trinomial([96, 111, 136]), [0.799_005_4, 0.664_488_1, 0.697_480_6]),
            (Scores::Pentanomial([34, 54, 63, 64, 75]), [1.337_374_0, 1.301_436_4, 1.138_706_0]),
            (Scores::Pentanomial([10, 200, 600, 230, 12]), [1.103_128_8, 0.768_177_1, 1.869_382_6]),
            (Scores::Pentanomial([0, 3, 20, 5, 1]), [0.278_938_7, 0.127_955_3, 0.258_754_6]),
        ] {
            for ((model, elo0, elo1), ratio) in tests.into_iter().zip(ratios) {
                let sprt = Sprt::new(elo0, elo1, 0.05, 0.05, model).unwrap();
                near(sprt.judge(&scores).llr, ratio, 2e-4);
            }
        }
    }

    // For close hypotheses, the ratio is approximately that of a normal mean with the observed variance.
    #[test]
    fn ratio_is_near_the_one_from_mean_and_variance() {
        let counts = [10.0, 200.0, 600.0, 230.0, 12.0];
        let n: f64 = counts.iter().sum();
        let at = |place: usize| place as f64 / 4.0;
        let mean = (0..5).map(|place| at(place) * counts[place]).sum::<f64>() / n;
        let variance = (0..5).map(|place| (at(place) - mean).powi(2) * counts[place]).sum::<f64>() / n;
        let (s0, s1) = (expected_score(0.0), expected_score(5.0));
        let approximate = n * (s1 - s0) * (2.0 * mean - s0 - s1) / (2.0 * variance);
        let sprt = Sprt::new(0.0, 5.0, 0.05, 0.05, EloModel::Logistic).unwrap();
        near(sprt.judge(&Scores::Pentanomial([10, 200, 600, 230, 12])).llr, approximate, 0.01);
    }

    #[test]
    fn test_ends_at_its_bounds() {
        let sprt = Sprt::new(0.0, 10.0, 0.05, 0.10, EloModel::Logistic).unwrap();
        let judge = |counts| sprt.judge(&Scores::Trinomial(counts));
        let start = judge([0, 0, 0]);
        assert_eq!((start.llr, start.verdict), (0.0, SprtVerdict::Continue));
        near(start.lower, -2.2513, 1e-4);
        near(start.upper, 2.8904, 1e-4);
        assert_eq!(judge([300, 300, 300]).verdict, SprtVerdict::Continue);
        assert_eq!(judge([3000, 3000, 3000]).verdict, SprtVerdict::AcceptH0);
        assert_eq!(judge([3000, 3000, 3400]).verdict, SprtVerdict::AcceptH1);
        assert_eq!(judge([0, 0, 500]).verdict, SprtVerdict::AcceptH1);
    }

    proptest! {
        #[test]
        fn likeliest_distributions_have_the_deviation_of_their_hypothesis(
            counts in prop::array::uniform5(0u64..300),
            elo in -1_000.0..1_000.0f64,
        ) {
            for scores in [Scores::Pentanomial(counts), Scores::Trinomial([counts[0], counts[1], counts[2]])] {
                let mut observed = scores.observed();
                for (_, count) in &mut observed {
                    *count = count.max(UNSEEN);
                }
                let target = elo / ELO_PER_DEVIATION * scores.games_each().sqrt();
                let shares = likeliest_with_deviation(&observed, target);
                let mean: f64 = observed.iter().zip(&shares).map(|((score, _), share)| score * share).sum();
                let square: f64 =
                    observed.iter().zip(&shares).map(|((score, _), share)| (score - mean).powi(2) * share).sum();
                let found = (mean - 0.5) / square.sqrt();
                prop_assert!((found - target).abs() < 1e-4 * (1.0 + target.abs()), "{found} {target} {shares:?}");
            }
        }
    }

    #[test]
    fn invalid_numbers_are_refused() {
        let test = |elo0, elo1, alpha, beta| Sprt::new(elo0, elo1, alpha, beta, EloModel::Logistic).map(|_| ());
        assert_eq!(test(5.0, 0.0, 0.05, 0.05), Err(SprtError::Hypotheses { elo0: 5.0, elo1: 0.0 }));
        assert_eq!(test(0.0, 1_001.0, 0.05, 0.05), Err(SprtError::TooFar { elo0: 0.0, elo1: 1_001.0 }));
        assert!(matches!(test(f64::NAN, 0.0, 0.05, 0.05), Err(SprtError::Hypotheses { .. })));
        assert_eq!(test(0.0, 5.0, 0.0, 0.05), Err(SprtError::Errors { alpha: 0.0, beta: 0.05 }));
        assert_eq!(test(0.0, 5.0, 0.05, 0.5), Err(SprtError::Errors { alpha: 0.05, beta: 0.5 }));
    }

    #[test]
    fn pairs_are_counted_from_the_view_of_the_first_agent() {
        let (a, b, c) = (AgentIndex(0), AgentIndex(1), AgentIndex(2));
        let mut results = Results::new(3);
        let mut play = |one, two, ranks: [u32; 2], pair| {
            results.push(&[(one, ranks[0]), (two, ranks[1])], pair).unwrap();
        };
        play(a, b, [1, 2], Some(7));
        play(a, c, [1, 2], Some(8));
        play(b, a, [1, 1], Some(7));
        play(b, a, [1, 2], None);
        play(a, b, [2, 1], Some(9));
        assert_eq!(Scores::pentanomial(&results, a, b), Scores::Pentanomial([0, 0, 0, 1, 0]));
        assert_eq!(Scores::pentanomial(&results, b, a), Scores::Pentanomial([0, 1, 0, 0, 0]));
        assert_eq!(Scores::trinomial(&results, a, b), Scores::Trinomial([2, 1, 1]));
    }
}
