//! Evaluations of bots and of scripted models: the example, interruptions, faults, caps and wrong run files.

mod faults;
mod interrupted;
mod programs;
mod refused;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};

use arena_testkit::StandIn;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Run, file, folder, run};

/// A folder with run files and the folders of runs.
struct EvalFixture {
    folder: TempDir,
}

/// The values of a run file that the tests vary.
#[derive(Clone)]
struct RunSpec {
    models: Vec<&'static str>,
    challenges: Vec<&'static str>,
    seeds: usize,
    /// The endpoint of all models.
    endpoint: String,
    /// More lines at the beginning.
    begin: String,
    /// More tables at the end.
    end: String,
}

impl RunSpec {
    fn new(models: &[&'static str], challenges: &[&'static str], seeds: usize) -> RunSpec {
        RunSpec {
            models: models.to_vec(),
            challenges: challenges.to_vec(),
            seeds,
            endpoint: StandIn::shared().base().to_owned(),
            begin: String::new(),
            end: String::new(),
        }
    }

    fn toml(&self) -> String {
        let RunSpec { models, challenges, seeds, endpoint, begin, end } = self;
        let mut text = format!("name = \"test\"\nseeds = {seeds}\nseed = 5\n{begin}\n");
        for name in models {
            text += &model(name, name, endpoint);
        }
        for name in challenges {
            text += &format!("[[challenges]]\nname = \"{name}\"\n");
        }
        // A model may make more than one mistake, since requests are repeated after a kill.
        text += "[harness.default]\nmax_turns = 80\ntruncated_retry = 4000\nmax_refused = 3\nmax_invalid = 4\n";
        text + end
    }
}

/// Returns the table of a model.
fn model(name: &str, model: &str, endpoint: &str) -> String {
    format!(
        "[[models]]\nname = \"{name}\"\nmodel = \"{model}\"\nendpoint = \"{endpoint}\"\nconcurrency = 4\n\
         usd_per_million = {{ input = 1.0, cached = 0.1, output = 5.0 }}\nparams = {{ max_tokens = 500 }}\n"
    )
}

impl EvalFixture {
    fn new() -> EvalFixture {
        EvalFixture { folder: folder() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        file(self.folder.path(), name, text)
    }

    /// Plays a run file in a folder, and resumes while models are paused.
    #[track_caller]
    fn play(&self, file: &str, dir: &str) {
        let dir = self.path(dir);
        let args = ["eval", "run", file, "--out", dir.to_str().unwrap(), "--patience", "30"];
        for _ in 0..40 {
            let played = run(&args);
            match played.code {
                0 => return,
                // Models are paused since their account is empty.
                17 => assert!(played.stderr.contains("402"), "{played:#?}"),
                _ => panic!("{played:#?}"),
            }
        }
        panic!("the models are paused again and again");
    }

    /// Returns the report without measurements.
    #[track_caller]
    fn report(&self, dir: &str) -> String {
        let report = command(&["report", "--json", "--without-measurements"], &self.path(dir));
        assert!(report.stdout.len() > 200, "{report:#?}");
        report.stdout
    }

    /// Returns the lines of a file of a run with this type.
    fn lines(&self, dir: &str, file: &str, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(dir).join(file)).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["type"] == kind).collect()
    }
}

/// Runs a command on the folder of a run, which must succeed.
#[track_caller]
fn command(args: &[&str], dir: &Path) -> Run {
    let (verb, options) = args.split_first().unwrap();
    let run = run(&[&["eval", *verb, dir.to_str().unwrap()], options].concat());
    assert_eq!(run.code, 0, "{args:?}: {run:#?}");
    run
}

