//! The progress of a run as plain data. The running process writes it to `status.json` in the folder of the run, and
//! `arena eval status` reads it. The texts about it are here too.

use std::fs;
use std::path::Path;

use arena_eval::{BudgetSpec, Progress, RunEnd};
use serde::{Deserialize, Serialize};

use super::amounts::{dollars, duration, of_cap, thousands, tokens};
use crate::output::counted;

const FILE: &str = "status.json";

/// The age from which a status counts as left behind by a process that was killed, in milliseconds. A running process
/// writes every two seconds.
const STALE_MS: i64 = 15_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// The time in milliseconds since 1970.
    pub time: i64,
    pub state: LiveState,
    /// The duration of this invocation in seconds.
    pub seconds: f64,
    /// The number of games of the plan.
    pub games: u64,
    pub finished: u64,
    /// The number of games that were finished before this invocation.
    pub finished_before: u64,
    /// The number of games in progress.
    pub open: u64,
    /// The number of games that were given up and are played again.
    pub void: u64,
    /// The number of calls that this invocation sent and that were answered.
    pub calls: u64,
    /// The number of answers from the store.
    pub cached: u64,
    /// The number of failed attempts.
    pub retries: u64,
    /// The tokens of the whole run, input and output together.
    pub tokens: u64,
    /// The cost of the whole run in US dollars.
    pub usd: f64,
    pub models: Vec<LiveModel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveModel {
    pub name: String,
    pub calls: u64,
    /// The number of concurrent calls that the endpoint gets at most at this time.
    pub concurrency: u64,
    pub paused: Option<String>,
    /// The address and the last fault, if the last attempt failed.
    #[serde(default)]
    pub failing: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveState {
    Running,
    Complete,
    /// The user stopped the run.
    Interrupted,
    /// This cap was reached.
    Cap(String),
    /// All games without paused models are finished.
    Paused,
    Failed,
}

impl LiveState {
    pub fn of(end: &RunEnd) -> LiveState {
        match end {
            RunEnd::Complete => LiveState::Complete,
            RunEnd::Interrupted => LiveState::Interrupted,
            RunEnd::Budget(cap) => LiveState::Cap((*cap).to_owned()),
            RunEnd::Paused(_) => LiveState::Paused,
        }
    }
}

impl LiveStatus {
    pub fn of(progress: &Progress, finished_before: u64, time: i64, state: LiveState) -> LiveStatus {
        let usage = &progress.spent.usage;
        let model = |model: &arena_eval::ModelProgress| LiveModel {
            name: model.name.clone(),
            calls: model.calls,
            concurrency: model.limit as u64,
            paused: model.paused.clone(),
            failing: model.failing.clone(),
        };
        LiveStatus {
            time,
            state,
            seconds: progress.began.elapsed().as_secs_f64(),
            games: progress.games,
            finished: progress.finished,
            finished_before,
            open: progress.open,
            void: progress.void,
            calls: progress.calls,
            cached: progress.cached,
            retries: progress.retries,
            tokens: usage.input + usage.output,
            usd: progress.spent.usd,
            models: progress.models.iter().map(model).collect(),
        }
    }

    /// A failure is ignored: the journal reports a full disk, and nothing else depends on this file.
    pub fn write(&self, dir: &Path) {
        let Ok(text) = serde_json::to_vec(self) else { return };
        // A reader must not see half a file.
        let temporary = dir.join(format!("{FILE}.new"));
        if fs::write(&temporary, text).is_ok() {
            let _ = fs::rename(&temporary, dir.join(FILE));
        }
    }

    pub fn read(dir: &Path) -> Option<LiveStatus> {
        serde_json::from_slice(&fs::read(dir.join(FILE)).ok()?).ok()
    }

    /// Returns true if a process plays the run at the time `now`, in milliseconds since 1970.
    pub fn is_running(&self, now: i64) -> bool {
        self.state == LiveState::Running && (0..STALE_MS).contains(&(now - self.time).abs())
    }

    /// Returns the number of games per second of this invocation, if a game has finished.
    pub fn rate(&self) -> Option<f64> {
        let played = self.finished.saturating_sub(self.finished_before);
        (played > 0 && self.seconds > 0.0).then(|| played as f64 / self.seconds)
    }

    /// Returns the expected time to the last game in seconds, if a game has finished. Fast games finish first, so the
    /// true time is longer at the beginning.
    pub fn seconds_left(&self) -> Option<f64> {
        self.rate().map(|rate| self.games.saturating_sub(self.finished) as f64 / rate)
    }

    /// Formats the speed and the time left.
    pub fn pace(&self) -> String {
        match (self.rate(), self.seconds_left()) {
            (Some(rate), Some(left)) => {
                let speed = match rate * 60.0 {
                    minute if minute >= 1.0 => format!("{minute:.0} games a minute"),
                    minute => format!("{:.1} games an hour", minute * 60.0),
                };
                format!("{speed}, {} left", duration(left))
            }
            _ => "time left unknown".to_owned(),
        }
    }

    /// Formats calls, tokens and dollars, with the caps of the run.
    pub fn spend(&self, budget: &BudgetSpec) -> String {
        let mut text = format!("{} calls", thousands(self.calls));
        if self.cached > 0 {
            text += &format!(", {} answers from the store", thousands(self.cached));
        }
        if self.retries > 0 {
            text += &format!(", {} failed attempts", thousands(self.retries));
        }
        format!("{text}, {}", spent(self.tokens, self.usd, budget))
    }

    /// Returns the line of each model: its concurrency, or the reason of its pause.
    pub fn model_lines(&self) -> Vec<String> {
        let line = |model: &LiveModel| match (&model.paused, &model.failing) {
            (Some(reason), _) => format!("{}: paused: {reason}", model.name),
            (None, Some(fault)) => {
                format!("{}: {}, retrying: {fault}", model.name, counted(model.calls, "call"))
            }
            (None, None) => format!(
                "{}: {}, up to {} at once",
                model.name,
                counted(model.calls, "call"),
                thousands(model.concurrency)
            ),
        };
        self.models.iter().map(line).collect()
    }
}

/// Formats tokens and dollars with their caps.
pub fn spent(used: u64, usd: f64, budget: &BudgetSpec) -> String {
    let used = of_cap(tokens(used), budget.tokens.map(tokens));
    format!("{used} tokens, {} USD", of_cap(dollars(usd), budget.usd.map(dollars)))
}

#[cfg(test)]
pub mod tests {
    use expect_test::expect;

    use super::*;

    pub fn status() -> LiveStatus {
        let model = |name: &str, paused: Option<&str>| LiveModel {
            name: name.to_owned(),
            calls: 1,
            concurrency: 24,
            paused: paused.map(str::to_owned),
            failing: None,
        };
        LiveStatus {
            time: 1_000_000,
            state: LiveState::Running,
            seconds: 120.0,
            games: 400,
            finished: 160,
            finished_before: 100,
            open: 40,
            void: 1,
            calls: 12_345,
            cached: 1000,
            retries: 17,
            tokens: 3_200_000,
            usd: 1.5,
            models: vec![model("small", None), model("large", Some("HTTP 402: no credit"))],
        }
    }

    #[test]
    fn the_pace_counts_games_of_this_invocation_only() {
        let pace = |finished, seconds| LiveStatus { finished, seconds, ..status() }.pace();
        assert_eq!(pace(160, 120.0), "30 games a minute, 8 min 00 s left");
        assert_eq!(pace(101, 3600.0), "1.0 games an hour, 12.5 days left");
        assert_eq!(pace(100, 120.0), "time left unknown");
        assert_eq!(pace(400, 120.0), "150 games a minute, 0 s left");
    }

    #[test]
    fn the_spend_is_shown_against_the_caps() {
        let caps = |usd, tokens| BudgetSpec { usd, tokens, ..BudgetSpec::default() };
        let quiet = LiveStatus { cached: 0, retries: 0, ..status() };
        expect![[r#"
            12,345 calls, 1,000 answers from the store, 17 failed attempts, 3,200,000 of 20.0 million tokens, 1.50 of 50.00 USD
            12,345 calls, 3,200,000 tokens, 1.50 USD
            small: 1 call, up to 24 at once
            large: paused: HTTP 402: no credit
        "#]]
        .assert_eq(&format!(
            "{}\n{}\n{}\n",
            status().spend(&caps(Some(50.0), Some(20_000_000))),
            quiet.spend(&caps(None, None)),
            status().model_lines().join("\n")
        ));
    }

    #[test]
    fn a_failing_endpoint_is_shown_with_its_fault() {
        let mut status = status();
        status.models[0].failing = Some("http://127.0.0.1:9/v1: it cannot be connected".to_owned());
        let lines = status.model_lines();
        assert_eq!(lines[0], "small: 1 call, retrying: http://127.0.0.1:9/v1: it cannot be connected");
    }

    #[test]
    fn a_killed_process_leaves_a_stale_status() {
        let running = |time, state| LiveStatus { time, state, ..status() }.is_running(1_000_000);
        assert!(running(999_000, LiveState::Running));
        assert!(!running(900_000, LiveState::Running));
        assert!(!running(999_000, LiveState::Complete));
        assert!(!running(2_000_000, LiveState::Running), "the clock was set back");
    }

    #[test]
    fn a_status_survives_its_file() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LiveStatus::read(dir.path()), None);
        let status = LiveStatus { state: LiveState::Cap("usd".to_owned()), ..status() };
        status.write(dir.path());
        assert_eq!(LiveStatus::read(dir.path()), Some(status));
    }
}
