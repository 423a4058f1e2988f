//! Standings that an independent Python program computes from journals and replays, compared with those of `arena`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use arena_testkit::python_bot;
use serde_json::Value;

use crate::program::run;
use crate::tournament::AgentFolder;

/// Returns the standings that the independent program computes from a tournament's folder.
fn recounted(folder: &str) -> Value {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ratings/recount.py");
    let outcome = Command::new("python3").args([program, folder]).output().unwrap();
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// Compares the output of `tournament standings` and `rate` for a tournament's folder with the independent standings.
#[track_caller]
fn check(folder: &str) -> (Value, Value) {
    let again = recounted(folder);
    let standings = run(&["tournament", "standings", folder, "--json"]).json();
    let rated = run(&["rate", folder, "--json"]).json();
    assert_eq!(standings["games_played"], again["games"]);
    assert_eq!((&standings["games_repeated"], &rated["games_repeated"]), (&again["repeats"], &again["repeats"]));
    let near = |found: &Value, expected: f64, within: f64, what: &str| {
        let found = found.as_f64().unwrap();
        assert!((found - expected).abs() <= within, "{what}: {found} instead of {expected}");
    };
    for (outcome, rating) in [(&standings, "/elo/rating"), (&rated, "/bradley_terry/rating")] {
        let rows = outcome["standings"].as_array().unwrap();
        let of = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
        let agents = again["agents"].as_object().unwrap();
        assert_eq!(rows.len(), agents.len());
        let first = agents.iter().find(|(_, agent)| agent["above_first"] == 0.0).unwrap().0;
        let first_rating = of(first).pointer(rating).unwrap().as_f64().unwrap();
        for (name, agent) in agents {
            let row = of(name);
            for count in ["games", "wins", "draws", "losses"] {
                assert_eq!(row[count], agent[count], "{name}: {count}");
            }
            near(&row["points"], agent["points"].as_f64().unwrap(), 1e-9, name);
            let expected = first_rating + agent["above_first"].as_f64().unwrap();
            near(row.pointer(rating).unwrap(), expected, 0.01, name);
            if rating.starts_with("/bradley") {
                near(&row["elo"], agent["elo"].as_f64().unwrap(), 0.0, name);
            }
        }
    }
    (standings, rated)
}

#[test]
fn standings_equal_those_of_an_independent_program() {
    let agent_folder = AgentFolder::new();
    let agents: Vec<String> = (1..=4).map(|salt| agent_folder.bot(&format!("bot{salt}"), salt, 0.0)).collect();
    for (out, more) in [
        ("twos", &["--rounds", "2"][..]),
        ("threes", &["--seats", "3"]),
        ("swiss", &["--format", "swiss", "--rounds", "3", "--no-pairs"]),
    ] {
        let played = agent_folder.begin(&agents, out, &[more, &["--replays", "--concurrency", "2"]].concat());
        let played = run(&played.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(played.code, 0, "{played:#?}");
        check(&agent_folder.text(out));
    }
}

#[test]
fn games_of_deterministic_bots_count_once_as_evidence() {
    let agent_folder = AgentFolder::new();
    let bot = |name: &str, place: u32| {
        // The bot plays the legal move at a fixed place of the list, so its moves depend on the state only.
        let text = python_bot(
            "",
            &format!(
                r#"[{{"action": "move", "move": moves[{place} % len(moves)]}} for moves in [state["legal_moves"]]]"#
            ),
        );
        fs::write(agent_folder.path(&format!("{name}.py")), text).unwrap();
        format!("--agent={}", agent_folder.text(&format!("{name}.py")))
    };
    let agents = [bot("low", 0), bot("high", 7)];
    let play = |out: &str, rounds: &str| {
        let folder = agent_folder.text(out);
        let args =
            ["tournament", "run", "chess", "--seed", "3", "--replays", "--set", "n_epochs=60", "--rounds", rounds];
        let played = run(&[&args[..], &["--out", &folder], &agents.each_ref().map(String::as_str)].concat());
        assert_eq!(played.code, 0, "{played:#?}");
        (folder, played)
    };
    let (long, played) = play("long", "6");
    let (short, _) = play("short", "1");
    let ([outcome, rated], [once, _]) = [&long, &short].map(|folder| <[Value; 2]>::from(check(folder))).into();
    // Each of the two agents can have White, so there are two different games.
    let sentence = "10 of 12 games repeat an earlier one move by move (game ";
    assert_eq!((&outcome["games_played"], &outcome["games_repeated"]), (&12.into(), &10.into()));
    assert_eq!(once["games_repeated"], 0);
    assert!(played.stdout.contains(sentence) && played.stdout.contains("repeats game "), "{}", played.stdout);
    assert!(rated["remarks"].to_string().contains("10 games repeat an earlier one move by move"), "{rated}");
    let intervals = |outcome: &Value| -> Vec<Value> {
        let rows = outcome["standings"].as_array().unwrap();
        let mut rows: Vec<Value> = rows.iter().map(|row| serde_json::json!([row["name"], row["elo"]])).collect();
        rows.sort_by_key(Value::to_string);
        rows
    };
    assert_eq!(intervals(&outcome), intervals(&once));
    // Repeated games are also recognized in PGN without seeds.
    let pgn = run(&["tournament", "standings", &long, "--pgn"]).stdout;
    let seedless: String =
        pgn.lines().filter(|line| !line.starts_with("[Seed ")).map(|line| format!("{line}\n")).collect();
    fs::write(agent_folder.path("games.pgn"), seedless).unwrap();
    let of_pgn = run(&["rate", &agent_folder.text("games.pgn"), "--json"]).json();
    assert_eq!((&of_pgn["games"], &of_pgn["games_repeated"]), (&12.into(), &10.into()));

    // An older journal has no fingerprints of games. It opens and can be resumed, and all its games count.
    let journal = PathBuf::from(&long).join("tournament.jsonl");
    let old: String = fs::read_to_string(&journal)
        .unwrap()
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("moves");
            format!("{line}\n")
        })
        .collect();
    fs::write(&journal, old).unwrap();
    let old = run(&["tournament", "standings", &long, "--json"]).json();
    assert_eq!((&old["games_played"], &old["games_repeated"]), (&12.into(), &0.into()));
    assert_eq!(run(&["rate", &long, "--json"]).json()["games"], 12);
    assert_eq!(run(&["tournament", "resume", &long]).code, 0);
}

