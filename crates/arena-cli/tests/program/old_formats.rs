//! Data of an earlier program, which must open with its content unchanged: a store, an export, answers, replays, a
//! tournament. The files in `tests/format-2` have an earlier format and today's game rules.

use std::fs;
use std::path::{Path, PathBuf};

use arena_testkit::Client;
use serde_json::{Map, Value, json};

use crate::program::{Running, file, folder, run, run_with};

/// The main board of psi in the earlier program.
const PSI_BOARD: &str = "ae436a1c0789a7f0";

const TOKEN: &str = "0123456789012345678901234567";

fn old(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-2").join(name);
    path.to_str().unwrap().to_owned()
}

fn text(name: &str) -> String {
    fs::read_to_string(old(name)).unwrap()
}

/// Starts a server that never removes or ends sessions because of inactivity.
fn serve(folder: &Path) -> (Running, Client) {
    let config = file(folder, "arena.toml", "[sessions]\nstale_open_s = 0\nstale_active_s = 0\n");
    let data = folder.join("data");
    let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let server = Running::start_with(&args, &[("ADMIN_TOKEN", TOKEN)]);
    let client = Client::new(server.url.strip_prefix("http://").unwrap().parse().unwrap());
    (server, client)
}

fn admin(server: &Running, args: &[&str]) -> String {
    let all = [&["admin"], args, &["--url", &server.url]].concat();
    let run = run_with(&all, &[("ARENA_ADMIN_TOKEN", TOKEN)]);
    assert_eq!(run.code, 0, "{run:#?}");
    run.stdout
}

/// Restores a data folder with the old store.
fn restore(data: &Path) {
    fs::create_dir(data).unwrap();
    let store = rusqlite::Connection::open(data.join("arena.sqlite3")).unwrap();
    store.execute_batch(&text("store.sql")).unwrap();
}

#[test]
fn a_store_of_an_earlier_program_gives_the_same_answers_and_export() {
    let folder = folder();
    let data = folder.path().join("data");
    restore(&data);
    let (server, client) = serve(folder.path());
    let answers: Map<String, Value> = serde_json::from_str(&text("answers.json")).unwrap();
    assert_eq!(answers.len(), 25);
    for (path, answer) in &answers {
        match path.as_str() {
            // The prompt of psi has changed since, so new games count on a new board.
            "/api/scoring/psi" => assert_eq!(client.get(&format!("{path}?board={PSI_BOARD}")).ok(), *answer, "{path}"),
            "/api/scoring/psi/boards" => {
                let mut old = answer[0].clone();
                old["main"] = json!(false);
                let boards = client.get(path).ok();
                assert!(boards.as_array().unwrap().contains(&old), "{boards}");
            }
            "/api/scoring" => assert_eq!(client.get(path).ok(), json!([]), "{path}"),
            _ => assert_eq!(client.get(path).ok(), *answer, "{path}"),
        }
    }
    let export = folder.path().join("export.jsonl");
    admin(&server, &["export", "--out", export.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(export).unwrap(), text("export.jsonl"));
    let counted = admin(&server, &["recompute", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&counted).unwrap()["wrong"], json!([]));
    // A session in progress continues.
    let open = answers["/api/challenges?limit=50"]["challenges"].as_array().unwrap();
    let open = open.iter().find(|session| session["challengeType"] == "millionaire").unwrap();
    let (id, invite) = (open["id"].as_str().unwrap(), open["invites"][0].as_str().unwrap());
    client.chat(id, invite, "still here").ok();
    let league = run(&["league", "show", "snakes", "--data", data.to_str().unwrap(), "--json"]);
    assert_eq!(league.json()["games_played"], 4, "{league:#?}");
}

#[test]
fn an_export_of_an_earlier_program_is_imported_with_all_that_counts() {
    let folder = folder();
    let (server, client) = serve(folder.path());
    admin(&server, &["import", &old("export.jsonl")]);
    let answers: Map<String, Value> = serde_json::from_str(&text("answers.json")).unwrap();
    assert_eq!(client.get(&format!("/api/scoring/psi?board={PSI_BOARD}")).ok(), answers["/api/scoring/psi"]);
    let path = "/api/challenges?status=ended&limit=50";
    assert_eq!(client.get(path).ok(), answers[path]);
}

#[test]
fn replays_and_results_of_an_earlier_program_are_verified_and_rated() {
    for game in ["snake", "chess", "food_catcher", "cherry_picker", "psi"] {
        let verified = run(&["replay", "verify", &old(&format!("{game}.jsonl"))]);
        assert_eq!(verified.code, 0, "{verified:#?}");
        // The prompt of psi has changed since, but its rules are the same.
        assert_eq!(verified.stdout.contains("weren't compared"), game == "psi", "{verified:#?}");
    }
    // Other changes of the header are found.
    let folder = folder();
    for (from, to) in [(r#""challenge":"psi""#, r#""challenge":"chess""#), (r#""name":"guess""#, r#""name":"guest""#)] {
        let changed = text("psi.jsonl").replacen(from, to, 1);
        let changed = run(&["replay", "verify", &file(folder.path(), "psi.jsonl", &changed)]);
        assert_eq!(changed.code, 11, "{from}: {changed:#?}");
    }
    let standings = run(&["tournament", "standings", &old("."), "--json"]).json();
    assert_eq!((&standings["games_played"], &standings["rules_version"]), (&json!(6), &json!(2)));
    let points: Vec<&Value> = standings["standings"].as_array().unwrap().iter().map(|agent| &agent["points"]).collect();
    assert_eq!(points, [&json!(2.0), &json!(2.0), &json!(2.0)], "{standings}");
    for name in ["match.json", "tournament.jsonl", "snake.jsonl"] {
        assert_eq!(run(&["rate", &old(name)]).code, 0, "{name}");
    }
}
