//! A table of behaviors. Each row is a match of an agent with a behavior against an honest agent, with the expected
//! result.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Finished, MatchFixture};

/// The number of concurrent matches, which wait most of the time.
const BESIDE_EACH_OTHER: usize = 4;

/// The limit on the runner's memory in bytes. A runner of a short game takes about 15 MiB.
const MEMORY_BYTES: u64 = 48 << 20;

/// A match of an agent with a behavior, on the first seat, against an honest agent.
pub struct Row {
    pub behavior: &'static str,
    /// The game, and options of `match run`.
    pub game: &'static str,
    /// The accepted reasons for the agent's disqualification. The list is empty if the agent must play to the end.
    pub verdicts: &'static [&'static str],
    /// A part of the expected explanation.
    pub detail: &'static str,
    /// The time limit for the whole match. It is far longer than needed, because build machines are slow and busy.
    pub within: Duration,
}

/// Plays all rows with this sandbox mode. Fails with a list of all deviations.
pub fn play_all<'row>(rows: impl IntoIterator<Item = &'row Row>, sandbox: &str) {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(what) = row.play(sandbox) {
                failures.push(format!("{} with sandbox {sandbox}: {what}\n", row.behavior));
            }
        }
        failures
    };
    let failures: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..BESIDE_EACH_OTHER).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.concat());
}

impl Row {
    fn play(&self, sandbox: &str) -> Result<(), String> {
        let fixture = MatchFixture::new();
        let (agent, honest) = (fixture.agent(self.behavior), fixture.agent("honest"));
        let mut args: Vec<&str> = self.game.split(' ').collect();
        args.extend(["--sandbox", sandbox, "--seed", "7", "--agent", &agent, "--agent", &honest]);
        let finished = fixture.play(&args);
        let remains = fixture.remains();
        if !remains.is_empty() {
            return Err(format!("the agent left {remains:?}"));
        }
        if finished.took > self.within {
            return Err(format!("the match took {:?}, more than {:?}", finished.took, self.within));
        }
        if finished.peak_bytes > MEMORY_BYTES || finished.peak_bytes == 0 {
            return Err(format!("the runner's memory grew to {} KiB", finished.peak_bytes >> 10));
        }
        let result = finished.result()?;
        self.judge(&result).map_err(|what| format!("{what}: {} {}", result["scores"], finished.run.stderr))?;
        self.look_at_text(&finished)
    }

    /// Checks that the agent is disqualified for the right reason, and that its opponent wins.
    fn judge(&self, result: &Value) -> Result<(), String> {
        let seat = |number: u64| {
            let scores = result["scores"].as_array().expect("a result has scores");
            scores.iter().find(|score| score["seat"] == number).expect("each seat has a score")
        };
        let (odd, honest) = (seat(0), seat(1));
        let reason = odd["tainted_reason"].as_str().unwrap_or_default();
        if honest["tainted"] != false || honest["faults"] != 0 {
            return Err("the opponent was disqualified".to_owned());
        }
        if self.verdicts.is_empty() {
            let is_clean = odd["tainted"] == false && odd["faults"] == 0 && result["has_tainted_agent"] == false;
            return if is_clean { Ok(()) } else { Err("the agent was disqualified".to_owned()) };
        }
        if !self.verdicts.contains(&reason) {
            return Err(format!("the verdict is {reason:?}"));
        }
        if !odd["tainted_detail"].as_str().unwrap_or_default().contains(self.detail) {
            return Err(format!("the explanation is {}", odd["tainted_detail"]));
        }
        let winner =
            [honest["agent_id"].as_str(), Some("WHITE"), Some("BLACK")].contains(&result["outcome"]["winner"].as_str());
        match winner && honest["rank"] == 1 && odd["rank"] == 2 && odd["score"] == -10.0 {
            true => Ok(()),
            false => Err("the agent wins".to_owned()),
        }
    }

    /// Checks that no output of the agent could control a terminal.
    fn look_at_text(&self, finished: &Finished) -> Result<(), String> {
        let output = format!("{}{}", finished.run.stdout, finished.run.stderr);
        match output.chars().find(|char| char.is_control() && *char != '\n') {
            Some(char) => Err(format!("the output contains {char:?}")),
            None => Ok(()),
        }
    }
}
