//! A fit of a simulation's costs to measurements.
//!
//! The fit minimizes the squares of the deviations' logarithms with the Levenberg-Marquardt method. With logarithms, a
//! deviation of ten per cent counts the same for small and large values. The derivatives are computed from a small
//! increase of each cost.

use crate::simulation::{Costs, Plan, SimulationResult, simulate};

/// The measurements of a plan, in the units of [`SimulationResult`]. Missing values are 0.
#[derive(Debug, Clone, Copy)]
pub struct FitPoint {
    /// The plan of the measurement. The fit replaces its costs, except for the measured time of the disk.
    pub plan: Plan,
    /// The number of finished games per second.
    pub games_per_second: f64,
    /// The values per game.
    pub per_game: PerGame,
}

/// The measurements per game.
#[derive(Debug, Clone, Copy, Default)]
pub struct PerGame {
    /// The number of journal reads.
    pub journal_reads: f64,
    pub batches: f64,
    /// The processor time of clients, nodes, the database and NATS, in microseconds.
    pub worked_us: [f64; 4],
}

pub type Cost = fn(&mut Costs) -> &mut f64;

/// The number of steps of the fit.
const STEPS: usize = 20;

/// The increases of a cost for the derivatives, as logarithms: in the first steps, and near the result.
const LARGER: [f64; 2] = [0.25, 0.1];

/// The largest change of a cost in one step, as a logarithm.
const FURTHEST: f64 = 1.5;

impl FitPoint {
    /// Simulates the plan with these costs.
    pub fn simulated(&self, costs: Costs, games: u64) -> SimulationResult {
        simulate(Plan { costs: Costs { flush: self.flush(costs), ..costs }, ..self.plan }, games)
    }

    /// Returns the measured time of the disk, or the time in `costs` if none was measured.
    fn flush(&self, costs: Costs) -> f64 {
        if self.plan.costs.flush > 0.0 { self.plan.costs.flush } else { costs.flush }
    }

    /// Returns the weighted deviations of a simulation from the measurements. Games per second have the greatest
    /// weight. Journal reads and batches have less, because their numbers depend on waiting more than on costs.
    fn off(&self, costs: Costs, games: u64) -> [f64; 7] {
        let predicted = self.simulated(costs, games);
        let PerGame { journal_reads, batches, worked_us: [clients, nodes, database, nats] } = self.per_game;
        let pairs = [
            (3.0, predicted.games_per_second, self.games_per_second),
            (1.0, predicted.client_us, clients),
            (1.0, predicted.node_us, nodes),
            (1.0, predicted.database_us, database),
            (0.3, predicted.nats_us, nats),
            (0.3, predicted.journal_reads, journal_reads),
            (0.3, predicted.batches, batches),
        ];
        pairs.map(
            |(weight, predicted, seen)| {
                if predicted > 0.0 && seen > 0.0 { weight * (predicted / seen).ln() } else { 0.0 }
            },
        )
    }
}

