//! The archive of ended sessions, over real sockets.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arena_model::{Scoring, Timestamp};
use arena_store::Store;
use arena_testkit::{Answer, known_admin_token};
use serde_json::{Value, json};

use super::admin::{AdminFixture, hash, shown};

/// The place of an archive's files, read and changed by a test.
pub(super) trait Files {
    /// Returns the names of all files, in order.
    fn list(&self) -> Vec<String>;
    fn read(&self, name: &str) -> Vec<u8>;
    fn write(&self, name: &str, content: &[u8]);
    fn remove(&self, name: &str);

    fn text(&self, name: &str) -> String {
        gunzip(&self.read(name))
    }
}

struct Folder(PathBuf);

impl Folder {
    fn of(fixture: &AdminFixture) -> Folder {
        Folder(fixture.host.folder().join("archive"))
    }
}

impl Files for Folder {
    fn list(&self) -> Vec<String> {
        let folders = fs::read_dir(&self.0).into_iter().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.expect("a folder").path()).expect("it is readable"));
        let name = |path: PathBuf| path.strip_prefix(&self.0).expect("it is inside").display().to_string();
        let mut names: Vec<String> = files.map(|file| name(file.expect("a file").path())).collect();
        names.sort();
        names
    }

    fn read(&self, name: &str) -> Vec<u8> {
        let path = self.0.join(name);
        let mode = path.metadata().expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the arena's user only");
        fs::read(path).expect("it is readable")
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.0.join(name);
        fs::write(&path, content).expect("it is writable");
        fs::set_permissions(path, Permissions::from_mode(0o600)).expect("it is the test's own");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).expect("it exists");
    }
}

