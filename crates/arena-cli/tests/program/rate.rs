//! `arena rate`: its ratings equal those of published programs, it reads every kind of file, and it counts no game
//! twice.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use crate::program::{Run, run};
use crate::tournament::AgentFolder;

/// Returns the folder of games and reference ratings, which its `reference.py` has generated.
fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ratings")
}

/// Returns the command's output for these paths, as JSON.
#[track_caller]
fn rated(paths: &[&Path], more: &[&str]) -> Value {
    let paths = paths.iter().map(|path| path.to_str().unwrap());
    let args: Vec<&str> = ["rate"].into_iter().chain(paths).chain(more.iter().copied()).chain(["--json"]).collect();
    run(&args).json()
}

/// Compares the Bradley-Terry rating of each agent with the reference.
#[track_caller]
fn check_numbers(rated: &Value, published: &Value) {
    let rows = rated["standings"].as_array().unwrap();
    assert_eq!(rows.len(), 7);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let found = row["bradley_terry"]["rating"].as_f64().unwrap();
        let expected = published[name].as_f64().unwrap();
        assert!((found - expected).abs() <= 0.1, "{name}: the rating is {found} instead of {expected}");
    }
}

#[test]
fn ratings_equal_those_of_published_programs() {
    let published: Value = serde_json::from_slice(&fs::read(reference().join("reference.json")).unwrap()).unwrap();
    let games = reference().join("games.pgn");
    let likeliest = rated(&[&games], &["--maximum-likelihood"]);
    check_numbers(&likeliest, &published["statsmodels"]);
    let with_advantage = rated(&[&games], &["--maximum-likelihood", "--advantage"]);
    check_numbers(&with_advantage, &published["statsmodels_with_advantage"]);
    let advantage = with_advantage["first_seat_advantage"]["elo"].as_f64().unwrap();
    assert!((advantage - published["statsmodels_advantage"].as_f64().unwrap()).abs() <= 0.1, "{advantage}");
    // The draws are removed for choix, which doesn't support draws.
    let text = fs::read_to_string(&games).unwrap();
    let decided: Vec<&str> = text.split("[Event").filter(|game| !game.contains("1/2")).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decided.pgn");
    fs::write(&path, decided.join("[Event")).unwrap();
    let decided = rated(&[&path], &["--maximum-likelihood"]);
    assert_eq!((decided["games"].as_u64(), decided["drawn"].as_u64()), (Some(312), Some(0)));
    check_numbers(&decided, &published["choix"]);
}

