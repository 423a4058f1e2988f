//! `arena serve` as one of several nodes on one Postgres: refused configurations, the stop of a node, and their log.

use std::io::Write as _;

use arena_testkit::{Client, NatsServer, Postgres, data_folder, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, file, run, run_with};

/// The token that all nodes share.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The secret from which all nodes compute the keys of records.
const RECORD_SECRET: &str = "fedcba9876543210fedcba9876543210";

fn node(folder: &tempfile::TempDir, args: &[&str], environment: &[(&str, &str)]) -> Running {
    let data = folder.path().to_str().expect("a UTF-8 path");
    let args = [&["serve", "--listen", "127.0.0.1:0", "--data", data][..], args].concat();
    Running::start_with(&args, &[environment, &[("ADMIN_TOKEN", TOKEN)]].concat())
}

#[track_caller]
fn refuses(args: &[&str], environment: &[(&str, &str)], code: i32, expected: &str) {
    let folder = data_folder();
    let data = folder.path().to_str().expect("a UTF-8 path");
    let args = [&["serve", "--listen", "127.0.0.1:0", "--log", "off", "--data", data][..], args].concat();
    let run = run_with(&args, environment);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run:#?}");
    let port = Postgres::shared().port().to_string();
    assert_eq!(run.stderr.replace(&port, "PORT"), format!("{expected}\n"));
}

#[test]
fn invalid_nodes_are_refused_with_a_reason() {
    refuses(&["--shared"], &[], 2, "error: --shared and --nats-url require --database-url");
    refuses(
        &["--nats-url", "http://ada:secret@x"],
        &[],
        2,
        "error: invalid --nats-url (NATS_URL): not a URL of a NATS server, such as nats://127.0.0.1:4222 or tls://user:password@host: it doesn't begin with nats:// or tls://",
    );
    let url = Postgres::shared().schema();
    refuses(
        &["--shared", "--tournaments"],
        &[("DATABASE_URL", &url)],
        2,
        "error: tournaments.folder is missing: nodes that share a database need one folder for tournaments, which all of them can reach",
    );
    let data = data_folder();
    let _first = node(&data, &["--shared"], &[("DATABASE_URL", &url)]);
    // A node without a configured token would generate its own token.
    refuses(
        &["--shared"],
        &[("DATABASE_URL", &url)],
        6,
        "error: the nodes that share the database postgres at 127.0.0.1:PORT have a different ADMIN_TOKEN; use the same on all nodes, or stop the other nodes first",
    );
    refuses(
        &["--shared", "--auth"],
        &[("DATABASE_URL", &url), ("ADMIN_TOKEN", TOKEN)],
        6,
        "error: the nodes that share the database postgres at 127.0.0.1:PORT have a different mode (--auth); use the same on all nodes, or stop the other nodes first",
    );
}

#[test]
fn a_stopped_node_is_drained_and_the_other_node_continues() {
    let nats = NatsServer::start_with("authorization { user: ada, password: \"p@ss:w\" }");
    let url = Postgres::shared().schema();
    let (nats, folders) = (nats.url().replace("//", "//ada:p%40ss%3Aw@"), [data_folder(), data_folder()]);
    let config = file(folders[0].path(), "arena.toml", "[limits]\ndrain_ms = 4000\n");
    let environment = [("DATABASE_URL", url.as_str()), ("NATS_URL", nats.as_str())];
    let mut first = node(&folders[0], &["--config", &config], &environment);
    let second = node(&folders[1], &[], &environment);
    let clients = [first.client(), second.client()];

    let created = clients[0].post("/api/challenges/psi", &json!({})).ok();
    let (session, invites) = (&created["id"], &created["invites"]);
    for (seat, client) in clients.iter().enumerate() {
        client.post("/api/arena/join", &json!({ "invite": invites[seat] })).ok();
    }
    until("an event arrives", || clients[0].get("/ready").ok() == json!({ "status": "ready", "events": "flowing" }));
    // A subscriber on the first node receives messages sent to the second.
    let channel = session.as_str().expect("an id");
    let mut stream = clients[0].connect().expect("a connection");
    write!(stream, "GET /api/chat/ws/{channel} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n").expect("sent");
    let said = json!({ "channel": session, "from": invites[1], "content": "over here" });
    clients[1].post("/api/chat/send", &said).ok();

    first.signal(Signal::TERM);
    until("the node is unready", || clients[0].get("/ready").status != 200);
    assert_eq!(clients[0].get("/ready").refusal(), (404, "STOPPING".to_owned()));
    // The stopping node still answers for a while, for clients that haven't noticed the stop.
    let read = |client: &Client| -> Value { client.get(&format!("/api/chat/sync?channel={channel}")).ok() };
    assert_eq!(read(&clients[0]), read(&clients[1]));
    assert_eq!(read(&clients[0])["messages"][0]["content"], "over here");
    let mut output = String::new();
    std::io::Read::read_to_string(&mut stream, &mut output).expect("the stream ends");
    assert!(output.contains("over here"), "{output}");
    let retry_ms = output.lines().find_map(|line| line.strip_prefix("retry: ")?.parse::<u32>().ok());
    assert!(retry_ms.is_some_and(|ms| (500..=2030).contains(&ms)), "{output}");
    assert!(first.ended().success());
    let said = json!({ "channel": session, "from": invites[0], "content": "who is still there?" });
    clients[1].post("/api/chat/send", &said).ok();
    assert_eq!(read(&clients[1])["count"], 2);
    let metrics = clients[1].get("/metrics");
    for output in
        ["arena_nats_connected 1", "arena_events_sent_total", "arena_conflicts_total", "arena_clock_behind_seconds"]
    {
        assert!(metrics.text().contains(output), "{output}: {}", metrics.text());
    }
}