/// Decompresses a file with the system's tool.
fn gunzip(content: &[u8]) -> String {
    let mut command = Command::new("gzip");
    let mut gzip = command.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gzip runs");
    gzip.stdin.take().expect("a pipe").write_all(content).expect("gzip reads");
    let output = gzip.wait_with_output().expect("gzip ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Compresses a file as the archive does, with the system's tool.
fn gzip(text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, text).expect("it is writable");
    let output = Command::new("gzip").arg("-c").arg(&file).output().expect("gzip runs");
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn a_start_removes_the_file_of_an_interrupted_archival_and_no_other() {
    let [noted, other] = ["ab/noted.jsonl.gz", "ab/other.jsonl.gz"];
    let fixture = AdminFixture::with(|settings| {
        let archive = settings.data.join("archive");
        fs::create_dir_all(archive.join("ab")).expect("a folder");
        for file in [noted, other] {
            fs::write(archive.join(file), "private").expect("it is writable");
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let store = Store::open(&settings.data, Scoring::default()).expect("a new store");
            store.note_archive_file(noted.to_owned(), Timestamp(5)).await.expect("the store can write");
        });
    });
    let files = Folder::of(&fixture);
    let begun = Instant::now();
    while files.list() != [other] {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", files.list());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn readers_do_not_notice_that_a_session_is_archived() {
    let fixture = AdminFixture::open();
    assert_archival_is_unnoticed(&fixture, &Folder::of(&fixture));
}

/// Archives and restores sessions, and compares all answers.
pub(super) fn assert_archival_is_unnoticed(fixture: &AdminFixture, files: &dyn Files) {
    let client = &fixture.client;
    let (session, players) = fixture.begin(["ada", "bob"]);
    // More messages than a session in memory has.
    for n in 1..=150 {
        client.chat(&session, &players[n % 2], &format!("message {n}")).ok();
    }
    let private = json!({ "channel": session, "from": players[1], "to": players[0], "content": "between us" });
    client.post("/api/chat/send", &private).ok();
    fixture.end(&session, &players, 0);
    fixture.hide(&session, 7).ok();
    let other = fixture.play(["ada", "eve"], 1);
    let (running, running_players) = fixture.begin(["ada", "bob"]);
    // What anybody can read of the two ended sessions.
    let look = || {
        let (player, record) = (&players[0], format!("/api/sessions/{session}/record"));
        let paths = [
            format!("/api/chat/sync?channel={session}&from={player}"),
            format!("/api/chat/sync?channel={session}&index=100"),
            format!("/api/arena/sync?channel={session}&from={player}"),
            format!("/sessions/{session}"),
            format!("/api/chat/sync?channel={other}"),
            format!("/api/sessions/{other}/record"),
            record.clone(),
        ];
        // The log may not have the ends of the sessions yet, so the line with the place in it isn't compared.
        let without_leaf = |answer: Answer| -> String {
            answer.text().lines().filter(|line| !line.starts_with(r#"{"leaf""#)).collect()
        };
        let mut seen: Vec<String> = paths.iter().map(|path| without_leaf(client.get(path))).collect();
        seen.push(without_leaf(client.get_with(known_admin_token().reveal(), &record)));
        seen.extend(fixture.boards().iter().map(Value::to_string));
        let mut streamed = client.stream(&format!("/api/chat/ws/{session}"), Some("0"));
        seen.extend((1..=151).map(|_| streamed.next_event().expect("an event").1.to_string()));
        let of_running = |line: &String| line.contains(&running);
        seen.extend(fixture.export().into_iter().filter(|line| !of_running(line)));
        seen
    };
    let before = look();
    let private = before.iter().filter(|text| text.contains("between us")).count();
    assert_eq!(private, 3, "the player, the administrator's record and the export have the private message");
    // The clock has passed the end of the last game.
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 1 })).ok()["sessions"], 0);
    for wrong in [json!({ "olderThanDays": 36_501 }), json!({ "olderThanDays": -1 }), json!({})] {
        assert_eq!(fixture.post("/archive", wrong.clone()).status, 400, "{wrong}");
    }
    let archived = fixture.post("/archive", json!({ "olderThanDays": 0 })).ok();
    assert_eq!((&archived["sessions"], &archived["leftOut"]), (&json!(2), &json!(0)));
    assert_eq!(look(), before);
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).ok()["sessions"], 0);

    let names = files.list();
    assert_eq!(names.len(), 2);
    let lines: usize = names.iter().map(|name| files.text(name).lines().count()).sum();
    assert_eq!(archived["messages"], lines);
    let of_session = names.iter().find(|name| name.contains(&session)).expect("its file");
    let text = files.text(of_session);
    assert_eq!(text.lines().filter(|line| line.contains(r#""content":"message "#)).count(), 149);
    assert!(text.contains(&hash("message 7")) && !text.contains(r#""message 7""#));

    // Chat after the end goes on, and running games aren't affected.
    client.chat(&session, &players[1], "well played").ok();
    let path = format!("/api/chat/sync?channel={session}&index=149");
    let late: Vec<String> = client.get(&path).messages().iter().map(shown).collect();
    assert_eq!(late[late.len() - 1], "well played", "{late:?}");
    fixture.end(&running, &running_players, 0);
    assert_eq!(fixture.post("/restore", json!({})).ok()["restored"], 2);
    assert_eq!(files.list(), [] as [String; 0]);
    let path = format!("/api/chat/sync?channel={session}");
    let texts: Vec<String> = client.get(&path).messages().iter().map(shown).collect();
    assert_eq!((texts.len(), texts[151].as_str()), (152, "well played"));
    assert_eq!(look()[6], before[6], "the record has no chat after the end");
}

#[test]
fn what_is_erased_leaves_the_archive_too() {
    let fixture = AdminFixture::open();
    assert_erasure_is_whole(&fixture, &Folder::of(&fixture));
}

/// Hides a message of an archived session, removes one and damages the file of one.
pub(super) fn assert_erasure_is_whole(fixture: &AdminFixture, files: &dyn Files) {
    let [hidden, removed, lost] = [0, 0, 1].map(|errs| fixture.play(["ada", "bob"], errs));
    let hide_later = fixture.client.get(&format!("/api/sessions/{hidden}/record"));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).ok()["sessions"], 3);
    let all_text = || files.list().iter().map(|name| files.text(name)).collect::<String>();
    assert_eq!(all_text().matches("good luck").count(), 3);

    assert_eq!(fixture.hide(&hidden, 1).ok()["contentSha256"], hash("good luck"));
    assert_eq!(all_text().matches("good luck").count(), 2);
    assert_eq!(fixture.post("/archive", json!({ "olderThanDays": 0 })).ok()["sessions"], 1);
    let chain =
        |text: &str| text.lines().filter(|line| line.contains("previous")).map(str::to_owned).collect::<Vec<_>>();
    let record = fixture.client.get(&format!("/api/sessions/{hidden}/record"));
    assert_eq!(chain(record.text()), chain(hide_later.text()), "the record keeps its hash");
    assert!(!record.text().contains("good luck") && hide_later.text().contains("good luck"));

    fixture.remove(&removed).ok();
    let count = |id: &str| files.list().iter().filter(|name| name.contains(id)).count();
    assert_eq!([&hidden, &removed, &lost].map(|id| count(id)), [1, 0, 1]);
    assert_eq!(
        fixture.post("/restore", json!({ "session": removed })).refusal(),
        (404, "CHALLENGE_NOT_FOUND".to_owned())
    );
    assert_eq!(fixture.post("/restore", json!({ "session": "x" })).refusal(), (404, "CHALLENGE_NOT_FOUND".to_owned()));

    // A lost or damaged file is an error of this session only.
    let name = files.list().into_iter().find(|name| name.contains(&lost)).expect("its file");
    let content = files.read(&name);
    let unavailable = (503, "ARCHIVE_UNAVAILABLE".to_owned());
    let forged = gzip(&gunzip(&content).replace("good luck", "you lost "));
    for damage in ["forged", "truncated", "missing"] {
        match damage {
            "missing" => files.remove(&name),
            "forged" => files.write(&name, &forged),
            _ => files.write(&name, &content[..content.len() / 2]),
        }
        let record = format!("/api/sessions/{lost}/record");
        assert_eq!(fixture.client.get(&record).refusal(), unavailable, "{damage}");
        assert_eq!(fixture.post("/restore", json!({ "session": lost })).refusal(), unavailable, "{damage}");
        assert_eq!(fixture.client.get(&format!("/api/sessions/{hidden}/record")).status, 200, "{damage}");
    }
    files.write(&name, &content);
    assert_eq!(fixture.post("/restore", json!({ "session": lost })).ok()["restored"], 1);
    assert_eq!(fixture.post("/restore", json!({ "session": lost })).ok()["restored"], 0);
    let actions: Vec<String> = fixture.audited().into_iter().map(|(action, _)| action).collect();
    assert_eq!(actions, ["archive", "hide", "archive", "remove", "restore"]);
}
