//! Replays through the program: matches are recorded, shown, verified and exported. Changed replays are refused.

use std::fs;
use std::path::Path;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use crate::program::{Run, arena, file, folder, run};

/// Returns the path of an example agent in Python.
pub fn example(name: &str) -> String {
    format!("{}/../../examples/agents/python/{name}.py", env!("CARGO_MANIFEST_DIR"))
}

/// Creates an agent that sends these texts in order as its actions, regardless of the state. It repeats the last text.
pub fn scripted(folder: &Path, name: &str, actions: &[&str]) -> String {
    let script = format!(
        r#"import json, sys
actions = {actions:?}
me = None
for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        print('{{"pong": "pong"}}', flush=True)
    elif "set_agent_id" in message:
        me = message["set_agent_id"]
        print(json.dumps({{"agent_id": me}}), flush=True)
    elif "world_state" in message:
        print('{{"agent_id": "%s", "actions": %s}}' % (me, actions[0]), flush=True)
        actions = actions[1:] or actions
    elif "stop" in message:
        break
"#
    );
    let home = folder.join(name);
    fs::create_dir(&home).unwrap();
    fs::write(home.join("agent.py"), script).unwrap();
    home.to_str().unwrap().to_owned()
}

/// Records a match into `replay`. The time limits are long, for busy machines.
#[track_caller]
fn record(game: &str, agents: [&str; 2], options: &[&str], replay: &str) {
    let mut args = vec!["match", "run", game, "--seed", "7", "--step-ms", "20000", "--replay", replay];
    args.extend(agents.iter().flat_map(|agent| ["--agent", agent]));
    args.extend(options.iter().flat_map(|option| ["--set", option]));
    let run = run(&args);
    assert_eq!(run.code, 0, "{run:#?}");
}

