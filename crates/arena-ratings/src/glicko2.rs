//! Glicko-2: a rating with its deviation and volatility. The crate `skillratings` implements the formulas; this module
//! defines the rating periods.

use serde::{Deserialize, Serialize};
use skillratings::Outcomes;
use skillratings::glicko2::{Glicko2Config, Glicko2Rating, glicko2_rating_period};

use crate::results::{Game, PairOutcome, Results};

/// The constants of Glicko-2.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Glicko2Options {
    /// The constant that limits changes of volatility, from 0.3 to 1.2. Smaller values suit games with steady results.
    pub tau: f64,
    /// The average number of games of an agent in a rating period. All ratings after a period are computed from the
    /// ratings before the period.
    pub games_per_period: f64,
}

impl Default for Glicko2Options {
    /// Returns a tau of 0.5 and periods of 10 games, the lower end of the author's advice ("at least 10-15 games").
    fn default() -> Glicko2Options {
        Glicko2Options { tau: 0.5, games_per_period: 10.0 }
    }
}

/// An agent's Glicko-2 rating. Its 95 % interval is `rating` ± 1.96 `deviation`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Glicko2 {
    /// The rating on the Elo scale, 1500 at the start.
    pub rating: f64,
    /// The standard deviation of the rating, 350 at the start.
    pub deviation: f64,
    /// The expected change of strength between periods.
    pub volatility: f64,
}

/// Returns each agent's rating after all games.
///
/// Periods have equal numbers of games, in playing order; the last period may be shorter. The deviation of an agent
/// without games in a period grows. The system is made for two seats: a game of more seats counts as one game against
/// each opponent, so its deviations are too small. Games that repeat earlier games are left out, because they would
/// narrow the deviation.
///
/// Source: M. Glickman, *Example of the Glicko-2 system* (2013).
pub fn glicko2(results: &Results, options: &Glicko2Options) -> Vec<Glicko2> {
    let games: Vec<Game<'_>> = results.distinct().collect();
    let config = Glicko2Config { tau: options.tau, ..Glicko2Config::new() };
    let mut ratings = vec![Glicko2Rating::new(); results.agents()];
    let length = period(&games, results.agents(), options);
    let mut faced: Vec<Vec<(Glicko2Rating, Outcomes)>> = vec![Vec::new(); results.agents()];
    for period in games.chunks(length) {
        for game in period {
            for (one, two, outcome) in game.comparisons() {
                faced[one.0].push((ratings[two.0], known(outcome)));
                faced[two.0].push((ratings[one.0], known(outcome.reversed())));
            }
        }
        for (rating, faced) in ratings.iter_mut().zip(&mut faced) {
            *rating = glicko2_rating_period(rating, faced, &config);
            faced.clear();
        }
    }
    let plain = |known: Glicko2Rating| Glicko2 {
        rating: known.rating,
        deviation: known.deviation,
        volatility: known.volatility,
    };
    ratings.into_iter().map(plain).collect()
}

/// Returns the number of games in a period: on average, each agent plays `games_per_period` of them.
fn period(games: &[Game<'_>], agents: usize, options: &Glicko2Options) -> usize {
    let seats: usize = games.iter().map(|game| game.seats.len()).sum();
    let seats_per_game = seats as f64 / games.len().max(1) as f64;
    let length = options.games_per_period * agents as f64 / seats_per_game;
    // `chunks` panics if the length is 0.
    if length.is_finite() { length.round().max(1.0) as usize } else { games.len().max(1) }
}

fn known(outcome: PairOutcome) -> Outcomes {
    match outcome {
        PairOutcome::Win => Outcomes::WIN,
        PairOutcome::Draw => Outcomes::DRAW,
        PairOutcome::Loss => Outcomes::LOSS,
    }
}
