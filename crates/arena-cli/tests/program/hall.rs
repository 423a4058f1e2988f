//! Tournaments on a server. Uploaded agents run in the sandbox, and a tournament has the same results after kills of
//! the server. `arena-server` contains the tests of permissions.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Answer, Client, NatsServer, Postgres, eventually, known_admin_token, snake_bot, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::matches::processes_with;
use crate::program::{Running, file, folder, run, run_with};

/// The example of a bot in one file.
const ONE_FILE: &str = include_str!("../../../../examples/agents/python/one_file.py");

/// A server that runs tournaments for holders of its token.
struct TournamentServerFixture {
    server: Running,
    client: Client,
}

impl TournamentServerFixture {
    fn start(data: &Path) -> TournamentServerFixture {
        TournamentServerFixture::start_with(data, "", &[])
    }

    /// Starts a server with more settings in `[tournaments]`. With the URL of a database in the environment, it is one of
    /// several nodes.
    fn start_with(data: &Path, more: &str, environment: &[(&str, &str)]) -> TournamentServerFixture {
        let (config, store) = settings(data, more);
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--data", &store, "--config", &config];
        args.extend(["--shared"].iter().filter(|_| !environment.is_empty()));
        let token = known_admin_token();
        let server = Running::start_with(&args, &[&[("ADMIN_TOKEN", token.reveal())], environment].concat());
        TournamentServerFixture { client: server.client(), server }
    }

    fn delete(&self, path: &str) -> Answer {
        let bearer = format!("Bearer {}", known_admin_token().reveal());
        self.client.request("DELETE", path, &[("Authorization", &bearer)], b"")
    }

    fn post(&self, path: &str, kind: &str, body: &[u8]) -> Answer {
        let bearer = format!("Bearer {}", known_admin_token().reveal());
        self.client.request("POST", path, &[("Authorization", &bearer), ("Content-Type", kind)], body)
    }

    #[track_caller]
    fn upload(&self, query: &str, body: &[u8]) -> Value {
        created(&self.post(&format!("/api/agents?{query}"), "application/octet-stream", body))
    }

    #[track_caller]
    fn create(&self, order: &Value) -> String {
        let made = created(&self.post("/api/tournaments", "application/json", order.to_string().as_bytes()));
        made["id"].as_str().unwrap().to_owned()
    }

    fn find(&self, id: &str) -> Value {
        self.client.get(&format!("/api/tournaments/{id}")).ok()
    }

    /// Returns the games of the ladder of snake so far, the first one first, when there are at least `least`.
    #[track_caller]
    fn ladder_games(&self, least: usize) -> Vec<Value> {
        let mut games = eventually(&format!("the ladder has {least} games"), || {
            let answer = self.client.get("/api/ladders/snake/games?limit=100");
            let page = if answer.status == 200 { answer.json() } else { json!({ "matches": [] }) };
            page["matches"].as_array().filter(|games| games.len() >= least).cloned()
        });
        games.reverse();
        for game in games.iter_mut().filter_map(Value::as_object_mut) {
            game.remove("replay");
            game.remove("seed");
        }
        games
    }

    #[track_caller]
    fn wait(&self, id: &str, is_such: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("tournament {id} is as expected"), || {
            Some(self.find(id)).filter(|outcome| is_such(outcome))
        })
    }

    /// Returns the results of a tournament, without times and random ids.
    fn results(&self, id: &str) -> (Value, Vec<Value>) {
        let mut standings = self.client.get(&format!("/api/tournaments/{id}/standings")).ok();
        for line in standings["standings"].as_array_mut().unwrap() {
            line.as_object_mut().unwrap().remove("agent_path");
        }
        // The nonce of each tournament is random.
        for drawn in ["seed_nonce", "seed_commitment"] {
            assert!(standings.as_object_mut().unwrap().remove(drawn).is_some(), "{drawn}");
        }
        let mut matches = self.client.get(&format!("/api/tournaments/{id}/matches?limit=100")).ok()["matches"].take();
        for game in matches.as_array_mut().unwrap() {
            for name in ["tookMs", "waitedMs", "longestStepMs"] {
                game.as_object_mut().unwrap().remove(name);
            }
        }
        (standings, matches.as_array().unwrap().clone())
    }
}