/// Records a game of two snakes: one goes up until it dies, the other turns and sometimes sends invalid actions.
#[track_caller]
fn snakes(folder: &Path) -> String {
    let up = scripted(folder, "up", &[r#"[{"action": "move", "move": "UP"}]"#]);
    let round = scripted(
        folder,
        "round",
        &[
            r#"[{"action": "move", "move": "UP"}, 7]"#,
            r#"[{"action": "move", "move": "LEFT"}]"#,
            r#"[{"action": "fly"}]"#,
        ],
    );
    let replay = folder.join("snake.jsonl").to_str().unwrap().to_owned();
    record("snake", [&up, &round], &["n_epochs=4"], &replay);
    replay
}

/// Returns the output without the folder, whose name is random.
fn output(run: &Run, folder: &Path) -> String {
    let text = match run.code {
        0 => run.stdout.clone(),
        code => format!("{}exit code {code}, {}", run.stdout, run.stderr),
    };
    without(&text, folder)
}

fn without(text: &str, folder: &Path) -> String {
    let name = folder.to_str().unwrap();
    text.replace(&format!("{name}/"), "").replace(name, "FOLDER")
}

#[track_caller]
fn check(folder: &Path, args: &[&str], expected: &str) {
    assert_eq!(output(&run(args), folder).trim_end(), expected);
}

#[test]
fn equal_matches_of_every_game_give_equal_replays_that_verify() {
    let folder = folder();
    for (game, options) in [
        ("snake", &["n_epochs=60"][..]),
        ("chess", &["n_epochs=30"][..]),
        ("food_catcher", &["n_epochs=60"][..]),
        ("cherry_picker", &["n_epochs=60"][..]),
    ] {
        let agent = example(game);
        let paths = ["one", "two"].map(|which| folder.path().join(format!("{game}-{which}.jsonl")));
        let [one, two] = [0, 1].map(|which| {
            let path = paths[which].to_str().unwrap();
            record(game, [&agent, &agent], options, path);
            fs::read(path).unwrap()
        });
        assert!(one == two, "{game}: {}", folder.path().display());
        let path = paths[0].to_str().unwrap();
        let verified = run(&["replay", "verify", path, "--json"]).json();
        assert_eq!((&verified["ok"], &verified["game"]), (&json!(true), &json!(game)));
        let shown = run(&["replay", "show", path]);
        assert!(shown.code == 0 && shown.stdout.lines().count() > 10, "{shown:#?}");
        let records = run(&["replay", "export", path, "--format", "reference"]);
        let first: Value = serde_json::from_str(records.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&first["epoch"], records.stdout.lines().count() as u64),
            (&json!(1), verified["epochs"].as_u64().unwrap())
        );
    }
}

#[test]
fn replays_are_shown_as_a_whole_and_by_epochs() {
    let folder = folder();
    let replay = snakes(folder.path());
    let path = folder.path();
    expect_file!["replay/replays_are_shown_as_a_whole_and_by_epochs.txt"]
        .assert_eq(&output(&run(&["replay", "show", &replay]), path));
    expect_file!["replay/replays_are_shown_as_a_whole_and_by_epochs_2.txt"]
        .assert_eq(&output(&run(&["replay", "show", &replay, "--epoch", "3"]), path));
    check(
        path,
        &["replay", "show", &replay, "--epoch", "9"],
        "exit code 2, error: snake.jsonl has no epoch 9; its last epoch is 4",
    );
    check(path, &["replay", "show", &replay, "--epoch", "0"], "exit code 2, error: snake.jsonl has no epoch 0");
    check(path, &["replay", "show", &replay, "--play"], "exit code 2, error: --play needs a terminal to draw on");
    let shown = run(&["replay", "show", &replay, "--json"]).json();
    assert_eq!((&shown["header"]["game"], &shown["result"]["epochs"]), (&json!("snake"), &json!(4)));
    let epoch = run(&["replay", "show", &replay, "--epoch", "2", "--json"]);
    assert_eq!(Some(epoch.stdout.trim_end()), fs::read_to_string(&replay).unwrap().lines().nth(2));
}

#[test]
fn the_last_state_of_a_chess_replay_has_the_side_to_move_and_the_color_of_seat_0() {
    let folder = folder();
    let replay = folder.path().join("game.jsonl");
    // White has made the last of the three moves.
    record("chess", ["random", "random"], &["n_epochs=3"], replay.to_str().unwrap());
    let text = fs::read_to_string(&replay).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, last) = (&lines[1], &lines[lines.len() - 1]);
    let color = if first["actions"][0].is_null() { "BLACK" } else { "WHITE" };
    let state = &last["world_state"];
    assert!(last["result"].is_object() && state["fen"].as_str().unwrap().contains(" b "), "{last}");
    assert_eq!((&state["turn"], &state["color"]), (&json!(false), &json!(color)), "{last}");
}

