//! A parsed run, with the indexes and tables that its pages share.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use arena_eval::{EvalRun, GameRecord, PlannedGame, Report, Spent, report};
use serde::Deserialize;

use super::{EvalPageError, EvalPageResult};

/// The file with the progress of the process that plays a run.
const STATUS: &str = "status.json";

/// The age in milliseconds from which the status's process counts as killed. A running one writes every two seconds.
const STALE_MS: i64 = 15_000;

pub(super) struct LoadedEval {
    /// The name in paths.
    pub(super) name: String,
    pub(super) run: EvalRun,
    /// The time of the last change of its files, in milliseconds since 1970.
    pub(super) changed: i64,
    /// The finished games with their plans, in the plan's order, as indexes in the games of the plan.
    planned: Vec<usize>,
    /// The indexes of finished games, by id.
    places: BTreeMap<String, usize>,
    /// The cells of each challenge, by the indexes of two agents.
    matrices: Vec<BTreeMap<(usize, usize), MatrixCell>>,
    report: OnceLock<Report>,
    spent: OnceLock<Spent>,
}

/// The games of an agent with another agent, or alone.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct MatrixCell {
    /// The number of finished games.
    pub(super) games: usize,
    /// The number of the agent's seats in games that count.
    seats: usize,
    /// The sum of the utilities of these seats.
    sum: f64,
}

impl MatrixCell {
    /// Returns the mean utility; `None` without games that count.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.seats > 0).then(|| self.sum / self.seats as f64)
    }
}

/// A line of the list of runs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EvalSummary {
    /// The name in the run file.
    pub(super) title: String,
    pub(super) finished: usize,
    pub(super) planned: usize,
    /// The time of the last change in milliseconds since 1970.
    pub(super) changed: i64,
}

/// The progress that the process of a run writes. Unknown keys are ignored.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RunStatus {
    time: i64,
    /// A name, or a name with a value.
    state: serde_json::Value,
    pub(super) open: u64,
    pub(super) tokens: u64,
    pub(super) usd: f64,
    pub(super) models: Vec<ModelStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelStatus {
    pub(super) name: String,
    pub(super) paused: Option<String>,
}

impl RunStatus {
    /// Reads the status from the folder of a run; `None` if no process has written one.
    pub(super) fn read(dir: &Path) -> Option<RunStatus> {
        serde_json::from_slice(&fs::read(dir.join(STATUS)).ok()?).ok()
    }

    /// Returns true if a process plays the run at the time `now`, in milliseconds since 1970.
    pub(super) fn is_running(&self, now: i64) -> bool {
        self.state == "running" && now.saturating_sub(self.time) < STALE_MS
    }

    /// Returns the state after the end of the process, in words.
    fn last_words(&self) -> String {
        match (self.state.as_str(), self.state.get("cap").and_then(serde_json::Value::as_str)) {
            (_, Some(cap)) => format!("cap {cap} reached"),
            (Some(state @ ("paused" | "interrupted" | "failed")), _) => state.to_owned(),
            _ => "stopped".to_owned(),
        }
    }
}

/// Returns the state of a run in words, and true if a process plays it.
pub(super) fn state_of(status: Option<&RunStatus>, finished: usize, planned: usize, now: i64) -> (String, bool) {
    match status {
        Some(status) if status.is_running(now) => ("running".to_owned(), true),
        _ if finished >= planned => ("complete".to_owned(), false),
        Some(status) => (status.last_words(), false),
        None => ("stopped".to_owned(), false),
    }
}

impl LoadedEval {
    pub(super) fn read(name: &str, dir: &Path, changed: i64) -> EvalPageResult<LoadedEval> {
        let run = EvalRun::load(dir)?;
        let ids: BTreeMap<&str, usize> =
            run.plan.games.iter().enumerate().map(|(at, game)| (game.id.as_str(), at)).collect();
        let planned: Vec<usize> = run.games.iter().filter_map(|game| ids.get(game.game.as_str()).copied()).collect();
        if planned.len() != run.games.len() {
            return Err(EvalPageError::broken("the run has games that are not in its plan".to_owned()));
        }
        let places = run.games.iter().enumerate().map(|(at, game)| (game.game.clone(), at)).collect();
        let mut loaded = LoadedEval {
            name: name.to_owned(),
            matrices: vec![BTreeMap::new(); run.plan.challenges.len()],
            run,
            changed,
            planned,
            places,
            report: OnceLock::new(),
            spent: OnceLock::new(),
        };
        loaded.matrices = loaded.count_cells();
        Ok(loaded)
    }

    fn count_cells(&self) -> Vec<BTreeMap<(usize, usize), MatrixCell>> {
        let mut matrices = vec![BTreeMap::new(); self.run.plan.challenges.len()];
        for (record, planned) in self.games() {
            let counts = self.counts(record);
            let agents: BTreeSet<usize> = planned.seats.iter().copied().collect();
            for agent in &agents {
                for against in agents.iter().filter(|against| is_in_cell(&planned.seats, *agent, **against)) {
                    let cell: &mut MatrixCell = matrices[planned.challenge].entry((*agent, *against)).or_default();
                    cell.games += 1;
                    for (seat, _) in planned.seats.iter().enumerate().filter(|(_, other)| counts && *other == agent) {
                        cell.seats += 1;
                        cell.sum += record.seats.get(seat).map_or(0.0, |seat| seat.utility);
                    }
                }
            }
        }
        matrices
    }

    /// Returns all finished games with their plans.
    pub(super) fn games(&self) -> impl Iterator<Item = (&GameRecord, &PlannedGame)> {
        self.run.games.iter().zip(self.planned.iter().map(|at| &self.run.plan.games[*at]))
    }

    pub(super) fn game(&self, id: &str) -> Option<(&GameRecord, &PlannedGame)> {
        let at = *self.places.get(id)?;
        Some((&self.run.games[at], &self.run.plan.games[self.planned[at]]))
    }

    pub(super) fn cell(&self, challenge: usize, agent: usize, against: usize) -> MatrixCell {
        self.matrices[challenge].get(&(agent, against)).copied().unwrap_or_default()
    }

    /// Returns true if scores are computed from a game, as in the report.
    pub(super) fn counts(&self, record: &GameRecord) -> bool {
        let spec = &self.run.plan.file.counts;
        record.seats.iter().all(|seat| spec.counts(seat.cause))
    }

    pub(super) fn report(&self) -> &Report {
        self.report.get_or_init(|| report(&self.run))
    }

    pub(super) fn spent(&self) -> EvalPageResult<Spent> {
        if let Some(spent) = self.spent.get() {
            return Ok(*spent);
        }
        let spent = self.run.spent()?;
        Ok(*self.spent.get_or_init(|| spent))
    }

    pub(super) fn summary(&self) -> EvalSummary {
        EvalSummary {
            title: self.run.plan.file.name.clone(),
            finished: self.run.games.len(),
            planned: self.run.plan.games.len(),
            changed: self.changed,
        }
    }
}

/// The cell of an agent with itself has the games without other agents.
pub(super) fn is_in_cell(seats: &[usize], agent: usize, against: usize) -> bool {
    match agent == against {
        true => seats.iter().all(|seat| *seat == agent),
        false => seats.contains(&agent) && seats.contains(&against),
    }
}
