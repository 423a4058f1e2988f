//! Records and the log through the program: a session is played on a server, and its record is fetched, shown,
//! redacted and verified. Changed records are refused with the first false line.

use std::fs;
use std::path::Path;

use arena_testkit::{data_folder, until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Run, Running, file, run};
use crate::verify::run_python;

/// A server with ended sessions of psi, and a folder for records.
pub struct RecordFixture {
    pub server: Running,
    pub data: tempfile::TempDir,
    pub home: tempfile::TempDir,
}

impl RecordFixture {
    pub fn open() -> RecordFixture {
        let data = data_folder();
        RecordFixture { server: Running::serve(data.path()), data, home: data_folder() }
    }

    /// Runs a command with the server's address.
    pub fn run(&self, args: &[&str]) -> Run {
        run(&[args, &["--url", &self.server.url]].concat())
    }

    /// Plays a game of psi with a public and a private chat message. Returns the session's id and its invites.
    pub fn play(&self) -> (String, Vec<String>) {
        let client = self.server.client();
        let (session, invites) = client.seated_as("psi", ["ada", "bob"]);
        client.chat(&session, &invites[0], "good luck").ok();
        let private = json!({ "channel": session, "from": invites[0], "to": invites[1], "content": "between us" });
        client.post("/api/chat/send", &private).ok();
        for invite in &invites {
            client.act(&session, invite, "guess", "1").ok();
        }
        (session, invites)
    }

    /// Waits until the log contains the end of a session.
    #[track_caller]
    pub fn wait_for_log(&self, session: &str) {
        until("the log has the end of the session", || self.run(&["log", "prove", session, "--json"]).code == 0);
    }

    /// Fetches a record into a file. Returns its path.
    #[track_caller]
    pub fn get(&self, session: &str, name: &str, options: &[&str]) -> String {
        let path = self.home.path().join(name).to_str().unwrap().to_owned();
        let got = self.run(&[&["record", "get", session, "--out", &path], options].concat());
        assert_eq!(got.code, 0, "{got:#?}");
        path
    }

    /// Stops the server. Its data stay.
    pub fn stop(&mut self) {
        self.server.signal(Signal::TERM);
        self.server.ended();
    }

    /// Starts a new server with the same data, after [`RecordFixture::stop`].
    pub fn start_again(&mut self) {
        self.server = Running::serve(self.data.path());
    }

    /// Returns the keys that the server publishes.
    pub fn keys(&self) -> Value {
        self.server.client().get("/.well-known/arena.json").json()
    }

    pub fn data(&self) -> &str {
        self.data.path().to_str().unwrap()
    }
}

/// Returns the parts of a verified file, and the parts that weren't verified.
#[track_caller]
fn parts(verified: &Run) -> (Vec<String>, Vec<String>) {
    let line: Value = serde_json::from_str(verified.stdout.lines().next().unwrap()).unwrap();
    let list = |name: &str| line[name].as_array().unwrap_or_else(|| panic!("{line}")).clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (list("checked").iter().map(text).collect(), list("unchecked").iter().map(|left| text(&left["part"])).collect())
}

#[test]
fn the_record_of_a_session_verifies_offline_and_against_the_log() {
    let fixture = RecordFixture::open();
    let (session, _) = fixture.play();
    fixture.wait_for_log(&session);
    let record = fixture.get(&session, "game.jsonl", &[]);
    let log = run(&["verify", &record, "--log", &fixture.server.url, "--json"]);
    assert_eq!(log.code, 0, "{log:#?}");
    let (checked, unchecked) = parts(&log);
    assert_eq!(checked, ["chain", "seal", "key", "openings", "seed", "rules", "log"]);
    assert_eq!(unchecked, ["openings"], "the private message is withheld");
    // Without the server.
    drop(fixture.server);
    let offline = run(&["verify", &record, "--json"]);
    assert_eq!(offline.code, 0, "{offline:#?}");
    assert_eq!(parts(&offline).0, ["chain", "seal", "openings", "seed", "rules"]);
    let printed = run(&["verify", &record]);
    assert!(printed.stdout.contains("verified: chain, seal, openings, seed, rules; not verified: "), "{printed:#?}");
}

