//! Programs as baselines: a sample bot, a program that crashes, and changed files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use arena_testkit::python_bot;
use serde_json::{Value, json};

use super::{EvalFixture, RunSpec};
use crate::program::run;

/// Returns a fixture whose folder other users can read, because programs may run as another user.
fn fixture() -> EvalFixture {
    let fixture = EvalFixture::new();
    fs::set_permissions(fixture.folder.path(), Permissions::from_mode(0o755)).unwrap();
    fixture
}

/// Returns the seats of an agent in all finished games of a run.
fn seats(fixture: &EvalFixture, dir: &str, agent: &str) -> Vec<Value> {
    let games = fixture.lines(dir, "journal.jsonl", "game");
    let seats = games.iter().flat_map(|game| game["seats"].as_array().unwrap().clone());
    seats.filter(|seat| seat["agent"] == agent).collect()
}

#[test]
fn a_sample_bot_is_a_baseline() {
    let fixture = fixture();
    let bot = fixture.path("asker");
    assert_eq!(run(&["agent", "new", "psi", bot.to_str().unwrap()]).code, 0);
    let mut spec = RunSpec::new(&["leaky"], &["psi"], 1);
    spec.end = "[[baselines]]\nagent = \"./asker\"\n[[baselines]]\nagent = \"house\"\n".to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "run");
    let seats = seats(&fixture, "run", "asker");
    assert_eq!(seats.len(), 2, "{seats:?}");
    for seat in &seats {
        assert!(!["crashed", "invalid", "timeout"].contains(&seat["cause"].as_str().unwrap()), "{seat}");
    }
    let transcripts = fs::read_to_string(fixture.path("run").join("transcripts.jsonl")).unwrap();
    assert!(transcripts.contains("\"method\":\"guess\""), "{transcripts}");
    // A finished run is complete without the program's files, and refuses others.
    let agent = bot.join("agent.py");
    let text = fs::read_to_string(&agent).unwrap();
    fs::write(&agent, text + "\n# changed\n").unwrap();
    let dir = fixture.path("run");
    let changed = run(&["eval", "run", &file, "--out", dir.to_str().unwrap()]);
    assert!(changed.code == 13 && changed.stderr.contains("agent of baseline asker changed"), "{changed:#?}");
    fs::remove_dir_all(&bot).unwrap();
    assert!(fixture.report("run").contains("asker"));
}

#[test]
fn a_crash_of_a_program_ends_its_seat() {
    let fixture = fixture();
    // The bot ends when it receives its first state.
    fixture.write("bot.py", &python_bot("", "sys.exit(3)"));
    let mut spec = RunSpec::new(&["leaky"], &["psi"], 1);
    spec.begin = "self_play = false".to_owned();
    spec.end = "[[baselines]]\ncommand = [\"python3\", \"bot.py\"]\n".to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "run");
    let seats = seats(&fixture, "run", "bot");
    assert_eq!(seats.len(), 2, "{seats:?}");
    for seat in &seats {
        assert_eq!((&seat["cause"], &seat["detail"]), (&json!("crashed"), &json!("CRASHED: exited with code 3")));
    }
    fs::remove_file(fixture.path("bot.py")).unwrap();
    let verified = run(&["eval", "verify", fixture.path("run").to_str().unwrap()]);
    assert_eq!(verified.code, 16, "{verified:#?}");
    let why = "cannot be played again: the answers of bot, a program, aren't recorded";
    assert_eq!(verified.stdout.matches(why).count(), 2, "{verified:#?}");
}

#[test]
fn missing_programs_are_refused_with_the_path() {
    let fixture = fixture();
    for (line, code, part) in [
        ("agent = \"./absent\"", 2, "baseline `absent`: there is no agent at "),
        ("agent = \"stockfish\"", 2, "unknown agent `stockfish`; the agents are house, house:easy, house:leaky"),
        ("command = [\"python9\", \"bot.py\"]", 2, "there is no program `python9` to run an agent with"),
        ("agent = \"model:m@ollama\"", 2, "is a language model; add a [[models]] table for it"),
    ] {
        let mut spec = RunSpec::new(&["leaky"], &["psi"], 1);
        spec.end = format!("[[baselines]]\n{line}\n");
        let file = fixture.write("run.toml", &spec.toml());
        let refused = run(&["eval", "plan", &file]);
        assert!(refused.code == code && refused.stderr.contains(part), "{line}: {refused:#?}");
    }
}