/// Writes the settings of a server. Returns the paths of the file and of the store.
fn settings(data: &Path, more: &str) -> (String, String) {
    let settings = format!("[tournaments]\nenabled = true\nconcurrency = 2\n{more}");
    (file(data, "arena.toml", &settings), data.join("store").to_str().unwrap().to_owned())
}

#[track_caller]
fn created(answer: &Answer) -> Value {
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// Returns a deterministic snake agent, whose moves depend on a salt. It writes a secret line to its log.
fn bot(salt: u32) -> String {
    snake_bot(&format!(r#"sys.stderr.write("a secret: {salt}\n")"#), salt, 0.005)
}

fn order(agents: &[Value], more: Value) -> Value {
    let ids: Vec<&Value> = agents.iter().map(|agent| &agent["id"]).collect();
    let mut order = json!({ "game": "snake", "agents": ids, "seed": 3, "options": { "n_epochs": 12 } });
    order.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    order
}

/// Waits until no process has this folder in its command line.
#[track_caller]
fn nothing_is_left(data: &Path) {
    until("all agents have ended", || processes_with(data.to_str().unwrap()).is_empty());
}

#[test]
fn uploaded_agents_play_in_the_sandbox_and_keep_their_secrets() {
    let data = folder();
    let fixture = TournamentServerFixture::start(data.path());
    let one = fixture.upload("filename=one.py", bot(1).as_bytes());
    assert_eq!((&one["name"], &one["files"], &one["kind"]), (&json!("one"), &json!(1), &json!("files")));
    // The second agent is a folder in an archive. Before it plays, it checks the existence of two folders.
    let around = format!(
        "import os, sys\nsys.stderr.write(repr([os.path.exists({:?}), os.path.exists({:?})]) + '\\n')\n{}",
        data.path().join("store"),
        data.path().join("store/agents").join(one["id"].as_str().unwrap()),
        bot(2)
    );
    let source = data.path().join("two");
    fs::create_dir(&source).unwrap();
    file(&source, "agent.py", &around);
    file(&source, "manifest.json", r#"{"name": "Two", "version": "1.2"}"#);
    let packed = Command::new("tar").args(["czf", "-", "-C", data.path().to_str().unwrap(), "two"]).output().unwrap();
    let two = fixture.upload("", &packed.stdout);
    assert_eq!((&two["name"], &two["version"], &two["files"]), (&json!("Two"), &json!("1.2"), &json!(2)));
    let refuse = |query: &str, body: &[u8], sentence: &str| {
        let answer = fixture.post(&format!("/api/agents?{query}"), "application/octet-stream", body);
        assert_eq!(answer.refusal(), (400, "INVALID_AGENT".to_owned()));
        assert_eq!(answer.json()["error"], sentence);
    };
    refuse("filename=notes.txt", b"hello", "files/notes.txt isn't executable (run chmod +x)");
    refuse(
        "filename=a.py&name=%20x",
        b"1",
        "name must be 1 to 64 characters without control characters and without spaces at its ends",
    );
    file(&source, "manifest.json", r#"{"channel": "http", "url": "http://127.0.0.1:1/"}"#);
    let packed = Command::new("tar").args(["czf", "-", "-C", data.path().to_str().unwrap(), "two"]).output().unwrap();
    refuse("", &packed.stdout, "the manifest names a remote server; add the agent by its URL instead");

    let id = fixture.create(&order(&[one.clone(), two.clone()], json!({})));
    let outcome = fixture.wait(&id, |outcome| outcome["state"] != "queued" && outcome["state"] != "running");
    assert_eq!(outcome["state"], "complete", "{outcome}");
    let (standings, matches) = fixture.results(&id);
    assert_eq!((standings["games_played"].as_u64(), matches.len()), (Some(2), 2));
    assert!(matches.iter().all(|game| game["verdicts"] == json!([null, null])), "{matches:?}");
    let seat = matches[0]["agents"].as_array().unwrap().iter().position(|name| name == "Two").unwrap();
    let path = format!("/api/tournaments/{id}/matches/1/logs/{seat}");
    let log = fixture.client.get_with(two["ownerKey"].as_str().unwrap(), &path);
    // In the sandbox, the data folder exists, but the other agent's folder doesn't.
    assert_eq!(log.text(), "[True, False]\na secret: 2\n");
    assert_eq!(fixture.client.get_with(one["ownerKey"].as_str().unwrap(), &path).status, 401);
    // The replay contains no paths of this machine.
    let replay = fixture.client.get(&format!("/api/tournaments/{id}/matches/1/replay"));
    assert!(!replay.text().contains(data.path().to_str().unwrap()) && !replay.text().contains("nobody else"));
    let kept = file(data.path(), "replay.jsonl", replay.text());
    assert_eq!(run(&["replay", "verify", &kept]).code, 0);
}

fn upload_three(fixture: &TournamentServerFixture) -> Vec<Value> {
    let upload = |salt| fixture.upload(&format!("filename=bot{salt}.py"), bot(salt).as_bytes());
    (1..=3).map(upload).collect()
}

/// The settings of a tournament between three agents, of 18 games.
fn of_three() -> Value {
    json!({ "rounds": 3, "format": "round-robin" })
}

/// Returns the results of such a tournament on a server of its own. The tournament is played once for all tests.
fn undisturbed_results() -> &'static (Value, Vec<Value>) {
    static RESULTS: OnceLock<(Value, Vec<Value>)> = OnceLock::new();
    RESULTS.get_or_init(|| {
        let data = folder();
        let fixture = TournamentServerFixture::start(data.path());
        let id = fixture.create(&order(&upload_three(&fixture), of_three()));
        fixture.wait(&id, |outcome| outcome["state"] == "complete");
        let results = fixture.results(&id);
        assert_eq!(results.1.len(), 18);
        results
    })
}

#[test]
fn a_server_that_was_killed_or_stopped_gets_the_same_standings() {
    let expected = undisturbed_results();
    let broken = folder();
    let mut fixture = TournamentServerFixture::start(broken.path());
    let agents = upload_three(&fixture);
    let id = fixture.create(&order(&agents, of_three()));
    let fourth = fixture.upload("filename=bot4.py", bot(4).as_bytes());
    let failing = fixture.create(&order(&[agents[0].clone(), fourth.clone()], json!({})));
    let last = fixture.create(&order(&agents[..2], json!({})));
    for (round, signal) in [Signal::KILL, Signal::TERM, Signal::KILL].into_iter().enumerate() {
        let games = 3 + 4 * round as u64;
        fixture.wait(&id, |outcome| outcome["gamesPlayed"].as_u64() >= Some(games));
        fixture.server.signal(signal);
        let begun = Instant::now();
        let status = fixture.server.ended();
        if signal == Signal::TERM {
            assert!(status.success(), "{status}");
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        nothing_is_left(&broken.path().join("store/agents"));
        // An agent that a later tournament needs is deleted.
        let files = broken.path().join("store/agents").join(fourth["id"].as_str().unwrap()).join("files");
        let _ = fs::remove_dir_all(files);
        fixture = TournamentServerFixture::start(broken.path());
        assert!(fixture.find(&id)["gamesPlayed"].as_u64() >= Some(games));
    }
    fixture.wait(&id, |outcome| outcome["state"] == "complete");
    assert_eq!(fixture.results(&id), *expected);
    let outcome = fixture.wait(&failing, |outcome| outcome["state"] != "queued" && outcome["state"] != "running");
    assert_eq!((&outcome["state"], &outcome["gamesPlayed"]), (&json!("failed"), &json!(0)));
    let reason = format!(
        "agent bot4: agents/{}/files/bot4.py cannot be read: No such file or directory (os error 2)",
        fourth["id"].as_str().unwrap()
    );
    assert_eq!(outcome["reason"], reason);
    fixture.wait(&last, |outcome| outcome["state"] == "complete");
}

#[test]
fn a_ladder_loses_and_repeats_no_game_when_the_server_is_killed() {
    let data = folder();
    let start = || TournamentServerFixture::start_with(data.path(), "ladder_share = 1.0\n", &[]);
    let mut fixture = start();
    for salt in [1, 2] {
        fixture.upload(&format!("game=snake&filename=bot{salt}.py"), bot(salt).as_bytes());
    }
    let mut before = Vec::new();
    for _ in 0..2 {
        let acknowledged = fixture.ladder_games(before.len() + 5);
        fixture.server.signal(Signal::KILL);
        fixture.server.ended();
        nothing_is_left(&data.path().join("store/agents"));
        fixture = start();
        before = fixture.ladder_games(acknowledged.len());
        assert!(before.starts_with(&acknowledged), "{before:?}");
    }
    check_numbers(&fixture.ladder_games(before.len() + 3));
}

/// Checks that each game of a ladder was played once.
#[track_caller]
fn check_numbers(games: &[Value]) {
    let numbers: Vec<u64> = games.iter().map(|game| game["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=games.len() as u64).collect::<Vec<_>>());
}

#[test]
fn one_node_at_a_time_plays_a_ladder() {
    let (shared, data, url) = (folder(), [folder(), folder()], Postgres::shared().schema());
    let more = format!("ladder_share = 1.0\nfolder = \"{}\"\n", shared.path().display());
    let environment = [("DATABASE_URL", url.as_str())];
    let start = |node: usize| TournamentServerFixture::start_with(data[node].path(), &more, &environment);
    let mut nodes = [start(0), start(1)];
    for salt in [1, 2] {
        nodes[1].upload(&format!("game=snake&filename=bot{salt}.py"), bot(salt).as_bytes());
    }
    let mut seen = Vec::new();
    // One of the two kills hits the node that plays.
    for killed in [0, 1] {
        let acknowledged = nodes[1 - killed].ladder_games(seen.len() + 4);
        nodes[killed].server.signal(Signal::KILL);
        nodes[killed].server.ended();
        seen = nodes[1 - killed].ladder_games(acknowledged.len() + 3);
        assert!(seen.starts_with(&acknowledged), "{seen:?}");
        nodes[killed] = start(killed);
        seen = nodes[killed].ladder_games(seen.len());
    }
    check_numbers(&seen);
}

#[test]
fn an_upload_that_is_no_bot_gets_its_repair() {
    let data = folder();
    let fixture = TournamentServerFixture::start_with(data.path(), "upload_bytes = 200000\n", &[]);
    let refuse = |name: &str, body: &[u8], status: u16, part: &str| {
        let path = format!("/api/agents?game=snake&filename={name}");
        let answer = fixture.post(&path, "application/octet-stream", body);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(answer.text().contains(part), "no {part}: {}", answer.text());
        assert!(!answer.text().contains(data.path().to_str().unwrap()), "{}", answer.text());
    };
    refuse("bot.zip", b"PK\x03\x04\x14\0", 400, "make a tar.gz");
    refuse("agent", b"#!/usr/bin/env python3\r\nprint(1)\r\n", 400, "save it with line ends LF");
    refuse("agent", b"#!/no/such/interpreter\n", 400, "needs the interpreter /no/such/interpreter");
    refuse("agent.py", b"print('hello')\n", 400, "stdout");
    refuse("agent.py", b"import colosseum\n", 400, "upload its folder with `arena agent upload`");
    let anonymous = "import sys\nfor line in sys.stdin:\n    print('{\"pong\": 1, \"actions\": []}', flush=True)\n";
    let found = "its check found a fault: the reply lacks `agent_id`; put the id";
    refuse("agent.py", anonymous.as_bytes(), 400, found);
    refuse("agent.py", &[b'#'; 300_000], 413, "upload_bytes");
    let source = data.path().join("many");
    fs::create_dir(&source).unwrap();
    file(&source, "agent.py", &bot(1));
    for number in 0..3_000 {
        file(&source, &format!("{number}.txt"), "");
    }
    let packed = Command::new("tar").args(["czf", "-", "-C", source.to_str().unwrap(), "."]).output().unwrap();
    refuse("many.tgz", &packed.stdout, 400, "2000 entries");
    let folder = source.to_str().unwrap();
    let by_program = run(&["--url", &fixture.server.url, "agent", "upload", folder, "--game", "snake"]);
    assert_ne!(by_program.code, 0);
    assert!(by_program.stderr.contains("2000 files"), "{}", by_program.stderr);

    // The page's form shows this bot.
    for game in ["chess", "food_catcher"] {
        fixture.upload(&format!("game={game}&filename=agent.py"), ONE_FILE.as_bytes());
    }

    let bot = file(data.path(), "bot.py", &bot(1));
    let token = known_admin_token();
    let args = ["--url", &fixture.server.url, "agent", "upload", &bot, "--game", "snake", "--key", token.reveal()];
    let uploaded = run(&args);
    assert_eq!(uploaded.code, 0, "{}", uploaded.stderr);
    for part in ["bot joins the ladder of snake", "key   o_", "/ladders/snake"] {
        assert!(uploaded.stdout.contains(part), "no {part}: {}", uploaded.stdout);
    }
}

#[test]
fn old_tournaments_are_removed_by_their_age() {
    let data = folder();
    let more = "[retention]\nremove_tournaments_after_days = 2\n";
    let fixture = TournamentServerFixture::start_with(data.path(), more, &[]);
    let agents = upload_three(&fixture);
    let [old, young] = [(); 2].map(|()| {
        let id = fixture.create(&order(&agents[..2], json!({ "rounds": 1 })));
        fixture.wait(&id, |outcome| outcome["state"] == "complete");
        id
    });
    fixture.server.stop();
    // Nobody waits for days: the end of one tournament is moved into the past.
    let path = data.path().join("store/tournaments").join(&old).join("facts.json");
    let mut facts: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let ended = facts["ended"]["at"].as_i64().unwrap();
    facts["ended"]["at"] = (ended - 3 * 24 * 3600 * 1000).into();
    fs::write(&path, facts.to_string()).unwrap();
    let fixture = TournamentServerFixture::start_with(data.path(), more, &[]);
    until("the old tournament is gone", || fixture.client.get(&format!("/api/tournaments/{old}")).status == 404);
    assert!(!path.parent().unwrap().exists());
    assert_eq!(fixture.find(&young)["state"], "complete");
    assert_eq!(fixture.client.get("/api/agents").ok()["total"], 3);
}

#[test]
fn workers_play_a_servers_tournaments_and_neither_is_missed_when_killed() {
    let expected = undisturbed_results();
    let (data, nats) = (folder(), NatsServer::start_guarded("tok3n"));
    let more = format!("nats_url = \"{}\"\ncross_check = 1.0\n", nats.url());
    let start = || TournamentServerFixture::start_with(data.path(), &more, &[]);
    let worker = || {
        let (url, folder) = (nats.url(), data.path().to_str().unwrap().to_owned());
        let args = ["worker", "--allow-root", "--nats-url", &url, "--concurrency", "2"];
        Running::start_saying("worker ", &args, &[("TMPDIR", &folder)])
    };
    let mut fixture = start();
    let agents = upload_three(&fixture);
    let id = fixture.create(&order(&agents, of_three()));
    fixture.wait(&id, |outcome| outcome["state"] == "running");
    // No worker is there yet.
    thread::sleep(Duration::from_millis(500));
    assert_eq!(fixture.find(&id)["gamesPlayed"], 0);
    let mut first = worker();
    fixture.wait(&id, |outcome| outcome["gamesPlayed"].as_u64() >= Some(2));
    first.signal(Signal::KILL);
    first.ended();
    fixture.server.signal(Signal::KILL);
    fixture.server.ended();
    fixture = start();
    let played = fixture.find(&id)["gamesPlayed"].as_u64();
    assert!((Some(2)..Some(18)).contains(&played), "{played:?}");
    let _workers = [worker(), worker()];
    fixture.wait(&id, |outcome| outcome["state"] == "complete");
    let results = fixture.results(&id);
    assert_eq!(results.0, expected.0);
    assert_eq!(results.1, expected.1);
    let replay = fixture.client.get(&format!("/api/tournaments/{id}/matches/1/replay"));
    assert_eq!(replay.status, 200, "{}", replay.text());
    let journal = fs::read_to_string(data.path().join("store/tournaments").join(&id).join("tournament.jsonl")).unwrap();
    assert!(journal.contains(r#"{"type":"checked""#), "{journal}");

    // Without NATS, a tournament waits. It is stopped as any other.
    drop(nats);
    let waiting = fixture.create(&order(&agents, json!({})));
    thread::sleep(Duration::from_millis(500));
    let state = fixture.find(&waiting)["state"].clone();
    assert!(["queued", "running"].map(Value::from).contains(&state), "{state}");
    let stopped = fixture.post(&format!("/api/tournaments/{waiting}/stop"), "application/json", b"{}").ok();
    assert_eq!(stopped["state"], "stopped");
}

#[test]
fn nodes_share_tournaments_and_play_on_when_one_is_killed() {
    let expected = undisturbed_results();
    let (shared, data, url) = (folder(), [folder(), folder()], Postgres::shared().schema());
    let place = shared.path().join("tournaments");
    let more = format!("folder = \"{}\"\n", place.display());
    let environment = [("DATABASE_URL", url.as_str())];
    let start = |node: usize| TournamentServerFixture::start_with(data[node].path(), &more, &environment);
    let mut nodes = [start(0), start(1)];
    let agents = upload_three(&nodes[0]);
    assert_eq!(nodes[1].client.get("/api/agents").ok()["total"], 3);
    let id = nodes[1].create(&order(&agents, of_three()));
    assert_eq!(nodes[0].find(&id)["games"], 18);

    // One of the two kills hits the node that plays.
    for killed in [0, 1] {
        let games = 3 + 5 * killed as u64;
        nodes[1 - killed].wait(&id, |outcome| outcome["gamesPlayed"].as_u64() >= Some(games));
        nodes[killed].server.signal(Signal::KILL);
        nodes[killed].server.ended();
        nodes[1 - killed].wait(&id, |outcome| outcome["gamesPlayed"].as_u64() >= Some(games + 2));
        nodes[killed] = start(killed);
        assert!(nodes[killed].find(&id)["gamesPlayed"].as_u64() >= Some(games + 2));
    }
    for node in &nodes {
        node.wait(&id, |outcome| outcome["state"] == "complete");
        assert_eq!(node.results(&id), *expected);
    }

    // One node plays the first of these, and any node stops both.
    let long = || nodes[0].create(&order(&agents[..2], json!({ "rounds": 500 })));
    let both = [long(), long()];
    for node in &nodes {
        node.wait(&both[0], |outcome| outcome["state"] == "running");
        assert_eq!(node.find(&both[1])["state"], "queued");
    }
    let in_use = nodes[1].delete(&format!("/api/agents/{}", agents[0]["id"].as_str().unwrap()));
    assert_eq!(in_use.refusal(), (409, "AGENT_IN_USE".to_owned()));
    for id in &both {
        let stopped = nodes[1].post(&format!("/api/tournaments/{id}/stop"), "application/json", b"{}").ok();
        assert_eq!(stopped["state"], "stopped", "{stopped}");
        assert_eq!(nodes[0].find(id)["state"], "stopped");
        assert_eq!(nodes[0].delete(&format!("/api/tournaments/{id}")).status, 200);
        assert_eq!(nodes[1].client.get(&format!("/api/tournaments/{id}")).status, 404);
    }
    let agent = format!("/api/agents/{}", agents[0]["id"].as_str().unwrap());
    assert_eq!(nodes[1].delete(&agent).status, 200);
    assert_eq!(nodes[0].client.get(&agent).status, 404);
    drop(nodes);

    // Journals have paths, so all nodes must see the folder at one path.
    let elsewhere = shared.path().join("elsewhere");
    fs::rename(&place, &elsewhere).unwrap();
    let (config, store) = settings(data[0].path(), &format!("folder = \"{}\"\n", elsewhere.display()));
    let args = ["serve", "--shared", "--listen", "127.0.0.1:0", "--data", &store, "--config", &config];
    let run = run_with(&args, &[("ADMIN_TOKEN", known_admin_token().reveal()), environment[0]]);
    assert_ne!(run.code, 0);
    let reason =
        format!("the other nodes see this folder as {}, and this node as {}", place.display(), elsewhere.display());
    assert!(run.stderr.contains(&reason), "{}", run.stderr);
}
