//! `arena verify` and the Python package with false logs, with records of a scripted challenge, and with files that are
//! longer than the limits.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use arena_identity::KeyPair;
use arena_record::log::{
    Checkpoint, NoteKey, SignedCheckpoint, Tile, TileKind, Tree, bundle_bytes, bundle_leaves, leaf_hash, tile_bytes,
};
use arena_record::{ReadError, ReadLimits, RecordKey, read};
use arena_testkit::python;
use serde_json::Value;

use crate::program::{Run, Running, file, finished, folder, run};
use crate::records::RecordFixture;

/// The size of a file with a very long line, in bytes.
const GIGABYTE: u64 = 1 << 30;

/// Runs the verifier of the Python package.
pub fn run_python(args: &[&str]) -> Run {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python/src").canonicalize().unwrap();
    let mut command = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
    finished(command.args(["-B", "-m", "arena_agents.verify"]).args(args).current_dir(source).output().unwrap())
}

/// Returns a record without the proof of its place in the log.
fn without_proof(record: &str) -> String {
    record.split_inclusive('\n').filter(|line| !line.starts_with("{\"leaf\"")).collect()
}

/// The log of a server, with the key that signs it. The holder of the key can sign any other log.
struct LogForger {
    leaves: Vec<Vec<u8>>,
    origin: String,
    key: RecordKey,
}

impl LogForger {
    /// Reads the log, which must have less than 256 leaves, and the key in the data folder.
    fn of(fixture: &RecordFixture) -> LogForger {
        let client = fixture.server.client();
        let checkpoint: SignedCheckpoint = client.get("/log/checkpoint").text().parse().unwrap();
        let Checkpoint { origin, size, .. } = checkpoint.unverified().clone();
        let width = u16::try_from(size).unwrap();
        let bundle = client.get(&format!("/log/tile/entries/000.p/{width}")).body;
        let leaves = bundle_leaves(&bundle, width).unwrap().into_iter().map(<[u8]>::to_vec).collect();
        let key = fs::read_to_string(fixture.data.path().join("log-key")).unwrap();
        LogForger { leaves, origin, key: RecordKey::from_random(KeyPair::from_file_text(&key).unwrap().to_secret()) }
    }

    fn verifier_key(&self) -> String {
        NoteKey::new(&self.origin, self.key.public_key()).unwrap().to_string()
    }

