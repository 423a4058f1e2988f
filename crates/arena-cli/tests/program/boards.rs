//! Leaderboards from records: `arena board rebuild` has the same bytes as the answers of the server that played the
//! games.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use arena_testkit::{Client, data_folder, until};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::program::{Run, Running, file, run};

/// The settings of the server: an abandoned game ends soon.
const SETTINGS: &str = "[sessions]\nstale_active_s = 5\n";

/// The output of `arena board rebuild --json`, with the parts that a server has too as texts.
#[derive(Deserialize)]
struct Rebuilt<'r> {
    #[serde(borrow)]
    global: &'r RawValue,
    #[serde(borrow)]
    challenges: BTreeMap<String, &'r RawValue>,
    #[serde(borrow)]
    others: BTreeMap<String, BTreeMap<String, &'r RawValue>>,
    #[serde(borrow)]
    stats: &'r RawValue,
    games: u64,
    excluded: Vec<Value>,
    reasons: BTreeMap<String, u64>,
    partial: BTreeMap<String, u64>,
    unsealed: u64,
    missing: Vec<String>,
    withheld: u64,
    log: Value,
}

/// A server, and a folder with the records of its ended games.
struct BoardFixture {
    server: Running,
    client: Client,
    data: tempfile::TempDir,
    home: tempfile::TempDir,
}

