//! Faults of a server's environment: a full or almost full disk, unusable data folders, and stops and kills of the
//! process. The module `crash` contains kills under load.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::{Answer, Client, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, eventually, file, folder, run};

/// Creates a session in which two players have joined.
fn active_session(client: &Client) -> (String, [String; 2]) {
    let (session, invites) = client.seated("psi");
    (session, invites.try_into().expect("psi is for two"))
}

/// Returns the answers of all lists, of the public channel, and of both channels of every session, in the public view
/// and in each player's view. Each entry is a path and the body.
fn everything(client: &Client, invites: &[&str]) -> Vec<(String, String)> {
    let sessions = client.get("/api/challenges").ok();
    let mut paths = vec!["/api/challenges/psi?limit=100".to_owned(), "/api/chat/sync?channel=invites".to_owned()];
    paths.extend(["open", "active", "ended"].map(|status| format!("/api/challenges?status={status}")));
    for session in sessions["challenges"].as_array().expect("a list") {
        let id = session["id"].as_str().expect("an id");
        for from in ["viewer"].iter().chain(invites) {
            paths.extend(["arena", "chat"].map(|route| format!("/api/{route}/sync?channel={id}&from={from}")));
        }
    }
    paths
        .into_iter()
        .map(|path| {
            let answer = client.get(&path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let body = answer.text().to_owned();
            (path, body)
        })
        .collect()
}

#[track_caller]
fn stop(mut server: Running) {
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0), "{}", server.said());
}

// ---- a full disk ----

/// A full disk, simulated by a limit on the size of the server's files. As on a full disk, the system refuses a write
/// at any point, but with the error `EFBIG`.
#[cfg(target_os = "linux")]
mod full_disk {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

    use super::*;

    /// The numbers of bytes by which the largest file may still grow. With the larger numbers, some writes succeed. The
    /// failing write is truncated at different positions.
    const ROOM: [u64; 9] = [0, 1, 24, 25, 4_119, 4_120, 8_240, 12_000, 50_000];

    /// The size of a page in the database's log with its header, which is the smallest size of a commit.
    const FRAME: u64 = 24 + 4096;

