//! `arena serve` on Postgres: a game over HTTP during which both processes are killed, and refused configurations.

use std::time::{Duration, Instant};

use arena_testkit::{Answer, Client, Postgres, data_folder};
use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, arena, run_with};

fn serve(folder: &tempfile::TempDir, url: &str) -> Running {
    let data = folder.path().to_str().expect("a UTF-8 path");
    Running::start_with(&["serve", "--listen", "127.0.0.1:0", "--data", data], &[("DATABASE_URL", url)])
}

/// Repeats a request with the same key until the answer is something other than "store unavailable".
#[track_caller]
fn insist(client: &Client, path: &str, key: &str, body: &Value) -> Value {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = client.post_once(path, key, body);
        if answer.status != 503 || Instant::now() > until {
            return answer.ok();
        }
        assert_away(&answer);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Checks the answer "store unavailable": a time to retry, and no details of the database.
#[track_caller]
fn assert_away(answer: &Answer) {
    assert_eq!(answer.refusal(), (503, "STORE_UNAVAILABLE".to_owned()), "{}", answer.text());
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    assert!(!answer.text().contains("sesame") && !answer.text().contains("connect"), "{}", answer.text());
}

#[test]
fn a_game_is_played_to_its_end_although_both_processes_are_killed() {
    let mut postgres = Postgres::start();
    let (url, folder) = (postgres.schema(), data_folder());
    let mut server = serve(&folder, &url);
    let client = server.client();
    let created = insist(&client, "/api/challenges/psi", "create the first session", &json!({}));
    let session = created["id"].as_str().expect("an id").to_owned();
    let invites: Vec<String> = serde_json::from_value(created["invites"].clone()).expect("invites");
    let join = |client: &Client, seat: usize, name: &str| {
        insist(client, "/api/arena/join", name, &json!({ "invite": invites[seat], "userId": name }))
    };
    join(&client, 0, "ada");

    // While Postgres is down, writes are refused, and reads from memory still work.
    postgres.crash();
    let chat = json!({ "channel": session, "from": invites[0], "content": "hello?" });
    assert_away(&client.post_once("/api/chat/send", "hello", &chat));
    for _ in 0..50 {
        assert_away(&client.get("/api/challenges"));
    }
    assert_eq!(client.get("/health").status, 200);
    assert_eq!(client.get("/ready").status, 503);
    postgres.start_again();
    let said = insist(&client, "/api/chat/send", "hello", &chat);
    assert_eq!(said["index"], 1);
    join(&client, 1, "bob");
    assert_eq!(insist(&client, "/api/chat/send", "hello", &chat), said, "once");

    // The server is killed, and a new server uses the database.
    server.signal(Signal::KILL);
    server.ended();
    // The outage is logged once, not for each request. The writer logs the outage only if there was a write during it.
    let log = server.said();
    let outcome = |what: &str| log.matches(what).count();
    assert_eq!(
        (outcome("a connection to the database has ended"), outcome("the database is reachable again")),
        (1, 1),
        "{log}"
    );
    assert!(outcome("the database is unavailable") <= 1, "{log}");
    assert!(outcome("a request failed") <= 10, "{log}");
    let server = serve(&folder, &url);
    let client = server.client();
    assert_eq!(
        insist(&client, "/api/chat/send", "hello", &chat),
        said,
        "the write happened once, also after a restart"
    );
    let sets = [0, 1].map(|seat: usize| client.set_of(&session, &invites[seat]));
    let common: Vec<String> = sets[0].iter().filter(|n| sets[1].contains(n)).map(u64::to_string).collect();
    let guess = |seat: usize| {
        let content = common.join(", ");
        json!({ "challengeId": session, "from": invites[seat], "messageType": "guess", "content": content })
    };
    insist(&client, "/api/arena/message", "first", &guess(0));
    postgres.crash();
    assert_away(&client.post_once("/api/arena/message", "second", &guess(1)));
    postgres.start_again();
    insist(&client, "/api/arena/message", "second", &guess(1));

    let ended = client.get("/api/challenges?status=ended").ok();
    assert_eq!(ended["total"], 1);
    let score = json!({ "security": 1, "utility": 1 });
    assert_eq!(ended["challenges"][0]["state"]["scores"], json!([score, score]));
    let board = client.get("/api/scoring/psi").ok();
    assert!(board.to_string().contains("ada"), "{board}");
    let chat = client.get(&format!("/api/chat/sync?channel={session}")).ok();
    assert_eq!(chat["messages"].as_array().expect("a list").len(), 1);
    // The game is counted once.
    let counted = postgres.run_sql(&url, "SELECT n FROM totals WHERE name = 'games:psi'; SELECT count(*) FROM endings");
    assert_eq!(counted, "1\n1\n");
}

#[test]
fn a_game_goes_on_at_the_standby_although_the_old_primary_comes_back() {
    let mut primary = Postgres::start();
    let mut standby = primary.start_standby();
    let schema = primary.schema();
    let (url, folder) = (primary.with_standby(&schema, &standby), data_folder());
    let at_standby = schema.replace(&primary.port().to_string(), &standby.port().to_string());
    let mut server = serve(&folder, &url);
    let client = server.client();
    let (session, invites) = client.create("psi");
    let join = |seat: usize, name: &str| {
        insist(&client, "/api/arena/join", name, &json!({ "invite": invites[seat], "userId": name }))
    };
    let chat = |content: &str| json!({ "channel": session, "from": invites[0], "content": content });
    join(0, "ada");
    assert_eq!(insist(&client, "/api/chat/send", "before", &chat("before"))["index"], 1);

    primary.kill();
    assert_away(&client.post_once("/api/chat/send", "after", &chat("after")));
    standby.promote();
    assert_eq!(insist(&client, "/api/chat/send", "after", &chat("after"))["index"], 2);
    join(1, "ben");

    // The old primary is first in the URL and accepts writes, but it lacks all commits since the promotion.
    primary.start_again();
    standby.run_sql(
        &at_standby,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'arena'",
    );
    let guess = |seat: usize| {
        let set: Vec<String> = client.set_of(&session, &invites[seat]).iter().map(u64::to_string).collect();
        let content = set.join(", ");
        json!({ "challengeId": session, "from": invites[seat], "messageType": "guess", "content": content })
    };
    insist(&client, "/api/arena/message", "ada guesses", &guess(0));
    standby.crash();
    assert_away(&client.post_once("/api/chat/send", "between", &chat("between")));
    standby.start_again();
    insist(&client, "/api/arena/message", "ben guesses", &guess(1));
    assert_eq!(client.get("/api/challenges?status=ended").ok()["total"], 1);
    let chat = client.get(&format!("/api/chat/sync?channel={session}")).ok();
    assert_eq!(chat["messages"].as_array().expect("a list").len(), 2);
    let count = "SELECT count(*) FROM messages WHERE channel = 0; SELECT count(*) FROM endings";
    assert_eq!(standby.run_sql(&at_standby, count), "2\n1\n");
    assert_eq!(primary.run_sql(&schema, count), "1\n0\n");
    server.signal(Signal::TERM);
    server.ended();
    let said = server.said();
    let [new, old] = [&standby, &primary].map(|server| format!("127.0.0.1:{}", server.port()));
    let old = format!("the primary is {new}; {old}: it isn't the primary any more, but accepts writes");
    assert!(said.contains(&old), "{said}");
}

#[track_caller]
fn refuses(url: &str, code: i32, expected: Expect) {
    let folder = data_folder();
    let data = folder.path().to_str().expect("a UTF-8 path");
    let run = run_with(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--log", "off"], &[("DATABASE_URL", url)]);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run:#?}");
    let port = Postgres::shared().port().to_string();
    expected.assert_eq(&run.stderr.replace(&port, "PORT"));
}

#[test]
fn an_unusable_database_is_refused_in_a_sentence_without_its_password() {
    let right = Postgres::shared().schema();
    refuses(
        "mysql://ada:open%20sesame@localhost/arena",
        2,
        expect![[r#"
            error: invalid --database-url (DATABASE_URL): not a URL of a Postgres database: it doesn't begin with postgres://
        "#]],
    );
    refuses(
        &right.replace("arena:open%20sesame@", "eve:open%20sesame@"),
        6,
        expect![[r#"
            error: the database postgres at 127.0.0.1:PORT cannot be used: password authentication failed for user "eve"
        "#]],
    );
    let folder = data_folder();
    let _first = serve(&folder, &right);
    let other = arena(&["serve", "--listen", "127.0.0.1:0", "--log", "off", "--database-url", &right, "--data"])
        .arg(folder.path().join("other"))
        .output()
        .expect("the program starts");
    let said = String::from_utf8(other.stderr).expect("text");
    assert_eq!(other.status.code(), Some(6), "{said}");
    assert!(said.contains("is in use by another arena (connected from 127.0.0.1"), "{said}");
}

#[test]
fn a_running_game_goes_on_in_another_store_and_comes_back() {
    let (first, last) = (data_folder(), data_folder());
    let (from, to) = (first.path().to_str().expect("UTF-8"), last.path().join("data"));
    let (url, to) = (Postgres::shared().schema(), to.to_str().expect("UTF-8").to_owned());
    let server = Running::serve(first.path());
    let client = server.client();
    let (session, invites) = client.create("psi");
    let (_, open) = client.create("psi");
    let join = |client: &Client, invite: &str, user: &str| {
        client.post("/api/arena/join", &json!({ "invite": invite, "userId": user }))
    };
    join(&client, &invites[0], "ada").ok();
    join(&client, &invites[1], "ben").ok();
    client.chat(&session, &invites[0], "we move house").ok();
    client.act(&session, &invites[0], "guess", "1").ok();
    let admin = |server: &Running, args: &[&str]| {
        let url = format!("http://{}", server.client().address());
        let all = [&["--url", &url, "admin"], args, &["--data", from]].concat();
        run_with(&all, &[])
    };
    assert_eq!(
        admin(&server, &["api", "POST", "/admin/bans", "--body", r#"{"userId":"eve","reason":"cheats"}"#]).code,
        0
    );
    let copy = |from: &str, to: &str| run_with(&["admin", "copy-store", "--from", from, "--to", to], &[]);
    let busy = copy(from, &url);
    assert_eq!(busy.code, 6, "{busy:#?}");
    assert!(busy.stderr.contains("is in use by another arena"), "{busy:#?}");
    server.stop();

    let copied = copy(from, &url);
    assert_eq!((copied.code, copied.stderr.as_str()), (0, ""), "{copied:#?}");
    assert!(copied.stdout.starts_with("copied 2 sessions, 0 users and "), "{copied:#?}");
    let again = copy(from, &url);
    assert_eq!(again.code, 2, "{again:#?}");
    assert!(again.stderr.contains("isn't empty; copy into a new folder or a new database"), "{again:#?}");
    let nowhere = copy("nowhere", &to);
    assert_eq!((nowhere.code, nowhere.stderr.as_str()), (6, "error: nowhere has no store to copy\n"));
    assert!(!std::path::Path::new("nowhere").exists());
    let data = run_with(&["admin", "copy-store", "--from", from, "--to", &to, "--data", from], &[]);
    assert_eq!(data.code, 2, "{data:#?}");
    assert_eq!(copy("mysql://arena", &to).code, 2);

    let server = serve(&first, &url);
    let client = server.client();
    client.guess(&session, &invites[1], &client.set_of(&session, &invites[1])).ok();
    join(&client, &open[0], "ada").ok();
    assert!(admin(&server, &["api", "GET", "/admin/bans"]).stdout.contains("\"eve\""));
    let look = |server: &Running| {
        let client = server.client();
        let paths = [format!("/api/chat/sync?channel={session}"), format!("/api/arena/sync?channel={session}")];
        let mut seen: Vec<String> = paths.iter().map(|path| client.get(path).ok().to_string()).collect();
        seen.extend(["/api/scoring/psi", "/api/stats"].map(|path| client.get(path).ok().to_string()));
        // The log may not have the end of the session yet, so the line with its place isn't compared.
        let record = client.get(&format!("/api/sessions/{session}/record"));
        seen.push(record.text().lines().filter(|line| !line.starts_with(r#"{"leaf""#)).collect());
        seen.push(admin(server, &["api", "GET", "/admin/audit"]).stdout);
        seen
    };
    let seen = look(&server);
    assert!(seen[4].contains(r#""end":"completed""#), "{}", seen[4]);
    server.stop();
    let copied = copy(&url, &to);
    assert_eq!(copied.code, 0, "{copied:#?}");
    for name in ["admin.token", "record-key", "record-salts", "log-key"] {
        std::fs::copy(first.path().join(name), last.path().join("data").join(name)).expect("a file");
    }
    let server = Running::serve(&last.path().join("data"));
    assert_eq!(look(&server), seen);
    join(&server.client(), &open[1], "ben").ok();
    server.stop();
}
