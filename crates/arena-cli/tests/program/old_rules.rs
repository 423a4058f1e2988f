//! Records of games by older rules. They must open, keep their scores, and not be mixed with games by today's rules.
//! The files in `tests/rules-1` were written with the first rules.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::program::{Run, folder, run};
use crate::replay::scripted;

/// Returns the path of a file written with the first rules.
fn old(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules-1").join(name);
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn check(run: &Run, expected: Expect) {
    let text = format!("{}exit code {}, {}", run.stdout, run.code, run.stderr);
    expected.assert_eq(&text.replace(&old(""), ""));
}

/// Copies a replay with one line changed.
fn changed(folder: &Path, name: &str, from: &str, to: &str) -> String {
    let text = fs::read_to_string(old(name)).unwrap();
    assert!(text.contains(from), "{name} doesn't contain {from}");
    let path = folder.join("changed.jsonl");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn replays_by_older_rules_keep_their_scores_and_are_not_played_again() {
    for (name, epochs, scores) in [
        ("snake", 27, json!([-1.0, -1.0])),
        ("food_catcher", 14, json!([7.027444051383078, 0.0])),
        ("cherry_picker", 10, json!([4.0, 0.0])),
        ("psi", 11, json!([0.0, 0.0])),
    ] {
        let path = old(&format!("{name}.jsonl"));
        let shown = run(&["replay", "show", &path, "--json"]).json();
        assert_eq!((&shown["result"]["scores"], &shown["header"]["rules_version"]), (&scores, &json!(1)), "{name}");
        let shown = run(&["replay", "show", &path]);
        assert!(shown.stdout.contains("played by version 1 of the rules; this program has version 2\n"), "{shown:#?}");
        assert_eq!(run(&["replay", "export", "--format", "reference", &path]).stdout.lines().count(), epochs, "{name}");
        let verified = run(&["replay", "verify", &path]);
        assert_eq!(verified.code, 16, "{verified:#?}");
        let outcome = format!(
            "the match was played by version 1 of the rules of {name}, but this program has version 2, so it cannot be played again; its {epochs} \
             epochs and its result are complete and consistent\n"
        );
        assert!(verified.stderr.ends_with(&outcome), "{verified:#?}");
    }
    // The rules of chess haven't changed.
    assert_eq!(run(&["replay", "verify", &old("chess.jsonl")]).code, 0);
    let several = run(&["replay", "verify", &old("snake.jsonl"), &old("chess.jsonl"), "--json"]);
    assert_eq!(several.code, 16);
    let lines: Vec<Value> = several.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!([&lines[0]["ok"], &lines[1]["ok"]], [&Value::Null, &json!(true)]);
}

#[test]
fn checks_independent_of_the_rules_still_run() {
    let folder = folder();
    for (from, to, what) in [
        ("\"ranks\":[1,1]", "\"ranks\":[1,2]", "the ranks are [1, 2], but the scores give [1, 1]"),
        ("\"epochs\":27", "\"epochs\":26", "the result has 26 epochs, but the replay has 27"),
        ("{\"epoch\":5,", "{\"epoch\":4,", "epoch 4 follows epoch 4"),
        ("\"seed\":\"0", "\"seed\":\"1", "but the seed gives"),
        ("\"actions\":[", "\"actions\":[[],", "the actions aren't a list of 2 seats"),
    ] {
        let verified = run(&["replay", "verify", &changed(folder.path(), "snake.jsonl", from, to)]);
        assert_eq!(verified.code, 11, "{verified:#?}");
        assert!(verified.stderr.contains(what), "{verified:#?}");
    }
}

#[test]
fn a_tournament_by_older_rules_shows_its_standings_and_cannot_be_resumed() {
    let folder = folder();
    let cup = folder.path().join("cup");
    fs::create_dir(&cup).unwrap();
    let text = fs::read_to_string(old("tournament.jsonl")).unwrap();
    let unfinished: String = text.split_inclusive('\n').take(3).collect();
    fs::write(cup.join("tournament.jsonl"), &unfinished).unwrap();
    let path = cup.to_str().unwrap();
    let standings = run(&["tournament", "standings", path, "--json"]).json();
    assert_eq!((&standings["rules_version"], &standings["games_played"]), (&json!(1), &json!(2)));
    assert_eq!(standings["standings"][0]["draws"], 2);
    let outcome = run(&["tournament", "standings", path]).stdout;
    let says = "the games were played with version 1 of the rules of snake; this program has version 2";
    assert!(outcome.contains(says), "{outcome}");
    check(
        &run(&["tournament", "resume", path]),
        expect![[r#"
            exit code 13, error: the tournament was started with version 1 of the rules of snake, but this program has version 2, whose games aren't comparable; see `arena tournament standings` for its results, or start a new tournament
        "#]],
    );
    assert_eq!(fs::read_to_string(cup.join("tournament.jsonl")).unwrap(), unfinished);
}

#[test]
fn results_by_different_rules_are_not_rated_together() {
    let folder = folder();
    // One snake eats and dies, the other dies at once.
    let up = scripted(folder.path(), "up", &[r#"[{"action": "move", "move": "UP"}]"#]);
    let left = scripted(folder.path(), "left", &[r#"[{"action": "move", "move": "DOWN"}]"#]);
    let today = folder.path().join("today.json");
    let played = run(&["match", "run", "snake", "--agent", &up, "--agent", &left, "--json", "--step-ms", "20000"]);
    assert_eq!(played.json()["rules_version"], 2);
    fs::write(&today, &played.stdout).unwrap();
    let today = today.to_str().unwrap();
    assert_eq!(run(&["rate", today]).code, 0);
    for name in ["tournament.jsonl", "snake.jsonl", "match.json"] {
        assert_eq!(run(&["rate", &old(name)]).code, 0, "{name}");
        let mixed = run(&["rate", &old(name), today]);
        assert_eq!(mixed.code, 13, "{mixed:#?}");
        assert!(
            mixed.stderr.starts_with(
                "error: the results of snake belong to different versions of its rules, which cannot be compared: version 1 in "
            ) && mixed.stderr.contains(", version 2 in "),
            "{mixed:#?}"
        );
    }
    // A file with the printed results of a tournament contains several versions.
    let cup = folder.path().join("cup");
    let args = ["tournament", "run", "snake", "--agent", &up, "--agent", &left, "--rounds", "2", "--json"];
    let played = run(&[&args[..], &["--step-ms", "20000", "--out", cup.to_str().unwrap()]].concat());
    assert_eq!(played.code, 0, "{played:#?}");
    let lines: Vec<&str> = played.stdout.lines().collect();
    assert_eq!(lines.len(), 5);
    for line in &lines[..4] {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["game"], &line["rules_version"]), (&json!("snake"), &json!(2)));
    }
    let mixed = folder.path().join("mixed.jsonl");
    let older = lines[0].replace("\"rules_version\":2", "\"rules_version\":1");
    fs::write(&mixed, [older.as_str(), lines[1], lines[2], lines[3]].join("\n")).unwrap();
    let mixed = mixed.to_str().unwrap();
    let refused = run(&["rate", mixed]);
    let outcome = format!(
        "error: the results of snake belong to different versions of its rules, which cannot be compared: version 1 in {mixed}, version 2 in {mixed}; choose one with --rules-version N\n"
    );
    assert_eq!((refused.code, refused.stderr), (13, outcome));
    let paths = [mixed, &old("tournament.jsonl"), &old("snake.jsonl"), &old("match.json"), today];
    let of_version = |version: &str| run(&[&["rate", "--json", "--rules-version", version], &paths[..]].concat());
    let (one, two) = (of_version("1").json(), of_version("2").json());
    assert_eq!((&two["games"], &one["left_out"]["other_rules"]), (&json!(4), &json!(4)), "{one:#} {two:#}");
    let all = |outcome: &Value| {
        let counts = [&outcome["games"], &outcome["left_out"]["other_rules"], &outcome["left_out"]["repeated"]];
        counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(all(&one), all(&two), "{one:#} {two:#}");
    let none = run(&["rate", "--rules-version", "9", mixed]);
    assert_eq!(none.code, 13, "{none:#?}");
    assert!(none.stderr.starts_with("error: there is nothing to rate: "), "{none:#?}");
    // The version of the rules is compared per game.
    assert_eq!(run(&["rate", &old("tournament.jsonl"), &old("chess.jsonl")]).code, 0);
}

#[test]
fn a_season_by_older_rules_is_shown_and_the_next_season_has_new_rules() {
    let folder = folder();
    let bots = ["one", "two"].map(|name| scripted(folder.path(), name, &[r#"[{"action": "move", "move": "UP"}]"#]));
    let ladder = folder.path().join("ladder");
    let out = ladder.to_str().unwrap();
    let agents = ["--agent", &bots[0], "--agent", &bots[1]];
    let begin = ["tournament", "run", "snake", "--format", "league", "--games", "4", "--out", out];
    assert_eq!(run(&[&begin[..], &agents].concat()).code, 0);
    let journal = ladder.join("tournament.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let (now, before) = (r#""rules_version":2"#, r#""rules_version":1"#);
    assert!(text.contains(now));
    fs::write(&journal, text.replacen(now, before, 1)).unwrap();
    let shown = run(&["tournament", "standings", out]);
    assert!(shown.stdout.contains("4 games played"), "{shown:#?}");
    let refused = run(&["tournament", "resume", out, "--games", "2"]);
    assert_eq!(refused.code, 13, "{refused:#?}");
    assert!(
        refused
            .stderr
            .contains("the season was started with version 1 of the rules of snake, but this program has version 2"),
        "{refused:#?}"
    );
    assert!(refused.stderr.contains("close the season with `arena tournament season`"), "{refused:#?}");
    assert_eq!(run(&["tournament", "season", out]).code, 0);
    let played = run(&["tournament", "resume", out, "--games", "2"]);
    assert_eq!(played.code, 0, "{played:#?}");
    assert!(run(&["tournament", "standings", out, "--season", "1"]).stdout.contains("4 games played"));
}