    /// Writes a log with these leaves into a folder, with a signed checkpoint. Returns the folder's path.
    fn write(&self, leaves: &[Vec<u8>], folder: &Path) -> String {
        let mut tree = Tree::new();
        for leaf in leaves {
            tree.append(leaf_hash(leaf));
        }
        for tile in Tile::between(0, tree.size()) {
            let bytes = match tile.kind {
                TileKind::Leaves => bundle_bytes(leaves.iter().map(Vec::as_slice)).unwrap(),
                TileKind::Hashes { .. } => tile_bytes(tree.tile(&tile).unwrap()),
            };
            let path = folder.join(tile.to_string());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let checkpoint = Checkpoint { origin: self.origin.clone(), size: tree.size(), root: tree.root() };
        file(folder, "checkpoint", &checkpoint.sign(&self.key).unwrap().to_string());
        folder.to_str().unwrap().to_owned()
    }

    /// Returns the position of a session's leaf.
    #[track_caller]
    fn find(&self, kind: &str, session: &str) -> usize {
        let is_it = |leaf: &Vec<u8>| {
            let leaf: Value = serde_json::from_slice(leaf).unwrap();
            leaf["leaf"] == kind && leaf["session"] == session
        };
        self.leaves.iter().position(is_it).unwrap_or_else(|| panic!("no leaf {kind} of {session}"))
    }

    /// Returns the leaves, of which one has another value in a field.
    fn with(&self, leaf: usize, field: &str, value: &str) -> Vec<Vec<u8>> {
        let mut leaves = self.leaves.clone();
        let text = String::from_utf8(leaves[leaf].clone()).unwrap();
        let before: Value = serde_json::from_str(&text).unwrap();
        let changed = text.replacen(&format!("\"{field}\":{}", before[field]), &format!("\"{field}\":{value}"), 1);
        assert_ne!(changed, text, "{field}");
        leaves[leaf] = changed.into_bytes();
        leaves
    }
}

#[test]
fn false_leaves_of_a_signed_log_are_found() {
    let fixture = RecordFixture::open();
    let games: Vec<String> = (0..3).map(|_| fixture.play().0).collect();
    let records = fixture.home.path().join("records");
    fs::create_dir(&records).unwrap();
    for (number, game) in games.iter().enumerate() {
        fixture.wait_for_log(game);
        let path = fixture.get(game, &format!("{number}.jsonl"), &[]);
        // Without proofs, the log alone has to confirm the records.
        file(&records, &format!("{number}.jsonl"), &without_proof(&fs::read_to_string(path).unwrap()));
    }
    let records = records.to_str().unwrap();
    let forger = LogForger::of(&fixture);
    let key = forger.verifier_key();
    let old = file(fixture.home.path(), "old.txt", fixture.server.client().get("/log/checkpoint").text());

    let (created, ended) = (forger.find("created", &games[1]), forger.find("ended", &games[1]));
    let last = forger.find("created", &games[2]);
    let (mut dropped_end, mut dropped_start, mut doubled) =
        (forger.leaves.clone(), forger.leaves.clone(), forger.leaves.clone());
    dropped_end.remove(ended);
    dropped_start.remove(created);
    doubled.push(doubled[ended].clone());
    let (mut reversed, mut reordered) = (forger.leaves.clone(), forger.leaves.clone());
    reversed.swap(created, ended);
    let moved = reordered.remove(last);
    reordered.insert(0, moved);
    let cut = forger.leaves[..last].to_vec();
    let zeros = format!("\"{}\"", "0".repeat(64));
    // The last column is the exit code without an older checkpoint.
    let rows = [
        ("an unchanged log", forger.leaves.clone(), 0),
        ("a dropped end", dropped_end, 16),
        ("a dropped creation", dropped_start, 11),
        ("a doubled end", doubled, 11),
        ("an end before its creation", reversed, 11),
        ("a creation at another place", reordered, 0),
        ("a cut log", cut, 16),
        ("another hash of a record", forger.with(ended, "record", &zeros), 11),
        ("another commitment to a seed", forger.with(created, "seedCommitment", &zeros), 11),
        ("another challenge", forger.with(created, "challenge", "\"chess\""), 11),
        ("another kind of an end", forger.with(ended, "ending", "\"abandoned\""), 11),
        ("another time of an end", forger.with(ended, "at", "1"), 11),
        // Clocks of nodes differ, so a time alone contradicts nothing.
        ("a wrong clock", forger.with(last, "at", "1"), 0),
    ];
    for (number, (name, leaves, code)) in rows.iter().enumerate() {
        let log = forger.write(leaves, &fixture.home.path().join(format!("log-{number}")));
        let alone = run(&["verify", records, "--log", &log, "--log-key", &key]);
        assert_eq!(alone.code, *code, "{name}: {alone:#?}");
        // The key's holder can't sign another log without a contradiction to what it signed before.
        let since = run(&["log", "check", "--log", &log, "--log-key", &key, "--since", &old]);
        let is_changed = *leaves != forger.leaves;
        assert_eq!(since.code, if is_changed { 11 } else { 0 }, "{name}: {since:#?}");
        let args = [records, "--log", &log, "--log-key", &key];
        let by_python = run_python(&args);
        assert_eq!(by_python.code, *code, "{name}: {by_python:#?}");
        let by_python = run_python(&[&args[..], &["--since", &old]].concat());
        assert_eq!(by_python.code, if is_changed { 11 } else { 0 }, "{name}: {by_python:#?}");
    }

    // After a removal and an import, the former record must still agree with the former creation and end.
    let removed = format!("{{\"leaf\":\"removed\",\"session\":\"{}\",\"reason\":\"spam\",\"at\":1}}", games[1]);
    for (name, leaves, code) in [
        ("the former leaves", forger.leaves.clone(), 0),
        ("another former challenge", forger.with(created, "challenge", "\"chess\""), 11),
        ("another former end", forger.with(ended, "ending", "\"abandoned\""), 11),
    ] {
        let again = vec![removed.clone().into_bytes(), forger.leaves[created].clone()];
        let log = forger.write(&[leaves, again].concat(), &fixture.home.path().join(name));
        let verified = run(&["verify", records, "--log", &log, "--log-key", &key]);
        assert_eq!(verified.code, code, "{name}: {verified:#?}");
        let by_python = run_python(&[records, "--log", &log, "--log-key", &key]);
        assert_eq!(by_python.code, code, "{name}: {by_python:#?}");
    }

    // Leaves that aren't those of the signed checkpoint.
    let log = forger.write(&forger.leaves, &fixture.home.path().join("log"));
    let longer = [&forger.leaves[..], &forger.leaves[..1]].concat();
    let other = forger.write(&longer, &fixture.home.path().join("longer"));
    fs::copy(Path::new(&other).join("checkpoint"), Path::new(&log).join("checkpoint")).unwrap();
    assert_eq!(run(&["verify", records, "--log", &log, "--log-key", &key]).code, 2, "missing tiles");
    assert_eq!(run_python(&[records, "--log", &log, "--log-key", &key]).code, 2, "missing tiles");
    let same = forger.write(&forger.leaves, &fixture.home.path().join("same"));
    let foreign = NoteKey::new("other.example/log", forger.key.public_key()).unwrap();
    let refused = run(&["verify", records, "--log", &same, "--log-key", &foreign.to_string()]);
    assert_eq!(refused.code, 2, "the key of another arena: {refused:#?}");
    let unsigned = RecordKey::from_random([1; 32]);
    let unsigned = NoteKey::new(&forger.origin, unsigned.public_key()).unwrap();
    for key in [foreign.to_string(), unsigned.to_string()] {
        assert_eq!(run(&["verify", records, "--log", &same, "--log-key", &key]).code, 2, "{key}");
        assert_eq!(run_python(&[records, "--log", &same, "--log-key", &key]).code, 2, "{key}");
    }
    // Tiles of hashes that aren't those of the leaves.
    let tile = Path::new(&same).join(format!("tile/0/000.p/{}", forger.leaves.len()));
    let mut hashes = fs::read(&tile).unwrap();
    hashes[0] ^= 1;
    fs::write(&tile, hashes).unwrap();
    assert_eq!(run(&["verify", records, "--log", &same, "--log-key", &key]).code, 11);
    assert_eq!(run_python(&[records, "--log", &same, "--log-key", &key]).code, 11);
    // A checkpoint of another log, or of another signer, refutes nothing.
    let unchanged = forger.write(&forger.leaves, &fixture.home.path().join("unchanged"));
    let others = LogForger { origin: "other.example/log".to_owned(), ..forger };
    let since = Path::new(&others.write(&others.leaves, &fixture.home.path().join("others"))).join("checkpoint");
    let args = ["--log", &unchanged, "--since", since.to_str().unwrap()];
    assert_eq!(run(&[&["log", "check"], &args[..]].concat()).code, 2);
    assert_eq!(run_python(&args).code, 2);
}

#[test]
fn a_log_that_was_changed_and_signed_again_contradicts_the_records_proofs() {
    let fixture = RecordFixture::open();
    let games: Vec<String> = (0..3).map(|_| fixture.play().0).collect();
    games.iter().for_each(|game| fixture.wait_for_log(game));
    let [proven, unproven] = ["proven", "unproven"].map(|name| {
        let folder = fixture.home.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder
    });
    // The arena drops the second game, of which no record was published.
    for (number, game) in games.iter().enumerate().filter(|(number, _)| *number != 1) {
        let record = fs::read_to_string(fixture.get(game, "record.jsonl", &[])).unwrap();
        file(&proven, &format!("{number}.jsonl"), &record);
        file(&unproven, &format!("{number}.jsonl"), &without_proof(&record));
    }
    let forger = LogForger::of(&fixture);
    let key = forger.verifier_key();
    let mut leaves = forger.leaves.clone();
    for kind in ["ended", "created"] {
        leaves.remove(forger.find(kind, &games[1]));
    }
    // The log grows again, so its size doesn't show the change.
    let created = forger.find("created", &games[0]);
    for digit in [1, 2] {
        let session = format!("\"018f6b2e-0000-7000-8000-00000000000{digit}\"");
        leaves.push(forger.with(created, "session", &session)[created].clone());
    }
    let changed = forger.write(&leaves, &fixture.home.path().join("changed"));
    let same = forger.write(&forger.leaves, &fixture.home.path().join("same"));
    for (folder, log, code) in [(&proven, &same, 0), (&proven, &changed, 11), (&unproven, &changed, 0)] {
        let folder = folder.to_str().unwrap();
        let args = ["--log", log.as_str(), "--log-key", &key];
        let runs = [
            run(&[&["verify", folder], &args[..]].concat()),
            run_python(&[&[folder], &args[..]].concat()),
            run(&[&["board", "rebuild", "--records", folder], &args[..]].concat()),
        ];
        for found in runs {
            assert_eq!(found.code, code, "{found:#?}");
            assert_eq!(found.stdout.contains("the log forked") || found.stderr.contains("the log forked"), code == 11);
        }
    }
}

/// Serves the files in a folder over HTTP until the test ends. Returns the address.
fn serve_files(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let folder = folder.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut head = BufReader::new(&stream).lines().map_while(Result::ok);
            let Some(request) = head.next() else { continue };
            head.find(String::is_empty);
            let file = fs::read(folder.join(request.split(' ').nth(1).unwrap().trim_start_matches('/')));
            let status = if file.is_ok() { "200 OK" } else { "404 Not Found" };
            let body = file.unwrap_or_default();
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            (&stream).write_all(&[head.as_bytes(), &body].concat()).unwrap();
        }
    });
    url
}

