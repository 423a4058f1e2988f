//! The example agents. In each language they must play each game to its end, without a fault, and with the same moves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::run;

/// The games, and the number of epochs to play.
const GAMES: [(&str, Option<&str>); 4] =
    [("snake", None), ("chess", None), ("food_catcher", Some("n_epochs=500")), ("cherry_picker", Some("n_epochs=500"))];

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents").canonicalize().unwrap()
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Builds the agents in C in `folder`. A compiler warning fails the test.
fn build_c(folder: &Path) -> PathBuf {
    let sources = folder.join("c");
    fs::create_dir(&sources).unwrap();
    for entry in fs::read_dir(examples().join("c")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), sources.join(entry.file_name())).unwrap();
        }
    }
    succeed(Command::new("make").arg("-C").arg(&sources).env("CFLAGS", "-O2 -Werror"));
    sources.join("build")
}

/// Builds the agents in Rust beside the binary under test.
fn build_rust() -> PathBuf {
    succeed(Command::new(env!("CARGO")).args(["build", "--locked", "-p", "example-agents"]).current_dir(examples()));
    Path::new(env!("CARGO_BIN_EXE_arena")).parent().unwrap().to_owned()
}

/// Plays two copies of an agent, and returns the replay without names, times and hashes, which cover the times.
fn play(game: &str, option: Option<&str>, agent: &Path, replay: &Path) -> String {
    let (agent, file) = (agent.to_str().unwrap(), replay.to_str().unwrap());
    let mut args =
        vec!["match", "run", game, "--agent", agent, "--agent", agent, "--seed", "5", "--replay", file, "--json"];
    // The time limits are long, because the machine may be busy.
    args.extend(["--step-ms", "20000"]);
    args.extend(option.map(|option| ["--set", option]).into_iter().flatten());
    let result = run(&args).json();
    for seat in result["scores"].as_array().unwrap() {
        assert_eq!((&seat["tainted"], &seat["faults"]), (&Value::from(false), &Value::from(0)), "{agent}: {result}");
    }
    let lines = fs::read_to_string(replay).unwrap();
    let timeless = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        for field in ["remaining_overage_ms", "previous"] {
            line.as_object_mut().unwrap().remove(field);
        }
        format!("{line}\n")
    };
    lines.lines().skip(1).map(timeless).collect()
}

/// Copies an agent and the files beside it, and returns the agent's copy under this name.
fn renamed(agent: &Path, name: &str, folder: &Path) -> PathBuf {
    for entry in fs::read_dir(agent.parent().unwrap()).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let is_module = path.extension().is_some_and(|ending| ending == "py" || ending == "js");
        if path == agent || is_module && path.is_file() {
            let to = if path == agent { name.into() } else { entry.file_name() };
            fs::copy(&path, folder.join(to)).unwrap();
        }
    }
    folder.join(name)
}

/// Returns the first lines in which two replays differ.
fn first_difference<'a>(a: &'a str, b: &'a str) -> Option<(&'a str, &'a str)> {
    if a == b {
        return None;
    }
    a.lines().zip(b.lines()).find(|(a, b)| a != b).or(Some(("the longer", "the shorter")))
}

#[test]
fn agents_in_all_languages_play_every_game_with_the_same_moves() {
    let folder = tempfile::tempdir().unwrap();
    let (c, rust) = (build_c(folder.path()), build_rust());
    for (game, option) in GAMES {
        let agents = [
            ("python", examples().join("python").join(format!("{game}.py"))),
            ("javascript", examples().join("javascript").join(format!("{game}.js"))),
            ("c", c.join(game)),
            ("rust", rust.join(format!("{}-rs", game.replace('_', "-")))),
        ];
        let played: Vec<(&str, String)> = agents
            .iter()
            .map(|(language, agent)| {
                let replay = folder.path().join(format!("{game}-{language}.jsonl"));
                (*language, play(game, option, agent, &replay))
            })
            .collect();
        let (_, python) = &played[0];
        assert!(python.lines().count() > 20, "{game}: {python}");
        // The others must be equal.
        let replay = folder.path().join(format!("{game}-python.jsonl"));
        let verified = run(&["replay", "verify", replay.to_str().unwrap()]);
        assert_eq!(verified.code, 0, "{game}: {verified:#?}");
        for (language, other) in &played[1..] {
            if let Some((expected, outcome)) = first_difference(python, other) {
                panic!("{game}: python and {language} differ at\n{expected}\n{outcome}");
            }
        }
    }
}

#[test]
fn agents_play_with_names_as_ids() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let (c, rust) = (build_c(folder.path()), build_rust());
    let long = "n".repeat(255);
    let names = ["foo bar", &long];
    for (game, _) in GAMES {
        let agents = [
            examples().join("python").join(format!("{game}.py")),
            examples().join("javascript").join(format!("{game}.js")),
            c.join(game),
            rust.join(format!("{}-rs", game.replace('_', "-"))),
        ];
        for (number, agent) in agents.iter().enumerate() {
            let paths = names.map(|name| {
                let folder = folder.path().join(format!("{game}-{number}-{}", name.len()));
                fs::create_dir(&folder).unwrap();
                fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
                renamed(agent, name, &folder).to_str().unwrap().to_owned()
            });
            let replay = folder.path().join("game.jsonl");
            let file = replay.to_str().unwrap();
            let mut args = vec!["match", "run", game, "--agent-ids", "names", "--json", "--seed", "5"];
            args.extend(["--step-ms", "20000", "--replay", file, "--agent", &paths[0], "--agent", &paths[1]]);
            if game != "chess" {
                args.extend(["--set", "n_epochs=30"]);
            }
            let result = run(&args).json();
            for seat in result["scores"].as_array().unwrap() {
                assert_eq!(seat["agent_id"], names[seat["seat"].as_u64().unwrap() as usize], "{agent:?}: {result}");
                let state = (&seat["tainted"], &seat["faults"], &seat["refused_answers"]);
                assert_eq!(state, (&Value::from(false), &Value::from(0), &Value::from(0)), "{agent:?}: {result}");
            }
            let verified = run(&["replay", "verify", file]);
            assert_eq!(verified.code, 0, "{game}: {verified:#?}");
            fs::remove_file(file).unwrap();
        }
    }
}