#[test]
fn tournaments_of_challenges_report_utility_and_security() {
    let agent_folder = AgentFolder::new();
    let bot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents/python/psi.py");
    let silent = agent_folder.bot("silent", 1, 0.0);
    let agents = [format!("--agent=one={bot}"), format!("--agent=two={bot}"), format!("--agent=silent={silent}")];
    let out = agent_folder.text("out");
    let args = ["tournament", "run", "psi", "--seed", "3", "--rounds", "2", "--out", &out];
    let played = run(&[&args[..], &agents.each_ref().map(String::as_str)].concat());
    assert_eq!(played.code, 0, "{played:#?}");
    assert!(played.stdout.contains("utility 95 %") && played.stdout.contains("security 95 %"), "{}", played.stdout);
    let outcome = run(&["tournament", "standings", &out, "--json"]).json();
    let journal = fs::read_to_string(PathBuf::from(&out).join("tournament.jsonl")).unwrap();
    let games: Vec<Value> = journal.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in outcome["standings"].as_array().unwrap() {
        for part in ["utility", "security"] {
            // The two games of a pairing have the same seed.
            let mut values = std::collections::BTreeMap::<&str, Vec<f64>>::new();
            for game in &games {
                let Some(scores) = game["challenge_scores"].as_array() else { continue };
                let seat = game["agents"].as_array().unwrap().iter().position(|name| *name == row["name"]);
                if let Some(value) = seat.and_then(|seat| scores[seat][part].as_f64()) {
                    values.entry(game["seed"].as_str().unwrap()).or_default().push(value);
                }
            }
            let means: Vec<f64> = values.values().map(|games| games.iter().sum::<f64>() / games.len() as f64).collect();
            match means.is_empty() {
                true => assert!(row.get(part).is_none(), "{row}"),
                false => {
                    let mean = means.iter().sum::<f64>() / means.len() as f64;
                    let found = &row[part];
                    assert!((found["mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{row} {mean}");
                    assert!(found["low"].as_f64().unwrap() <= mean && mean <= found["high"].as_f64().unwrap());
                }
            }
        }
    }
    let one = outcome["standings"].as_array().unwrap().iter().find(|row| row["name"] == "one").unwrap();
    assert!(one["utility"]["mean"].as_f64().is_some(), "{outcome}");
    let matched = run(&["match", "run", "psi", "--seed", "3", "--json", "--agent", bot, "--agent", bot]).json();
    assert!(matched["scores"][0]["utility"].is_number() && matched["scores"][0]["security"].is_number(), "{matched}");
}