#[test]
fn a_log_that_lost_leaves_contradicts_the_records_proofs() {
    let fixture = RecordFixture::open();
    let games: Vec<String> = (0..3).map(|_| fixture.play().0).collect();
    games.iter().for_each(|game| fixture.wait_for_log(game));
    let records: Vec<String> =
        (0..3).map(|number| fixture.get(&games[number], &format!("{number}.jsonl"), &[])).collect();
    let forger = LogForger::of(&fixture);
    let key = forger.verifier_key();
    let without = |game: &str| {
        let leaves = forger.leaves.iter().filter(|leaf| !String::from_utf8_lossy(leaf).contains(game));
        leaves.cloned().collect::<Vec<_>>()
    };
    let older = "the copy is older than the record; save the log again";
    let back = "the log went back from ";
    let mut kinds = [0, 0];
    for (dropped, game) in [(1, 0), (1, 1), (1, 2), (2, 1), (2, 2)] {
        let (leaves, record) = (without(&games[dropped]), &records[game]);
        let (session, place) = (&games[game], forger.find("ended", &games[game]));
        let own = format!("but by the record's proof it is the end of session {session}: {{\"leaf\":\"ended\"");
        let is_replaced = leaves.get(place).is_some_and(|leaf| *leaf != forger.leaves[place]);
        kinds[usize::from(is_replaced)] += 1;
        let expected = if is_replaced { [(11, &*own); 2] } else { [(16, older), (11, back)] };
        let log = forger.write(&leaves, &fixture.home.path().join(format!("{dropped}-{game}/log")));
        let url = serve_files(Path::new(&log).parent().unwrap());
        for (place, (code, sentence)) in [&log, &url].into_iter().zip(expected) {
            let args = ["--log", place, "--log-key", &key];
            for found in [
                run(&[&["verify", record], &args[..]].concat()),
                run_python(&[&[record.as_str()], &args[..]].concat()),
                run(&[&["board", "rebuild", "--records", record], &args[..]].concat()),
            ] {
                let said = format!("{}{}", found.stdout, found.stderr);
                assert!(found.code == code && said.contains(sentence), "{code} {sentence}: {found:#?}");
            }
        }
        // Without the log's key, nothing shows that it has signed the proof.
        if !is_replaced {
            let unsigned = run(&["verify", record, "--log", &url]);
            assert!(unsigned.code == 16 && unsigned.stdout.contains("--log-key"), "{unsigned:#?}");
        }
    }
    assert!(kinds.iter().all(|records| *records > 0), "{kinds:?}");
}

