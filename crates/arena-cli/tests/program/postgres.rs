//! `arena serve` on Postgres: a game over HTTP during which both processes are killed, and refused configurations.

use std::time::{Duration, Instant};

use arena_testkit::{Answer, Client, Postgres};
use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, arena, folder, run_with};

fn serve(folder: &tempfile::TempDir, url: &str) -> Running {
    let data = folder.path().to_str().expect("a UTF-8 path");
    Running::start_with(&["serve", "--listen", "127.0.0.1:0", "--data", data], &[("DATABASE_URL", url)])
}

fn set_of(client: &Client, session: &str, invite: &str) -> Vec<u64> {
    let log = client.get(&format!("/api/arena/sync?channel={session}&from={invite}")).ok();
    let messages = log["messages"].as_array().expect("a list").iter();
    let mut outcome = messages.filter_map(|message| message["content"].as_str()?.strip_prefix("Your private set is: "));
    let digits = outcome.next().expect("a set").split(|char: char| !char.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
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
    let (url, folder) = (postgres.schema(), folder());
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
    let sets = [0, 1].map(|seat: usize| set_of(&client, &session, &invites[seat]));
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

#[track_caller]
fn refuses(url: &str, code: i32, expected: Expect) {
    let folder = folder();
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
    let folder = folder();
    let _first = serve(&folder, &right);
    let other = arena(&["serve", "--listen", "127.0.0.1:0", "--log", "off", "--database-url", &right, "--data"])
        .arg(folder.path().join("other"))
        .output()
        .expect("the program starts");
    let said = String::from_utf8(other.stderr).expect("text");
    assert_eq!(other.status.code(), Some(6), "{said}");
    assert!(said.contains("is in use by another arena (connected from 127.0.0.1"), "{said}");
}
