//! Data of earlier programs, which must open with its content unchanged. The files in `tests/format-2` are of a program
//! that had no records. Those in `tests/format-3` are of a program with records, a log, an archive and evaluations.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use arena_testkit::{Client, Postgres};
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

/// The path of a file in `tests/format-3`.
fn third(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-3").join(name)
}

fn third_path(name: &str) -> String {
    third(name).to_str().unwrap().to_owned()
}

/// Copies a folder so that only its owner can read it. The copies in the repository are readable by all.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100;
            fs::set_permissions(to, Permissions::from_mode(0o600 | executable)).unwrap();
        }
    }
}

/// Starts a server that never removes or ends sessions because of inactivity.
fn serve(folder: &Path) -> (Running, Client) {
    serve_with(folder, &[])
}

fn serve_with(folder: &Path, more: &[&str]) -> (Running, Client) {
    // House bots would add the deals of two days to the log.
    let settings = "[sessions]\nstale_open_s = 0\nstale_active_s = 0\n[house]\nenabled = false\n";
    let config = file(folder, "arena.toml", settings);
    let data = folder.join("data");
    let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let server = Running::start_with(&[&args, more].concat(), &[("ADMIN_TOKEN", TOKEN)]);
    let client = server.client();
    (server, client)
}

fn admin(server: &Running, args: &[&str]) -> String {
    let all = [&["admin"], args, &["--url", &server.url]].concat();
    let run = run_with(&all, &[("ARENA_ADMIN_TOKEN", TOKEN)]);
    assert_eq!(run.code, 0, "{run:#?}");
    run.stdout
}

/// Gives the sessions of an answer the names of their challenges. Earlier programs showed their types instead.
fn with_names(client: &Client, answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(sessions) = answer.get_mut("challenges").and_then(Value::as_array_mut) {
        let metadata = client.get("/api/metadata").ok();
        for session in sessions {
            assert_eq!(session["name"], session["challengeType"]);
            session["name"] = metadata[session["challengeType"].as_str().unwrap()]["name"].clone();
        }
    }
    answer
}

/// Returns the ids of a challenge's boards on which no new games count.
fn old_boards(client: &Client, challenge: &str) -> Vec<String> {
    let boards = client.get(&format!("/api/scoring/{challenge}/boards")).ok();
    let old = boards.as_array().unwrap().iter().filter(|board| board["main"] == false);
    old.map(|board| board["id"].as_str().unwrap().to_owned()).collect()
}

/// Restores a data folder with an old store.
fn restore(data: &Path, store: &str) {
    fs::create_dir_all(data).unwrap();
    let new = rusqlite::Connection::open(data.join("arena.sqlite3")).unwrap();
    new.execute_batch(store).unwrap();
}

