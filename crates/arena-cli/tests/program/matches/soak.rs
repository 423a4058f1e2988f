//! Many matches in a row, during which the runner's memory and its numbers of files and threads must not grow.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::{MatchFixture, children, memory};
use crate::program::arena;

/// The number of matches. `ARENA_SOAK_GAMES` overrides it.
const GAMES: usize = 180;

/// The number of matches after which the runner's memory must not grow.
const WARM: usize = 60;

/// An agent as a shell script, which starts faster than a Python agent. It copies its id from each line into its
/// answer.
const QUICK: &str = r#"#!/bin/sh
while read -r line; do
    case $line in
    *'"set_agent_id"'*)
        id=${line#*'"set_agent_id":"'}
        id=${id%%\"*}
        echo "{\"agent_id\":\"$id\"}" ;;
    *'"ping"'*) echo '{"pong":"pong"}' ;;
    *'"stop"'*) exit 0 ;;
    *) echo "{\"agent_id\":\"$id\",\"move\":\"UP\"}" ;;
    esac
done
"#;

/// The runner's resources after a result.
#[derive(Debug)]
struct Resources {
    resident_bytes: u64,
    files: usize,
    threads: usize,
    launchers: usize,
    temporary: usize,
}

impl Resources {
    fn by(runner: &Child, fixture: &MatchFixture) -> Resources {
        let count = |path: String| fs::read_dir(path).map_or(0, Iterator::count);
        Resources {
            resident_bytes: memory(runner.id(), "VmRSS"),
            files: count(format!("/proc/{}/fd", runner.id())),
            threads: count(format!("/proc/{}/task", runner.id())),
            launchers: children(runner.id()),
            temporary: count(fixture.file("tmp")),
        }
    }
}

#[test]
fn many_matches_in_a_row_leave_nothing_behind() {
    let games = std::env::var("ARENA_SOAK_GAMES").map_or(GAMES, |games| games.parse().unwrap());
    let fixture = MatchFixture::new();
    let quick = fixture.script("quick", "quick", QUICK);
    let options = ["match", "run", "snake", "--json", "--set", "n_epochs=5", "--concurrency", "2", "--seed", "1"];
    let count = games.to_string();
    let mut command = arena(&[&options[..], &["--games", &count, "--agent", &quick, "--agent", &quick]].concat());
    let mut runner = command.env("TMPDIR", fixture.file("tmp")).stdout(Stdio::piped()).spawn().unwrap();
    let results = BufReader::new(runner.stdout.take().unwrap());
    let mut looks: Vec<(usize, Resources)> = Vec::new();
    let mut output = 0;
    for line in results.lines() {
        let result: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(result["has_tainted_agent"], false, "{result}");
        output += 1;
        if output % WARM == 0 && output < games {
            looks.push((output, Resources::by(&runner, &fixture)));
        }
    }
    assert!(runner.wait().unwrap().success());
    assert_eq!(output, games);
    fixture.check_nothing_remains();
    let every = looks.len().div_ceil(10);
    for (number, held) in looks.iter().step_by(every) {
        println!("after {number}: {held:?}");
    }
    let (_, warm) = &looks[0];
    for (number, held) in &looks {
        // Two matches may be in progress at any time.
        let is_bounded = held.files < 64 && held.threads <= 16 && held.launchers <= 4 && held.temporary <= 4;
        assert!(
            is_bounded && held.resident_bytes < warm.resident_bytes + (8 << 20),
            "after {number}: {held:?}, first {warm:?}"
        );
    }
}
