//! Signals to the runner while agents play: SIGINT, SIGTERM and SIGKILL.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::until;
use rustix::process::Signal;

use super::{Match, MatchFixture, TIMEOUT};
use crate::program::arena;

const MODES: [&str; 3] = ["on", "no-namespaces", "off"];

/// Starts a match that doesn't end by itself. One agent is slow, the other has child processes that are hard to end.
fn under_way(fixture: &MatchFixture, sandbox: &str) -> Match {
    let (slow, family) = (fixture.agent("mute"), fixture.agent("has_a_family"));
    let agents = ["--agent", &slow, "--agent", &family];
    let options = ["match", "run", "food_catcher", "--json", "--step-ms", "86400000", "--sandbox", sandbox];
    let running = fixture.start(&[&options[..], &agents[..]].concat());
    // There are two agents, and five child processes.
    fixture.wait_for_processes(2 + 5);
    running
}

#[test]
fn a_signal_cancels_the_match_and_nothing_is_left() {
    for (signal, sandbox) in
        [(Signal::INT, "on"), (Signal::TERM, "on"), (Signal::INT, "no-namespaces"), (Signal::INT, "off")]
    {
        let fixture = MatchFixture::new();
        let running = under_way(&fixture, sandbox);
        running.signal(signal);
        let finished = running.finish();
        fixture.check_nothing_remains();
        assert_eq!((finished.run.code, finished.run.stdout.as_str()), (130, ""), "{signal:?} {sandbox}: {finished:?}");
        assert!(finished.run.stderr.ends_with("error: the match was called off\n"), "{finished:?}");
        assert!(finished.took < Duration::from_secs(60), "{finished:?}");
    }
}

// If a match continues without an agent, the agent's processes are gone, also from the process table.
#[test]
fn a_disqualified_agent_is_reaped_while_the_others_play() {
    let fixture = MatchFixture::new();
    let marker = fixture.file("waits");
    let agent = |name: &str, in_epoch: &str| {
        let program = format!(
            r#"#!/usr/bin/env python3
import json, sys, time
me = None
for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        reply = {{"pong": "pong"}}
    elif "set_agent_id" in message:
        me = message["set_agent_id"]
        reply = {{"agent_id": me}}
    elif "world_state" in message:
        epoch = message["world_state"]["epoch"]
        {in_epoch}
        reply = {{"agent_id": me, "actions": []}}
    else:
        break
    print(json.dumps(reply), flush=True)
"#
        );
        fixture.script(name, &format!("{name}.py"), &program)
    };
    let leaves = agent("leaves", "if epoch == 2: sys.exit(3)");
    let cheats = agent("cheats", "me = message['world_state']['agent_ids'][0] if epoch == 3 else me");
    let waits = agent("waits_long", &format!("if epoch == 6: open({marker:?}, 'w').close(); time.sleep(600)"));
    let mut args = vec!["match", "run", "cherry_picker", "--json", "--step-ms", "86400000", "--sandbox", "off"];
    args.extend(["--agent", &leaves, "--agent", &cheats, "--agent", &waits]);
    let running = fixture.start(&args);
    until("the agents are in epoch 6", || Path::new(&marker).exists());
    assert_eq!(super::children(running.pid()), 1);
    running.signal(Signal::INT);
    assert_eq!(running.finish().run.code, 130);
    fixture.check_nothing_remains();
}

#[test]
fn a_runner_that_is_killed_while_agents_start_leaves_nothing() {
    for sandbox in MODES {
        for delay_ms in [5, 15, 30, 60] {
            let fixture = MatchFixture::new();
            let (one, other) = (fixture.agent("honest"), fixture.agent("mute"));
            let options = ["match", "run", "food_catcher", "--sandbox", sandbox, "--step-ms", "86400000"];
            let running = fixture.start(&[&options[..], &["--agent", &one, "--agent", &other]].concat());
            // The signal may arrive at any moment of the start.
            thread::sleep(Duration::from_millis(delay_ms));
            running.signal(Signal::KILL);
            running.finish();
            fixture.check_nothing_remains_soon();
        }
    }
}

