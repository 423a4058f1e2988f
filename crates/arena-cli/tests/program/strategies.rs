//! Scoring strategies in folders: their boards through kills, changes, faults and recounts, compared with the built-in
//! ones and with numbers computed from the export.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Client, TestRng};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, folder, run};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scoring")
}

fn serve(data: &Path, scoring: &Path) -> (Running, Client) {
    let [data, scoring] = [data, scoring].map(|path| path.to_str().unwrap());
    let server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--scoring", scoring]);
    let client = server.client();
    (server, client)
}

#[track_caller]
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "timeout while waiting for {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the state of a strategy's count.
fn count(client: &Client, strategy: &str) -> Value {
    let listed = client.get("/api/scoring/strategies").ok();
    let found = listed.as_array().unwrap().iter().find(|listed| listed["name"] == strategy);
    found.map_or(Value::Null, |found| found["count"].clone())
}

/// Waits until the strategy has counted all games.
#[track_caller]
fn wait_until_counted(client: &Client, strategy: &str) {
    wait_for(&format!("{strategy} in {}", client.get("/api/scoring/strategies").text()), || {
        let count = count(client, strategy);
        (count["behind"] == 0 && count["recomputingPercent"].is_null()).then_some(())
    });
}

/// Returns a board's players with games and metrics.
fn board(client: &Client, challenge: &str, strategy: &str) -> BTreeMap<String, (u64, BTreeMap<String, String>)> {
    let path = format!("/api/scoring/{challenge}?strategy={strategy}");
    let answer = client.get(&path).ok();
    let player = |entry: &Value| {
        let metric = |(key, value): (&String, &Value)| {
            (key.split_once(':').unwrap().1.to_owned(), format!("{:.9}", value.as_f64().unwrap()))
        };
        let metrics = entry["metrics"].as_object().unwrap().iter().map(metric).collect();
        (entry["playerId"].as_str().unwrap().to_owned(), (entry["gamesPlayed"].as_u64().unwrap(), metrics))
    };
    answer[strategy].as_array().unwrap().iter().map(player).collect()
}

#[track_caller]
fn assert_equal_to_built_in(client: &Client, challenge: &str) {
    for (scripted, built_in) in [("win-share", "win-rate"), ("breaches", "red-team")] {
        assert_eq!(board(client, challenge, scripted), board(client, challenge, built_in), "{challenge} {scripted}");
    }
}