/// Fits the costs in `free` to the measurements `seen`, with `games` games per simulation. The search begins at
/// `start`; costs that aren't in `free` keep their values.
pub fn fit(seen: &[FitPoint], start: Costs, free: &[Cost], games: u64) -> Costs {
    let off = |costs: Costs| -> Vec<f64> { seen.iter().flat_map(|seen| seen.off(costs, games)).collect() };
    let (mut best, mut rest) = (start, off(start));
    // A large damping gives small steps in the direction of steepest descent. A small damping gives the step that would
    // be right for a linear problem.
    let mut damping = 0.3;
    for step in 0..STEPS {
        let larger = LARGER[usize::from(step > 4)];
        let slopes: Vec<Vec<f64>> = free
            .iter()
            .map(|cost| {
                let mut more = best;
                *cost(&mut more) *= larger.exp();
                off(more).iter().zip(&rest).map(|(more, rest)| (more - rest) / larger).collect()
            })
            .collect();
        let mut nearer = false;
        for _ in 0..4 {
            let rows = slopes.iter().enumerate().map(|(place, slope)| {
                let mut row: Vec<f64> = slopes.iter().map(|other| dot(slope, other)).collect();
                row[place] += damping * (0.05 + row[place]);
                row.push(-dot(slope, &rest));
                row
            });
            let mut tried = best;
            for (cost, way) in free.iter().zip(solve(rows.collect())) {
                *cost(&mut tried) *= way.clamp(-FURTHEST, FURTHEST).exp();
            }
            let left = off(tried);
            if dot(&left, &left) < dot(&rest, &rest) {
                (best, rest, nearer) = (tried, left, true);
                damping = f64::max(damping / 3.0, 1e-3);
                break;
            }
            damping *= 4.0;
        }
        if !nearer && step > 4 {
            break;
        }
    }
    best
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Solves linear equations. Each row contains the factors and the right side. The equations are damped, so there is a
/// solution.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let size = rows.len();
    for place in 0..size {
        let steepest = (place..size).max_by(|one, other| rows[*one][place].abs().total_cmp(&rows[*other][place].abs()));
        rows.swap(place, steepest.unwrap_or(place));
        let (above, below) = rows.split_at_mut(place + 1);
        let pivot = &above[place];
        for row in below {
            let factor = row[place] / pivot[place];
            row.iter_mut().zip(pivot).skip(place).for_each(|(one, other)| *one -= factor * other);
        }
    }
    let mut solution = vec![0.0; size];
    for place in (0..size).rev() {
        let row = &rows[place];
        solution[place] = (row[size] - dot(&row[place + 1..size], &solution[place + 1..])) / row[place];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Layout, Load, Store};

    /// The number of simulated games. It is small, because tests run without compiler optimization.
    const FEW: u64 = 400;

    #[test]
    fn equations_are_solved() {
        let solution = solve(vec![vec![0.0, 2.0, 6.0], vec![1.0, 1.0, 5.0]]);
        assert_eq!(solution, [2.0, 3.0]);
    }

    #[test]
    fn costs_are_recovered_from_simulated_measurements() {
        let costs = Costs {
            client: 11.0,
            read: 9.0,
            write: 60.0,
            journal_read: 25.0,
            journal_read_stored: 30.0,
            batch: 60.0,
            batch_stored: 150.0,
            commit: 40.0,
            event: 20.0,
            flush: 90.0,
            wake: 20.0,
            switch: 10.0,
        };
        let seen: Vec<FitPoint> = [1, 4, 32]
            .map(|connections| {
                let plan = Plan {
                    costs,
                    store: Store::Shared,
                    writes_read_journal: 1.0,
                    ordered: 0.25,
                    layout: Layout::OneMachine { cores: 2, nodes: 1 },
                    load: Load::Closed(connections),
                };
                let predicted = simulate(plan, FEW);
                let worked_us = [predicted.client_us, predicted.node_us, predicted.database_us, predicted.nats_us];
                let per_game =
                    PerGame { journal_reads: predicted.journal_reads, batches: predicted.batches, worked_us };
                FitPoint { plan, games_per_second: predicted.games_per_second, per_game }
            })
            .to_vec();
        let start = Costs { write: 150.0, batch_stored: 300.0, ..costs };
        let free: [Cost; 2] = [|costs| &mut costs.write, |costs| &mut costs.batch_stored];
        let found = fit(&seen, start, &free, FEW);
        for cost in free {
            let (found, truth) = (*cost(&mut found.clone()), *cost(&mut costs.clone()));
            assert!((found / truth - 1.0).abs() < 0.15, "{found} instead of {truth}");
        }
        // Errors in two costs may cancel each other, so the results are compared as well, for a load that wasn't
        // fitted.
        let of = |costs| simulate(Plan { costs, load: Load::Closed(12), ..seen[0].plan }, FEW).games_per_second;
        let (predicted, truth, before) = (of(found), of(costs), of(start));
        assert!((predicted / truth - 1.0).abs() < 0.03, "{predicted} instead of {truth} games/s, and {before} before");
        assert!((before / truth - 1.0).abs() > 0.1, "{before} instead of {truth} games/s before the fit");
    }
}