    fn limit_files(folder: &Path, bytes: Option<u64>) {
        // The lock file contains the server's process id.
        let holder = fs::read_to_string(folder.join("arena.lock")).expect("a lock");
        let pid = Pid::from_raw(holder.trim().parse().expect("a process id")).expect("a process id");
        let maximum = getrlimit(Resource::Fsize).maximum;
        prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum })
            .expect("the server is a child of this process");
    }

    fn largest_file(folder: &Path) -> u64 {
        let files = fs::read_dir(folder).expect("a folder");
        files.map(|file| file.expect("an entry").metadata().expect("a size").len()).max().expect("a file")
    }

    /// A server with a full disk and two sessions.
    struct Filled {
        folder: tempfile::TempDir,
        server: Running,
        client: Client,
        /// A session in which both players have joined.
        session: String,
        invites: [String; 2],
        /// An invite of the other session, in which no player has joined.
        unused: String,
        said: Vec<String>,
    }

    impl Filled {
        /// Limits the growth of files to `room` bytes, and writes until a write is refused. Checks that the refused
        /// write has no effect.
        fn up_to(room: u64) -> Filled {
            let folder = folder();
            let server = Running::serve(folder.path());
            let client = server.client();
            let (session, invites) = active_session(&client);
            let unused = client.create("psi").1.remove(0);
            let mut filled = Filled { folder, server, client, session, invites, unused, said: Vec::new() };
            limit_files(filled.folder.path(), Some(largest_file(filled.folder.path()) + room));
            loop {
                let (before, end) = (filled.everything(&client), largest_file(filled.folder.path()));
                let content = format!("{} {}", filled.said.len(), "x".repeat(1_000 * filled.said.len()));
                let answer = client.chat(&filled.session, &filled.invites[0], &content);
                if answer.status != 200 {
                    assert_refused(&answer);
                    assert_eq!(
                        filled.everything(&client),
                        before,
                        "a refused write had an effect, with room for {room}"
                    );
                    // A smaller write might still fit, so the limit is lowered until no write fits.
                    limit_files(filled.folder.path(), Some(end + room % FRAME));
                    return filled;
                }
                assert_eq!(answer.json()["index"], filled.said.len() + 1);
                filled.said.push(content);
                assert!(filled.said.len() < 100, "{room} bytes don't fill up");
            }
        }

        /// Returns every kind of write: its name, path and body.
        fn writes(&self) -> [(&'static str, &'static str, Value); 5] {
            let (session, from) = (&self.session, &self.invites[0]);
            let act = json!({ "challengeId": session, "from": from, "messageType": "guess", "content": "1" });
            [
                ("create", "/api/challenges/psi", json!({})),
                ("join", "/api/arena/join", json!({ "invite": self.unused })),
                ("announce", "/api/invites", json!({ "inviteId": self.unused })),
                ("chat", "/api/chat/send", json!({ "channel": session, "from": from, "content": "too much" })),
                ("act", "/api/arena/message", act),
            ]
        }

        fn everything(&self, client: &Client) -> Vec<(String, String)> {
            everything(client, &self.invites.each_ref().map(String::as_str))
        }

        #[track_caller]
        fn assert_chat(&self, client: &Client, also: &[&str]) {
            let chat = client.get(&format!("/api/chat/sync?channel={}", self.session)).ok();
            let place = |message: &Value| (message["index"].clone(), message["content"].clone());
            let found: Vec<_> = chat["messages"].as_array().expect("a list").iter().map(place).collect();
            let said = self.said.iter().map(String::as_str).chain(also.iter().copied());
            let expected: Vec<_> = (1..).zip(said).map(|(index, content)| (json!(index), json!(content))).collect();
            assert_eq!(found, expected);
        }
    }

    #[track_caller]
    fn assert_refused(answer: &Answer) {
        assert_eq!(answer.refusal(), (503, "STORE_UNAVAILABLE".to_owned()), "{}", answer.text());
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }

    /// Returns an `Idempotency-Key` that is long enough for every write.
    fn key_of(kind: &str) -> String {
        format!("the key of the write {kind}")
    }

    #[test]
    fn full_disk_refuses_writes_whole_and_leaves_reads_alone() {
        for room in ROOM {
            let filled = Filled::up_to(room);
            let before = filled.everything(&filled.client);
            for (kind, path, body) in filled.writes() {
                assert_refused(&filled.client.post(path, &body));
                assert_refused(&filled.client.post_once(path, &key_of(kind), &body));
                assert_eq!(filled.everything(&filled.client), before, "{kind} had an effect, with room for {room}");
            }
            filled.assert_chat(&filled.client, &[]);
            assert_eq!(filled.client.get("/health").status, 200);
            // For a second after a successful write, the server reports that it is ready without another test write.
            if room == 0 {
                until("the server isn't ready", || filled.client.get("/ready").status == 503);
            }
        }
    }

    #[test]
    fn a_server_that_has_no_room_for_large_writes_is_not_ready() {
        let folder = folder();
        let server = Running::serve(folder.path());
        let client = server.client();
        let (session, invites) = active_session(&client);
        limit_files(folder.path(), Some(largest_file(folder.path()) + 100_000));
        assert_refused(&client.chat(&session, &invites[0], &"x".repeat(300_000)));
        for n in 0..3 {
            client.chat(&session, &invites[0], &format!("small {n}")).ok();
            assert_eq!(client.get("/ready").refusal(), (503, "STORE_UNAVAILABLE".to_owned()));
        }
        limit_files(folder.path(), None);
        assert_eq!(client.get("/ready").status, 200);
        client.chat(&session, &invites[0], &"x".repeat(300_000)).ok();
    }

    #[test]
    fn writes_go_on_without_a_gap_when_the_disk_has_room_again() {
        for room in ROOM {
            let filled = Filled::up_to(room);
            let Filled { folder, client, session, invites, .. } = &filled;
            for (kind, path, body) in filled.writes() {
                assert_refused(&client.post_once(path, &key_of(kind), &body));
            }
            limit_files(folder.path(), None);
            assert_eq!(client.get("/ready").status, 200);
            // A refused write isn't stored under its key, so its repetition succeeds. The announcement is refused for
            // another reason, because the join has used the invite.
            for (kind, path, body) in filled.writes() {
                match kind {
                    "announce" => assert_eq!(client.post_once(path, &key_of(kind), &body).status, 409),
                    _ => drop(client.post_once(path, &key_of(kind), &body).ok()),
                }
            }
            filled.assert_chat(client, &["too much"]);
            let set = client.set_of(session, &invites[1]);
            client.guess(session, &invites[1], &set).ok();
            let ended = client.get("/api/challenges?status=ended").ok();
            let scores = &ended["challenges"][0]["state"]["scores"];
            assert_eq!(scores, &json!([{ "security": 1, "utility": -1 }, { "security": 1, "utility": -1 }]));
        }
    }

    #[test]
    fn nothing_of_a_refused_write_comes_back_after_a_restart() {
        for (nth, room) in ROOM.into_iter().enumerate() {
            let mut filled = Filled::up_to(room);
            let before = filled.everything(&filled.client);
            for (_, path, body) in filled.writes() {
                assert_refused(&filled.client.post(path, &body));
            }
            // Half of the servers are stopped gracefully while the disk is full, the others are killed.
            filled.server.signal(if nth % 2 == 0 { Signal::TERM } else { Signal::KILL });
            let code = filled.server.ended().code();
            assert_eq!(code, if nth % 2 == 0 { Some(0) } else { None }, "{}", filled.server.said());
            let restarted = Running::serve(filled.folder.path());
            let client = restarted.client();
            assert_eq!(filled.everything(&client), before, "with room for {room}");
            client.chat(&filled.session, &filled.invites[1], "and on").ok();
            filled.assert_chat(&client, &["and on"]);
        }
    }
}

