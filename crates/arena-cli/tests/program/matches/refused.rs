//! Matches that can't be played as requested. The program prints one sentence and returns a documented exit code.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Finished, MatchFixture};
use crate::program;
use crate::tournament::AgentFolder;

/// Runs `arena match run` with these arguments, in which `HONEST` is replaced by an agent, and `ROOM` by the folder.
fn run(fixture: &MatchFixture, args: &str) -> Finished {
    let honest = fixture.agent("honest");
    let args = args.replace("HONEST", &format!("--agent {honest}")).replace("ROOM", fixture.path().to_str().unwrap());
    fixture.play(&args.split_ascii_whitespace().collect::<Vec<_>>())
}

#[track_caller]
fn check(args: &str, code: i32, says: &[&str]) {
    let fixture = MatchFixture::new();
    fs::write(fixture.path().join("notes.txt"), "no agent").unwrap();
    let Finished { run, .. } = run(&fixture, args);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{args}: {}", run.stderr);
    let sentences = run.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(sentences, 1, "{args}: {}", run.stderr);
    // The argument parser appends usage information.
    assert!(run.stderr.lines().count() == 1 || run.stderr.contains("--help"), "{args}: {}", run.stderr);
    for text in says {
        assert!(run.stderr.contains(text), "{args}: {}", run.stderr);
    }
    fixture.check_nothing_remains();
}

#[test]
fn invalid_agents_are_named() {
    check("snake HONEST --agent ROOM/nobody", 8, &["there is no agent at", "nobody"]);
    check("snake HONEST --agent ROOM/notes.txt", 8, &["notes.txt", "isn't executable"]);
    check("snake HONEST --agent ROOM/tmp", 8, &["contains no agent"]);
    check("snake HONEST -- no-such-program", 8, &["no-such-program"]);
}

#[test]
fn unplayable_games_are_named() {
    check("checkers HONEST HONEST", 2, &["checkers", "snake", "chess", "food_catcher", "cherry_picker"]);
    check("snake HONEST HONEST --set depth=3", 2, &["depth"]);
    check("snake HONEST HONEST --set n_epochs=many", 2, &["n_epochs", "many"]);
    check("snake HONEST HONEST --set n_epochs=-1", 2, &["n_epochs"]);
    check("snake HONEST HONEST --set n_epochs=1e999", 2, &["n_epochs"]);
    check("snake HONEST HONEST --set n_epochs", 2, &["KEY=VALUE"]);
    check("snake HONEST HONEST --set grid_width=1000000", 2, &["grid_width"]);
    check("chess HONEST", 2, &["chess", "2"]);
    check("chess HONEST HONEST HONEST", 2, &["chess", "2"]);
    check("chess", 2, &["chess", "2"]);
    check("snake HONEST HONEST --seed x", 2, &["seed"]);
    check("snake HONEST HONEST --step-ms 0", 2, &["--step-ms"]);
    check("snake HONEST HONEST --expose ROOM/nothing", 2, &["--expose", "nothing"]);
}

#[test]
fn unwritable_files_are_named() {
    check("snake HONEST HONEST --replay ROOM/no/such/folder.jsonl", 10, &["folder.jsonl", "cannot be written"]);
    check("snake HONEST HONEST --replay ROOM/tmp", 10, &["cannot be written"]);
    check("food_catcher HONEST HONEST --set n_epochs=2000 --replay /dev/full", 10, &["cannot be written"]);
    check("snake HONEST HONEST --games 2 --replay ROOM/notes.txt", 10, &["notes.txt", "cannot be written"]);
}

#[test]
fn an_agent_that_cannot_be_run_loses_with_the_reason() {
    let fixture = MatchFixture::new();
    let text = fixture.script("text", "text", "just words\n");
    let lost = fixture.script("lost", "lost", "#!/no/such/interpreter\n");
    for (agent, says) in [(text, "neither a binary"), (lost, "/no/such/interpreter")] {
        let finished = run(&fixture, &format!("snake HONEST --agent {agent}"));
        let result = finished.result().unwrap();
        assert_eq!(result["outcome"]["tainted_reason"], "STARTUP_FAIL", "{result}");
        assert!(result["scores"][1]["tainted_detail"].as_str().unwrap().contains(says), "{result}");
        assert_eq!(result["scores"][0]["name"], "honest", "{result}");
    }
    fixture.check_nothing_remains();
}

