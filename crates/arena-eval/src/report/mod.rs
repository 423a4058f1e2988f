//! The report of a run: scores with intervals, differences between agents, ratings, reliability and costs.
//!
//! A report is a pure function of the run's plan and records. All lists are in the order of the plan. Numbers that
//! depend on the endpoint or the clock are in [`Measurements`] only, so that two runs with equal answers have equal
//! reports without measurements.

mod breaches;
mod costs;
mod csv;
mod game_page;
mod html;
mod input;
mod noise;
mod site;
mod strength;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use arena_ratings::ClusteredMean;
use arena_ratings::bradley_terry::Interval;
use serde::Serialize;

use crate::EvalRun;
use crate::record::VERSION;
use input::Input;

pub use html::thousands;
pub use site::ReportSite;
pub use tables::TextTable;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The version of the run's files.
    pub arena_eval: u32,
    pub name: String,
    /// The number of seeds per challenge.
    pub seeds: usize,
    pub games: GameCounts,
    pub agents: Vec<AgentInfo>,
    pub challenges: Vec<ChallengeReport>,
    /// The means over all challenges with equal weights. Agents without counted games in a challenge are left out.
    pub overall: Vec<OverallRow>,
    /// The differences of each two agents over all challenges.
    pub overall_differences: Vec<DifferenceRow>,
    /// The breach rates by challenge and agent, of the challenges with secrets.
    pub breaches: Vec<BreachRow>,
    /// The differences between equal players; `None` without a null variant and without self-play.
    pub noise: Option<NoiseFloor>,
    /// The causes of the ends of all seats.
    pub reliability: Vec<ReliabilityRow>,
    /// The changes that the user accepted during the run.
    pub changes: Vec<AcceptedChange>,
    /// The numbers that depend on the endpoint and the clock; `None` if they are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measurements: Option<Measurements>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct GameCounts {
    pub planned: usize,
    pub finished: usize,
    /// The finished games whose seats all ended by causes that count. Scores are computed from these games.
    pub counted: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentInfo {
    pub name: String,
    /// The kind: `model`, `house` or `random`.
    pub kind: &'static str,
    /// The SHA-256 of all settings that determine the agent's play.
    pub identity: String,
    /// The model that plays under this second name; `None` for other agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub null_variant_of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChallengeReport {
    /// The label.
    pub challenge: String,
    /// The SHA-256 of the rules and options.
    pub identity: String,
    pub seats: usize,
    pub games: GameCounts,
    /// The finished games that don't count, by agent and cause.
    pub uncounted: Vec<UncountedRow>,
    pub agents: Vec<Cell>,
    /// The differences of each two agents in matched games.
    pub differences: Vec<DifferenceRow>,
    /// The Bradley–Terry ratings by utility, the highest first; empty if no game has a winner.
    pub ratings: Vec<RatingRow>,
    /// The points of each agent against each other agent.
    pub cross_table: Vec<CrossCell>,
}

/// The games of an agent that don't count because one of its seats ended by this cause. A game may be in several rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncountedRow {
    pub agent: String,
    pub cause: &'static str,
    pub games: usize,
}

/// The scores of an agent in a challenge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    pub agent: String,
    pub games: GameCounts,
    /// The mean utility over seats and games.
    pub utility: Option<ClusteredMean>,
    /// The mean security over seats and games.
    pub security: Option<ClusteredMean>,
    /// The games against other agents in which the agent had the highest utility.
    pub wins: u64,
    /// The games against other agents in which the agent shared the highest utility.
    pub draws: u64,
    /// The games against other agents in which another agent had a higher utility.
    pub losses: u64,
    /// The share of wins; `None` without games against other agents.
    pub win_rate: Option<ClusteredMean>,
    /// The mean utility on each seat.
    pub utility_by_seat: Vec<Option<f64>>,
    /// The mean utility on the first seat minus that on the other seats, by seed.
    pub seat_effect: Option<ClusteredMean>,
    /// The number of the agent's seats in finished games that ended by each cause.
    pub causes: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Utility,
    Security,
    /// The share of the seats whose secret another player learned.
    Exposure,
}