#[test]
fn the_mean_and_elo_are_what_is_asked_for() {
    let games = reference().join("games.pgn");
    let usual = rated(&[&games], &[]);
    let other = rated(&[&games], &["--mean", "2000", "--elo-start", "0", "--elo-k", "48"]);
    let of = |rated: &Value, pointer: &str| -> Vec<f64> {
        rated["standings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.pointer(pointer).unwrap().as_f64().unwrap())
            .collect()
    };
    for (one, two) in of(&usual, "/bradley_terry/rating").iter().zip(of(&other, "/bradley_terry/rating")) {
        assert!((two - one - 2000.0).abs() < 1e-9);
    }
    let mean = |numbers: Vec<f64>| numbers.iter().sum::<f64>() / numbers.len() as f64;
    assert!((mean(of(&usual, "/elo")) - 1200.0).abs() < 2.0 && mean(of(&other, "/elo")).abs() < 2.0);
}

#[test]
fn no_game_counts_twice_if_it_is_in_several_files() {
    let agent_folder = AgentFolder::new();
    let bots = [agent_folder.bot("a", 1, 0.0), agent_folder.bot("b", 2, 0.0), agent_folder.bot("c", 3, 0.0)];
    let begin = agent_folder.begin(&bots, "snakes", &["--replays", "--concurrency", "2"]);
    let played = run(&begin.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(played.code, 0, "{played:#?}");
    let snakes = agent_folder.path("snakes");
    let journal = snakes.join("tournament.jsonl");
    let counts = |output: &Value| (output["games"].as_u64().unwrap(), output["left_out"]["repeated"].as_u64().unwrap());

    // The journal takes precedence over its replays. Its ratings equal the tournament's standings.
    let of_journal = rated(&[&snakes], &[]);
    assert_eq!((counts(&of_journal), &of_journal["files"]["replays"]), ((6, 0), &json!(0)));
    let standings = run(&["tournament", "standings", snakes.to_str().unwrap(), "--json"]).json();
    for row in standings["standings"].as_array().unwrap() {
        let rows = of_journal["standings"].as_array().unwrap();
        let same = rows.iter().find(|other| other["name"] == row["name"]).unwrap();
        assert_eq!(same["rank_may_be"], row["rank_may_be"]);
        // Sums are rounded differently, because the agents are numbered differently.
        for end in ["rating", "low", "high"] {
            let difference = same["bradley_terry"][end].as_f64().unwrap() - row["elo"][end].as_f64().unwrap();
            assert!(difference.abs() < 1e-6, "{}: {end}", row["name"]);
        }
    }

    // The same games in every other format give the same ratings, alone and together with the journal.
    let replays = snakes.join("replays");
    let lines = agent_folder.path("lines.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&lines, text.split_once('\n').unwrap().1).unwrap();
    let pgn = agent_folder.path("games.pgn");
    fs::write(&pgn, run(&["tournament", "standings", snakes.to_str().unwrap(), "--pgn"]).stdout).unwrap();
    for path in [&replays, &lines, &pgn] {
        let alone = rated(&[path], &[]);
        assert_eq!((counts(&alone), sorted(&alone)), ((6, 0), sorted(&of_journal)), "{}", path.display());
        let both = rated(&[&snakes, path], &[]);
        assert_eq!((counts(&both), &both["standings"]), ((6, 6), &of_journal["standings"]), "{}", path.display());
    }
    assert_eq!(counts(&rated(&[agent_folder.path("").as_path()], &[])), (6, 12));

    // Results of matches and their replays count once as well.
    let (results, folder) = (agent_folder.path("results.jsonl"), agent_folder.path("more"));
    let args =
        ["match", "run", "snake", "--agent", &bots[0], "--agent", &bots[1], "--games", "4", "--set", "n_epochs=5"];
    let matches = run(&[&args[..], &["--seed", "1", "--json", "--replay", folder.to_str().unwrap()]].concat());
    assert_eq!(matches.code, 0, "{matches:#?}");
    fs::write(&results, matches.stdout).unwrap();
    let of_results = rated(&[&results], &[]);
    assert_eq!((counts(&of_results), sorted(&rated(&[&folder], &[]))), ((4, 0), sorted(&of_results)));
    assert_eq!(counts(&rated(&[&results, &folder, &results], &[])), (4, 4));
}

/// Returns the standings by name, without ratings that depend on the order of the games.
fn sorted(rated: &Value) -> Vec<String> {
    let mut rows: Vec<String> = rated["standings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {} {}", row["name"], row["points"], row["rank_may_be"]))
        .collect();
    rows.sort_unstable();
    rows
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Returns games in PGN, from White, Black and result.
fn pgn(games: &[[&str; 3]]) -> String {
    let game = |[white, black, result]: &[&str; 3]| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"{result}\"]\n\n{result}\n\n")
    };
    games.iter().map(game).collect()
}

/// Returns a result in the form of journals, with the required fields only.
fn result(seed: u32, agents: [&str; 2], ranks: [u32; 2]) -> String {
    let outcome = json!({"termination": "CRASH", "winner": "DRAW"});
    json!({"agents": agents, "ranks": ranks, "seed": format!("{seed:064x}"), "outcome": outcome}).to_string() + "\n"
}

/// Runs the command in a folder with these files. In the output, the folder's path is replaced by `DIR`.
fn run_in(files: &[(&str, &str)], paths: &[&str], more: &[&str]) -> Run {
    let folder = folder(files);
    let paths: Vec<PathBuf> = paths.iter().map(|path| folder.path().join(path)).collect();
    let paths = paths.iter().map(|path| path.to_str().unwrap().trim_end_matches('/'));
    let args: Vec<&str> = ["rate"].into_iter().chain(paths).chain(more.iter().copied()).collect();
    let output = run(&args);
    let hide = |text: String| text.replace(folder.path().to_str().unwrap(), "DIR");
    Run { stdout: hide(output.stdout), stderr: hide(output.stderr), ..output }
}

#[test]
fn two_agents_get_a_comparison() {
    let games = [["new", "old", "1-0"], ["old", "new", "1/2-1/2"], ["new", "old", "0-1"], ["new", "old", "1-0"]];
    let output = run_in(&[("games.pgn", &pgn(&games))], &["games.pgn"], &[]);
    expect_file!["rate/two_agents_get_a_comparison.txt"].assert_eq(&output.stdout);
    // Pairs are identified by their seeds.
    let lines: String = [result(1, ["new", "old"], [1, 2]), result(1, ["old", "new"], [1, 1])].concat()
        + &result(2, ["new", "old"], [1, 2])
        + &result(2, ["old", "new"], [2, 1]);
    let output = run_in(&[("lines.jsonl", &lines)], &["lines.jsonl"], &["--json"]);
    let output: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(output["versus"]["pairs"], json!([0, 0, 0, 1, 1]));
}

#[test]
fn uncounted_games_are_reported() {
    let games = pgn(&[["a", "b", "1-0"], ["b", "c", "*"], ["?", "c", "1-0"], ["c", "c", "1-0"], ["d", "e", "0-1"]]);
    let lines = result(1, ["a", "b"], [1, 2]) + &result(2, ["b", "a"], [1, 1]);
    let files = [
        ("games.pgn", games.as_str()),
        ("old/copy.pgn", games.as_str()),
        ("lines.jsonl", &(lines.clone() + "{\"agents\":[\"a\",\"b\"],\"ra")),
        ("old/same.jsonl", &(lines + "{\"standings\":[]}\n")),
        (
            "broken.jsonl",
            "{\"arena_replay\":1,\"game\":\"snake\",\"update_mode\":\"SIMULTANEOUS\",\"seed\":\"\",\"options\":{},\"config\":{},\"agents\":[]}\n{\"epoch\":1",
        ),
        ("notes.txt", "a beat b"),
        ("old/data.json", "{\n  \"a\": 1\n}\n"),
        (".hidden", "x"),
    ];
    let output = run_in(&files, &[""], &[]);
    expect_file!["rate/uncounted_games_are_reported.txt"].assert_eq(&output.stdout);
    expect![[r#"
        note: 2 files without results are skipped: DIR/notes.txt and DIR/old/data.json
    "#]]
    .assert_eq(&output.stderr);
}

#[test]
fn games_whose_moves_end_with_another_result_than_their_tag_are_named() {
    let game = |end: &str| format!("[White \"a\"]\n[Black \"b\"]\n[Result \"1-0\"]\n\n1. e4 e5 {end}\n\n");
    let games = [vec!["1-0", "1/2-1/2", "0-1 {lost on time}"], vec!["*"; 10], vec!["1-0"]].concat();
    let text: String = games.iter().map(|end| game(end)).collect();
    let output = run_in(&[("games.pgn", &text)], &["games.pgn"], &[]);
    let remarks: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("DIR/games.pgn")).collect();
    assert_eq!(remarks.len(), 11, "{output:#?}");
    assert_eq!(
        remarks[..2],
        [
            "DIR/games.pgn has two results in game 2: the tag `1-0`, which counts, and `1/2-1/2` after the moves",
            "DIR/games.pgn has two results in game 3: the tag `1-0`, which counts, and `0-1` after the moves",
        ]
    );
    assert_eq!(remarks[10], "DIR/games.pgn has 2 more games with two results");
}

#[test]
fn groups_without_common_games_have_the_same_ratings_as_alone() {
    let cup = pgn(&[
        ["a", "b", "1-0"],
        ["b", "c", "1-0"],
        ["c", "a", "1-0"],
        ["a", "c", "1/2-1/2"],
        ["b", "a", "1/2-1/2"],
        ["c", "b", "0-1"],
    ]);
    let study =
        pgn(&[["x", "y", "1-0"], ["y", "x", "1-0"], ["x", "y", "1-0"], ["y", "x", "0-1"], ["x", "y", "1/2-1/2"]]);
    let folder = folder(&[("cup.pgn", &cup), ("study.pgn", &study)]);
    let path = |name: &str| folder.path().join(name);
    for more in [&[][..], &["--advantage"], &["--maximum-likelihood"]] {
        let alone = [path("cup.pgn"), path("study.pgn")].map(|path| rated(&[&path], more));
        let together = rated(&[folder.path()], more);
        let standings = |rated: &Value| rated["standings"].as_array().unwrap().clone();
        let mut expected = Vec::new();
        for (number, one) in alone.iter().enumerate() {
            for mut row in standings(one) {
                row["group"] = json!(number + 1);
                expected.push(row);
            }
        }
        assert_eq!(standings(&together), expected, "{more:?}");
        let groups: Vec<Value> = alone.iter().flat_map(|one| one["groups"].as_array().unwrap().clone()).collect();
        assert_eq!(together["groups"], json!(groups), "{more:?}");
        assert_eq!(together["games_to_lose_lead"], Value::Null);
    }
    let sentence = "2 groups of agents share no games; each group is rated separately, and ratings of different groups cannot be compared: \
        (a, b and c) and (x and y)";
    for form in [&[][..], &["--markdown"], &["--json"]] {
        let output = run(&[&["rate", folder.path().to_str().unwrap()], form].concat());
        assert!(output.stdout.contains(sentence), "{output:#?}");
    }
    let csv = run(&["rate", folder.path().to_str().unwrap(), "--csv"]).stdout;
    let column = |line: &str| line.rsplit(',').next().unwrap().trim_end().to_owned();
    assert_eq!(csv.lines().map(column).collect::<Vec<_>>(), ["group", "1", "1", "1", "2", "2"]);
}

#[track_caller]
fn check_refusal(files: &[(&str, &str)], paths: &[&str], more: &[&str], code: i32, expected: &str) {
    let output = run_in(files, paths, more);
    assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{output:#?}");
    assert_eq!(output.stderr.trim_end(), expected);
}

#[test]
fn files_that_cannot_be_rated_are_refused_in_a_sentence() {
    check_refusal(&[], &["absent"], &[], 13, "error: cannot read DIR/absent: No such file or directory (os error 2)");
    check_refusal(
        &[("notes.txt", "a beat b")],
        &["notes.txt"],
        &[],
        13,
        "error: DIR/notes.txt: no results found; `arena rate --help` lists the accepted files",
    );
    check_refusal(&[], &[""], &[], 13, "error: the given files contain no results");
    check_refusal(
        &[("a.pgn", &pgn(&[["a", "b", "*"]]))],
        &[""],
        &[],
        13,
        "error: there is nothing to rate: 1 game has no result",
    );
    let damaged = result(1, ["a", "b"], [1, 2]) + "{\"agents\n" + &result(2, ["a", "b"], [1, 2]);
    check_refusal(&[("a.jsonl", &damaged)], &[""], &[], 13, "error: DIR/a.jsonl: line 2 isn't valid JSON");
    check_refusal(
        &[("a.jsonl", &result(1, ["a", "b"], [2, 2]))],
        &[""],
        &[],
        13,
        "error: DIR/a.jsonl: line 1: invalid ranks of 2 agents: [2, 2]",
    );
    check_refusal(
        &[("tournament.jsonl", "{\"arena_tournament\":1}\n")],
        &[""],
        &[],
        13,
        "error: DIR/tournament.jsonl: line 1: the line isn't the plan of a tournament: missing field `game`",
    );
    let one_sided = pgn(&[["a", "b", "1-0"]]);
    check_refusal(
        &[("a.pgn", &one_sided)],
        &["a.pgn"],
        &["--maximum-likelihood"],
        13,
        "error: the likelihood has no maximum: some agents took no point from the others, or never played them; omit --maximum-likelihood to get ratings",
    );
    check_refusal(
        &[("a.pgn", &one_sided)],
        &["a.pgn"],
        &["--elo-k", "0"],
        2,
        "error: invalid value '0' for '--elo-k <K>': expected a number from 1 to 1000\n\nFor more information, try '--help'.",
    );
}
