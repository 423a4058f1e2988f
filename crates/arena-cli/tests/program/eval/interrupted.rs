//! Runs that are killed. A resumed run has the results of an uninterrupted one, and pays no stored call again.
//!
//! `ARENA_EVAL_SEEDS` is the number of deals of each challenge (default 1), `ARENA_EVAL_KILLS` the least number of
//! kills of a run with a cap (default 3).

use std::collections::BTreeSet;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{StandIn, StandInSpec, Tokens};

use super::{EvalFixture, RunSpec, command};
use crate::program::arena;

/// The number of answers between two kills of a run with a cap.
const BETWEEN: u64 = 20;

const KILLS: u64 = 5;

/// The highest number of calls in flight: four for each of five models.
const IN_FLIGHT: u64 = 5 * 4;

/// The time limit for the part of a run between two kills.
const TIMEOUT: Duration = Duration::from_secs(300);

const MODELS: [&str; 5] = ["leaky", "careful", "greedy", "copycat", "random"];
const CHALLENGES: [&str; 4] = ["psi", "dining-cryptographers", "millionaire", "ultimatum"];

#[test]
fn a_killed_run_ends_like_an_uninterrupted_one() {
    let seeds = std::env::var("ARENA_EVAL_SEEDS").map_or(1, |seeds| seeds.parse().unwrap());
    let fixture = EvalFixture::new();
    let stand_in = StandIn::start(StandInSpec { seed: 3, answer_ms: 10, ..StandInSpec::default() });
    let mut spec = RunSpec::new(&MODELS, &CHALLENGES, seeds);
    spec.endpoint = stand_in.base().to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "whole");
    let whole = stand_in.counts().answers;
    assert_eq!(whole, fixture.lines("whole", "calls.jsonl", "call").len() as u64);

    let dir = fixture.path("killed");
    for kill in 1..=KILLS {
        let mut killed = arena(&["eval", "run", &file, "--out", dir.to_str().unwrap()]);
        let mut running = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while stand_in.counts().answers < whole + whole * kill / (KILLS + 1) {
            assert!(running.try_wait().unwrap().is_none(), "the run ended before kill {kill}");
            assert!(begun.elapsed() < TIMEOUT, "the run makes no progress");
            // The counts have no notifications, so the test polls.
            thread::sleep(Duration::from_millis(2));
        }
        running.kill().unwrap();
        running.wait().unwrap();
    }
    fixture.play(&file, "killed");
    let paid = stand_in.counts().answers - whole;
    println!("{whole} calls, {paid} with {KILLS} kills");
    assert!((whole..=whole + KILLS * IN_FLIGHT).contains(&paid), "{paid} calls were paid, {whole} are needed");
    assert_eq!(fixture.report("killed"), fixture.report("whole"));

    let calls = fixture.lines("killed", "calls.jsonl", "call");
    let keys: BTreeSet<&str> = calls.iter().map(|call| call["key"].as_str().unwrap()).collect();
    assert_eq!((keys.len(), calls.len()), (whole as usize, whole as usize), "a call is stored twice");
    let games = fixture.lines("killed", "journal.jsonl", "game");
    let ids: BTreeSet<&str> = games.iter().map(|game| game["game"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), games.len(), "a game is recorded twice");
    command(&["verify"], &dir);
}

#[test]
fn kills_do_not_exceed_the_cap() {
    let least = std::env::var("ARENA_EVAL_KILLS").map_or(3, |kills| kills.parse().unwrap());
    let fixture = EvalFixture::new();
    let stand_in = StandIn::start(StandInSpec { seed: 3, answer_ms: 10, ..StandInSpec::default() });
    let mut spec = RunSpec::new(&["leaky", "greedy"], &["psi", "ultimatum"], 7 * least);
    spec.endpoint = stand_in.base().to_owned();
    let cap = 0.17 * least as f64;
    spec.end = format!("[budget]\nusd = {cap}\n");
    let file = fixture.write("run.toml", &spec.toml());
    let dir = fixture.path("run");
    let mut kills = 0;
    let code = loop {
        let begun = Instant::now();
        let until = stand_in.counts().answers + BETWEEN;
        let mut killed = arena(&["eval", "run", &file, "--out", dir.to_str().unwrap()]);
        let mut running = killed.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ended = loop {
            if let Some(status) = running.try_wait().unwrap() {
                break Some(status);
            }
            if stand_in.counts().answers >= until {
                running.kill().unwrap();
                running.wait().unwrap();
                break None;
            }
            assert!(begun.elapsed() < TIMEOUT, "the run makes no progress");
            // The counts have no notifications, so the test polls.
            thread::sleep(Duration::from_millis(2));
        };
        match ended {
            Some(status) => break status.code(),
            None => kills += 1,
        }
    };
    // The provider bills all answers, also those that no process has received.
    let Tokens { input, cached, output } = stand_in.counts().tokens;
    // The prices of `model`.
    let billed = ((input - cached) as f64 + cached as f64 * 0.1 + output as f64 * 5.0) / 1e6;
    println!("{kills} kills, {billed} of {cap} US dollars billed");
    assert_eq!(code, Some(19), "the run ends at its cap");
    assert!(kills >= least && billed > 0.0 && billed <= cap, "{billed} of {cap} US dollars after {kills} kills");
}