impl BoardFixture {
    fn open() -> BoardFixture {
        let (data, home) = (data_folder(), data_folder());
        let settings = file(home.path(), "arena.toml", SETTINGS);
        let store = data.path().to_str().unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--data", store, "--config", &settings];
        let server = Running::start(&args);
        fs::create_dir(home.path().join("records")).unwrap();
        BoardFixture { client: server.client(), server, data, home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    #[track_caller]
    fn admin(&self, args: &[&str]) -> String {
        let data = self.data.path().to_str().unwrap();
        let done = run(&[&["admin"], args, &["--url", &self.server.url, "--data", data]].concat());
        assert_eq!(done.code, 0, "{args:?}: {done:#?}");
        done.stdout
    }

    /// Creates a game of psi whose seats these users take. An empty name is a player without a user id.
    #[track_caller]
    fn begin(&self, request: &Value, users: [&str; 2]) -> (String, Vec<String>) {
        let created = self.client.post("/api/challenges/psi", request).ok();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let invites: Vec<String> = created["invites"].as_array().unwrap().iter().map(text).collect();
        for (invite, user) in invites.iter().zip(users) {
            let join =
                if user.is_empty() { json!({ "invite": invite }) } else { json!({ "invite": invite, "userId": user }) };
            self.client.post("/api/arena/join", &join).ok();
        }
        (text(&created["id"]), invites)
    }

    /// Ends a game: both players guess the same number.
    #[track_caller]
    fn end(&self, (session, invites): &(String, Vec<String>), guess: &str) {
        for invite in invites {
            self.client.act(session, invite, "guess", guess).ok();
        }
    }

    /// Plays a game. Returns its id.
    #[track_caller]
    fn play(&self, users: [&str; 2]) -> String {
        let game = self.begin(&json!({}), users);
        self.end(&game, "1");
        game.0
    }

    /// Returns the number of leaves that the checkpoint covers.
    fn log_size(&self) -> u64 {
        let checkpoint = self.client.get("/log/checkpoint");
        checkpoint.text().lines().nth(1).and_then(|size| size.parse().ok()).unwrap_or_default()
    }

    #[track_caller]
    fn wait_for_size(&self, size: u64) {
        until(&format!("the log has {size} leaves"), || self.log_size() >= size);
        assert_eq!(self.log_size(), size);
    }

    #[track_caller]
    fn wait_for_leaf(&self, session: &str, kind: &str) {
        until(&format!("the log has the leaf {kind} of session {session}"), || {
            self.client.get(&format!("/log/proof/{session}?kind={kind}")).status == 200
        });
    }

    /// Gets the record of an ended session into the folder, after its end is in the log.
    #[track_caller]
    fn keep(&self, session: &str) {
        self.wait_for_leaf(session, "ended");
        let out = self.path(&format!("records/{session}.jsonl"));
        let out = out.to_str().unwrap();
        let got = run(&["record", "get", session, "--out", out, "--url", &self.server.url]);
        assert_eq!(got.code, 0, "{got:#?}");
    }

    fn rebuild(&self, more: &[&str]) -> Run {
        let records = self.path("records");
        let args = ["board", "rebuild", "--records", records.to_str().unwrap(), "--log", &self.server.url];
        run(&[&args[..], more].concat())
    }

    /// Compares all leaderboards, and the numbers of games by reason, with those of the server. Returns the number of
    /// games that count, and the reasons for those that don't, with their numbers.
    #[track_caller]
    fn check(&self, more: &[&str]) -> (u64, BTreeMap<String, u64>) {
        let run = self.rebuild(&[more, &["--json"]].concat());
        assert_eq!(run.code, 0, "{run:#?}");
        let rebuilt: Rebuilt<'_> = serde_json::from_str(run.stdout.trim()).unwrap();
        let text = |path: &str| {
            let answer = self.client.get(path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            answer.text().to_owned()
        };
        assert_eq!(rebuilt.global.get(), text("/api/scoring"));
        assert_eq!(rebuilt.stats.get(), text("/api/stats"));
        let stats: Value = serde_json::from_str(rebuilt.stats.get()).unwrap();
        let hosted: Vec<&String> = stats["challenges"].as_object().unwrap().keys().collect();
        assert_eq!(rebuilt.challenges.keys().collect::<Vec<_>>(), hosted);
        for (name, boards) in &rebuilt.challenges {
            assert_eq!(boards.get(), text(&format!("/api/scoring/{name}")), "{name}");
        }
        for (name, others) in &rebuilt.others {
            for (id, boards) in others {
                assert_eq!(boards.get(), text(&format!("/api/scoring/{name}?board={id}")), "{name} {id}");
            }
        }
        assert_eq!((rebuilt.missing.len(), rebuilt.withheld), (0, 0), "{:?}", rebuilt.missing);
        let keys: Value = serde_json::from_str(&text("/.well-known/arena.json")).unwrap();
        assert_eq!((&rebuilt.log["origin"], &rebuilt.log["size"]), (&keys["log"]["origin"], &keys["log"]["size"]));
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        for game in &rebuilt.excluded {
            *reasons.entry(game["reason"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        // A removed game has no record, but the folder may have a former one.
        for (reason, games) in reasons {
            assert!(rebuilt.reasons.get(&reason) >= Some(&games), "{reason} ×{games}: {:?}", rebuilt.reasons);
        }
        let page = text("/leaderboards/psi");
        let logged = page.split_once("<div id=\"logged\">").and_then(|(_, rest)| rest.split_once("</div>"));
        let logged = logged.expect("the part about the log").0;
        let excluded: u64 = rebuilt.reasons.values().sum();
        assert!(logged.contains(&format!(": {} counted, {excluded} excluded.", rebuilt.games)), "{logged}");
        for (reason, games) in &rebuilt.reasons {
            assert!(logged.contains(&format!("<li>{reason} ×{games}")), "{reason} ×{games}: {logged}");
        }
        assert_eq!(logged.matches("<li>").count(), rebuilt.reasons.len(), "{logged}");
        let size = &rebuilt.log["size"];
        assert!(logged.contains(&format!("</a> of size {size} with the hash <code>")), "{logged}");
        assert_eq!(rebuilt.unsealed, 0);
        assert!(rebuilt.partial.values().all(|games| *games <= rebuilt.games), "{:?}", rebuilt.partial);
        (rebuilt.games, rebuilt.reasons)
    }

    /// Returns a line for an import: an ended game of psi between these users, with these utilities.
    fn line(&self, number: u64, users: [&str; 2], utilities: [f64; 2], change: &Value) -> String {
        let boards = self.client.get("/api/scoring/psi/boards").ok();
        let main = &boards[0];
        assert_eq!(main["main"], true, "{boards}");
        let code = |part: u64| format!("{part:08x}-0000-7000-8000-{number:012x}");
        let invites = [1, 2].map(|part| format!("inv_{}", code(part)));
        let mut line = json!({
            "id": code(0),
            // The last imported game is the oldest one.
            "createdAt": 1_700_000_000_000_u64 - number * 1000,
            "challengeType": "psi",
            "invites": invites,
            "state": {
                "status": "ended",
                "completedAt": 1_700_000_000_500_u64 - number * 1000,
                "scores": utilities.map(|utility| json!({ "security": 1.0 - utility / 3.0, "utility": utility })),
                "players": invites,
                "playerIdentities": { &invites[0]: users[0], &invites[1]: users[1] },
                "attributions": [{ "from": invites[0], "to": invites[1], "type": "security_breach" }],
            },
            "options": main["options"],
            "rulesVersion": main["rulesVersion"],
            "promptSha256": main["promptSha256"],
        });
        for (field, value) in change.as_object().unwrap() {
            line[field] = value.clone();
        }
        format!("{line}\n")
    }

    /// Imports lines and keeps the records of their sessions.
    #[track_caller]
    fn import(&self, lines: &[String]) {
        let path = file(self.home.path(), "import.jsonl", &lines.concat());
        let said = self.admin(&["import", &path]);
        assert!(said.contains(&format!(" {} session", lines.len())) && said.contains("skipped: 0 lines"), "{said}");
        for line in lines {
            let line: Value = serde_json::from_str(line).unwrap();
            self.keep(line["id"].as_str().unwrap());
        }
    }
}

fn reasons(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(reason, games)| ((*reason).to_owned(), *games)).collect()
}

#[test]
fn leaderboards_from_records_equal_those_of_the_server() {
    let fixture = BoardFixture::open();
    // Users with equal scores are in the order of the ends of their first games, not of their joins.
    let first = fixture.begin(&json!({}), ["ada", "bob"]);
    let second = fixture.play(["cyn", "dan"]);
    fixture.end(&first, "1");
    let nameless = fixture.play(["eve", ""]);
    // These two games end by themselves, so they begin early. A banned user can't end the second one.
    let idle = fixture.begin(&json!({}), ["ida", "bob"]);
    let stopped = fixture.begin(&json!({}), ["eve", "ada"]);
    fixture.admin(&["api", "POST", "/admin/bans", "--body", r#"{"userId":"eve","reason":"noise"}"#]);
    fixture.client.act(&stopped.0, &stopped.1[1], "guess", "1").ok();
    let alone = fixture.play(["ada", "ada"]);
    let unrated = fixture.begin(&json!({ "options": { "setSize": 5 } }), ["fox", "ada"]);
    fixture.end(&unrated, "1");
    let unlisted = fixture.begin(&json!({ "unlisted": true }), ["gus", "hal"]);
    fixture.end(&unlisted, "1");
    for session in [&first.0, &second, &nameless, &alone, &unrated.0, &idle.0, &stopped.0] {
        fixture.keep(session);
    }
    // The reasons that neither a creation nor an end shows have leaves of their own, and a lifted ban changes none.
    for session in [&alone, &stopped.0] {
        fixture.wait_for_leaf(session, "excluded");
    }
    fixture.admin(&["api", "POST", "/admin/bans/lift", "--body", r#"{"userId":"eve"}"#]);
    let mut expected = reasons(&[("self-play", 1), ("abandoned", 1), ("ban", 1), ("unrated", 1)]);
    assert_eq!(fixture.check(&[]), (3, expected.clone()));
    for (session, has_leaf) in [(&alone, true), (&stopped.0, true), (&idle.0, false), (&unrated.0, false)] {
        let status = fixture.client.get(&format!("/log/proof/{session}?kind=excluded")).status;
        assert_eq!(status == 200, has_leaf, "{session}: {status}");
    }

    // Imported games end in the order of the import. Their sums depend on the order.
    let import = |number, users, utilities| fixture.line(number, users, utilities, &json!({}));
    fixture.import(&[
        import(1, ["jan", "ada"], [0.1, 0.7]),
        import(2, ["ada", "jan"], [0.2, 1e-9]),
        import(3, ["cyn", "ada"], [0.3, 1e9]),
        import(4, ["kim", "ada"], [0.6, -0.4]),
        import(5, ["ada", "kim"], [1.0 / 3.0, 0.1]),
    ]);
    assert_eq!(fixture.check(&[]), (8, expected.clone()));
    let old = json!({ "rulesVersion": null, "promptSha256": null });
    fixture.import(&[
        fixture.line(6, ["lea", "ada"], [0.5, 0.5], &old),
        fixture.line(7, ["lea", "mia"], [0.25, 0.5], &json!({ "promptSha256": "0".repeat(64) })),
    ]);
    expected.insert("unknown version of the rules or instructions".to_owned(), 1);
    assert_eq!(fixture.check(&[]), (9, expected.clone()));

    // A removed game, and one that is imported again after its removal. The folder keeps the former records.
    let export = fixture.path("export.jsonl");
    let export = export.to_str().unwrap();
    fixture.admin(&["export", "--out", export]);
    fixture.admin(&["api", "POST", &format!("/admin/sessions/{nameless}/remove")]);
    fixture.wait_for_leaf(&nameless, "removed");
    expected.insert("removed: administrator".to_owned(), 1);
    assert_eq!(fixture.check(&[]), (8, expected.clone()));
    let size = fixture.log_size();
    fixture.admin(&["api", "POST", &format!("/admin/sessions/{second}/remove")]);
    let kept = fixture.path(&format!("records/{second}.jsonl"));
    fs::rename(&kept, fixture.path("records/former.jsonl")).unwrap();
    let lines: String = fs::read_to_string(export)
        .unwrap()
        .lines()
        .filter(|line| line.contains(&second))
        .map(|line| format!("{line}\n"))
        .collect();
    let again = file(fixture.home.path(), "again.jsonl", &lines);
    let said = fixture.admin(&["import", &again]);
    assert!(said.contains(" 1 session"), "{said}");
    // The removal, and the new creation and end.
    fixture.wait_for_size(size + 3);
    fixture.keep(&second);
    *expected.entry("removed: administrator".to_owned()).or_default() += 1;
    assert_eq!(fixture.check(&[]), (8, expected.clone()));
    let checked = run(&["log", "check", "--log", &fixture.server.url, "--json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");

    // Users who were known before their first game, names, and benchmark models: the file of users has them.
    let update = |user: &str, name: &str| {
        run(&["users", "update", "--username", name, "--user-id", user, "--url", &fixture.server.url]).json()
    };
    update("zoe", "Zoe “Z”");
    fixture.admin(&["api", "POST", "/admin/users/yan/benchmark", "--body", r#"{"isBenchmark":true}"#]);
    let last = fixture.play(["yan", "zoe"]);
    fixture.keep(&last);
    let users = file(fixture.home.path(), "users.json", fixture.client.get("/api/users").text());
    assert_eq!(fixture.check(&["--users", &users]), (9, expected.clone()));
    // Without the file, their order on the server is unknown.
    let plain = fixture.rebuild(&["--json"]).json();
    assert_ne!(plain["global"], fixture.client.get("/api/scoring").ok());

    // The records of a deleted user's games withhold its id. Their hashes are the same, so the log still has them.
    let said = fixture.admin(&["api", "POST", "/admin/users/ada/delete"]);
    assert!(said.contains("\"deleted\":true"), "{said}");
    for entry in fs::read_dir(fixture.path("records")).unwrap() {
        let path = entry.unwrap().path();
        let former = fs::read_to_string(&path).unwrap();
        let session = former.split("\"session\":\"").nth(1).unwrap().split('"').next().unwrap();
        let current = fixture.client.get(&format!("/api/sessions/{session}/record"));
        // Sessions that were removed since have no record, or another one if they were imported again.
        if current.status == 404 || path.ends_with("former.jsonl") {
            continue;
        }
        let chain = |record: &str| -> Vec<String> {
            let lines = record.lines().filter(|line| !line.starts_with("{\"open\":\"user/"));
            lines.filter(|line| !line.starts_with("{\"leaf\":")).map(str::to_owned).collect()
        };
        assert_eq!(chain(current.text()), chain(&former));
        assert!(!current.text().contains("\"content\":\"ada\""));
        fs::write(&path, current.text()).unwrap();
    }
    let records = fixture.path("records");
    let (records, keys) = (records.to_str().unwrap(), fixture.client.get("/.well-known/arena.json"));
    let keys = file(fixture.home.path(), "arena.json", keys.text());
    let verified = run(&["verify", records, "--key", &keys, "--log-key", &keys, "--log", &fixture.server.url]);
    assert_eq!(verified.code, 0, "{verified:#?}");
    let users = file(fixture.home.path(), "users.json", fixture.client.get("/api/users").text());
    let rebuilt = fixture.rebuild(&["--users", &users, "--json"]).json();
    let boards = |path: &str| fixture.client.get(path).ok();
    assert_eq!(rebuilt["global"], boards("/api/scoring"));
    assert_eq!(rebuilt["challenges"]["psi"], boards("/api/scoring/psi"));
    assert_eq!(rebuilt["stats"], boards("/api/stats"));
    assert!(rebuilt["withheld"].as_u64() > Some(0), "{rebuilt}");
    assert!(!rebuilt["challenges"].to_string().contains("\"ada\""));
}

#[test]
fn records_that_contradict_the_log_are_refused() {
    let fixture = BoardFixture::open();
    let elsewhere = BoardFixture::open();
    let session = fixture.play(["ada", "bob"]);
    fixture.keep(&session);
    // Another arena imports the game. Its log has another hash of the record.
    let export = fixture.path("export.jsonl");
    let export = export.to_str().unwrap();
    fixture.admin(&["export", "--out", export]);
    elsewhere.admin(&["import", export]);
    elsewhere.wait_for_leaf(&session, "ended");
    let records = fixture.path("records");
    let records = records.to_str().unwrap();
    let refused = run(&["board", "rebuild", "--records", records, "--log", &elsewhere.server.url]);
    assert_eq!(refused.code, 11, "{refused:#?}");
    assert!(refused.stderr.contains("isn't the one in the log"), "{}", refused.stderr);
    // A record without its seal counts only with a note, because no log confirms it.
    let path = fixture.path(&format!("records/{session}.jsonl"));
    let record = fs::read_to_string(&path).unwrap();
    let unsealed: String =
        record.lines().filter(|line| !line.starts_with("{\"seal\":")).map(|line| format!("{line}\n")).collect();
    fs::write(&path, unsealed).unwrap();
    let alone = run(&["board", "rebuild", "--records", records, "--json"]);
    assert_eq!((&alone.json()["games"], &alone.json()["unsealed"]), (&json!(1), &json!(1)), "{alone:#?}");
    assert!(alone.stderr.contains("1 record without a signature, not checked against a log"), "{}", alone.stderr);
    let logged = fixture.rebuild(&["--json"]);
    assert_eq!((&logged.json()["games"], &logged.json()["unsealed"]), (&json!(1), &json!(0)), "{logged:#?}");
    assert!(!logged.stderr.contains("without a signature"), "{}", logged.stderr);
    fs::write(&path, record).unwrap();
    // A game without its record is listed.
    fs::remove_file(fixture.path(&format!("records/{session}.jsonl"))).unwrap();
    let rebuilt = fixture.rebuild(&["--json"]).json();
    assert_eq!((&rebuilt["games"], &rebuilt["missing"]), (&json!(0), &json!([session])));
}