#[test]
fn parts_that_could_not_be_verified_fail_with_strict() {
    let fixture = RecordFixture::open();
    let (game, _) = fixture.play();
    fixture.wait_for_log(&game);
    let keys = file(fixture.home.path(), "arena.json", &fixture.keys().to_string());
    let whole = fixture.get(&game, "whole.jsonl", &["--admin", "--data", fixture.data()]);
    let public = fixture.get(&game, "public.jsonl", &[]);
    let url = fixture.server.url.as_str();
    for (record, options, code) in [
        (&whole, vec!["--key", &keys, "--log", url], 0),
        // The private chat is withheld.
        (&public, vec!["--key", &keys, "--log", url], 16),
        (&whole, vec!["--key", &keys], 16),
        (&whole, vec![], 16),
    ] {
        let verified = run(&[&["verify", record], &options[..], &["--strict"]].concat());
        assert_eq!(verified.code, code, "{options:?}: {verified:#?}");
        if code == 16 {
            assert!(verified.stderr.contains("--strict"), "{verified:#?}");
            assert_eq!(run(&[&["verify", record], &options[..]].concat()).code, 0);
        }
    }
}

#[test]
fn a_log_is_saved_and_read_without_the_server() {
    let mut fixture = RecordFixture::open();
    let (first, _) = fixture.play();
    fixture.wait_for_log(&first);
    let record = fixture.get(&first, "record.jsonl", &[]);
    let folder = fixture.home.path().join("copies/log");
    let folder = folder.to_str().unwrap();
    let save = |fixture: &RecordFixture| run(&["log", "save", &fixture.server.url, "--out", folder, "--json"]).json();
    let saved = save(&fixture);
    // A key, the deals of two days, and two leaves of the session. A day may begin meanwhile, with another deal.
    let size = saved["size"].as_u64().unwrap();
    assert_eq!((size >= 5, &saved["sizeBefore"]), (true, &Value::Null), "{saved}");
    let (second, _) = fixture.play();
    fixture.wait_for_log(&second);
    let saved = save(&fixture);
    assert_eq!((saved["size"].as_u64() >= Some(size + 2), saved["sizeBefore"].as_u64()), (true, Some(size)), "{saved}");
    fixture.stop();
    // Both commands take the log's place with and without the name of the option.
    for args in [
        &["log", "check", "--log", folder][..],
        &["log", "check", folder],
        &["verify", &record, "--log", folder, "--strict"],
    ] {
        let offline = run(args);
        // Private chat is withheld, so the strict check of the record fails.
        assert_eq!(offline.code, if args[0] == "verify" { 16 } else { 0 }, "{offline:#?}");
    }
    assert_eq!(run(&["verify", &record, "--log", folder]).code, 0);
    assert_eq!(run_python(&[&record, "--log", folder]).code, 0);
    // Another log, and one that went back, don't replace the copy.
    let forger = RecordFixture::open();
    for place in [&["--log", &forger.server.url][..], &[&forger.server.url]] {
        assert_eq!(run(&[&["log", "save", "--out", folder], place].concat()).code, 2);
    }
    fs::remove_dir_all(Path::new(folder).join("tile")).unwrap();
    assert_eq!(run(&["log", "check", "--log", folder]).code, 2);
}