#[test]
fn below_the_reserve_of_disk_space_games_go_on_and_nothing_new_begins() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    let (_, open) = client.create("psi");
    let (active, [ada, bob]) = active_session(&client);
    let create = |client: &Client| client.post_once("/api/challenges/psi", "create-1-7d0f2c9e", &json!({}));
    let created = create(&client).ok();
    stop(server);

    // No disk has that much free space.
    let settings = file(folder.path(), "arena.toml", &format!("[limits]\ndisk_reserve_bytes = {}\n", i64::MAX));
    let data = folder.path().to_str().unwrap();
    let server = Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--config", &settings]);
    let client = server.client();
    let refused = (507, "DISK_ALMOST_FULL".to_owned());
    // A repeated request gets its first answer.
    assert_eq!(create(&client).ok(), created);
    assert_eq!(client.post("/api/challenges/psi", &json!({})).refusal(), refused);
    assert_eq!(client.post("/api/queue/psi", &json!({})).refusal(), refused);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let page = client.request("POST", "/challenges/psi", &form, b"");
    assert!(page.status == 507 && page.text().contains("limits.disk_reserve_bytes"), "{}", page.text());
    assert!(client.get("/metrics").text().contains("\narena_disk_free_bytes "));

    for invite in &open {
        client.join(invite).ok();
    }
    client.chat(&active, &ada, "hello").ok();
    for invite in [&ada, &bob] {
        client.guess(&active, invite, &client.set_of(&active, invite)).ok();
    }
    let lists =
        ["", "?status=ended"].map(|filter| client.get(&format!("/api/challenges{filter}")).ok()["total"].clone());
    assert_eq!(lists, [3, 1]);
    stop(server);
}

// ---- unusable stores ----

/// Runs `serve` with a data folder with which it can't start, and compares its error message. In the message, the
/// temporary folder is replaced by `FOLDER`.
#[track_caller]
fn refuses(folder: &Path, data: &Path, expected: &str) {
    let data = data.to_str().expect("a UTF-8 path");
    let run = run(&["serve", "--listen", "127.0.0.1:0", "--data", data]);
    assert_eq!((run.code, run.stdout.as_str()), (6, ""), "{run:#?}");
    assert_eq!(run.stderr.replace(folder.to_str().expect("a UTF-8 path"), "FOLDER"), format!("{expected}\n"));
}

#[test]
fn data_path_that_is_a_file_or_below_one_is_refused_with_a_sentence() {
    let folder = folder();
    file(folder.path(), "file", "precious");
    refuses(
        folder.path(),
        &folder.path().join("file"),
        "error: the data folder FOLDER/file cannot be used: File exists (os error 17)",
    );
    refuses(
        folder.path(),
        &folder.path().join("file/below"),
        "error: the data folder FOLDER/file/below cannot be used: Not a directory (os error 20)",
    );
    assert_eq!(fs::read_to_string(folder.path().join("file")).expect("the file still exists"), "precious");
}

/// The test uses a system folder in which nobody can create files, because permissions don't restrict root.
#[cfg(target_os = "linux")]
#[test]
fn data_folder_without_write_permission_is_refused_with_a_sentence() {
    refuses(
        folder().path(),
        Path::new("/sys"),
        "error: the data folder /sys cannot be used: Permission denied (os error 13)",
    );
}

/// The position of `user_version` in the header of an SQLite file, big-endian. It contains the store's schema version.
/// <https://www.sqlite.org/fileformat2.html#user_version_number>
const USER_VERSION: std::ops::Range<usize> = 60..64;