/// A node that signs records with keys of the cluster.
fn recording_node(folder: &tempfile::TempDir, url: &str) -> Running {
    node(folder, &["--shared"], &[("DATABASE_URL", url), ("RECORD_SECRET", RECORD_SECRET)])
}

/// Plays a game of psi whose first player is at the first client. Returns the session.
fn play(clients: [&Client; 2], users: [&str; 2]) -> String {
    let (session, invites) = clients[0].create("psi");
    for ((client, invite), user) in clients.iter().zip(&invites).zip(users) {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user })).ok();
    }
    for (client, invite) in clients.iter().zip(&invites) {
        client.act(&session, invite, "guess", "1").ok();
    }
    session
}

/// Returns the events of the log as `kind session`, in their order. The log must have fewer than 256 leaves.
fn leaves(client: &Client) -> Vec<String> {
    let checkpoint = client.get("/log/checkpoint");
    let size: usize = checkpoint.text().lines().nth(1).and_then(|size| size.parse().ok()).unwrap_or_default();
    let bundle = client.get(&format!("/log/tile/entries/000.p/{size}")).body;
    let (mut rest, mut events) = (&bundle[..], Vec::new());
    while let [high, low, after @ ..] = rest {
        let (leaf, others) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        let leaf: Value = serde_json::from_slice(leaf).expect("a leaf is JSON");
        events.push(format!("{} {}", leaf["leaf"].as_str().unwrap(), leaf["session"].as_str().unwrap_or("none")));
        rest = others;
    }
    assert_eq!(events.len(), size);
    events
}

/// Waits until a node's log has the ends of these sessions.
#[track_caller]
fn wait_for_ends(client: &Client, sessions: &[String]) {
    for session in sessions {
        let path = format!("/log/proof/{session}?kind=ended");
        until(&format!("the log has the end of session {session}"), || client.get(&path).status == 200);
    }
}

