//! `arena serve` as one of several nodes on one Postgres: refused configurations, and the stop of a node.

use std::io::Write as _;
use std::time::{Duration, Instant};

use arena_testkit::{Client, NatsServer, Postgres};
use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, file, folder, run_with};

/// The token that all nodes share.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn node(folder: &tempfile::TempDir, args: &[&str], environment: &[(&str, &str)]) -> Running {
    let data = folder.path().to_str().expect("a UTF-8 path");
    let args = [&["serve", "--listen", "127.0.0.1:0", "--data", data][..], args].concat();
    Running::start_with(&args, &[environment, &[("ADMIN_TOKEN", TOKEN)]].concat())
}

#[track_caller]
fn refuses(args: &[&str], environment: &[(&str, &str)], code: i32, expected: Expect) {
    let folder = folder();
    let data = folder.path().to_str().expect("a UTF-8 path");
    let args = [&["serve", "--listen", "127.0.0.1:0", "--log", "off", "--data", data][..], args].concat();
    let run = run_with(&args, environment);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run:#?}");
    let port = Postgres::shared().port().to_string();
    expected.assert_eq(&run.stderr.replace(&port, "PORT"));
}

#[test]
fn invalid_nodes_are_refused_with_a_reason() {
    refuses(
        &["--shared"],
        &[],
        2,
        expect![[r#"
        error: --shared and --nats-url require --database-url
    "#]],
    );
    refuses(
        &["--nats-url", "http://ada:secret@x"],
        &[],
        2,
        expect![[r#"
        error: invalid --nats-url (NATS_URL): not a URL of a NATS server, such as nats://127.0.0.1:4222 or tls://user:password@host: it doesn't begin with nats:// or tls://
    "#]],
    );
    let url = Postgres::shared().schema();
    refuses(
        &["--shared", "--tournaments"],
        &[("DATABASE_URL", &url)],
        2,
        expect![[r#"
        error: tournaments are not available on nodes that share a database, since they are stored in the data folder; run them on a separate arena
    "#]],
    );
    let data = folder();
    let _first = node(&data, &["--shared"], &[("DATABASE_URL", &url)]);
    // A node without a configured token would generate its own token.
    refuses(
        &["--shared"],
        &[("DATABASE_URL", &url)],
        6,
        expect![[r#"
        error: the nodes that share the database postgres at 127.0.0.1:PORT have a different ADMIN_TOKEN; use the same on all nodes, or stop the other nodes first
    "#]],
    );
    refuses(
        &["--shared", "--auth"],
        &[("DATABASE_URL", &url), ("ADMIN_TOKEN", TOKEN)],
        6,
        expect![[r#"
        error: the nodes that share the database postgres at 127.0.0.1:PORT have a different mode (--auth); use the same on all nodes, or stop the other nodes first
    "#]],
    );
}

#[test]
fn a_stopped_node_is_drained_and_the_other_node_continues() {
    let nats = NatsServer::start_with("authorization { user: ada, password: \"p@ss:w\" }");
    let url = Postgres::shared().schema();
    let (nats, folders) = (nats.url().replace("//", "//ada:p%40ss%3Aw@"), [folder(), folder()]);
    let config = file(folders[0].path(), "arena.toml", "[limits]\ndrain_ms = 8000\n");
    let environment = [("DATABASE_URL", url.as_str()), ("NATS_URL", nats.as_str())];
    let mut first = node(&folders[0], &["--config", &config], &environment);
    let second = node(&folders[1], &[], &environment);
    let clients = [first.client(), second.client()];

    let created = clients[0].post("/api/challenges/psi", &json!({})).ok();
    let (session, invites) = (&created["id"], &created["invites"]);
    for (seat, client) in clients.iter().enumerate() {
        client.post("/api/arena/join", &json!({ "invite": invites[seat] })).ok();
    }
    let until = Instant::now() + Duration::from_secs(30);
    while clients[0].get("/ready").ok() != json!({ "status": "ready", "events": "flowing" }) {
        assert!(Instant::now() < until, "no event arrives");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A subscriber on the first node receives messages sent to the second.
    let channel = session.as_str().expect("an id");
    let mut stream = clients[0].connect().expect("a connection");
    write!(stream, "GET /api/chat/ws/{channel} HTTP/1.1\r\nHost: arena\r\nConnection: close\r\n\r\n").expect("sent");
    let said = json!({ "channel": session, "from": invites[1], "content": "over here" });
    clients[1].post("/api/chat/send", &said).ok();

    first.signal(Signal::TERM);
    let until = Instant::now() + Duration::from_secs(30);
    while clients[0].get("/ready").status != 503 {
        assert!(Instant::now() < until, "the node never becomes unready");
    }
    // The stopping node still answers for a while, for clients that haven't noticed the stop.
    let read = |client: &Client| -> Value { client.get(&format!("/api/chat/sync?channel={channel}")).ok() };
    assert_eq!(read(&clients[0]), read(&clients[1]));
    assert_eq!(read(&clients[0])["messages"][0]["content"], "over here");
    let mut output = String::new();
    std::io::Read::read_to_string(&mut stream, &mut output).expect("the stream ends");
    assert!(output.contains("over here") && output.contains("retry: 500\n\n"), "{output}");
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
