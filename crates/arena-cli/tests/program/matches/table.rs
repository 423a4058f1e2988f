//! The table of behaviours: a row is a match between an agent with a behaviour and an honest one, and what is to come of it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Finished, Room};

/// Matches that are played beside each other. Most of them wait most of the time.
const BESIDE_EACH_OTHER: usize = 4;

/// The most memory that the runner may have resident, in bytes. An idle one takes some 20 MiB in a build for tests.
const MEMORY_BYTES: u64 = 64 << 20;

/// A match of an agent with a behaviour, on the first seat, against an honest one.
pub struct Row {
    /// The behaviour.
    pub behaviour: &'static str,
    /// What is played: the game, and options of `match run`.
    pub game: &'static str,
    /// Why the agent is to be disqualified, any of these; none: it is to play to the end.
    pub verdicts: &'static [&'static str],
    /// What the sentence about that is to hold.
    pub detail: &'static str,
    /// How long the whole match may take. Much longer than it does, because build machines are slow and busy.
    pub within: Duration,
}

/// Plays all rows in a sandbox, and fails with all that came out otherwise.
pub fn play_all<'row>(rows: impl IntoIterator<Item = &'row Row>, sandbox: &str) {
    let rows: Vec<&Row> = rows.into_iter().collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(what) = row.play(sandbox) {
                failures.push(format!("{} with sandbox {sandbox} {what}\n", row.behaviour));
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
        let room = Room::new();
        let (agent, honest) = (room.agent(self.behaviour), room.agent("honest"));
        let mut args: Vec<&str> = self.game.split(' ').collect();
        args.extend(["--sandbox", sandbox, "--seed", "7", "--agent", &agent, "--agent", &honest]);
        let finished = room.play(&args);
        let remains = room.remains();
        if !remains.is_empty() {
            return Err(format!("left {remains:?}"));
        }
        if finished.took > self.within {
            return Err(format!("took {:?}, more than {:?}", finished.took, self.within));
        }
        if finished.peak_bytes > MEMORY_BYTES || finished.peak_bytes == 0 {
            return Err(format!("had the runner take {} KiB", finished.peak_bytes >> 10));
        }
        let result = finished.result()?;
        self.judge(&result).map_err(|what| format!("{what}: {} {}", result["scores"], finished.run.stderr))?;
        self.look_at_text(&finished)
    }

    /// Whether the right one is blamed, for the right reason, and the other one wins.
    fn judge(&self, result: &Value) -> Result<(), String> {
        let seat = |number: u64| {
            let scores = result["scores"].as_array().expect("a result has scores");
            scores.iter().find(|score| score["seat"] == number).expect("each seat has a score")
        };
        let (odd, honest) = (seat(0), seat(1));
        let reason = odd["tainted_reason"].as_str().unwrap_or_default();
        if honest["tainted"] != false || honest["faults"] != 0 {
            return Err("has its opponent blamed".to_owned());
        }
        if self.verdicts.is_empty() {
            let is_clean = odd["tainted"] == false && odd["faults"] == 0 && result["has_tainted_agent"] == false;
            return if is_clean { Ok(()) } else { Err("is blamed".to_owned()) };
        }
        if !self.verdicts.contains(&reason) {
            return Err(format!("is told to be {reason:?}"));
        }
        if !odd["tainted_detail"].as_str().unwrap_or_default().contains(self.detail) {
            return Err(format!("is told to have {}", odd["tainted_detail"]));
        }
        let winner =
            [honest["agent_id"].as_str(), Some("WHITE"), Some("BLACK")].contains(&result["outcome"]["winner"].as_str());
        match winner && honest["rank"] == 1 && odd["rank"] == 2 && odd["score"] == -10.0 {
            true => Ok(()),
            false => Err("wins".to_owned()),
        }
    }

    /// Whether anything of the agent's could steer a terminal.
    fn look_at_text(&self, finished: &Finished) -> Result<(), String> {
        let told = format!("{}{}", finished.run.stdout, finished.run.stderr);
        match told.chars().find(|char| char.is_control() && *char != '\n') {
            Some(char) => Err(format!("has {char:?} printed")),
            None => Ok(()),
        }
    }
}