/// Returns the number of games of leagues in a store.
fn league_games(data: &Path) -> i64 {
    let store = rusqlite::Connection::open(data.join("arena.sqlite3")).unwrap();
    store.query_row("SELECT count(*) FROM league_games", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_store_of_an_earlier_program_gives_the_same_answers_and_export() {
    let folder = folder();
    let data = folder.path().join("data");
    restore(&data, &text("store.sql"));
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
            _ => assert_eq!(client.get(path).ok(), with_names(&client, answer), "{path}"),
        }
    }
    let export = folder.path().join("export.jsonl");
    admin(&server, &["export", "--out", export.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(export).unwrap(), text("export.jsonl"));
    let counted = admin(&server, &["api", "POST", "/admin/recompute"]);
    assert_eq!(serde_json::from_str::<Value>(&counted).unwrap()["wrong"], json!([]));
    // A session in progress continues.
    let open = answers["/api/challenges?limit=50"]["challenges"].as_array().unwrap();
    let open = open.iter().find(|session| session["challengeType"] == "millionaire").unwrap();
    let (id, invite) = (open["id"].as_str().unwrap(), open["invites"][0].as_str().unwrap());
    client.chat(id, invite, "still here").ok();
    server.stop();
    assert_eq!(league_games(&data), 4);
}

#[test]
fn an_export_of_an_earlier_program_is_imported_with_all_that_counts() {
    let folder = folder();
    let (server, client) = serve(folder.path());
    admin(&server, &["import", &old("export.jsonl")]);
    let answers: Map<String, Value> = serde_json::from_str(&text("answers.json")).unwrap();
    assert_eq!(client.get(&format!("/api/scoring/psi?board={PSI_BOARD}")).ok(), answers["/api/scoring/psi"]);
    let path = "/api/challenges?status=ended&limit=50";
    assert_eq!(client.get(path).ok(), with_names(&client, &answers[path]));
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

/// The answers of the program that made `tests/format-3`, and the ids of its sessions.
struct Third {
    answers: Map<String, Value>,
    facts: Value,
}

impl Third {
    fn read(name: &str) -> Third {
        let mut all: Value = serde_json::from_slice(&fs::read(third(name)).unwrap()).unwrap();
        let answers = all["answers"].take().as_object().unwrap().clone();
        Third { answers, facts: all["facts"].take() }
    }

    #[track_caller]
    fn compare(&self, client: &Client) {
        for (path, answer) in &self.answers {
            let now = client.get(path);
            match (path.as_str(), answer) {
                // The rules of the challenges have changed since, so new games count on new boards.
                ("/api/scoring/psi" | "/api/scoring/ultimatum", _) => {
                    let [board] = &*old_boards(client, path.rsplit('/').next().unwrap()) else { panic!("{path}") };
                    assert_eq!(client.get(&format!("{path}?board={board}")).ok(), *answer, "{path}");
                }
                ("/api/scoring/psi/boards", _) => {
                    let mut old = answer[0].clone();
                    old["main"] = json!(false);
                    assert!(now.json().as_array().unwrap().contains(&old), "{}", now.text());
                }
                ("/api/users/ada/scores", _) => assert_eq!(now.json(), json!({"global": null, "challenges": {}})),
                ("/api/scoring", _) => {
                    let players = |entries: &Value| -> Vec<Value> {
                        entries.as_array().unwrap().iter().map(|entry| entry["playerId"].clone()).collect()
                    };
                    let mut found = players(&now.json());
                    found.sort_by_key(Value::to_string);
                    assert_eq!(found, players(&self.answers["/api/scoring/chess"]["average"]));
                }
                (_, Value::String(text)) => assert_eq!(now.text(), text, "{path}"),
                _ => assert_eq!(now.json(), with_names(client, answer), "{path}"),
            }
        }
    }

    /// Ends a game in progress: the second player of millionaire guesses.
    #[track_caller]
    fn finish(&self, client: &Client) {
        let running = &self.facts["running"];
        let (id, invite) = (running[0].as_str().unwrap(), running[1][1].as_str().unwrap());
        client.act(id, invite, "guess", "50").ok();
        let ended = client.get("/api/challenges/millionaire?status=ended").ok();
        assert_eq!((&ended["total"], &ended["challenges"][0]["id"]), (&json!(1), &running[0]), "{ended}");
    }
}

#[test]
fn a_store_and_its_archive_log_and_tournament_are_read_as_before() {
    let folder = folder();
    let data = folder.path().join("data");
    copy_folder(&third("data"), &data);
    restore(&data, &fs::read_to_string(third("store.sql")).unwrap());
    let expected = Third::read("answers.json");
    let (server, client) = serve_with(folder.path(), &["--tournaments"]);
    expected.compare(&client);
    let export = folder.path().join("export.jsonl");
    admin(&server, &["export", "--out", export.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(export).unwrap(), fs::read_to_string(third("export.jsonl")).unwrap());
    let counted = admin(&server, &["api", "POST", "/admin/recompute"]);
    assert_eq!(serde_json::from_str::<Value>(&counted).unwrap()["wrong"], json!([]));
    admin(&server, &["api", "POST", "/admin/restore"]);
    expected.compare(&client);
    expected.finish(&client);
    // The log has grown, and still contains the log of then.
    let log = run(&["log", "check", "--log", &server.url, "--since", &third_path("log/checkpoint")]);
    assert_eq!(log.code, 0, "{log:#?}");
    let before = run(&["verify", &third_path("records"), "--log", &server.url, "--json"]);
    assert_eq!(before.code, 0, "{before:#?}");
    server.stop();
    // Leagues stay in the store, and the answer of their commands names the way to them.
    assert_eq!(league_games(&data), 10);
    let league = run(&["league", "show", "snakes", "--data", data.to_str().unwrap(), "--json"]);
    assert_eq!((league.code, league.stderr.contains("the version before shows them")), (2, true), "{league:#?}");
}

#[test]
fn a_store_in_postgres_is_read_as_before() {
    let folder = folder();
    copy_folder(&third("postgres/data"), &folder.path().join("data"));
    let postgres = Postgres::shared();
    let url = postgres.schema();
    let schema = url.rsplit("%3D").next().unwrap();
    let dump = fs::read_to_string(third("postgres/store.sql")).unwrap();
    let dump = dump.replace("CREATE SCHEMA old;\n", "").replace("old.", &format!("{schema}."));
    postgres.run_sql(&url, &dump);
    let expected = Third::read("postgres/answers.json");
    let (server, client) = serve_with(folder.path(), &["--database-url", &url]);
    expected.compare(&client);
    let export = folder.path().join("export.jsonl");
    admin(&server, &["export", "--out", export.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(export).unwrap(), fs::read_to_string(third("postgres/export.jsonl")).unwrap());
    let counted = admin(&server, &["api", "POST", "/admin/recompute"]);
    assert_eq!(serde_json::from_str::<Value>(&counted).unwrap()["wrong"], json!([]));
    expected.finish(&client);
    server.stop();
    assert_eq!(postgres.run_sql(&url, "SELECT count(*) FROM league_games"), "6\n");
}

#[test]
fn records_replays_and_tournaments_verify_as_before() {
    let log = third_path("log");
    let records = run(&["verify", &third_path("records"), "--log", &log]);
    assert_eq!(records.code, 0, "{records:#?}");
    assert!(
        records.stdout.ends_with("5 of 5 files verified: 28 events or epochs, 60 messages or states\n"),
        "{records:#?}"
    );
    // Both keys were replaced. Each side of a handover is enough to verify all.
    let published: Value = serde_json::from_slice(&fs::read(third("arena.json")).unwrap()).unwrap();
    let handovers = published["handovers"].as_array().unwrap();
    let handover = handovers.iter().find(|handover| handover["kind"] == "record").unwrap();
    for side in ["old", "new"] {
        let key = handover[side].as_str().unwrap();
        let records = run(&["verify", &third_path("records"), "--log", &log, "--key", key]);
        assert_eq!(records.code, 0, "{records:#?}");
    }
    let replays = run(&["verify", &third_path("replays"), &third_path("cup")]);
    assert_eq!(replays.code, 0, "{replays:#?}");
    assert!(replays.stdout.contains("12 of 12 files verified"), "{replays:#?}");
    for (folder, games) in [("cup", 6), ("swiss", 4)] {
        let standings = run(&["tournament", "standings", &third_path(folder), "--json"]).json();
        assert_eq!(standings["games_played"], games, "{standings}");
    }
    assert_eq!(run(&["rate", &third_path("match.json"), &third_path("cup/tournament.jsonl")]).code, 0);
}

/// Removes the rows about exposure, and the marks of lost calls.
fn remove_exposure(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| item["measure"] != "exposure");
            items.iter_mut().for_each(remove_exposure);
        }
        Value::Object(members) => {
            members.remove("has_lost");
            members.values_mut().for_each(remove_exposure);
        }
        _ => {}
    }
}

#[test]
fn an_evaluation_reports_the_same_numbers_as_before() {
    let folder = folder();
    let copy = folder.path().join("eval");
    copy_folder(&third("eval"), &copy);
    let copy = copy.to_str().unwrap();
    let mut report = run(&["eval", "report", copy, "--json"]).json();
    let breaches = report.as_object_mut().unwrap().remove("breaches");
    assert!(breaches.is_some_and(|breaches| !breaches.as_array().unwrap().is_empty()));
    let mut before: Value = serde_json::from_slice(&fs::read(third("eval-report.json")).unwrap()).unwrap();
    // Rows of differences that earlier reports didn't have.
    remove_exposure(&mut report);
    // Reports have no judges any more.
    assert_eq!(before.as_object_mut().unwrap().remove("judges"), Some(Value::Null));
    assert_eq!(report, before);
    let pages = run(&["eval", "report", copy]);
    assert_eq!(pages.code, 0, "{pages:#?}");
    let games = fs::read_dir(Path::new(copy).join("report/games")).unwrap().count();
    assert_eq!(games, 18);
    // Games by other rules aren't added to it.
    let resumed = run(&["eval", "resume", copy]);
    assert_eq!(resumed.code, 13, "{resumed:#?}");
    assert!(resumed.stderr.contains("rules of challenge psi"), "{resumed:#?}");
    let status = run(&["eval", "status", copy, "--json"]).json();
    assert_eq!((&status["finished"], &status["process"]["calls"]), (&json!(18), &json!(140)), "{status}");
    let calls = run(&["eval", "calls", copy, "--json"]);
    assert!(calls.stdout.lines().count() >= 100, "{}", calls.stdout);
}