#[test]
fn a_manifest_beside_a_single_file_agent_has_no_effect() {
    let fixture = MatchFixture::new();
    let agent = fixture.agent("honest");
    let manifest = r#"{"channel": "http", "url": "http://127.0.0.1:9/"}"#;
    fs::write(fixture.path().join("honest/manifest.json"), manifest).unwrap();
    let finished = run(&fixture, &format!("food_catcher --set n_epochs=3 HONEST -- {agent}"));
    let result = finished.result().unwrap();
    assert_eq!(result["has_tainted_agent"], false, "{result}");
    assert_eq!(finished.run.stderr.matches("note: ").count(), 1, "{}", finished.run.stderr);
    assert!(finished.run.stderr.contains("manifest.json sets the channel to http"), "{}", finished.run.stderr);
    fixture.check_nothing_remains();
}

/// Runs a series with this number of concurrent games and these limits on open files; returns its exit code and stderr.
fn play_with_files(hard: u32, soft: u32, concurrency: &str) -> (Option<i32>, String) {
    let fixture = MatchFixture::new();
    let agent = fixture.agent("honest");
    let limits = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
    let options =
        ["match", "run", "food_catcher", "--set", "n_epochs=2", "--games", "12", "--concurrency", concurrency];
    let agents = ["--agent", &agent, "--agent", &agent];
    let mut command = Command::new("sh");
    let output =
        command.args(["-c", &limits, env!("CARGO_BIN_EXE_arena")]).args(options).args(agents).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn concurrent_games_have_enough_open_files_or_are_refused() {
    let (code, outcome) = play_with_files(80, 80, "12");
    assert_eq!((code, outcome.lines().count()), (Some(2), 1), "{outcome}");
    assert!(outcome.contains("use `--concurrency 1`, or raise"), "{outcome}");
    assert_eq!(play_with_files(80, 80, "1").0, Some(0));
    // If even a single game lacks files, the error names the files and not the sandbox.
    let (code, outcome) = play_with_files(16, 16, "1");
    assert!(code == Some(1) && outcome.contains("Too many open files"), "{code:?} {outcome}");
    // The soft limit is raised as far as possible.
    assert_eq!(play_with_files(400, 80, "12"), (Some(0), String::new()));
}

#[test]
fn an_unwritable_replay_does_not_affect_the_other_game_of_its_pair() {
    let (agent_folder, out) = (AgentFolder::new(), tempfile::tempdir().unwrap());
    let games = out.path().join("games");
    let bots = ["a", "b"].map(|name| {
        let bot = agent_folder.bot(name, 1, 0.0);
        let text = fs::read_to_string(&bot).unwrap();
        let taken = games.join("1.jsonl");
        fs::write(&bot, format!("import os\nos.makedirs({taken:?}, exist_ok=True)\n{text}")).unwrap();
        bot
    });
    let args = ["match", "run", "snake", "--agent", &bots[0], "--agent", &bots[1], "--sandbox", "off", "--json"];
    let more = ["--set", "n_epochs=3", "--games", "4", "--replay", games.to_str().unwrap()];
    let run = program::run(&[&args[..], &more].concat());
    let outcome = format!(
        "error: {} cannot be written: the destination is no longer a regular file\n",
        games.join("1.jsonl").display()
    );
    assert_eq!((run.code, &run.stderr), (10, &outcome));
    let results: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.iter().map(|result| result["number"].as_u64().unwrap()).collect::<Vec<_>>(), [2]);
    assert_eq!(program::run(&["replay", "verify", games.join("2.jsonl").to_str().unwrap()]).code, 0);
    for log in ["1.seat0.log", "1.seat1.log", "2.seat0.log", "2.seat1.log"] {
        assert!(games.join(log).is_file(), "{log}");
    }
    // No further game was started.
    assert!(!games.join("3.jsonl").exists());
}