/// Copies the script of a challenge into a new folder, with `from` replaced by `to` in all of its files.
fn script(folder: &Path, from: &str, to: &str) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../arena-script/tests/challenges/coin");
    fs::create_dir_all(folder).unwrap();
    for name in ["challenge.json", "index.js"] {
        file(folder, name, &fs::read_to_string(example.join(name)).unwrap().replace(from, to));
    }
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_record_of_a_script_needs_the_folder_of_its_version() {
    let (data, home) = (folder(), folder());
    let challenges = home.path().join("challenges");
    let own = script(&challenges.join("pennies"), "", "");
    let args = ["--data", data.path().to_str().unwrap(), "--challenges", challenges.to_str().unwrap()];
    let server = Running::start(&[&["serve", "--listen", "127.0.0.1:0"][..], &args].concat());
    let client = server.client();
    let (session, invites) = client.seated("pennies");
    client.chat(&session, &invites[0], "good luck").ok();
    for invite in &invites {
        client.act(&session, invite, "show", "heads").ok();
    }
    let text = without_proof(client.get(&format!("/api/sessions/{session}/record")).text());
    let record = file(home.path(), "record.jsonl", &text);
    let later = script(&home.path().join("later/pennies"), "Show your coins.", "Show both coins.");
    let other = script(&home.path().join("coins"), "", "");
    for (name, folders, code) in [
        ("no folder", vec![], 16),
        ("the folder", vec![&own], 0),
        ("another version", vec![&later], 16),
        ("another name", vec![&other], 16),
        ("several folders", vec![&later, &other, &own], 0),
    ] {
        let mut args = vec!["verify", record.as_str()];
        for folder in folders {
            args.extend(["--challenge", folder.as_str()]);
        }
        let verified = run(&args);
        assert_eq!(verified.code, code, "{name}: {verified:#?}");
    }

    // Each byte of the record counts.
    let mut bytes = text.into_bytes();
    for at in 0..bytes.len() {
        bytes[at] ^= 1;
        match read(&bytes, ReadLimits::default()) {
            Err(ReadError::Lie(_)) => {}
            // A changed header can be that of another format.
            Err(_) if at < 64 => {}
            result => panic!("byte {at} is changed: {result:?}"),
        }
        bytes[at] ^= 1;
    }
    assert!(read(&bytes, ReadLimits::default()).is_ok());
}