impl Measure {
    /// All measures, in the order of tables.
    pub const ALL: [Measure; 3] = [Measure::Utility, Measure::Security, Measure::Exposure];

    /// Returns the name in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Utility => "utility",
            Measure::Security => "security",
            Measure::Exposure => "exposure",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DifferenceRow {
    pub first: String,
    pub second: String,
    pub measure: Measure,
    /// The score of the first agent minus the score of the second agent in matched games.
    pub difference: ClusteredMean,
    /// The p value; `None` with fewer than 10 seeds.
    pub p: Option<f64>,
    /// The p value after Holm's correction for all rows of the table.
    pub adjusted_p: Option<f64>,
    /// The p value by sign flips of the seeds' differences, without correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_flip_p: Option<f64>,
    /// True if the adjusted p value is below 0.05.
    pub is_separated: bool,
    /// The expected number of additional seeds that separate the agents with power 0.8 at level 0.05. `None` if they
    /// are separated, if their difference is 0 or the same in all seeds, and with fewer than 10 seeds.
    pub more_seeds: Option<u64>,
    /// The parts of the difference by seed: they add up to its mean.
    #[serde(skip)]
    parts: Vec<f64>,
}

/// A Bradley–Terry rating.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatingRow {
    pub agent: String,
    /// The rating in Elo. The mean is 0.
    pub elo: f64,
    /// The 95 % interval, unbounded where the games give no bound; `None` with fewer than 10 seeds.
    pub interval: Option<Interval>,
    /// The best and the worst rank that the intervals allow; `None` with fewer than 10 seeds.
    pub ranks: Option<(usize, usize)>,
    /// The group of agents that games link, from 0. Ratings of different groups can't be compared.
    pub group: usize,
}

/// The points of an agent against another agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossCell {
    pub agent: String,
    pub against: String,
    pub games: u64,
    /// The points: 1 for a win and 0.5 for a draw.
    pub points: f64,
}

/// The mean scores of an agent over all challenges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverallRow {
    pub agent: String,
    pub utility: ClusteredMean,
    /// The best and the worst rank by utility that the intervals allow; `None` if an agent has no interval.
    pub utility_ranks: Option<(usize, usize)>,
    pub security: ClusteredMean,
    /// The best and the worst rank by security that the intervals allow; `None` if an agent has no interval.
    pub security_ranks: Option<(usize, usize)>,
}

/// The breach rates of an agent in the games of a challenge that count. The intervals stay between 0 and 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BreachRow {
    pub challenge: String,
    pub agent: String,
    /// The share of the agent's seats whose secret another player learned.
    pub exposed: ClusteredMean,
    /// The share of the agent's seats that learned the secret of another player.
    pub learned: ClusteredMean,
}

/// The differences between equal players.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// The source: `null_variant` or `halves_of_self_play`.
    pub source: &'static str,
    /// The differences by challenge and agent.
    pub rows: Vec<NoiseRow>,
    /// The root mean square of the differences in utility.
    pub utility: f64,
    /// The root mean square of the differences in security.
    pub security: f64,
}

/// A difference between equal players in a challenge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseRow {
    pub challenge: String,
    /// The agent that is compared with itself.
    pub agent: String,
    /// The difference in utility.
    pub utility: ClusteredMean,
    /// The difference in security.
    pub security: ClusteredMean,
}

/// The causes of the ends of an agent's seats in all challenges.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReliabilityRow {
    pub agent: String,
    /// The number of seats in finished games.
    pub seats: u64,
    /// The number of seats that ended by each cause.
    pub causes: BTreeMap<&'static str, u64>,
    /// The share of seats that played to the end.
    pub completed: f64,
}

