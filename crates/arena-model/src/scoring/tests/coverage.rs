//! The coverage of the intervals of leaderboards, by simulation of players whose true means are known.
//!
//! `ARENA_COVERAGE_RUNS` is the number of simulations of each case. `cargo xtask soak coverage` has more.

use crate::scoring::MetricKind;
use crate::scoring::measure::Measure;
use crate::{Seed, SeedRng};

const SHARE: MetricKind = MetricKind::Mean { low: 0.0, high: 1.0 };
const USUAL: MetricKind = MetricKind::Mean { low: -1.0, high: 1.0 };

const LEAST: f64 = 0.93;

/// The outcomes of a game, each with its weight.
type Outcomes = [(f64, u64)];

fn truth(outcomes: &Outcomes) -> f64 {
    let weight: u64 = outcomes.iter().map(|(_, weight)| weight).sum();
    outcomes.iter().map(|(value, weight)| value * *weight as f64).sum::<f64>() / weight as f64
}

fn play(kind: MetricKind, outcomes: &Outcomes, games: u64, rng: &mut SeedRng) -> Measure {
    let mut measure = Measure::new(kind);
    for _ in 0..games {
        let mut draw = rng.below(outcomes.iter().map(|(_, weight)| weight).sum());
        let drawn = outcomes.iter().find(|(_, weight)| {
            let here = draw < *weight;
            draw = draw.saturating_sub(*weight);
            here
        });
        measure.observe(drawn.expect("weights add up").0);
    }
    measure
}

/// Simulates players with these numbers of games on several boards, and requires that enough intervals contain the true
/// average.
fn check(runs: u32, kind: MetricKind, outcomes: &Outcomes, games: &[u64]) {
    let runs: u32 = option_env!("ARENA_COVERAGE_RUNS").map_or(runs, |runs| runs.parse().unwrap());
    let (truth, mut rng) = (truth(outcomes), Seed([9; 32]).rng("coverage"));
    let held = (0..runs)
        .filter(|_| {
            let played: Vec<Measure> = games.iter().map(|games| play(kind, outcomes, *games, &mut rng)).collect();
            let means: Vec<(&Measure, u64)> = played.iter().zip(games.iter().copied()).collect();
            let [low, high] = Measure::interval_of_average(kind, &means).expect("means have one");
            low - 1e-12 <= truth && truth <= high + 1e-12
        })
        .count();
    let share = f64::from(u32::try_from(held).expect("at most the runs")) / f64::from(runs);
    assert!(share >= LEAST, "{share} of intervals hold the mean of {outcomes:?} after {games:?} games");
}

#[test]
fn intervals_of_one_board_contain_the_mean() {
    for games in [1, 2, 3, 5, 10, 20, 30, 50, 100, 300] {
        // Tenths of percents.
        for win in [0, 5, 10, 20, 50, 200, 500, 800, 950, 980, 990, 995, 1000] {
            check(2_000, SHARE, &[(0.0, 1000 - win), (1.0, win)], &[games]);
        }
        for outcomes in [
            [(-1.0, 10), (0.0, 80), (1.0, 10)],
            [(-1.0, 1), (0.0, 9), (1.0, 90)],
            [(-1.0, 45), (0.0, 10), (1.0, 45)],
            [(0.1, 1), (0.2, 1), (0.4, 1)],
        ] {
            check(2_000, USUAL, &outcomes, &[games]);
        }
    }
}

#[test]
fn intervals_of_the_global_board_contain_the_average() {
    for boards in [2, 3, 10, 30] {
        for games in [1_u64, 3, 10, 30] {
            // Boards with different numbers of games.
            let games: Vec<u64> = (0..boards).map(|at| games + at % 3 * games / 2).collect();
            for loss in [5, 20, 50, 200, 500] {
                check(400, USUAL, &[(-1.0, loss), (1.0, 1000 - loss)], &games);
            }
            check(400, USUAL, &[(-1.0, 1), (0.7, 30), (0.9, 60)], &games);
        }
    }
}