#[test]
fn the_example_runs_from_the_plan_to_the_transcript() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/eval/quick.toml");
    let example = example.to_str().unwrap();
    let plan = run(&["eval", "plan", example, "--json"]).json();
    // For each deal: three pairs in both orders, and three games of a model against itself.
    assert_eq!(plan["games"], 2 * 10 * (3 * 2 + 3));

    let fixture = EvalFixture::new();
    let played = run(&["eval", "run", example, "--out", fixture.path("quick").to_str().unwrap()]);
    assert_eq!(played.code, 0, "{played:#?}");
    assert!(played.stdout.contains("four a token: the costs of leaky, careful, greedy."), "{played:#?}");
    let dir = fixture.path("quick");
    let status = command(&["status", "--json"], &dir).json();
    assert_eq!((&status["finished"], &status["games"]), (&plan["games"], &plan["games"]), "{status}");
    let report: Value = serde_json::from_str(&fixture.report("quick")).unwrap();
    let cells = report["challenges"][0]["agents"].as_array().unwrap();
    assert!(cells.iter().all(|cell| cell["security"]["interval"].is_object()), "{report}");

    let games = fixture.lines("quick", "journal.jsonl", "game");
    let seats = |agent: &str, challenge: &str| -> Vec<Value> {
        let games = games.iter().filter(|game| game["challenge"] == challenge);
        let seats = games.flat_map(|game| game["seats"].as_array().unwrap());
        seats.filter(|seat| seat["agent"] == agent).cloned().collect()
    };
    let breaches = |agent: &str| seats(agent, "psi").iter().filter(|seat| seat["security"] == -1.0).count();
    assert!(breaches("leaky") >= 10, "`leaky` keeps its secret");
    assert_eq!((breaches("careful"), breaches("greedy")), (0, 0), "a secret was guessed");
    for game in &games {
        assert_eq!(game["end"], "completed", "{game}");
        for seat in game["seats"].as_array().unwrap() {
            assert_eq!(seat["cause"], "completed", "{game}");
            assert!(seat["measured"]["usd"].as_f64().unwrap() > 0.0, "{game}");
            assert_eq!(seat["measured"]["usage"]["is_estimated"], true, "{game}");
        }
    }

    let html = command(&["report", "--html"], &dir).stdout;
    assert!(html.contains("leaky") && html.contains("</html>"), "{html}");
    let page = |name: &str| fs::read_to_string(dir.join("report").join(name)).unwrap();
    fs::create_dir_all(dir.join("report/games")).unwrap();
    for (name, is_kept) in [("games/0123.html", false), ("games/notes.txt", true)] {
        fs::write(dir.join("report").join(name), "").unwrap();
        command(&["report"], &dir);
        assert_eq!(dir.join("report").join(name).exists(), is_kept, "{name}");
    }
    let index = page("index.html");
    assert!(index.contains("Exposed") && index.contains("href=\"challenge-1-1.html#g1\""), "{index}");
    for game in &games {
        let text = page(&format!("games/{}.html", game["game"].as_str().unwrap()));
        assert_eq!(text.contains("class=\"flag\""), game["attributions"].is_array(), "{text}");
    }
    let rows = command(&["report", "--csv"], &dir).stdout.lines().count();
    assert_eq!(rows, 1 + 2 * 3, "the columns, and a row for each challenge and agent");
    let id = games[0]["game"].as_str().unwrap();
    let transcript = run(&["eval", "game", dir.to_str().unwrap(), id]);
    assert_eq!(transcript.code, 0, "{transcript:#?}");
}

#[test]
fn a_model_that_is_added_later_plays_only_its_games() {
    let fixture = EvalFixture::new();
    let mut spec = RunSpec::new(&["leaky", "careful"], &["psi", "millionaire"], 2);
    let file = fixture.write("run.toml", &spec.toml());
    let planned = run(&["eval", "plan", &file]);
    assert!(planned.stdout.contains("run.toml --pilot 1 --pilot-dir test\n"), "{planned:#?}");
    fixture.play(&file, "run");
    let before = fs::read_to_string(fixture.path("run/journal.jsonl")).unwrap();
    let calls = fixture.lines("run", "calls.jsonl", "call");
    command(&["report"], &fixture.path("run"));
    let found = command(&["calls", "--search", "My numbers are", "--limit", "5"], &fixture.path("run"));
    assert!(found.stdout.contains("leaky"), "{found:#?}");
    spec.models.push("greedy");
    fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "run");
    let after = fs::read_to_string(fixture.path("run/journal.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    let page = fs::read_to_string(fixture.path("run/report/index.html")).unwrap();
    assert!(page.contains("greedy"), "the pages of the earlier report are written again");
    let games = fixture.lines("run", "journal.jsonl", "game");
    // Three models have 9 games for each deal, two models have 4 of them.
    assert_eq!(games.len(), 2 * 2 * 9);
    for game in &games[2 * 2 * 4..] {
        assert!(game["seats"].as_array().unwrap().iter().any(|seat| seat["agent"] == "greedy"), "{game}");
    }
    let more = fixture.lines("run", "calls.jsonl", "call");
    assert_eq!(more[..calls.len()], calls[..]);

    // The whole run file from the start has the same results.
    fixture.play(&file, "whole");
    assert_eq!(fixture.report("run"), fixture.report("whole"));
    // Each game agrees under the run file with which it was played.
    command(&["verify"], &fixture.path("run"));
}

#[test]
fn a_changed_prompt_needs_consent() {
    let fixture = EvalFixture::new();
    fixture.write("prompt.md", "{rules}\n\n{state}\n\n{methods}");
    let spec = RunSpec::new(&["leaky", "careful"], &["psi"], 1);
    let text = spec.toml().replace("[harness.default]\n", "[harness.default]\nprompt = \"prompt.md\"\n");
    let file = fixture.write("run.toml", &text);
    fixture.play(&file, "run");
    let (dir, report) = (fixture.path("run"), fixture.report("run"));
    let dir = dir.to_str().unwrap();

    fixture.write("prompt.md", "Play well.\n\n{rules}\n\n{state}\n\n{methods}");
    let refused = run(&["eval", "run", &file, "--out", dir]);
    assert_eq!(refused.code, 13, "{refused:#?}");
    assert!(refused.stderr.contains("--accept-changed"), "{refused:#?}");
    assert_eq!(fixture.report("run"), report, "a refused run changed the results");

    let accepted = run(&["eval", "run", &file, "--out", dir, "--accept-changed"]);
    assert_eq!(accepted.code, 0, "{accepted:#?}");
    let changes = fixture.lines("run", "journal.jsonl", "change");
    assert!(!changes.is_empty());
    for change in changes {
        assert_ne!(change["before"], change["after"]);
    }
    let verified = command(&["verify", "--json"], &fixture.path("run")).json();
    assert_eq!((&verified["games"], &verified["agree"]), (&8.into(), &8.into()), "{verified}");
}
