//! Reference numbers from other programs for the same games.
//!
//! Bradley–Terry: Python 3 with scipy 1.17. An independent implementation of the log-likelihood of Davidson's model was
//! maximized by `scipy.optimize.minimize` (BFGS). Standard errors are from the inverse of its Hessian, by central
//! differences. With Jeffreys' prior, half the logarithm of the information's determinant was added
//! (`numpy.linalg.slogdet`). This crate approximates the curvature of that sum, so these errors agree to one percent
//! only. Without ties, choix 0.4.1 (`opt_pairwise`) gives the same ratings.

use arena_ratings::bradley_terry::{Covariance, Estimate, Fit, FitError, FitOptions, fit};
use arena_ratings::{AgentIndex, ELO_PER_LOGIT, Results};

/// The first seat, the second seat, and the numbers of wins, ties and losses of the first.
const GAMES: [[usize; 5]; 20] = [
    [0, 1, 5, 3, 4],
    [0, 2, 9, 4, 1],
    [0, 3, 6, 2, 0],
    [0, 4, 9, 0, 0],
    [1, 0, 3, 1, 3],
    [1, 2, 7, 6, 2],
    [1, 3, 3, 2, 2],
    [1, 4, 9, 2, 3],
    [2, 0, 3, 2, 7],
    [2, 1, 4, 0, 2],
    [2, 3, 3, 2, 4],
    [2, 4, 5, 5, 2],
    [3, 0, 2, 0, 7],
    [3, 1, 2, 1, 3],
    [3, 2, 4, 5, 6],
    [3, 4, 5, 0, 3],
    [4, 0, 1, 2, 5],
    [4, 1, 2, 2, 8],
    [4, 2, 2, 1, 4],
    [4, 3, 3, 1, 9],
];

fn play(agents: usize, games: &[[usize; 5]], has_ties: bool) -> Results {
    let mut results = Results::new(agents);
    for &[first, second, wins, ties, losses] in games {
        let ties = if has_ties { ties } else { 0 };
        for (count, ranks) in [(wins, [1, 2]), (ties, [1, 1]), (losses, [2, 1])] {
            for _ in 0..count {
                let seats = [(AgentIndex(first), ranks[0]), (AgentIndex(second), ranks[1])];
                results.push(&seats, None).expect("it is a game");
            }
        }
    }
    results
}

#[track_caller]
fn near(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} instead of {expected}");
}

#[track_caller]
fn check(results: &Results, options: &FitOptions, ratings: &[f64], errors: &[f64], error_of_difference: f64) -> Fit {
    let within = if options.estimate == Estimate::BiasReduced { 0.4 } else { 0.01 };
    let fit = fit(results, options).expect("there is a fit");
    for (agent, (rating, error)) in ratings.iter().zip(errors).enumerate() {
        near(fit.rating(AgentIndex(agent)), *rating, 0.01);
        near(fit.error(AgentIndex(agent)), *error, within);
    }
    let interval = fit.difference_interval(AgentIndex(0), AgentIndex(1));
    if interval.high.is_finite() && interval.low.is_finite() {
        near((interval.high - interval.low) / 2.0 / 1.959_964, error_of_difference, within);
    }
    fit
}

const LIKELIEST: FitOptions = FitOptions {
    estimate: Estimate::MaximumLikelihood,
    covariance: Covariance::Fisher,
    seat_advantage: false,
    mean: 0.0,
};

#[test]
fn likeliest_ratings_without_ties_are_those_of_choix_and_scipy() {
    check(
        &play(5, &GAMES, false),
        &LIKELIEST,
        &[190.2316, 69.3678, -29.2138, -49.3375, -181.048],
        &[43.0593, 39.5183, 37.4559, 38.6078, 40.8899],
        64.2141,
    );
}

#[test]
fn likeliest_ratings_with_ties_are_those_of_scipy() {
    check(
        &play(5, &GAMES, true),
        &LIKELIEST,
        &[195.3222, 69.3543, -28.8597, -46.1498, -189.6669],
        &[42.4533, 38.5589, 35.3212, 38.8287, 41.1338],
        62.808,
    );
}

#[test]
fn likeliest_ratings_with_a_seat_advantage_are_those_of_scipy() {
    let fit = check(
        &play(5, &GAMES, true),
        &FitOptions { seat_advantage: true, ..LIKELIEST },
        &[194.3251, 68.259, -26.9109, -46.1826, -189.4906],
        &[42.4712, 38.6763, 35.5502, 38.8014, 41.1647],
        62.9118,
    );
    let (advantage, interval) = fit.seat_advantage().unwrap();
    near(advantage, 17.2132, 0.01);
    near((interval.high - interval.low) / 2.0 / 1.959_964, 30.6437, 0.01);
}

#[test]
fn bias_reduced_ratings_are_those_of_scipy() {
    let options = FitOptions { covariance: Covariance::Fisher, ..FitOptions::default() };
    check(
        &play(5, &GAMES, false),
        &options,
        &[184.6355, 67.4734, -28.4111, -47.7991, -175.8988],
        &[42.2324, 38.8972, 36.9039, 38.0332, 40.1616],
        63.1178,
    );
    check(
        &play(5, &GAMES, true),
        &options,
        &[190.6332, 67.7782, -28.2305, -45.0067, -185.1743],
        &[41.8458, 38.0814, 34.9091, 38.3593, 40.5594],
        61.9921,
    );
    let fit = check(
        &play(5, &GAMES, true),
        &FitOptions { seat_advantage: true, ..options },
        &[188.6478, 66.3652, -26.2045, -44.7995, -184.009],
        &[41.7436, 38.0969, 35.0408, 38.23, 40.4714],
        61.9323,
    );
    near(fit.seat_advantage().unwrap().0, 16.816, 0.01);
}

