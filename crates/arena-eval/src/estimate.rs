//! The estimate of a run's tokens, cost and duration, from the games of earlier runs. Pure.

use std::collections::{BTreeMap, BTreeSet};

use arena_llm::Usage;

use crate::{EvalAgentKind, EvalPlan, EvalRun, SeatRecord};

#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub games: u64,
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The cost in US dollars, if at least one model has prices.
    pub usd: Option<f64>,
    /// The duration in hours, if each endpoint answers as many requests at the same time as the run file allows.
    pub hours: f64,
    /// The data of the estimate, in words.
    pub basis: String,
}

/// The means of the seats of some finished games.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    seats: f64,
    calls: f64,
    input: f64,
    cached: f64,
    output: f64,
    ms: f64,
}

impl Sample {
    fn add(&mut self, seat: &SeatRecord) {
        let Usage { input, cached, output, .. } = seat.measured.usage;
        self.seats += 1.0;
        self.calls += f64::from(seat.measured.calls);
        self.input += input as f64;
        self.cached += cached as f64;
        self.output += output as f64;
        self.ms += seat.measured.ms as f64;
    }

    /// Adds the expected values of one seat.
    fn add_mean(&mut self, of: &Sample) {
        self.seats += 1.0;
        self.calls += of.calls / of.seats;
        self.input += of.input / of.seats;
        self.cached += of.cached / of.seats;
        self.output += of.output / of.seats;
        self.ms += of.ms / of.seats;
    }
}

/// The samples of earlier runs, by model and challenge.
#[derive(Debug, Default)]
struct Samples {
    cells: BTreeMap<(String, String), Sample>,
    /// By the label of the challenge, for models without games of their own.
    challenges: BTreeMap<String, Sample>,
    games: usize,
}

impl Samples {
    /// Adds the seats that a model took in a game.
    fn add(&mut self, challenge: &str, model: &str, seat: &SeatRecord) {
        self.cells.entry((challenge.to_owned(), model.to_owned())).or_default().add(seat);
        self.challenges.entry(challenge.to_owned()).or_default().add(seat);
    }

    /// Falls back to the sample of all models in this challenge. The second value is true for the model's own sample.
    fn find(&self, challenge: &str, model: &str) -> Option<(&Sample, bool)> {
        let own = self.cells.get(&(challenge.to_owned(), model.to_owned())).map(|sample| (sample, true));
        own.or_else(|| Some((self.challenges.get(challenge)?, false)))
    }
}

/// Estimates the size of a whole plan from the finished games of `earlier` runs. A model without games in a challenge
/// counts as the mean of the other models there. Returns `None` if a challenge of the plan has no finished game of a
/// model.
pub fn estimate(plan: &EvalPlan, earlier: &[EvalRun]) -> Option<Estimate> {
    let mut samples = Samples::default();
    for run in earlier {
        let models: BTreeMap<&str, &str> = run
            .plan
            .agents
            .iter()
            .enumerate()
            .filter_map(|(at, agent)| Some((agent.name.as_str(), run.plan.model(at)?.name.as_str())))
            .collect();
        for game in &run.games {
            samples.games += 1;
            for seat in &game.seats {
                if let Some(model) = models.get(seat.agent.as_str()) {
                    samples.add(&game.challenge, model, seat);
                }
            }
        }
    }
    estimate_from(plan, &samples, earlier.len())
}