#[test]
fn a_signal_cancels_a_whole_series() {
    let fixture = MatchFixture::new();
    let agent = fixture.agent("honest");
    let options = ["match", "run", "food_catcher", "--json", "--games", "1000", "--concurrency", "2"];
    let running =
        fixture.start(&[&options[..], &["--set", "n_epochs=3", "--agent", &agent, "--agent", &agent]].concat());
    fixture.wait_for_processes(2);
    running.signal(Signal::INT);
    let finished = running.finish();
    fixture.check_nothing_remains();
    assert_eq!(finished.run.code, 130, "{finished:?}");
    // The results of finished games may have been printed. Each result must be complete.
    for line in finished.run.stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_match_without_a_result_keeps_an_older_replay() {
    for signal in [Signal::INT, Signal::KILL] {
        let fixture = MatchFixture::new();
        let (slow, replay) = (fixture.agent("mute"), fixture.file("game.jsonl"));
        fs::write(&replay, "older").unwrap();
        let options = ["match", "run", "food_catcher", "--step-ms", "86400000", "--replay", &replay];
        let running = fixture.start(&[&options[..], &["--agent", &slow, "--agent", &slow]].concat());
        fixture.wait_for_processes(2);
        running.signal(signal);
        running.finish();
        fixture.check_nothing_remains_soon();
        assert_eq!(fs::read_to_string(&replay).unwrap(), "older", "{signal:?}");
        let names =
            fs::read_dir(fixture.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let beside: Vec<String> = names.filter(|name| name.contains("game.")).collect();
        // A replay gets its name only when it is complete, so an incomplete replay leaves no file.
        assert!(beside.len() <= 1 && beside.iter().all(|name| name == "game.jsonl"), "{beside:?}");
    }
}

#[test]
fn a_replay_to_a_device_has_no_log_files() {
    let fixture = MatchFixture::new();
    let agent = fixture.agent("honest");
    let options = ["food_catcher", "--set", "n_epochs=3", "--replay", "/dev/null"];
    let finished = fixture.play(&[&options[..], &["--agent", &agent, "--agent", &agent]].concat());
    assert_eq!(finished.result().unwrap()["replay_file"], "/dev/null");
    assert!(!Path::new("/dev/null.seat0.log").exists());
    // Replay and results go to the same stdout, also if stdout is a file.
    let path = fixture.file("both");
    let options = ["match", "run", "food_catcher", "--set", "n_epochs=3", "--json", "--replay", "/dev/stdout"];
    let status = arena(&[&options[..], &["--agent", &agent, "--agent", &agent]].concat())
        .env("TMPDIR", fixture.path().join("tmp"))
        .stdout(fs::File::create(&path).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (lines.len(), &lines[0]["game"], &lines[5]["game"]),
        (6, &"food_catcher".into(), &"food_catcher".into())
    );
    fixture.check_nothing_remains();
}

/// Waits for the end of a run without a reader. A run that takes too long is killed.
fn wait(mut child: Child) -> ExitStatus {
    let by = Instant::now() + TIMEOUT;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status,
            None if Instant::now() > by => child.kill().unwrap(),
            None => thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn a_series_stops_when_its_output_is_closed() {
    for json in [&["--json"][..], &[]] {
        let fixture = MatchFixture::new();
        let agent = fixture.agent("honest");
        let options =
            ["match", "run", "food_catcher", "--set", "n_epochs=2", "--games", "100000", "--concurrency", "2"];
        let mut command = arena(&[&options[..], json, &["--agent", &agent, "--agent", &agent]].concat());
        command.env("TMPDIR", fixture.path().join("tmp"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{line}");
        assert_eq!(wait(child).code(), Some(0));
        fixture.check_nothing_remains();
    }
}
