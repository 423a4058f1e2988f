//! The archive in a bucket. The S3 server, `tests/s3/server.py`, is another implementation, which checks signatures and
//! permissions; it needs the packages that `cargo xtask setup python` installs.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use arena_engine::BucketCredentials;
use arena_server::Settings;
use arena_testkit::python;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::admin::AdminFixture;
use crate::archive::{Files, assert_archival_is_unnoticed, assert_erasure_is_whole};

/// The prefix of all keys. The users of the server may use no others.
const PREFIX: &str = "games/";

/// An S3 server in the background, which is killed on drop.
struct S3 {
    child: Child,
    input: RefCell<ChildStdin>,
    output: RefCell<Lines<BufReader<ChildStdout>>>,
    endpoint: String,
    /// The key of the arena: an id and a secret.
    arena: [String; 2],
    /// A key that may only read.
    reader: [String; 2],
}

impl S3 {
    #[track_caller]
    fn start() -> S3 {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/s3/server.py");
        // -B prevents a cache folder in the source tree.
        let mut command = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
        command.arg("-B").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the interpreter starts");
        let input = child.stdin.take().expect("a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = output.next().expect("the server starts").expect("text");
        let started: Value = serde_json::from_str(&line).expect("JSON");
        let key = |user: &str| [0, 1].map(|part| started[user][part].as_str().expect("text").to_owned());
        let endpoint = format!("http://127.0.0.1:{}", started["port"]);
        let (arena, reader) = (key("arena"), key("reader"));
        S3 { child, input: input.into(), output: output.into(), endpoint, arena, reader }
    }

    fn run(&self, command: &Value) -> Value {
        writeln!(self.input.borrow_mut(), "{command}").expect("the server reads");
        let line = self.output.borrow_mut().next().expect("the server answers").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }

    fn signal(&self, signal: Signal) {
        let id = self.child.id().try_into().expect("a process id");
        kill_process(Pid::from_raw(id).expect("not 0"), signal).expect("the process exists");
    }

    /// Starts an arena with its archive in the bucket, after a change of its settings.
    fn arena(&self, change: impl FnOnce(&mut Settings)) -> AdminFixture {
        AdminFixture::with(|settings| {
            settings.retention.bucket = Some(format!("s3://arena-archive/{PREFIX}"));
            settings.retention.endpoint = Some(self.endpoint.clone());
            settings.retention.credentials = credentials(&self.arena[0], &self.arena[1]);
            change(settings);
        })
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Files for S3 {
    fn list(&self) -> Vec<String> {
        let keys: Vec<String> = serde_json::from_value(self.run(&json!(["list"]))).expect("a list");
        let names = keys.iter().map(|key| key.strip_prefix(PREFIX).expect("the prefix"));
        // The check at the start may be running.
        names.filter(|name| !name.starts_with("check/")).map(str::to_owned).collect()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        decode(self.run(&json!(["read", format!("{PREFIX}{name}")])).as_str().expect("text"))
    }

    fn write(&self, name: &str, content: &[u8]) {
        self.run(&json!(["write", format!("{PREFIX}{name}"), encode(content)]));
    }

    fn remove(&self, name: &str) {
        self.run(&json!(["remove", format!("{PREFIX}{name}")]));
    }
}

fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decode(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn credentials(id: &str, secret: &str) -> BucketCredentials {
    BucketCredentials::from_variables(|name| match name {
        "AWS_ACCESS_KEY_ID" => Some(id.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        _ => None,
    })
}

#[test]
fn readers_do_not_notice_that_a_session_is_in_a_bucket() {
    let s3 = S3::start();
    assert_archival_is_unnoticed(&s3.arena(|_| {}), &s3);
}

#[test]
fn what_is_erased_leaves_the_bucket_too() {
    let s3 = S3::start();
    assert_erasure_is_whole(&s3.arena(|_| {}), &s3);
}

#[test]
fn sessions_stay_in_the_store_if_the_bucket_refuses_them() {
    let s3 = S3::start();
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let unavailable = (503, "ARCHIVE_UNAVAILABLE".to_owned());
    for mistake in
        ["a wrong secret", "an unknown key", "no permission", "a missing bucket", "a foreign prefix", "no server"]
    {
        let fixture = s3.arena(|settings| match mistake {
            "a wrong secret" => settings.retention.credentials = credentials(&s3.arena[0], &s3.reader[1]),
            "an unknown key" => settings.retention.credentials = credentials("AKIAAAAAAAAAAAAAAAAA", &s3.arena[1]),
            "no permission" => settings.retention.credentials = credentials(&s3.reader[0], &s3.reader[1]),
            "a missing bucket" => settings.retention.bucket = Some("s3://arena-missing/games".to_owned()),
            "a foreign prefix" => settings.retention.bucket = Some("s3://arena-archive/others".to_owned()),
            _ => settings.retention.endpoint = Some(format!("http://{nobody}")),
        });
        let session = fixture.play(["ada", "bob"], 0);
        let record = format!("/api/chat/sync?channel={session}");
        let before = fixture.client.get(&record).text().to_owned();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).refusal(), unavailable, "{mistake}");
        assert_eq!(fixture.client.get(&record).text(), before, "{mistake}");
        assert_eq!(fixture.post("/restore", json!({})).ok()["restored"], 0, "{mistake}");
        assert_eq!(s3.list(), [] as [String; 0], "{mistake}");
        fixture.play(["ada", "bob"], 1);
    }
}

#[test]
fn a_bucket_that_does_not_answer_delays_its_own_sessions_only() {
    let s3 = S3::start();
    let fixture = s3.arena(|_| {});
    let archived = fixture.play(["ada", "bob"], 0);
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).ok()["sessions"], 1);
    let record = format!("/api/sessions/{archived}/record");
    s3.signal(Signal::STOP);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| fixture.client.get(&record).refusal());
        fixture.play(["ada", "bob"], 1);
        assert!(!read.is_finished(), "the arena waits for the bucket");
        assert_eq!(read.join().expect("it ends"), (503, "ARCHIVE_UNAVAILABLE".to_owned()));
    });
    s3.signal(Signal::CONT);
    assert_eq!(fixture.client.get(&record).status, 200);
}

#[test]
fn games_go_on_without_the_bucket() {
    let mut s3 = S3::start();
    let fixture = s3.arena(|_| {});
    let [archived, removed] = [0, 1].map(|errs| fixture.play(["ada", "bob"], errs));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).ok()["sessions"], 2);
    s3.child.kill().and_then(|()| s3.child.wait()).expect("the server ends");

    let late = fixture.play(["ada", "bob"], 0);
    let read = |session: &str| fixture.client.get(&format!("/api/sessions/{session}/record"));
    assert_eq!(read(&late).status, 200);
    let unavailable = (503, "ARCHIVE_UNAVAILABLE".to_owned());
    assert_eq!(read(&archived).refusal(), unavailable);
    assert_eq!(fixture.hide(&archived, 1).refusal(), unavailable);
    assert_eq!(fixture.post("/restore", json!({})).refusal(), unavailable);
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).refusal(), unavailable);
    assert_eq!(read(&late).status, 200);
    // The session goes, although its object stays.
    fixture.remove(&removed).ok();
    assert_eq!(read(&removed).status, 404);
}