#[test]
fn a_line_of_a_gigabyte_is_refused_but_is_no_lie() {
    let fixture = RecordFixture::open();
    let (session, _) = fixture.play();
    let record = fs::read_to_string(fixture.get(&session, "game.jsonl", &[])).unwrap();
    let third = record.match_indices('\n').nth(2).unwrap().0;
    for (name, beginning) in [
        ("a long header", "{\"arenaRecord\":1,\"session\":\""),
        ("a long event", format!("{}\n{{\"event\":3,", &record[..third]).as_str()),
        ("a long line of another format", "{\"name\":\""),
        ("zeros", ""),
    ] {
        let path = file(fixture.home.path(), "long.jsonl", beginning);
        // The file system stores no zeros, so the file takes no space.
        File::options().write(true).open(&path).unwrap().set_len(GIGABYTE).unwrap();
        let refused = run(&["verify", &path]);
        assert_eq!(refused.code, 2, "{name}: {refused:#?}");
        let by_python = run_python(&[&path]);
        assert_eq!(by_python.code, 2, "{name}: {by_python:#?}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn replays_with_refused_actions_are_true() {
    let folder = tempfile::tempdir().unwrap();
    let mut refusals = 0;
    for (game, agent) in [("ultimatum", "house"), ("ultimatum", "random"), ("psi", "random"), ("millionaire", "house")]
    {
        let file = folder.path().join(format!("{game}-{agent}.jsonl"));
        let path = file.to_str().unwrap();
        let played = run(&["match", "run", game, "--agent", agent, "--agent", agent, "--seed", "3", "--replay", path]);
        assert_eq!(played.code, 0, "{game} {agent}: {played:#?}");
        let verified = run(&["replay", "verify", path]);
        assert_eq!(verified.code, 0, "{game} {agent}: {verified:#?}");
        refusals += fs::read_to_string(&file).unwrap().matches("\"code\":").count();
    }
    assert!(refusals > 0, "no action was refused");
}