#[test]
fn undefeated_agent_has_a_finite_rating_and_an_open_interval() {
    let small = [[0, 1, 3, 0, 0], [0, 2, 4, 0, 0], [1, 2, 2, 1, 1]];
    let results = play(3, &small, true);
    assert_eq!(fit(&results, &LIKELIEST).unwrap_err(), FitError::NoMaximum);
    let fit = fit(&results, &FitOptions::default()).unwrap();
    // The differences of scipy's [402.7211, -159.2617, -243.4593]: the mean here is of the two agents that have points
    // from each other.
    let [a, b, c] = [0, 1, 2].map(AgentIndex);
    near(fit.difference(a, b), 402.7211 + 159.2617, 0.02);
    near(fit.difference(b, c), 243.4593 - 159.2617, 0.02);
    near(fit.rating(b) + fit.rating(c), 0.0, 1e-9);
    assert_eq!(fit.interval(a).high, f64::INFINITY);
    assert!(fit.interval(a).low.is_finite());
    assert_eq!(fit.difference_interval(b, a).low, f64::NEG_INFINITY);
    assert!(fit.interval(b).high.is_finite() && fit.interval(b).low.is_finite());
}

// Two agents with 10 wins and no loss: half an additional win for each makes 10.5 to 0.5.
#[test]
fn jeffreys_prior_is_half_a_game_for_each_of_two() {
    let fit = fit(&play(2, &[[0, 1, 10, 0, 0]], false), &FitOptions::default()).unwrap();
    near(fit.difference(AgentIndex(0), AgentIndex(1)), ELO_PER_LOGIT * 21f64.ln(), 1e-4);
}

#[test]
fn agents_that_never_met_have_unbounded_intervals() {
    let results = play(5, &[[0, 1, 3, 0, 2], [2, 3, 1, 1, 1]], true);
    let fit = fit(&results, &FitOptions::default()).unwrap();
    for agent in (0..5).map(AgentIndex) {
        let interval = fit.interval(agent);
        assert!(fit.rating(agent).is_finite(), "{agent:?}");
        assert_eq!([interval.low, interval.high], [f64::NEG_INFINITY, f64::INFINITY]);
    }
    let interval = fit.difference_interval(AgentIndex(0), AgentIndex(1));
    assert!(interval.low.is_finite() && interval.high.is_finite());
    assert_eq!(fit.ranking().ranks[0].tie, fit.ranking().ranks[4].tie);
}

#[test]
fn impossible_fits_are_errors() {
    let first_always = play(2, &[[0, 1, 3, 0, 2]], false);
    let options = FitOptions { seat_advantage: true, ..FitOptions::default() };
    assert_eq!(fit(&first_always, &options).unwrap_err(), FitError::SeatAdvantage);
    assert_eq!(fit(&Results::new(2_001), &options).unwrap_err(), FitError::TooManyAgents(2_001));
    let only_ties = play(2, &[[0, 1, 0, 4, 0]], true);
    assert_eq!(fit(&only_ties, &LIKELIEST).unwrap_err(), FitError::NoMaximum);
    assert!(fit(&only_ties, &FitOptions::default()).unwrap().interval(AgentIndex(0)).holds(200.0));
}

#[test]
fn nothing_played_is_no_error() {
    for agents in [0, 1, 3] {
        let fit = fit(&Results::new(agents), &FitOptions::default()).unwrap();
        assert_eq!(fit.ranking().order.len(), agents);
        assert_eq!(fit.games_to_lose_lead(), (agents > 1).then_some(0));
    }
}

#[test]
fn lead_is_lost_after_as_many_games_as_a_search_one_by_one_finds() {
    for (agents, games) in [(5, &GAMES[..]), (2, &[[0, 1, 40, 5, 10]]), (2, &[[0, 1, 1, 0, 0]])] {
        let fit_with = |more: usize| {
            let games: Vec<_> = games.iter().copied().chain([[1, 0, more, 0, 0]]).collect();
            fit(&play(agents, &games, true), &FitOptions::default()).unwrap()
        };
        let lost = (1..).find(|more| fit_with(*more).difference(AgentIndex(0), AgentIndex(1)) <= 1e-9).unwrap();
        assert_eq!(fit_with(0).games_to_lose_lead(), Some(lost as u64));
    }
}

// A chain of few games with as many ties as decisions: the curvature of the prior is as large as that of the results.
#[test]
fn a_chain_of_ties_and_wins_has_a_fit() {
    let games: [&[(usize, u32)]; 7] = [
        &[(3, 1), (4, 1)],
        &[(4, 1), (2, 2)],
        &[(2, 2), (4, 1)],
        &[(1, 1), (3, 2)],
        &[(4, 2), (1, 1)],
        &[(0, 1), (1, 2)],
        &[(3, 1), (4, 1)],
    ];
    let mut results = Results::new(5);
    for game in games {
        let seats: Vec<_> = game.iter().map(|(agent, rank)| (AgentIndex(*agent), *rank)).collect();
        results.push(&seats, None).unwrap();
    }
    let fit = fit(&results, &FitOptions::default()).unwrap();
    let ratings: Vec<i64> = (0..5).map(|agent| fit.rating(AgentIndex(agent)).round() as i64).collect();
    assert_eq!(ratings, [1518, 848, -879, 0, 0]);
}