fn estimate_from(plan: &EvalPlan, samples: &Samples, runs: usize) -> Option<Estimate> {
    let mut models = vec![Sample::default(); plan.file.models.len()];
    let mut strangers: BTreeSet<&str> = BTreeSet::new();
    for game in &plan.games {
        let challenge = &plan.challenges[game.challenge].label;
        for agent in &game.seats {
            let EvalAgentKind::Model(model) = plan.agents[*agent].kind else { continue };
            let name = &plan.file.models[model].name;
            let (sample, is_own) = samples.find(challenge, name)?;
            models[model].add_mean(sample);
            if !is_own {
                strangers.insert(name);
            }
        }
    }
    let total = |part: fn(&Sample) -> f64| models.iter().map(part).sum::<f64>().round() as u64;
    let costs = models.iter().zip(&plan.file.models).filter_map(|(sample, spec)| {
        let usage = Usage {
            input: sample.input.round() as u64,
            cached: sample.cached.round() as u64,
            output: sample.output.round() as u64,
            ..Usage::default()
        };
        Some(spec.usd_per_million.as_ref()?.cost(&usage))
    });
    let costs: Vec<f64> = costs.collect();
    // Models of one endpoint share its limit of concurrent requests.
    let mut endpoints: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (sample, spec) in models.iter().zip(&plan.file.models) {
        let (ms, concurrency) = endpoints.entry(&spec.endpoint).or_default();
        *ms += sample.ms;
        *concurrency = (*concurrency).max(spec.concurrency);
    }
    let hours = endpoints.values().map(|(ms, concurrency)| ms / (*concurrency).max(1) as f64 / 3_600_000.0);
    let count = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let mut basis = format!("{} of {}", count(samples.games, "finished game"), count(runs, "earlier run"));
    if !strangers.is_empty() {
        let names: Vec<&str> = strangers.into_iter().collect();
        basis += &format!("; the mean of other models stands for {}", names.join(", "));
    }
    Some(Estimate {
        games: plan.games.len() as u64,
        calls: total(|sample| sample.calls),
        input_tokens: total(|sample| sample.input),
        output_tokens: total(|sample| sample.output),
        usd: (!costs.is_empty()).then(|| costs.iter().sum()),
        hours: hours.fold(0.0, f64::max),
        basis,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Cause, Measured, RunFile};

    const FILE: &str = r#"
        name = "test"
        seeds = 2
        self_play = false
        [[models]]
        name = "small"
        model = "small-1"
        endpoint = "http://localhost:1/v1"
        usd_per_million = { input = 1.0, cached = 0.5, output = 10.0 }
        concurrency = 2
        [[models]]
        name = "large"
        model = "large-1"
        endpoint = "http://localhost:1/v1"
        concurrency = 4
        [[challenges]]
        name = "psi"
    "#;

    fn seat(calls: u32, input: u64) -> SeatRecord {
        let usage = Usage { input, cached: input / 2, output: 100, ..Usage::default() };
        SeatRecord {
            agent: "small".to_owned(),
            cause: Cause::Completed,
            detail: None,
            security: 0.0,
            utility: 0.0,
            measured: Measured { calls, usage, ms: 3_600_000, ..Measured::default() },
        }
    }

    #[test]
    fn a_plan_costs_its_games_times_the_means_of_earlier_games() {
        let file = RunFile::parse(FILE, "test.toml").expect("a run file");
        let plan = EvalPlan::of(file, Path::new(".")).expect("a plan");
        // Two seeds in both orders.
        assert_eq!(plan.games.len(), 4);
        let mut samples = Samples { games: 2, ..Samples::default() };
        assert_eq!(estimate_from(&plan, &samples, 1), None);
        samples.add("psi", "small", &seat(3, 1000));
        samples.add("psi", "small", &seat(5, 3000));
        let found = estimate_from(&plan, &samples, 1).expect("psi has games");
        // Each of the two models plays four seats with 4 calls, 2000 input tokens and an hour each.
        assert_eq!((found.games, found.calls, found.input_tokens, found.output_tokens), (4, 32, 16_000, 800));
        // Only `small` has prices: 4000 new and 4000 cached input tokens, and 400 output tokens.
        assert!(found.usd.is_some_and(|usd| (usd - 0.010).abs() < 1e-9), "{:?}", found.usd);
        assert!((found.hours - 2.0).abs() < 1e-9, "8 hours of calls, 4 at the same time: {}", found.hours);
        assert_eq!(found.basis, "2 finished games of 1 earlier run; the mean of other models stands for large");
    }
}