#[test]
fn every_false_record_is_refused_with_its_line() {
    let fixture = RecordFixture::open();
    let (session, _) = fixture.play();
    let record = fixture.get(&session, "game.jsonl", &[]);
    let text = fs::read_to_string(&record).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without = |left_out: usize| {
        lines
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != left_out)
            .map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    let swapped = {
        let mut lines = lines.clone();
        lines.swap(2, 3);
        lines.join("\n") + "\n"
    };
    for (name, changed) in [
        ("a changed time", text.replacen("\"at\":1", "\"at\":2", 1)),
        ("a missing event", without(2)),
        ("a doubled event", text.replacen(lines[2], &format!("{}\n{}", lines[2], lines[2]), 1)),
        ("swapped events", swapped),
        (
            "a missing seal",
            text.lines()
                .filter(|line| !line.starts_with("{\"seal\"") && !line.starts_with("{\"leaf\""))
                .map(|line| format!("{line}\n"))
                .collect(),
        ),
        ("a cut line", text[..text.len() - 2].to_owned()),
        ("another opening", text.replacen("good luck", "bad luck!", 1)),
    ] {
        assert_ne!(changed, text, "{name}");
        let path = file(fixture.home.path(), "false.jsonl", &changed);
        let refused = run(&["verify", &path, "--json"]);
        assert_eq!(refused.code, 11, "{name}: {refused:#?}");
        let line: Value = serde_json::from_str(refused.stdout.lines().next().unwrap()).unwrap();
        assert!(line["ok"] == json!(false) && line["line"].is_u64(), "{name}: {line}");
    }
    let other_key = "00".repeat(32);
    assert_eq!(run(&["verify", &record, "--key", &other_key]).code, 11);
}

#[test]
fn exit_code_11_is_for_false_files_only() {
    let home = data_folder();
    let path = |name: &str, text: &str| file(home.path(), name, text);
    for (args, code) in [
        (vec!["verify".to_owned(), home.path().join("missing.jsonl").to_str().unwrap().to_owned()], 2),
        (vec!["verify".to_owned(), path("foreign.jsonl", "{\"name\":1}\n")], 2),
        (vec!["verify".to_owned(), path("empty.jsonl", "")], 2),
        (vec!["verify".to_owned(), path("future.jsonl", "{\"arenaRecord\":2}\n")], 16),
        (vec!["record".to_owned(), "show".to_owned(), path("future.jsonl", "{\"arenaRecord\":2}\n")], 16),
        (vec!["verify".to_owned(), path("x.jsonl", "{\"arenaRecord\":1}\n")], 11),
        (vec!["verify".to_owned(), path("long.jsonl", &format!("{{\"arenaRecord\":1{}", " ".repeat(17 << 20)))], 2),
        (vec!["log".to_owned(), "check".to_owned(), "--log".to_owned(), home.path().to_str().unwrap().to_owned()], 2),
    ] {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let refused = run(&args);
        assert_eq!(refused.code, code, "{args:?}: {refused:#?}");
        assert!(refused.stderr.starts_with("error: "), "{refused:#?}");
    }
}