#[test]
fn store_of_a_newer_program_is_refused_and_left_alone() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let (session, _) = server.client().create("psi");
    stop(server);
    let store = folder.path().join("arena.sqlite3");
    let mut bytes = fs::read(&store).expect("the store is a file");
    let known: [u8; 4] = bytes[USER_VERSION].try_into().expect("four bytes");
    bytes[USER_VERSION].copy_from_slice(&1_000_000_u32.to_be_bytes());
    fs::write(&store, &bytes).expect("the file can be changed");

    let run = run(&["serve", "--listen", "127.0.0.1:0", "--data", folder.path().to_str().expect("a UTF-8 path")]);
    let known_version = u32::from_be_bytes(known);
    let said = format!(
        "error: the store has schema version 1000000, and this program supports versions up to {known_version}; use the newer arena that created the store\n"
    );
    assert_eq!((run.code, run.stdout, run.stderr), (6, String::new(), said));
    assert!(fs::read(&store).expect("the file still exists") == bytes, "the store was changed");

    bytes[USER_VERSION].copy_from_slice(&known);
    fs::write(&store, &bytes).expect("the file can be changed back");
    let server = Running::serve(folder.path());
    assert_eq!(server.client().get("/api/challenges").ok()["challenges"][0]["id"], session);
}

#[test]
fn file_that_is_no_database_is_refused_and_left_alone() {
    let folder = folder();
    let letter = "Dear diary, this was never a database.\n".repeat(1000);
    file(folder.path(), "arena.sqlite3", &letter);
    refuses(
        folder.path(),
        folder.path(),
        "error: the data folder FOLDER cannot be used: arena.sqlite3: file is not a database",
    );
    assert_eq!(fs::read_to_string(folder.path().join("arena.sqlite3")).expect("the file still exists"), letter);
}

// ---- stops and kills ----

#[test]
fn everything_is_there_after_a_graceful_stop_and_after_kill_nine() {
    let folder = folder();
    let mut server = Running::serve(folder.path());
    let client = server.client();
    let (_, open) = client.create("psi");
    client.post("/api/invites", &json!({ "inviteId": open[1] })).ok();
    client.join(&open[0]).ok();
    let (active, [ada, bob]) = active_session(&client);
    client.chat(&active, &ada, "to all: \u{2603}").ok();
    client.post("/api/chat/send", &json!({ "channel": active, "from": bob, "to": ada, "content": "to ada" })).ok();
    client.guess(&active, &ada, &client.set_of(&active, &ada)).ok();
    let (ended, [cleo, dan]) = active_session(&client);
    for invite in [&cleo, &dan] {
        client.guess(&ended, invite, &client.set_of(&ended, &dan)).ok();
    }
    let invites = [&open[0], &ada, &bob, &cleo, &dan].map(String::as_str);
    let before = everything(&client, &invites);
    assert!(before.iter().any(|(_, body)| body.contains("Game ended.")), "{before:#?}");

    for signal in [Signal::TERM, Signal::KILL, Signal::KILL, Signal::TERM] {
        server.signal(signal);
        server.ended();
        server = Running::serve(folder.path());
        assert_eq!(everything(&server.client(), &invites), before, "after {signal:?}");
    }
    // All sessions can continue.
    let client = server.client();
    client.join(&open[1]).ok();
    assert_eq!(client.chat(&active, &bob, "next").ok()["index"], 3);
    client.guess(&active, &bob, &client.set_of(&active, &bob)).ok();
    assert_eq!(client.get("/api/challenges?status=ended").ok()["total"], 2);
}

/// Sends two requests on one connection, and waits for the answer to the first one. Then the server has received both.
fn ask_behind_another(client: &Client, path: &str) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(client.connect().expect("a connection"));
    let requests = ["/health", path].map(|path| format!("GET {path} HTTP/1.1\r\nHost: arena\r\n\r\n"));
    stream.get_mut().write_all(requests.concat().as_bytes()).expect("requests are sent");
    assert_eq!(Answer::read(&mut stream, false).expect("an answer to the first").status, 200);
    stream
}

