//! Glicko-2: a rating, how sure it is, and how much the agent's strength changes from time to time. The formulas are
//! those of the crate `skillratings`; what a rating period is, is decided here.

use serde::{Deserialize, Serialize};
use skillratings::Outcomes;
use skillratings::glicko2::{Glicko2Config, Glicko2Rating, glicko2_rating_period};

use crate::results::{Game, Outcome, Results};

/// How ratings move.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Glicko2Options {
    /// How quickly volatility changes: 0.3 to 1.2, small where results are steady.
    pub tau: f64,
    /// Games of an agent in a rating period, on average: the ratings of a period are all computed from those before it.
    pub games_per_period: f64,
}

impl Default for Glicko2Options {
    /// A tau of 0.5 and periods of 10 games, which is what the system's author has in mind ("at least 10-15 games").
    fn default() -> Glicko2Options {
        Glicko2Options { tau: 0.5, games_per_period: 10.0 }
    }
}

/// What Glicko-2 thinks of an agent. The 95 % interval is `rating` ± 1.96 `deviation`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Glicko2 {
    /// On the scale of Elo, 1500 at the beginning.
    pub rating: f64,
    /// One standard deviation, 350 at the beginning.
    pub deviation: f64,
    /// How much strength changes from period to period.
    pub volatility: f64,
}

/// The rating of each agent after all games.
///
/// Periods are equally many games, in playing order; the last one may be shorter. An agent that doesn't play in one
/// becomes less sure. A game of several seats counts as a game against each opponent, so it makes surer than it should:
/// the system knows two seats only. Games that repeat earlier ones are left out, since each would make surer.
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

/// The games of a period: so many that each agent plays as often as asked, on average.
fn period(games: &[Game<'_>], agents: usize, options: &Glicko2Options) -> usize {
    let seats: usize = games.iter().map(|game| game.seats.len()).sum();
    let seats_per_game = seats as f64 / games.len().max(1) as f64;
    let length = options.games_per_period * agents as f64 / seats_per_game;
    // A period of no games would never end.
    if length.is_finite() { length.round().max(1.0) as usize } else { games.len().max(1) }
}

fn known(outcome: Outcome) -> Outcomes {
    match outcome {
        Outcome::Win => Outcomes::WIN,
        Outcome::Draw => Outcomes::DRAW,
        Outcome::Loss => Outcomes::LOSS,
    }
}