/// A player's numbers in a game of `psi`.
fn set(client: &Client, session: &str, player: &str) -> Vec<u64> {
    let sync = client.get(&format!("/api/arena/sync?channel={session}&from={player}")).ok();
    let texts: Vec<&str> =
        sync["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_str()).collect();
    let text = texts.into_iter().find(|text| text.starts_with("Your private set")).unwrap();
    text.split(|char: char| !char.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Plays a game of `psi` between these users with random guesses; an empty name is an anonymous player.
fn play(client: &Client, rng: &mut TestRng, users: [&str; 2]) -> String {
    play_with(client, rng, users, &json!({}))
}

/// Plays a game like [`play`], in a session with these options.
fn play_with(client: &Client, rng: &mut TestRng, users: [&str; 2], options: &Value) -> String {
    let created = client.post("/api/challenges/psi", &json!({ "options": options })).ok();
    let session = created["id"].as_str().unwrap().to_owned();
    let invites: Vec<&str> = created["invites"].as_array().unwrap().iter().map(|code| code.as_str().unwrap()).collect();
    for (invite, user) in invites.iter().zip(users) {
        let body =
            if user.is_empty() { json!({ "invite": invite }) } else { json!({ "invite": invite, "userId": user }) };
        client.post("/api/arena/join", &body).ok();
    }
    let sets = [set(client, &session, invites[0]), set(client, &session, invites[1])];
    for seat in 0..2 {
        let (own, other) = (&sets[seat], &sets[1 - seat]);
        let mut guess: Vec<u64> = own.iter().copied().filter(|number| other.contains(number)).collect();
        match rng.below(3) {
            0 => {}
            1 => guess.extend(other.iter().find(|number| !own.contains(number))),
            _ => guess = vec![1],
        }
        let guess: Vec<String> = guess.iter().map(u64::to_string).collect();
        client.act(&session, invites[seat], "guess", &guess.join(", ")).ok();
    }
    session
}

/// Plays a game of `ultimatum`, in which the first offer is accepted.
fn bargain(client: &Client, rng: &mut TestRng, users: [&str; 2]) {
    let (session, invites) = client.seated_as("ultimatum", users);
    let own = 10 + rng.below(80);
    client.act(&session, &invites[0], "submit_offer", &format!("{own}/{}", 100 - own)).ok();
    client.act(&session, &invites[1], "accept", "yes").ok();
}

const USERS: [&str; 5] = ["ada", "bob", "eve", "dan", ""];

fn pair(rng: &mut TestRng) -> [&'static str; 2] {
    let one = rng.below(USERS.len() as u64) as usize;
    let other = (one + 1 + rng.below(USERS.len() as u64 - 1) as usize) % USERS.len();
    [USERS[one], USERS[other]]
}

/// Computes Elo ratings from the lines of an export.
fn elo(export: &str, challenge: &str) -> BTreeMap<String, (u64, String)> {
    let mut ratings: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for line in export.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let state = &line["state"];
        if line["challengeType"] != challenge || state["status"] != "ended" {
            continue;
        }
        let players: Vec<&str> =
            state["players"].as_array().unwrap().iter().map(|player| player.as_str().unwrap()).collect();
        let ids: Vec<Option<&str>> = players.iter().map(|player| state["playerIdentities"][player].as_str()).collect();
        let [Some(one), Some(other)] = ids[..] else { continue };
        let utility = |seat: usize| state["scores"][seat]["utility"].as_f64().unwrap();
        let score = if utility(0) > utility(1) {
            1.0
        } else if utility(0) < utility(1) {
            0.0
        } else {
            0.5
        };
        let rating = |id: &str| ratings.get(id).map_or(1200.0, |(_, rating)| *rating);
        let gain = 24.0 * (score - 1.0 / (1.0 + 10_f64.powf((rating(other) - rating(one)) / 400.0)));
        for (id, gain) in [(one, gain), (other, -gain)] {
            let entry = ratings.entry(id.to_owned()).or_insert((0, 1200.0));
            *entry = (entry.0 + 1, entry.1 + gain);
        }
    }
    ratings.into_iter().map(|(id, (games, rating))| (id, (games, format!("{rating:.6}")))).collect()
}

fn rated(client: &Client, challenge: &str) -> BTreeMap<String, (u64, String)> {
    let entry = |(id, (games, metrics)): (String, (u64, BTreeMap<String, String>))| {
        (id, (games, format!("{:.6}", metrics["rating"].parse::<f64>().unwrap())))
    };
    board(client, challenge, "elo").into_iter().map(entry).collect()
}

fn export(server: &Running, data: &Path) -> String {
    let exported = run(&["admin", "export", "--url", &server.url, "--data", data.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{exported:#?}");
    exported.stdout
}

#[test]
fn each_game_counts_once_through_kills() {
    let data = folder();
    let mut rng = TestRng(getrandom::u64().unwrap());
    println!("seed {}", rng.0);
    let (mut server, mut client) = serve(data.path(), &examples());
    for _ in 0..6 {
        for _ in 0..12 {
            let users = pair(&mut rng);
            play(&client, &mut rng, users);
            let users = pair(&mut rng);
            if !users.contains(&"") {
                bargain(&client, &mut rng, users);
            }
        }
        // The strategies count half a second after the games, so the kills come before, within and after that.
        thread::sleep(Duration::from_millis(rng.below(900)));
        server.signal(Signal::KILL);
        server.ended();
        (server, client) = serve(data.path(), &examples());
    }
    for strategy in ["win-share", "breaches", "elo"] {
        wait_until_counted(&client, strategy);
    }
    let export = export(&server, data.path());
    for challenge in ["psi", "ultimatum"] {
        assert_equal_to_built_in(&client, challenge);
        assert_eq!(rated(&client, challenge), elo(&export, challenge), "{challenge}");
    }
    assert!(rated(&client, "psi").len() == 4 && !rated(&client, "ultimatum").is_empty());

    // A recount gives equal numbers.
    let before = ["win-share", "breaches", "elo"].map(|strategy| board(&client, "psi", strategy));
    for strategy in ["win-share", "breaches", "elo"] {
        let arguments = ["admin", "recompute", "--strategy", strategy, "--url", &server.url];
        let counted = run(&[&arguments[..], &["--data", data.path().to_str().unwrap()]].concat());
        assert_eq!(counted.stdout, format!("{strategy}: the boards show the new numbers\n"), "{counted:#?}");
    }
    assert_eq!(["win-share", "breaches", "elo"].map(|strategy| board(&client, "psi", strategy)), before);
    server.stop();
}

#[test]
fn removed_games_and_deleted_users_leave_the_boards_as_the_built_in_ones() {
    let data = folder();
    let mut rng = TestRng(7);
    let (server, client) = serve(data.path(), &examples());
    let games: Vec<String> = (0..10)
        .map(|_| {
            let users = pair(&mut rng);
            play(&client, &mut rng, users)
        })
        .collect();
    // An unrated game, and one of a player against itself.
    play_with(&client, &mut rng, ["ada", "eve"], &json!({ "setSize": 8 }));
    play(&client, &mut rng, ["ada", "ada"]);
    wait_until_counted(&client, "win-share");
    assert_equal_to_built_in(&client, "psi");
    let admin = |path: &str| {
        let arguments = ["admin", "api", "POST", path, "--url", &server.url];
        let done = run(&[&arguments[..], &["--data", data.path().to_str().unwrap()]].concat());
        assert_eq!(done.code, 0, "{done:#?}");
    };
    admin(&format!("/admin/sessions/{}/remove", games[3]));
    for strategy in ["win-share", "breaches"] {
        wait_until_counted(&client, strategy);
    }
    assert_equal_to_built_in(&client, "psi");
    admin("/admin/users/bob/delete");
    for strategy in ["win-share", "breaches", "elo"] {
        wait_until_counted(&client, strategy);
        assert!(!board(&client, "psi", strategy).contains_key("bob"));
    }
    assert_equal_to_built_in(&client, "psi");
    server.stop();
}

/// A strategy that counts games, in a version with this code before the entry.
fn write(folder: &Path, code: &str) {
    fs::create_dir_all(folder).unwrap();
    let description = r#"{"name": "games", "title": "Games played", "challenges": ["psi"],
        "metrics": [{"key": "games:all", "label": "All", "format": "count"}, {"key": "games:twice", "label": "Twice"}]}"#;
    let script = format!(
        "export function update(result, store) {{\n\
         for (const playerId of Object.values(result.playerIdentities)) {{\n\
         const gamesPlayed = (store.get(playerId)?.gamesPlayed ?? 0) + 1;\n\
         let metrics = {{ \"games:all\": gamesPlayed, \"games:twice\": 2 * gamesPlayed }};\n\
         {code}\n\
         store.set({{ playerId, gamesPlayed, metrics }});\n}}\n}}\n"
    );
    fs::write(folder.join("scoring.json"), description).unwrap();
    fs::write(folder.join("index.js"), script).unwrap();
}

#[test]
fn a_changed_script_counts_again_and_a_faulty_one_falls_behind_alone() {
    let (data, scoring) = (folder(), folder());
    let games = scoring.path().join("games");
    write(&games, "");
    let (server, client) = serve(data.path(), scoring.path());
    let mut rng = TestRng(3);
    for _ in 0..3 {
        play(&client, &mut rng, ["ada", "bob"]);
    }
    wait_until_counted(&client, "games");
    let numbers = |all: &str, twice: &str| {
        BTreeMap::from([
            ("all".to_owned(), format!("{all}.000000000")),
            ("twice".to_owned(), format!("{twice}.000000000")),
        ])
    };
    let of_ada = || board(&client, "psi", "games")["ada"].clone();
    assert_eq!(of_ada(), (3, numbers("3", "6")));
    let strategies = client.get("/api/scoring/strategies").ok();
    let listed = strategies.as_array().unwrap().iter().find(|listed| listed["name"] == "games").unwrap();
    let expected = json!([
        { "key": "games:all", "label": "All", "format": "count", "direction": "higher" },
        { "key": "games:twice", "label": "Twice", "format": "number", "direction": "higher" },
    ]);
    assert_eq!((&listed["metrics"], &listed["challenges"]), (&expected, &json!(["psi"])));
    let page = |client: &Client| client.get("/leaderboards/psi?strategy=games").text().to_owned();
    let shown = page(&client);
    for part in ["Games played", "Twice", "<figure", "sort=games"] {
        assert!(shown.contains(part), "no {part}: {shown}");
    }
    let scores = client.get("/api/users/ada/scores").ok();
    assert_eq!(scores["challenges"]["psi"]["games"]["metrics"], json!({ "games:all": 3.0, "games:twice": 6.0 }));

    // The new version fails on each game. The old numbers stay, and other boards go on.
    write(&games, "null.x;");
    let error = wait_for("the error", || count(&client, "games")["error"].as_str().map(str::to_owned));
    assert!(error.starts_with("index.js:5: TypeError: cannot read property 'x' of null (game "), "{error}");
    play(&client, &mut rng, ["ada", "bob"]);
    assert_eq!(of_ada(), (3, numbers("3", "6")));
    assert_eq!(board(&client, "psi", "win-rate")["ada"].0, 4);
    let shown = page(&client);
    assert!(shown.contains("Recomputing, 0 %") && shown.contains("index.js:5: TypeError"), "{shown}");
    for (metric, end) in
        [("error{strategy=\"games\",error=\"index.js:5: TypeError", "1"), ("behind{strategy=\"games\"}", "4")]
    {
        wait_for(metric, || {
            let metrics = client.get("/metrics").text().to_owned();
            let is_wanted = |line: &str| {
                line.starts_with(&format!("arena_strategy_{metric}")) && line.ends_with(&format!(" {end}"))
            };
            metrics.lines().any(is_wanted).then_some(())
        });
    }
    let refused = run(&[
        "admin",
        "recompute",
        "--strategy",
        "games",
        "--url",
        &server.url,
        "--data",
        data.path().to_str().unwrap(),
    ]);
    assert_eq!(refused.code, 15, "{refused:#?}");

    // A repaired version counts all games.
    write(&games, "metrics[\"games:twice\"] += 1;");
    wait_for("the new numbers", || (of_ada() == (4, numbers("4", "9"))).then_some(()));
    wait_until_counted(&client, "games");
    wait_for("the end of the error", || {
        (!client.get("/metrics").text().contains("arena_strategy_error{")).then_some(())
    });
    fs::remove_dir_all(&games).unwrap();
    wait_for("the removal", || count(&client, "games").is_null().then_some(()));
    assert_eq!(client.get("/api/scoring/psi?strategy=games").status, 400);
    server.stop();
}

#[test]
fn settings_name_scripted_strategies_as_built_in_ones() {
    let (data, scoring) = (folder(), folder());
    for (name, challenges) in [("everywhere", "[]"), ("somewhere", "[]"), ("nowhere", "[]")] {
        let path = scoring.path().join(name);
        fs::create_dir(&path).unwrap();
        let description = json!({ "name": name, "challenges": serde_json::from_str::<Value>(challenges).unwrap(),
            "metrics": [{ "key": "x", "label": "X" }] });
        fs::write(path.join("scoring.json"), description.to_string()).unwrap();
        fs::write(path.join("index.js"), "export const update = () => {};").unwrap();
    }
    let config = data.path().join("config.json");
    let settings = json!({
        "challenges": [{ "name": "psi", "scoring": ["win-rate", "somewhere"] }, { "name": "ultimatum" }],
        "scoring": { "default": ["average", "everywhere"], "global": "global-average", "folders": [scoring.path()] },
    });
    fs::write(&config, settings.to_string()).unwrap();
    let store = data.path().join("store");
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--config", config.to_str().unwrap(), "--data", store.to_str().unwrap()];
    let server = Running::start(&arguments);
    let boards = |challenge: &str| -> BTreeSet<String> {
        let boards = server.client().get(&format!("/api/scoring/{challenge}")).ok();
        boards.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(boards("psi"), BTreeSet::from(["average", "everywhere", "somewhere", "win-rate"].map(str::to_owned)));
    assert_eq!(boards("ultimatum"), BTreeSet::from(["average", "everywhere"].map(str::to_owned)));
    server.stop();
    fs::write(&config, settings.to_string().replace("everywhere", "missing")).unwrap();
    let refused = run(&arguments);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(refused.stderr.contains("unknown strategy: missing"), "{}", refused.stderr);
}

#[test]
fn a_new_strategy_passes_its_check_and_faults_are_found() {
    let temp = folder();
    let path = temp.path().join("rating");
    let place = path.to_str().unwrap();
    let made = run(&["author", "new", place, "--scoring"]);
    assert_eq!(made.code, 0, "{made:#?}");
    let checked = run(&["author", "check", place, "--json"]).json();
    assert_eq!((&checked["strategy"], &checked["is_fine"]), (&json!("rating"), &json!(true)), "{checked}");
    assert_eq!(run(&["author", "new", place, "--scoring"]).code, 2);
    assert_eq!(run(&["author", "new", temp.path().join("average").to_str().unwrap(), "--scoring"]).code, 2);
    for example in ["win-share", "breaches", "elo"] {
        let checked = run(&["author", "check", examples().join(example).to_str().unwrap()]);
        assert_eq!(checked.code, 0, "{checked:#?}");
    }
    let games = temp.path().join("games");
    let faults = [
        (
            "metrics = { \"games:all\": NaN, \"games:twice\": 1 };",
            "✗ numbers        TypeError: the metric games:all must be a finite number, not NaN (index.js:6)",
        ),
        (
            "globalThis.n = (globalThis.n ?? 0) + 1; metrics[\"games:all\"] = globalThis.n;",
            "✗ restart        a restart between games changes the numbers",
        ),
        ("import(\"./x.js\");", "✗ "),
    ];
    for (code, expected) in faults {
        write(&games, code);
        let checked = run(&["author", "check", games.to_str().unwrap()]);
        assert_eq!(checked.code, 15, "{checked:#?}");
        assert!(checked.stdout.contains(expected), "{checked:#?}");
    }
}