#[test]
fn parts_that_were_not_verified_are_counted_for_many_files() {
    let fixture = RecordFixture::open();
    let (session, _) = fixture.play();
    let record = fs::read_to_string(fixture.get(&session, "game.jsonl", &[])).unwrap();
    let copies = fixture.home.path().join("copies");
    fs::create_dir(&copies).unwrap();
    for number in 0..21 {
        file(&copies, &format!("{number:02}.jsonl"), &record);
    }
    let verified = run(&["verify", copies.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{verified:#?}");
    assert!(verified.stderr.contains("not verified, or not completely: key (21 files)"), "{verified:#?}");
}

#[test]
fn a_folder_of_records_is_verified_in_order_by_any_number_of_jobs() {
    let fixture = RecordFixture::open();
    for number in 0..4 {
        let (session, _) = fixture.play();
        fixture.get(&session, &format!("{number}.jsonl"), &[]);
    }
    file(fixture.home.path(), "notes.txt", "not a record");
    let text = fs::read_to_string(fixture.home.path().join("2.jsonl")).unwrap();
    file(fixture.home.path(), "2.jsonl", &text.replacen("good luck", "bad luck!", 1));
    let home = fixture.home.path().to_str().unwrap();
    let verify = |jobs: &str| run(&["verify", home, "--jobs", jobs, "--json"]);
    let (one, four) = (verify("1"), verify("4"));
    assert_eq!((one.code, four.code), (11, 11), "{one:#?}");
    assert_eq!(one.stdout, four.stdout);
    let lines: Vec<Value> = one.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ok: Vec<&Value> = lines[..4].iter().map(|line| &line["ok"]).collect();
    assert_eq!(ok, [&json!(true), &json!(true), &json!(false), &json!(true)]);
    let summary = &lines[4]["summary"];
    assert_eq!((&summary["verified"], &summary["false"], &summary["skipped"]), (&json!(3), &json!(1), &json!(1)));
    assert!(one.stderr.contains("1 of 4 files are false"), "{}", one.stderr);
}

#[test]
fn readers_get_the_openings_that_they_may_see_and_can_leave_some_out() {
    let fixture = RecordFixture::open();
    let (session, invites) = fixture.play();
    let contents = |path: &str| fs::read_to_string(path).unwrap().contains("between us");
    let public = fixture.get(&session, "public.jsonl", &[]);
    let own = fixture.get(&session, "own.jsonl", &["--from", &invites[1]]);
    let all = fixture.get(&session, "all.jsonl", &["--admin", "--data", fixture.data()]);
    assert_eq!([&public, &own, &all].map(|path| contents(path)), [false, true, true]);

    let redacted = fixture.home.path().join("redacted.jsonl").to_str().unwrap().to_owned();
    let redact = |what: &str| run(&["record", "redact", &all, "--withhold", what, "--out", &redacted]);
    assert_eq!(redact("chat").code, 0);
    assert!(!contents(&redacted));
    assert_eq!(run(&["verify", &redacted]).code, 0, "the chain and the seal are those of the whole record");
    let shown = run(&["record", "show", &redacted]);
    assert!(shown.code == 0 && shown.stdout.contains("chat/1 withheld"), "{shown:#?}");
    let unknown = redact("chat/99");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("no opening of chat/99; it opens chat (2), operator ("), "{}", unknown.stderr);
}

/// Copies the files of a server's log into a folder, as a mirror does.
fn mirror(server: &Running, size: u64, to: &Path) {
    let client = server.client();
    let checkpoint = client.get("/log/checkpoint").body;
    fs::create_dir_all(to).unwrap();
    fs::write(to.join("checkpoint"), checkpoint).unwrap();
    for level in ["entries", "0"] {
        let path = format!("tile/{level}/000.p/{size}");
        let tile = client.get(&format!("/log/{path}")).body;
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, tile).unwrap();
    }
}

#[test]
fn a_log_is_checked_as_a_whole_and_against_older_checkpoints() {
    let fixture = RecordFixture::open();
    let (first, _) = fixture.play();
    fixture.wait_for_log(&first);
    let old = fixture.home.path().join("old.txt").to_str().unwrap().to_owned();
    let kept = fixture.run(&["log", "checkpoint", "--out", &old]);
    assert_eq!(kept.code, 0, "{kept:#?}");
    let (second, _) = fixture.play();
    fixture.wait_for_log(&second);
    let checked = fixture.run(&["log", "check", "--since", &old, "--json"]).json();
    assert_eq!((&checked["leaves"]["created"], &checked["leaves"]["ended"]), (&json!(2), &json!(2)), "{checked}");
    assert_eq!(checked["unfinished"], json!(0));

    let size = checked["size"].as_u64().unwrap();
    let copy = fixture.home.path().join("mirror");
    mirror(&fixture.server, size, &copy);
    let key = checked["key"].as_str().unwrap();
    let check =
        |since: &[&str]| run(&[&["log", "check", "--log", copy.to_str().unwrap(), "--log-key", key], since].concat());
    let sound = check(&["--since", &old]);
    assert_eq!(sound.code, 0, "{sound:#?}");
    assert!(sound.stdout.contains("2 sessions created, 2 ended, 0 removed, 0 unfinished"), "{}", sound.stdout);

    // The log of another arena doesn't continue this checkpoint.
    let new = fixture.home.path().join("new.txt").to_str().unwrap().to_owned();
    fs::copy(copy.join("checkpoint"), &new).unwrap();
    let elsewhere = data_folder();
    let back = Running::serve(elsewhere.path());
    let other = run(&["log", "check", "--log", &back.url, "--since", &new]);
    assert_ne!(other.code, 0, "a checkpoint of another arena: {other:#?}");

    // A changed leaf.
    let leaves = copy.join(format!("tile/entries/000.p/{size}"));
    let mut bytes = fs::read(&leaves).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    fs::write(&leaves, bytes).unwrap();
    let changed = check(&[]);
    assert_eq!(changed.code, 11, "{changed:#?}");
    assert!(changed.stderr.contains("leaf"), "{}", changed.stderr);
}

/// Returns the parts of each verified file.
#[track_caller]
fn checked(verified: &Run) -> Vec<Vec<String>> {
    assert_eq!(verified.code, 0, "{verified:#?}");
    let lines = verified.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let parts = |line: &Value| line["checked"].as_array().map(|parts| parts.iter().map(ToString::to_string).collect());
    lines.filter_map(|line| parts(&line)).collect()
}

#[test]
fn a_new_key_begins_a_new_log_and_records_of_the_old_key_verify_with_it() {
    let mut fixture = RecordFixture::open();
    let (first, _) = fixture.play();
    fixture.wait_for_log(&first);
    let before = fixture.get(&first, "before.jsonl", &[]);
    let copy = fixture.home.path().join("log").to_str().unwrap().to_owned();
    assert_eq!(fixture.run(&["log", "save", "--out", &copy]).code, 0);
    let old = fixture.keys();
    fixture.stop();
    let data = fixture.data.path();
    fs::rename(data.join("record-key"), data.join("record-key.1")).unwrap();
    fs::remove_file(data.join("log-key")).unwrap();
    fixture.start_again();
    let (second, _) = fixture.play();
    fixture.wait_for_log(&second);
    let after = fixture.get(&second, "after.jsonl", &[]);
    let again = fixture.get(&first, "again.jsonl", &[]);
    let new = fixture.keys();
    assert_ne!(old["recordKey"], new["recordKey"]);
    assert_ne!(old["log"]["origin"], new["log"]["origin"], "it is another log");
    let sealed_by = |path: &str| -> String {
        let text = fs::read_to_string(path).unwrap();
        let seal = text.lines().find(|line| line.starts_with("{\"seal\"")).unwrap();
        serde_json::from_str::<Value>(seal).unwrap()["key"].to_string()
    };
    // The file record-key.1 has the old key, which still seals the records of its time.
    assert_eq!([&before, &again, &after].map(|path| sealed_by(path)), {
        let [old, new] = [&old, &new].map(|keys| keys["recordKey"].to_string());
        [old.clone(), old, new]
    });

    let url = fixture.server.url.clone();
    let (old_keys, new_keys) = (
        file(fixture.home.path(), "old.json", &old.to_string()),
        file(fixture.home.path(), "new.json", &new.to_string()),
    );
    for (records, keys, log) in [(vec![&before], &old_keys, &copy), (vec![&again, &after], &new_keys, &url)] {
        let paths: Vec<&str> = records.iter().map(|path| path.as_str()).collect();
        let verified =
            run(&[&["verify", "--key", keys, "--log", log, "--log-key", keys, "--json"], &paths[..]].concat());
        let parts = checked(&verified);
        assert_eq!(parts.len(), records.len(), "{verified:#?}");
        for parts in parts {
            assert!(parts.contains(&"\"key\"".to_owned()) && parts.contains(&"\"log\"".to_owned()), "{parts:?}");
        }
        let python = run_python(&[&paths[..], &["--keys", keys, "--log", log]].concat());
        assert_eq!(python.code, 0, "{python:#?}");
    }
    // An older file may lack the arena's newer key, or the record is forged.
    let unknown = run(&["verify", &after, "--key", &old_keys, "--json"]);
    assert_eq!(unknown.code, 16, "{unknown:#?}");
    assert!(unknown.stdout.contains("get a newer arena.json"), "{unknown:#?}");
    let python = run_python(&[&after, "--keys", &old_keys]);
    assert!(python.code == 16 && python.stdout.contains("get a newer arena.json"), "{python:#?}");
    let unconnected = run(&["verify", &after, "--key", old["recordKey"].as_str().unwrap()]);
    assert_eq!(unconnected.code, 11, "{unconnected:#?}");
    assert!(unconnected.stderr.contains("no handover connects it"), "{unconnected:#?}");
}

#[test]
fn records_of_a_lost_key_have_the_proof_of_the_log_instead_of_a_seal() {
    let mut fixture = RecordFixture::open();
    let (first, _) = fixture.play();
    fixture.wait_for_log(&first);
    let before = fixture.get(&first, "before.jsonl", &[]);
    fixture.stop();
    fs::remove_file(fixture.data.path().join("record-key")).unwrap();
    fixture.start_again();
    let (second, _) = fixture.play();
    fixture.wait_for_log(&second);
    let lost = fixture.get(&first, "lost.jsonl", &[]);
    let after = fixture.get(&second, "after.jsonl", &[]);
    let url = fixture.server.url.clone();
    // The chain names the lost key, so that it still has the hash in the log.
    let chain = |path: &str| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        let is_proof = |line: &&str| line.starts_with("{\"seal\"") || line.starts_with("{\"leaf\"");
        text.lines().filter(|line| !is_proof(line)).map(str::to_owned).collect()
    };
    assert_eq!(chain(&before), chain(&lost));
    let verified = run(&["verify", &before, &lost, &after, "--log", &url, "--json"]);
    let has_seal: Vec<bool> = checked(&verified).iter().map(|parts| parts.contains(&"\"seal\"".to_owned())).collect();
    assert_eq!(has_seal, [true, false, true], "{verified:#?}");
    assert_eq!(run(&["verify", &lost]).code, 16, "the log's key is needed");

    // If the hash differs too, the current key seals the record, so that it can be read. The log refutes it.
    fixture.stop();
    fs::remove_file(fixture.data.path().join("record-salts")).unwrap();
    fixture.start_again();
    let other = fixture.get(&first, "other.jsonl", &[]);
    assert_eq!(run(&["verify", &other]).code, 0);
    let refused = run(&["verify", &other, "--log", &fixture.server.url]);
    assert!(refused.code == 11 && refused.stderr.contains("the hash of the record is"), "{refused:#?}");
}