#[test]
fn chess_is_shown_from_whites_side_and_exported_as_pgn() {
    let folder = folder();
    let moves = |moves: [&str; 2]| moves.map(|uci| format!(r#"[{{"action": "move", "move": "{uci}"}}]"#));
    // With this seed, the agent in seat 0 has White.
    let (white, black) = (moves(["f2f3", "g2g4"]), moves(["e7e5", "d8h4"]));
    let white = scripted(folder.path(), "fool", &[&white[0], &white[1]]);
    let black = scripted(folder.path(), "mate", &[&black[0], &black[1]]);
    let replay = folder.path().join("chess.jsonl").to_str().unwrap().to_owned();
    record("chess", [&white, &black], &[], &replay);
    expect_file!["replay/chess_is_shown_from_whites_side_and_exported_as_pgn.txt"]
        .assert_eq(&output(&run(&["replay", "show", &replay]), folder.path()));
    expect_file!["replay/chess_is_shown_from_whites_side_and_exported_as_pgn_2.txt"]
        .assert_eq(&output(&run(&["replay", "show", &replay, "--epoch", "4"]), folder.path()));
    expect_file!["replay/chess_is_shown_from_whites_side_and_exported_as_pgn_3.txt"]
        .assert_eq(&output(&run(&["replay", "export", &replay, "--format", "pgn"]), folder.path()));
}

#[test]
fn faults_of_a_replay_are_reported_in_a_sentence() {
    let folder = folder();
    let path = folder.path();
    let replay = snakes(path);
    let text = fs::read_to_string(&replay).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let verify = |name: &str, text: &str, expected: &str| {
        let changed = file(path, name, text);
        check(path, &["replay", "verify", &changed], expected);
        changed
    };
    check(
        path,
        &["replay", "verify", &replay],
        "snake.jsonl: snake, 4 epochs and 5 states verified; the result matches",
    );
    check(
        path,
        &["replay", "verify", path.join("none.jsonl").to_str().unwrap()],
        "exit code 11, error: none.jsonl cannot be read: No such file or directory (os error 2)",
    );
    check(
        path,
        &["replay", "verify", path.to_str().unwrap()],
        "exit code 11, error: FOLDER cannot be read: it is a folder",
    );
    verify("empty.jsonl", "", "exit code 11, error: empty.jsonl: not an arena replay: the file is empty");
    verify(
        "foreign.jsonl",
        "{\"name\": \"a package\"}\n",
        "exit code 11, error: foreign.jsonl: not an arena replay: its first line lacks `arena_replay`",
    );
    verify(
        "seed.jsonl",
        &text.replacen("07\"", "08\"", 1),
        "exit code 11, error: seed.jsonl: line 1: the agent on seat 0 is 848cf120-ea98-44fa-a299-931255ca1761, but the seed gives b0189462-a79e-49bf-af44-0507dee5531a",
    );
    verify(
        "state.jsonl",
        &text.replacen("\"alive\":true", "\"alive\":false", 1),
        "exit code 11, error: state.jsonl: line 2: the state differs: snakes.848cf120-ea98-44fa-a299-931255ca1761.alive is false, but the rules give true",
    );
    verify(
        "action.jsonl",
        &text.replacen("\"move\":\"UP\"", "\"move\":\"SIDEWAYS\"", 1),
        r#"exit code 11, error: action.jsonl: line 2: the rules accept only these of the actions: [[],[{"action":"move","move":"UP"}]]"#,
    );
    verify(
        "result.jsonl",
        &text.replacen("\"ranks\":[", "\"ranks\":[3,", 1),
        "exit code 11, error: result.jsonl: line 6: the result differs: ranks is [3,1,1], but the rules give [1,1]",
    );
    verify(
        "missing.jsonl",
        &[&lines[..2], &lines[3..]].concat().join("\n"),
        "exit code 11, error: missing.jsonl: line 3: the chain is broken: `previous` isn't the hash of line 2, so one of the two lines was changed",
    );
    // The complete part of a truncated replay is shown.
    let cut = verify(
        "cut.jsonl",
        &text[..text.len() / 2],
        "exit code 11, error: cut.jsonl: the replay breaks off after epoch 2, without a result",
    );
    let shown = run(&["replay", "show", &cut]);
    assert!(shown.code == 11 && shown.stdout.contains("│ · "), "{shown:#?}");
    expect![[r#"
        error: cut.jsonl: the replay breaks off after epoch 2, without a result
    "#]]
    .assert_eq(&without(&shown.stderr, path));
    check(
        path,
        &["replay", "export", &cut, "--format", "pgn"],
        "exit code 2, error: cut.jsonl: this format doesn't support snake",
    );
}

#[test]
fn a_signed_replay_names_its_key_and_a_changed_one_is_false() {
    let folder = folder();
    let path = folder.path();
    let place = |name: &str| path.join(name).to_str().unwrap().to_owned();
    let key = file(path, "key", &"07".repeat(32));
    let (replay, agent) = (place("signed.jsonl"), scripted(path, "up", &[r#"[{"action": "move", "move": "UP"}]"#]));
    let args =
        ["match", "run", "snake", "--set", "n_epochs=4", "--step-ms", "20000", "--seed", "7", "--sign-key", &key];
    let played = run(&[&args[..], &["--agent", &agent, "--agent", &agent, "--replay", &replay]].concat());
    assert_eq!(played.code, 0, "{played:#?}");
    // The public key of the secret key 0707…, as RFC 8032 defines it.
    let public = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
    let sound = run(&["replay", "verify", &replay]);
    assert!(sound.stdout.ends_with(&format!("the result matches; sealed by {public}\n")), "{sound:#?}");
    let verified = run(&["verify", &replay, "--key", public, "--json"]);
    assert_eq!(verified.code, 0, "{verified:#?}");
    let other = run(&["verify", &replay, "--key", &"11".repeat(32)]);
    assert!(other.code == 11 && other.stderr.contains("isn't a key given with --key"), "{other:#?}");
    // Everything but the chain would accept other names and times.
    let text = fs::read_to_string(&replay).unwrap();
    for (name, from, to) in [("name", "\"name\":\"", "\"name\":\"x"), ("bank", "_ms\":[", "_ms\":[1")] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{name}");
        let file = file(path, "changed.jsonl", &changed);
        for args in [&["verify", &file][..], &["replay", "verify", &file]] {
            let refused = run(args);
            assert_eq!(refused.code, 11, "{name}: {refused:#?}");
        }
    }
    // All readers accept the seal.
    for args in
        [&["replay", "show", &replay][..], &["replay", "export", &replay, "--format", "reference"], &["rate", &replay]]
    {
        let shown = run(args);
        assert_eq!(shown.code, 0, "{shown:#?}");
    }
    // Earlier programs could fork matches.
    let fork = text.replacen("\"options\":", "\"fork\":{\"of\":\"\",\"at\":1},\"options\":", 1);
    let fork = file(path, "fork.jsonl", &fork);
    let rated = run(&["rate", &fork]);
    assert!(rated.code != 0 && rated.stderr.contains("1 game is a fork"), "{rated:#?}");
    let rated = run(&["rate", &replay, &fork, "--json"]).json();
    assert_eq!((&rated["games"], &rated["left_out"]["forks"]), (&json!(1), &json!(1)), "{rated}");
}

#[test]
fn several_replays_are_all_verified() {
    let folder = folder();
    let path = folder.path();
    let good = snakes(path);
    let bad = file(path, "bad.jsonl", "?\n");
    expect![[r#"
        bad.jsonl: not an arena replay: its first line lacks `arena_replay`
        snake.jsonl: snake, 4 epochs and 5 states verified; the result matches
        bad.jsonl: not an arena replay: its first line lacks `arena_replay`
        exit code 11, error: 2 of 3 replays failed verification
    "#]]
    .assert_eq(&output(&run(&["replay", "verify", &bad, &good, &bad]), path));
    expect![[r#"
        {"error":"bad.jsonl: not an arena replay: its first line lacks `arena_replay`","file":"bad.jsonl","ok":false}
        {"chain":true,"epochs":4,"file":"snake.jsonl","game":"snake","ok":true,"states":5}
        exit code 11, error: 1 of 2 replays failed verification
    "#]]
    .assert_eq(&output(&run(&["replay", "verify", &bad, &good, "--json"]), path));
}

#[test]
fn exported_files_are_complete_or_absent() {
    let folder = folder();
    let path = folder.path();
    let replay = snakes(path);
    let out = path.join("out.jsonl").to_str().unwrap().to_owned();
    check(path, &["replay", "export", &replay, "--format", "reference", "--out", &out], "");
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 4);
    let text = fs::read_to_string(&replay).unwrap();
    check(
        path,
        &["replay", "export", &replay, "--format", "reference", "--out", &replay],
        "exit code 2, error: --out names the replay itself; give another file",
    );
    assert_eq!(fs::read_to_string(&replay).unwrap(), text);
    let cut = file(path, "cut.jsonl", &text[..text.len() / 2]);
    check(
        path,
        &["replay", "export", &cut, "--format", "reference", "--out", &out],
        "exit code 11, error: cut.jsonl: the replay breaks off after epoch 2, without a result",
    );
    // The existing file stays, and no new file is created.
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 4);
    let link = path.join("link");
    std::os::unix::fs::symlink(path.join("target"), &link).unwrap();
    let failed = run(&["replay", "export", &cut, "--format", "reference", "--out", link.to_str().unwrap()]);
    assert_eq!((failed.code, link.is_symlink(), link.exists()), (11, true, false));
    // A reader that closes the pipe early is no error.
    let mut child = arena(&["replay", "export", &replay, "--format", "reference"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