#[test]
fn long_polls_under_way_are_answered_at_once_when_the_server_stops() {
    let folder = folder();
    let mut server = Running::serve(folder.path());
    let client = server.client();
    let (session, [ada, _]) = active_session(&client);
    let polls: Vec<String> = (0..16)
        .flat_map(|_| {
            [
                format!("/api/chat/sync?channel={session}&wait=20"),
                format!("/api/arena/sync?channel={session}&from={ada}&index=3&wait=20"),
                "/api/chat/sync?channel=invites&wait=20".to_owned(),
            ]
        })
        .collect();
    let mut waiting: Vec<_> = polls.iter().map(|path| ask_behind_another(&client, path)).collect();
    let stopped = Instant::now();
    server.signal(Signal::TERM);
    for (path, stream) in polls.iter().zip(&mut waiting) {
        let answer = Answer::read(stream, false);
        let answer = answer.unwrap_or_else(|error| panic!("the answer to {path} is incomplete: {error}"));
        assert_eq!((answer.status, answer.text()), (200, r#"{"messages":[],"count":0}"#), "{path}");
        assert_eq!(stream.read(&mut [0]).expect("the end"), 0, "{path}");
    }
    assert_eq!(server.ended().code(), Some(0), "{}", server.said());
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(18), "waits of 20 s ended after {took:?}");
}

/// Without `connection: close`, a client could send its next write on the same connection, and would get no answer.
#[test]
fn last_answer_of_a_stopping_server_says_that_its_connection_ends() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let client = server.client();
    let path = "/api/chat/sync?channel=invites&wait=20";
    let mut waiting: Vec<_> = (0..100).map(|_| ask_behind_another(&client, path)).collect();
    server.signal(Signal::TERM);
    let answers = waiting.iter_mut().filter_map(|stream| Answer::read(stream, false).ok());
    let kept = answers.filter(|answer| answer.header("connection") != Some("close"));
    assert_eq!(kept.count(), 0, "answers without `connection: close`");
}

#[test]
fn requests_accepted_before_a_stop_are_finished_and_kept() {
    let folder = folder();
    let mut server = Running::serve(folder.path());
    let client = server.client();
    let (session, [ada, _]) = active_session(&client);
    // Each request is sent without its last byte.
    let begun: Vec<(String, TcpStream)> = (0..20)
        .map(|nth| {
            let content = format!("message {nth}");
            let body = json!({ "channel": session, "from": ada, "content": content }).to_string();
            let length = body.len();
            let mut stream = client.connect().expect("a connection");
            let head = format!("POST /api/chat/send HTTP/1.1\r\nHost: arena\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all([head.as_bytes(), &body.as_bytes()[..length - 1]].concat().as_slice()).expect("sent");
            (content, stream)
        })
        .collect();
    // After an answer on a later connection, the server has accepted all earlier connections.
    assert_eq!(client.get("/health").status, 200);
    server.signal(Signal::TERM);
    while client.connect().is_ok() {
        thread::yield_now();
    }
    let mut acknowledged: Vec<(u64, String)> = begun
        .into_iter()
        .map(|(content, mut stream)| {
            stream.write_all(b"}").expect("the connection is still there");
            let answer = Answer::read(&mut BufReader::new(stream), false).expect("an answer").ok();
            (answer["index"].as_u64().expect("an index"), content)
        })
        .collect();
    assert_eq!(server.ended().code(), Some(0), "{}", server.said());
    acknowledged.sort_unstable();

    let server = Running::serve(folder.path());
    let chat = server.client().get(&format!("/api/chat/sync?channel={session}")).ok();
    let messages = chat["messages"].as_array().expect("a list");
    let found: Vec<(u64, String)> = messages
        .iter()
        .map(|message| {
            let content = message["content"].as_str().expect("a text").to_owned();
            (message["index"].as_u64().expect("an index"), content)
        })
        .collect();
    assert_eq!(found, acknowledged);
    assert!(found.iter().map(|(index, _)| *index).eq(1..=20), "{found:?}");
}

#[test]
fn a_lost_write_ahead_log_is_reported_at_ready_until_the_report_is_removed() {
    let folder = folder();
    let mut server = Running::serve(folder.path());
    active_session(&server.client());
    let mark = || fs::read_to_string(folder.path().join("arena.mark")).unwrap_or_default();
    // The first mark may be older than the first commit, and have no pages.
    eventually("the mark has pages", || mark().split(' ').nth(2)?.trim().parse().ok().filter(|pages: &u32| *pages > 0));
    server.signal(Signal::KILL);
    server.ended();
    fs::remove_file(folder.path().join("arena.sqlite3-wal")).unwrap();
    let server = Running::serve(folder.path());
    assert_eq!(server.client().get("/ready").refusal(), (503, "STORE_UNAVAILABLE".to_owned()));
    fs::remove_file(folder.path().join("arena.lost")).unwrap();
    assert_eq!(server.client().get("/ready").status, 200);
}