#[test]
fn nodes_write_one_log_although_one_is_killed_and_one_hangs() {
    let url = Postgres::shared().schema();
    let folders = [data_folder(), data_folder(), data_folder()];
    let mut first = recording_node(&folders[0], &url);
    let second = recording_node(&folders[1], &url);
    let (one, two) = (first.client(), second.client());
    // Both nodes append at the same time.
    let mut sessions: Vec<String> = Vec::new();
    for round in 0..4 {
        let users = [format!("ada{round}"), "bob".to_owned()];
        let users = [users[0].as_str(), users[1].as_str()];
        sessions.push(play([&one, &two], users));
        sessions.push(play([&two, &one], users));
    }
    wait_for_ends(&two, &sessions);
    let earlier = two.get("/log/checkpoint").text().to_owned();
    first.signal(Signal::KILL);
    first.ended();

    // The other node continues the log, also with a game of another arena.
    sessions.push(play([&two, &two], ["cyn", "dan"]));
    let home = data_folder();
    let elsewhere = Running::serve(home.path());
    let other = elsewhere.client();
    let imported = play([&other, &other], ["eve", "fay"]);
    let data = home.path().to_str().unwrap();
    let exported = run(&["admin", "export", "--url", &elsewhere.url, "--data", data]);
    assert_eq!(exported.code, 0, "{exported:#?}");
    let lines = file(home.path(), "export.jsonl", &exported.stdout);
    let taken = run_with(&["admin", "import", &lines, "--url", &second.url], &[("ARENA_ADMIN_TOKEN", TOKEN)]);
    assert_eq!(taken.code, 0, "{taken:#?}");
    sessions.push(imported);
    wait_for_ends(&two, &sessions);

    // A new node has the same log, keys and records.
    let third = recording_node(&folders[2], &url);
    let three = third.client();
    sessions.push(play([&three, &two], ["gus", "hal"]));
    wait_for_ends(&three, &sessions);
    // The database ends the connection of a node that hangs, and another node writes the log.
    second.signal(Signal::STOP);
    sessions.push(play([&three, &three], ["ina", "jon"]));
    wait_for_ends(&three, &sessions);
    second.signal(Signal::CONT);
    wait_for_ends(&two, &sessions);
    let keys = three.get("/.well-known/arena.json").text().to_owned();
    assert_eq!(keys, two.get("/.well-known/arena.json").text());
    let events = leaves(&three);
    assert_eq!(events, leaves(&two));
    for session in &sessions {
        let of: Vec<&String> = events.iter().filter(|event| event.ends_with(session.as_str())).collect();
        assert_eq!(of, [&format!("created {session}"), &format!("ended {session}")]);
    }
    let (keys, earlier) = (file(home.path(), "arena.json", &keys), file(home.path(), "earlier.txt", &earlier));
    for node in [&second, &third] {
        let args = ["log", "check", "--log", &node.url, "--since", &earlier, "--log-key", &keys];
        let checked = run(&args);
        assert_eq!(checked.code, 0, "{checked:#?}");
    }
    let records = data_folder();
    for (number, session) in sessions.iter().enumerate() {
        let chain = |client: &Client| -> Vec<String> {
            let record = client.get(&format!("/api/sessions/{session}/record"));
            let lines = record.text().lines().filter(|line| !line.starts_with("{\"leaf\":"));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(chain(&two), chain(&three));
        let record = two.get(&format!("/api/sessions/{session}/record"));
        file(records.path(), &format!("{number}.jsonl"), record.text());
    }
    let records = records.path().to_str().unwrap();
    let verified = run(&["verify", records, "--key", &keys, "--log-key", &keys, "--log", &third.url]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

#[test]
fn nodes_with_another_log_or_keys_of_records_are_refused() {
    let url = Postgres::shared().schema();
    let data = data_folder();
    let _first = recording_node(&data, &url);
    let environment = [("DATABASE_URL", url.as_str()), ("ADMIN_TOKEN", TOKEN), ("RECORD_SECRET", RECORD_SECRET)];
    let settings = data_folder();
    let refuse = |text: &str, environment: &[(&str, &str)], expected: &str| {
        let config = file(settings.path(), "arena.toml", text);
        refuses(&["--shared", "--config", &config], environment, 6, expected);
    };
    refuse(
        "",
        &environment[..2],
        "error: the nodes that share the database postgres at 127.0.0.1:PORT have a different RECORD_SECRET; use the same on all nodes, or stop the other nodes first",
    );
    refuse(
        "[records]\nlog = false\n",
        &environment,
        "error: the nodes that share the database postgres at 127.0.0.1:PORT have a different records.log; use the same on all nodes, or stop the other nodes first",
    );
    refuse(
        "[records]\norigin = \"arena.example/log\"\n",
        &environment,
        "error: the nodes that share the database postgres at 127.0.0.1:PORT have a different records.origin; use the same on all nodes, or stop the other nodes first",
    );
}

#[test]
fn a_newer_node_changes_no_tables_while_older_ones_run() {
    let postgres = Postgres::shared();
    let (url, folder) = (postgres.schema(), data_folder());
    let first = node(&folder, &["--shared"], &[("DATABASE_URL", &url)]);
    // Later migrations only add tables, which the running nodes don't need.
    postgres.run_sql(&url, "UPDATE arena_schema SET version = 14");
    refuses(
        &["--shared"],
        &[("DATABASE_URL", &url), ("ADMIN_TOKEN", TOKEN)],
        6,
        "error: the nodes that share the database postgres at 127.0.0.1:PORT have a different program version (this one is newer and would change the tables); use the same on all nodes, or stop the other nodes first",
    );
    // The older node goes on.
    first.client().create("psi");
}
