//! `arena agent check` from an author's view.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::program::run;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_examples_pass_the_check() {
    for game in ["snake", "chess", "food_catcher", "cherry_picker"] {
        let checked = run(&["agent", "check", &example(&format!("python/{game}.py")), "--game", game, "--json"]).json();
        let found = &checked["games"][game];
        assert_eq!((&checked["is_fine"], &found["plays"]), (&Value::from(true), &Value::from(true)), "{checked:#}");
        assert_eq!((&found["steps"], &found["answered"]), (&Value::from(30), &Value::from(30)), "{checked:#}");
    }
}

#[test]
fn a_command_line_is_checked_in_all_games() {
    let run = run(&["agent", "check", "--", "python3", &example("python/snake.py")]);
    assert_eq!(run.code, 0, "{run:#?}");
    assert!(run.stdout.contains("\nfine    plays snake: 30 states, "), "{run:#?}");
    assert!(
        run.stdout
            .contains("\ngames   not played by the agent: cherry_picker (does nothing); chess (loses the game at once"),
        "{run:#?}"
    );
}

#[test]
fn faults_are_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("bot");
    fs::write(&path, "#!/bin/sh\nread ping\necho 'bot 1.0'\necho 'no map' >&2\nexit 3\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let path = path.to_str().unwrap();
    let run = run(&["agent", "check", path]);
    assert_eq!(run.code, 12, "{run:#?}");
    expect![[r#"
        agent   PATH (bot)
        wrong   writes something else to stdout before it answers the ping
                message to the agent: {"ping":"ping"}
                line from the agent: bot 1.0
                fix:     stdout is for the protocol alone; print banners and logs to stderr
        wrong   doesn't answer the ping: it exited with code 3
                message to the agent: {"ping":"ping"}
                end of the log: no map
                fix:     start it in a terminal and send it {"ping": "ping"}
    "#]]
    .assert_eq(&run.stdout.replace(path, "PATH"));
    expect![[r#"
        error: PATH has 2 faults
    "#]]
    .assert_eq(&run.stderr.replace(path, "PATH"));
}

#[test]
fn the_command_takes_exactly_one_agent() {
    let code = |args: &[&str]| run(&[&["agent", "check"], args].concat()).code;
    assert_eq!(code(&[]), 2);
    assert_eq!(code(&["./bot", "--", "python3", "bot.py"]), 2);
    assert_eq!(code(&["/nowhere/bot"]), 8);
    assert_eq!(code(&[&example("python/snake.py"), "--game", "tennis"]), 2);
}

#[test]
fn hidden_files_are_reported_to_the_author() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let agent = path("agent.py");
    let text = "import json\nopen(__file__.replace('agent.py', 'play-book.jsonl')).read()\n";
    let snake = fs::read_to_string(example("python/snake.py")).unwrap();
    fs::write(&agent, snake.replacen("import json\n", text, 1)).unwrap();
    fs::copy(example("python/colosseum.py"), path("colosseum.py")).unwrap();
    fs::write(path("play-book.jsonl"), "{\"opening\":1}\n").unwrap();
    let check = || run(&["agent", "check", agent.to_str().unwrap(), "--game", "snake"]);
    let checked = check();
    assert_eq!((checked.code, checked.stderr.as_str()), (0, ""), "{checked:#?}");
    fs::write(path("old.jsonl"), "{\"arena_replay\":1}\n").unwrap();
    fs::write(path("old.seat1.log"), "").unwrap();
    let checked = check();
    let root = folder.path().canonicalize().unwrap();
    let output = checked.stderr.replace(root.to_str().unwrap(), "ROOT");
    assert_eq!(checked.code, 0, "{checked:#?}");
    let names = output
        .strip_prefix("note: these files of the arena in the agent's folder are hidden from it: ")
        .unwrap()
        .trim_end();
    let mut names: Vec<&str> = names.split(" and ").collect();
    names.sort_unstable();
    assert_eq!(names, ["ROOT/old.jsonl", "ROOT/old.seat1.log"]);
}
