//! The rules of the games, compared with an independent implementation in Python (`tests/rules`), and of chess with
//! python-chess.
//!
//! Deterministic bots play matches. The checkers compute each next state, and compare it with the replay.
//! `ARENA_RULES_STATES` is the number of states for each game (default 2000). Leaderboards are computed again from an
//! export of the counted games.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use arena_testkit::python;
use serde_json::Value;

use crate::program::{Running, run};

/// The number of compared states of each game, unless `ARENA_RULES_STATES` is set.
const STATES: u64 = 2000;

/// The epochs of a long game, and of the same game in the short form.
const EPOCHS: (&str, &str) = ("n_epochs=1000", "n_epochs=400");

/// The sizes of games: the number of seats, and options. Small maps, cheap actors and bases make epochs with many
/// events.
const FOOD_CATCHER: &[&str] = &[
    "2 n_epochs=1000",
    "3 n_epochs=1000 spawn_actor_cost=30 make_base_cost=40 attack_range=8",
    "4 n_epochs=1000 spawn_actor_cost=5 make_base_cost=60 attack_range=3 grid_width=20 grid_height=20 actor_damage=2",
    "4 n_epochs=1000 spawn_actor_cost=5 make_base_cost=25 attack_range=6 grid_width=20 grid_height=20 actor_damage=12 actor_radius=0.1",
    "2 n_epochs=1000 spawn_actor_cost=8 make_base_cost=30 attack_range=15 grid_width=30 grid_height=20 actor_damage=7 actor_radius=0.1",
];
const CHERRY_PICKER: &[&str] = &[
    "1 n_epochs=1000",
    "2 n_epochs=1000 spawn_actor_cost=3 make_base_cost=45 grid_width=20 grid_height=20",
    "3 n_epochs=1000 spawn_actor_cost=3 make_base_cost=30 grid_width=30 grid_height=20 actor_radius=0.05",
];
const SNAKE: &[&str] = &[
    "2",
    "2 grid_width=5 grid_height=4 food_sources_to_spawn=2",
    "4 grid_width=20 grid_height=16",
    "3 grid_width=8 grid_height=8 n_epochs=40",
    "2 grid_width=30 grid_height=30 food_sources_to_spawn=2",
    "8 grid_width=30 grid_height=30 min_food_sources=3 food_sources_to_spawn=7",
];
const CHESS: &[&str] = &["2"];

#[test]
fn food_catcher_follows_its_description() {
    compare("food_catcher", FOOD_CATCHER);
}

#[test]
fn cherry_picker_follows_its_description() {
    compare("cherry_picker", CHERRY_PICKER);
}

#[test]
fn snake_follows_its_description() {
    compare("snake", SNAKE);
}

#[test]
fn chess_agrees_with_another_implementation() {
    compare("chess", CHESS);
}

#[test]
fn leaderboards_match_the_games() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::serve(folder.path());
    let token = fs::read_to_string(folder.path().join("admin.token")).unwrap();
    let mut command = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
    let output = command.arg(rules().join("standings.py")).args([&server.url, token.trim()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Plays games with the seeds 1, 2, 3 and so on, of each size in turn, until enough states have been compared.
#[track_caller]
#[expect(clippy::print_stdout, reason = "shown with `--nocapture`: the long form tells what it has done")]
fn compare(game: &str, sizes: &[&str]) {
    let (wanted, epochs) = match std::env::var("ARENA_RULES_STATES") {
        Ok(text) => (text.parse().expect("ARENA_RULES_STATES is a number"), EPOCHS.0),
        Err(_) => (STATES, EPOCHS.1),
    };
    let folder = tempfile::tempdir().unwrap();
    let bot = bot(folder.path(), game);
    let replay = folder.path().join("game.jsonl").to_str().unwrap().to_owned();
    let mut states = 0;
    for (seed, size) in (1..).zip(sizes.iter().cycle()) {
        let size = &size.replace(EPOCHS.0, epochs);
        play(game, size, seed, &bot, &replay);
        states += check(&replay, &format!("{game} {size}, seed {seed}"));
        fs::remove_file(&replay).unwrap();
        if states >= wanted && seed >= sizes.len() {
            println!("{game}: {states} states of {seed} games");
            return;
        }
    }
}

/// Creates an agent that plays the moves of `wild.py`, and returns its path.
fn bot(folder: &Path, game: &str) -> String {
    let folder = folder.join("bot");
    fs::create_dir(&folder).unwrap();
    fs::copy(rules().join("wild.py"), folder.join("wild.py")).unwrap();
    let agent = folder.join("agent");
    fs::write(&agent, format!("#!/usr/bin/env python3\nimport wild\nwild.main(\"{game}\")\n")).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Plays a game. `size` contains the number of seats and the options, separated by spaces.
#[track_caller]
fn play(game: &str, size: &str, seed: usize, bot: &str, replay: &str) {
    let (seats, options) = size.split_once(' ').unwrap_or((size, ""));
    let seed = seed.to_string();
    let mut args = vec!["match", "run", game, "--dialect", "spec", "--seed", &seed, "--replay", replay];
    args.extend(["--step-ms", "60000"]);
    for _ in 0..seats.parse().unwrap() {
        args.extend(["--agent", bot]);
    }
    for option in options.split_whitespace() {
        args.extend(["--set", option]);
    }
    let run = run(&args);
    assert_eq!(run.code, 0, "{args:?}: {run:#?}");
}

/// Checks a replay, and returns the number of compared states.
#[track_caller]
fn check(replay: &str, what: &str) -> u64 {
    let mut command = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
    let output = command.arg(rules().join("check.py")).arg(replay).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {said}{problem}");
    let states: Value = serde_json::from_str(&said).unwrap();
    states.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

fn rules() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rules"))
}
