//! Workers that are killed from outside, as by a kernel that is out of memory: players don't notice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use arena_script::{Limits, Sandbox};
use expect_test::expect;
use rustix::process::{Pid, Signal, kill_process};

use crate::table::{Game, METADATA, load_into, script, worker};

/// Returns the processes that were started with this argument.
pub fn workers(mark: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(mark));
    pids.filter(is_ours).filter_map(Pid::from_raw).collect()
}

fn marked(mark: &str, limits: Limits) -> Sandbox {
    Sandbox::new(worker(&[mark]), limits)
}

#[test]
fn no_action_fails_while_workers_are_killed_and_stopped() {
    const PLAYERS: usize = 3;
    const ACTIONS: usize = 60;
    let mark = format!("killed-{}", std::process::id());
    let sandbox = marked(&mark, Limits { wall_ms: 20_000, ..Limits::default() });
    // The call takes long enough that most workers are killed during it.
    let text = script(
        "act(message, index) { let n = 0; for (let i = 0; i < 200000; i++) n += i; this.gameState.done.push(n % 7 + index); }",
    );
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", text.as_str())]);
    let challenge = load_into(&sandbox, &files).unwrap();
    let answered = [const { AtomicUsize::new(0) }; PLAYERS];
    let mut killed = BTreeSet::new();
    let told: Vec<(String, String)> = thread::scope(|scope| {
        let games: Vec<_> = (0..PLAYERS)
            .map(|number| {
                let (challenge, answered) = (challenge.clone(), &answered[number]);
                scope.spawn(move || {
                    let mut game = Game::new(challenge, number as u64).start();
                    for _ in 0..ACTIONS {
                        game = game.act(1, "act", "now");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    (game.told.clone(), game.state().to_string())
                })
            })
            .collect();
        // Kills all workers, then none until each player is answered, so that no call is hit by more than two rounds.
        let mut seen = [0; PLAYERS];
        loop {
            let now = answered.each_ref().map(|answers| answers.load(Ordering::Relaxed));
            if now.contains(&ACTIONS) {
                break;
            }
            if now.iter().zip(&seen).any(|(now, seen)| now == seen) {
                thread::yield_now();
                continue;
            }
            seen = now;
            for pid in workers(&mark) {
                if kill_process(pid, Signal::KILL).is_ok() {
                    killed.insert(pid.as_raw_nonzero());
                }
            }
        }
        games.into_iter().map(|game| game.join().unwrap()).collect()
    });
    for (told, state) in told {
        assert!(!told.contains("is refused"), "{told}");
        assert_eq!(state.matches(|char: char| char.is_ascii_digit()).count(), ACTIONS, "{state}");
    }
    assert!(killed.len() > 10, "only {} workers were killed", killed.len());
}

#[test]
fn a_worker_that_was_stopped_is_not_the_scripts_fault() {
    let mark = format!("stopped-{}", std::process::id());
    let sandbox = marked(&mark, Limits { wall_ms: 1500, ..Limits::default() });
    let text = script("act(message, index) { this.gameState.done.push(index); }");
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", text.as_str())]);
    let game = Game::new(load_into(&sandbox, &files).unwrap(), 1).start().act(1, "act", "");
    for pid in workers(&mark) {
        kill_process(pid, Signal::STOP).unwrap();
    }
    let game = game.act(2, "act", "");
    assert_eq!(game.state().to_string(), r#"{"done":[0,1]}"#, "{}", game.told);
}

#[test]
fn a_script_under_which_each_worker_ends_is_blamed_and_others_play_on() {
    let mark = format!("blamed-{}", std::process::id());
    let sandbox = marked(&mark, Limits { wall_ms: 60_000, ..Limits::default() });
    let text =
        script("act(message, index) { if (message.content === \"now\") for (;;); this.gameState.done.push(index); }");
    let files = BTreeMap::from([("challenge.json", METADATA), ("index.js", text.as_str())]);
    let limits = Limits { ticks: u32::MAX, ..*sandbox.limits() };
    let sandbox = marked(&mark, limits);
    let challenge = load_into(&sandbox, &files).unwrap();
    let game = Game::new(challenge, 1).start().act(1, "act", "before");
    let kill_all =
        || workers(&mark).into_iter().filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).collect::<Vec<_>>();
    // An idle worker that dies fails no call.
    while !kill_all().is_empty() {
        thread::yield_now();
    }
    let over = AtomicBool::new(false);
    let (game, killed) = thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let game = game.act(1, "act", "now");
            over.store(true, Ordering::Relaxed);
            game
        });
        let mut killed = BTreeSet::new();
        while !over.load(Ordering::Relaxed) {
            killed.extend(kill_all().into_iter().map(Pid::as_raw_nonzero));
            thread::yield_now();
        }
        (acting.join().unwrap(), killed)
    });
    assert_eq!(killed.len(), 5, "a call is repeated four times");
    let game = game.act(2, "act", "after");
    expect![[r#"
        1 → operator: (act) before
        1 is refused: CHALLENGE_FAILED The challenge failed, and nothing has changed. The arena's owner gets the reason.
        ! challenge failed on message act: the worker process ended (signal: 9 (SIGKILL)); the script probably used too much memory or recursed too deeply
        2 → operator: (act) after
    "#]]
    .assert_eq(&game.told);
}