/// A changed setting that the user accepted. The affected games were played again, and only the new results count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedChange {
    /// The changed agent or challenge.
    pub name: String,
    /// The SHA-256 of the settings before the change.
    pub before: String,
    /// The SHA-256 of the settings after the change.
    pub after: String,
}

/// The numbers that depend on the endpoint and the clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measurements {
    /// The starts of the run, in milliseconds since 1970.
    pub started: Vec<i64>,
    /// The number of games that were given up and played again, by agent and class of the fault.
    pub voids: Vec<VoidCount>,
    /// The costs of each agent in all challenges.
    pub agents: Vec<Cost>,
    /// The costs of each agent in each challenge.
    pub cells: Vec<Cost>,
    /// The costs of all agents in all challenges.
    pub total: Cost,
}

/// A number of games that were given up without a fault of a player.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VoidCount {
    /// The agent whose endpoint failed, if any.
    pub agent: Option<String>,
    pub class: String,
    pub games: u64,
}

/// The costs of an agent's seats in finished games.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cost {
    /// The challenge; `None` for all challenges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// The agent; `None` for all agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub games: u64,
    /// The number of answered calls.
    pub calls: u64,
    /// The number of failed attempts.
    pub retries: u64,
    pub invalid: u64,
    pub refusals: u64,
    pub truncated: u64,
    /// The input tokens, including cached tokens.
    pub input_tokens: u64,
    pub cached_tokens: u64,
    /// The output tokens, including reasoning tokens.
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    /// True if nothing counted the tokens of an endpoint or a bot, so that they are estimated.
    pub is_estimated: bool,
    /// True if attempts without an answer count at their highest price.
    pub has_lost: bool,
    /// The cost in US dollars of the calls with known prices; `None` if no prices are known.
    pub usd: Option<f64>,
    /// The total time of the calls in seconds.
    pub seconds: f64,
    /// The mean utility divided by the mean cost of a game in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utility_per_usd: Option<f64>,
}

/// Computes the report of a run, finished or in progress.
pub fn report(run: &EvalRun) -> Report {
    report_of(&Input::of(run))
}

fn report_of(input: &Input<'_>) -> Report {
    let played = input.played();
    let challenges: Vec<ChallengeReport> = (0..input.challenges.len())
        .map(|challenge| strength::challenge(input, challenge, &played[challenge]))
        .collect();
    let sum = |of: fn(&GameCounts) -> usize| -> usize { challenges.iter().map(|challenge| of(&challenge.games)).sum() };
    let games = GameCounts {
        planned: sum(|games| games.planned),
        finished: sum(|games| games.finished),
        counted: sum(|games| games.counted),
    };
    let overall = strength::overall(input, &challenges);
    let measurements = costs::measurements(input, &played, &challenges, &overall);
    Report {
        arena_eval: VERSION,
        name: input.file.name.clone(),
        seeds: input.file.seeds,
        games,
        agents: input.agent_infos(),
        overall_differences: strength::overall_differences(input, &challenges),
        breaches: breaches::rates(input, &played),
        noise: noise::noise_floor(input, &played),
        reliability: strength::reliability(input, &challenges),
        changes: input.changes(),
        challenges,
        overall,
        measurements: Some(measurements),
    }
}

impl Report {
    /// Returns the report as JSON. Without measurements, two runs with equal answers have equal bytes.
    pub fn json(&self, with_measurements: bool) -> String {
        let text = if with_measurements {
            serde_json::to_string_pretty(self)
        } else {
            serde_json::to_string_pretty(&Report { measurements: None, ..self.clone() })
        };
        text.expect("a report has no map with keys that aren't text") + "\n"
    }

    /// Returns one line for each agent and challenge as comma-separated values.
    pub fn csv(&self) -> String {
        csv::csv(self)
    }

    /// Returns the report as one HTML page without scripts and external files. [`ReportSite`] has pages of games, too.
    pub fn html(&self) -> String {
        html::html(self)
    }

    pub fn tables(&self) -> Vec<TextTable> {
        tables::tables(self)
    }
}
