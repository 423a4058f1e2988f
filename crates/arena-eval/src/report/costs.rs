//! Calls, tokens, time and money.

use std::collections::BTreeMap;

use super::input::{Input, Played};
use super::{ChallengeReport, Cost, Measurements, OverallRow, VoidCount};
use crate::Measured;

/// Returns the numbers that depend on the endpoint and the clock.
pub(super) fn measurements(
    input: &Input<'_>,
    played: &[Vec<Played<'_>>],
    challenges: &[ChallengeReport],
    overall: &[OverallRow],
) -> Measurements {
    let mut cells: BTreeMap<(usize, usize), Cost> = BTreeMap::new();
    let mut agents: BTreeMap<usize, Cost> = BTreeMap::new();
    let mut total = Cost::default();
    for (challenge, played) in played.iter().enumerate() {
        for game in played {
            total.games += 1;
            for (seat, (agent, record)) in game.agents.iter().zip(&game.record.seats).enumerate() {
                let is_first = !game.agents[..seat].contains(agent);
                let (cell, of_agent) =
                    (cells.entry((challenge, *agent)).or_default(), agents.entry(*agent).or_default());
                for cost in [&mut *cell, &mut *of_agent] {
                    cost.games += u64::from(is_first);
                    cost.add(&record.measured);
                }
                total.add(&record.measured);
            }
        }
    }
    let name = |agent: usize| input.agents[agent].name;
    let of_cell = |((challenge, agent), cost): ((usize, usize), Cost)| {
        let label = challenges[challenge].challenge.clone();
        let cell = challenges[challenge].agents.iter().find(|cell| cell.agent == name(agent));
        let utility = cell.and_then(|cell| cell.utility).map(|utility| utility.mean);
        Cost { challenge: Some(label), ..cost.of_agent(name(agent), utility) }
    };
    let of_agent = |(agent, cost): (usize, Cost)| {
        let utility = overall.iter().find(|row| row.agent == name(agent)).map(|row| row.utility.mean);
        cost.of_agent(name(agent), utility)
    };
    let mut voids: BTreeMap<(Option<&str>, &str), u64> = BTreeMap::new();
    for void in input.voids {
        *voids.entry((void.agent.as_deref(), void.class.as_str())).or_default() += 1;
    }
    let void = |((agent, class), games): ((Option<&str>, &str), u64)| VoidCount {
        agent: agent.map(str::to_owned),
        class: class.to_owned(),
        games,
    };
    Measurements {
        started: input.started.to_vec(),
        voids: voids.into_iter().map(void).collect(),
        agents: agents.into_iter().map(of_agent).collect(),
        cells: cells.into_iter().map(of_cell).collect(),
        total,
    }
}

impl Cost {
    fn add(&mut self, measured: &Measured) {
        self.calls += u64::from(measured.calls);
        self.retries += u64::from(measured.retries);
        self.invalid += u64::from(measured.invalid);
        self.refusals += u64::from(measured.refusals);
        self.truncated += u64::from(measured.truncated);
        self.input_tokens += measured.usage.input;
        self.cached_tokens += measured.usage.cached;
        self.output_tokens += measured.usage.output;
        self.reasoning_tokens += measured.usage.reasoning;
        self.is_estimated |= measured.usage.is_estimated;
        self.has_lost |= measured.has_lost;
        self.seconds += measured.ms as f64 / 1000.0;
        if let Some(usd) = measured.usd {
            *self.usd.get_or_insert(0.0) += usd;
        }
    }

    /// Returns the costs with the agent's name, and with its mean utility divided by the cost of a game.
    fn of_agent(self, agent: &str, utility: Option<f64>) -> Cost {
        let usd = self.usd_per_game().filter(|usd| *usd > 0.0);
        let utility_per_usd = utility.zip(usd).map(|(utility, usd)| utility / usd);
        Cost { agent: Some(agent.to_owned()), utility_per_usd, ..self }
    }

    /// Returns the mean cost of a game in US dollars, if prices are known.
    pub fn usd_per_game(&self) -> Option<f64> {
        self.usd.filter(|_| self.games > 0).map(|usd| usd / self.games as f64)
    }

    /// Returns the input and output tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}
