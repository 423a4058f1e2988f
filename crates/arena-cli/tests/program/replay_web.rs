//! Replays in the browser: the answers and the access control of `arena replay serve`, and the completeness of an HTML
//! export. The agents have hostile names.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use arena_testkit::{Answer, Client};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Running, file, folder, run};

const HOSTILE: &str = "</title><script>alert('x')</script>\u{202e}\u{1b}[2J";

/// Returns a made-up replay of snakes with this number of epochs, in which the snakes don't move.
fn replay(epochs: u64) -> String {
    let agent = |id: &str| json!({"agent_id": id, "name": HOSTILE, "version": null});
    let state = |epoch: u64| {
        json!({
            "score": {"a": epoch, "b": 0}, "snakes": {}, "foods": [], "grid": {"width": 4, "height": 4, "grid_string": []},
        })
    };
    let header = json!({
        "game": "snake", "update_mode": "SIMULTANEOUS", "seed": "0".repeat(64), "options": {}, "config": {},
        "agents": [agent("a"), agent("b")],
    });
    // A result line must start with the key `result`.
    let result = json!({
        "outcome": {"termination": "GAME_ENDED", "winner": "a"}, "epochs": epochs, "scores": [epochs, 0], "ranks": [1, 2],
    });
    let epoch =
        |epoch: u64| json!({"epoch": epoch, "world_state": state(epoch), "remaining_overage_ms": [9, 9]}).to_string();
    // The version must be the first key of the header.
    let mut lines = vec![header.to_string().replacen('{', "{\"arena_replay\":1,", 1)];
    lines.extend((1..=epochs).map(epoch));
    lines.push(format!("{{\"result\":{result},\"world_state\":{}}}", state(epochs + 1)));
    lines.join("\n") + "\n"
}

/// A running `arena replay serve`, with a client.
struct Viewer {
    running: Running,
    client: Client,
}

impl Viewer {
    fn start(path: &str) -> Viewer {
        let running = Running::start_saying("replays are at http://", &["replay", "serve", path], &[]);
        let address: SocketAddr = running.url.trim_end_matches('/').parse().unwrap();
        Viewer { running, client: Client::new(address) }
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        self.ask(path, "localhost", headers)
    }

    fn ask(&self, path: &str, host: &str, headers: &str) -> Answer {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        self.client.raw(request.as_bytes()).unwrap()
    }
}

#[test]
fn ranges_are_answered_byte_by_byte() {
    let folder = folder();
    let text = replay(50);
    let viewer = Viewer::start(&file(folder.path(), "game.jsonl", &text));
    let whole = viewer.get("/replays/0/replay.jsonl", "");
    assert_eq!((whole.status, whole.text()), (200, text.as_str()));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let length = text.len();
    for (range, begin, end) in [
        ("0-0".to_owned(), 0, 1),
        ("10-99".to_owned(), 10, 100),
        (format!("{}-", length - 7), length - 7, length),
        ("-20".to_owned(), length - 20, length),
        (format!("5-{}", length * 2), 5, length),
    ] {
        let answer = viewer.get("/replays/0/replay.jsonl", &format!("Range: bytes={range}\r\n"));
        assert_eq!((answer.status, answer.text()), (206, &text[begin..end]), "{range}");
        let output = format!("bytes {begin}-{}/{length}", end - 1);
        assert_eq!(answer.header("content-range"), Some(output.as_str()), "{range}");
    }
    for range in [format!("{length}-"), "9-3".to_owned()] {
        let answer = viewer.get("/replays/0/replay.jsonl", &format!("Range: bytes={range}\r\n"));
        assert_eq!(answer.status, 416, "{range}");
    }
}

/// The viewer requests the summary, then sixteen bytes of the index, then one line of the replay.
#[test]
fn the_index_contains_the_position_of_every_epoch() {
    let folder = folder();
    let viewer = Viewer::start(&file(folder.path(), "game.jsonl", &replay(300)));
    let summary = viewer.get("/replays/0/replay.json", "").ok();
    assert_eq!((&summary["frames"], &summary["scores"][0][299]), (&json!(301), &json!(300.0)));
    for epoch in [1_usize, 2, 150, 300] {
        let from = (epoch - 1) * 8;
        let entries = viewer.get("/replays/0/replay.index", &format!("Range: bytes={from}-{}\r\n", from + 15));
        assert_eq!((entries.status, entries.body.len()), (206, 16));
        let offset = |at: usize| u64::from_le_bytes(entries.body[at..at + 8].try_into().unwrap()) & 0xffff_ffff_ffff;
        let range = format!("Range: bytes={}-{}\r\n", offset(0), offset(8) - 1);
        let line = viewer.get("/replays/0/replay.jsonl", &range).json();
        assert_eq!((&line["epoch"], &line["world_state"]["score"]["a"]), (&json!(epoch), &json!(epoch)));
    }
}

#[test]
fn foreign_hosts_are_refused_and_names_are_escaped() {
    let folder = folder();
    file(folder.path(), "game.jsonl", &replay(2));
    file(folder.path(), "notes.txt", "mine");
    file(folder.path(), ".hidden.jsonl", &replay(1));
    fs::create_dir(folder.path().join("more")).unwrap();
    file(
        &folder.path().join("more"),
        "cut.jsonl",
        replay(3).split_inclusive('\n').take(3).collect::<String>().as_str(),
    );
    let mut viewer = Viewer::start(folder.path().to_str().unwrap());
    for host in ["evil.example", "arena", "127.0.0.1.evil.example"] {
        assert_eq!(viewer.ask("/", host, "").status, 421, "{host}");
    }
    let list = viewer.get("/", "");
    assert!(list.text().contains(">game.jsonl<") && list.text().contains("incomplete"), "{}", list.text());
    assert!(!list.text().contains("notes") && !list.text().contains("hidden"), "{}", list.text());
    for page in [&list, &viewer.get("/replays/0/", "")] {
        assert_eq!(page.status, 200);
        assert!(page.text().contains("&lt;script&gt;alert") && !page.text().contains("<script>"), "{}", page.text());
        assert!(!page.text().contains('\u{1b}'), "{}", page.text());
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    }
    for path in [
        "/replays/2/",
        "/replays/2/replay.jsonl",
        "/replays/x/",
        "/assets/../Cargo.toml",
        "/assets/none.js",
        "/notes.txt",
    ] {
        let status = viewer.get(path, "").status;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    // A new replay appears on the list, after the existing ones.
    file(folder.path(), "a.jsonl", &replay(1));
    assert!(viewer.get("/", "").text().contains("href=\"replays/2/\">a.jsonl<"));
    // An indexed file that has changed is indexed again.
    assert_eq!(viewer.get("/replays/0/replay.json", "").ok()["frames"], 3);
    file(folder.path(), "game.jsonl", &replay(9));
    assert_eq!(viewer.get("/replays/0/replay.json", "").ok()["frames"], 10);
    // A file that is no longer a replay is reported.
    file(folder.path(), "game.jsonl", "{\"arena_replay\":1}\n");
    let answer = viewer.get("/replays/0/replay.json", "");
    assert_eq!(answer.status, 422);
    assert!(answer.text().contains("not an arena replay"), "{}", answer.text());
    viewer.running.signal(Signal::INT);
    assert!(viewer.running.ended().success());
}

/// Returns the values of attributes and imports in a text.
fn named<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn an_export_contains_all_its_files_and_loads_nothing_else() {
    let folder = folder();
    let text = replay(20);
    let path = file(folder.path(), "game.jsonl", &text);
    let out = folder.path().join("deep/site");
    let out_text = out.to_str().unwrap();
    // The second export overwrites the first.
    for _ in 0..2 {
        let exported = run(&["replay", "export", &path, "--format", "html", "--out", out_text]);
        assert_eq!((exported.code, exported.stdout.as_str(), exported.stderr.as_str()), (0, "", ""));
    }
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(!page.contains("<script>") && page.contains("Content-Security-Policy"), "{page}");
    let mut files = 0;
    let attributes = ["src=\"", "stylesheet\" href=\"", "data-replay=\"", "data-index=\"", "data-summary=\""];
    for name in attributes.iter().flat_map(|attribute| named(&page, attribute)) {
        assert!(out.join(name).is_file(), "{name}");
        files += 1;
    }
    assert_eq!(files, 7, "{page}");
    let mut modules = vec![out.join("assets/viewer.js")];
    let mut seen = 0;
    while let Some(module) = modules.pop() {
        let text = fs::read_to_string(&module).unwrap_or_else(|error| panic!("{}: {error}", module.display()));
        modules.extend(named(&text, "from \"").map(|import| module.parent().unwrap().join(import)));
        seen += 1;
    }
    assert!(seen > 8, "{seen}");
    assert_eq!(fs::read_to_string(out.join("replay.jsonl")).unwrap(), text);
    let summary: Value = serde_json::from_slice(&fs::read(out.join("replay.json")).unwrap()).unwrap();
    assert_eq!(summary["bytes"], json!(text.len()));
    assert_eq!(fs::metadata(out.join("replay.index")).unwrap().len(), 22 * 8);
    // An export is a folder with a replay, and can be viewed as one.
    let viewer = Viewer::start(out_text);
    assert_eq!(viewer.get("/replays/0/replay.json", "").ok(), summary);
}

#[track_caller]
fn check(folder: &Path, args: &[&str], expected: &str) {
    let run = run(args);
    let name = folder.to_str().unwrap();
    let output = format!("exit code {}, {}{}", run.code, run.stdout, run.stderr);
    assert_eq!(output.replace(&format!("{name}/"), "").replace(name, "FOLDER").trim_end(), expected);
}

#[test]
fn files_that_cannot_be_shown_are_refused_in_a_sentence() {
    let folder = folder();
    let name = folder.path().to_str().unwrap();
    let whole = replay(3);
    let at = |name: &str, text: &str| file(folder.path(), name, text);
    let foreign = at("foreign.jsonl", "{\"a\":1}\n");
    let nothing = at("nothing.jsonl", whole.lines().next().unwrap());
    let damaged = at("damaged.jsonl", &whole.replace("\"epoch\":2", "\"epoch\":7"));
    let none = folder.path().join("none.jsonl");
    let none = none.to_str().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    for replay in [foreign.as_str(), &nothing, &damaged, none] {
        let output = run(&["replay", "serve", replay]);
        assert_eq!((output.code, output.stdout.as_str()), (11, ""), "{output:#?}");
        let output = run(&["replay", "export", replay, "--format", "html", "--out", out]);
        assert_eq!((output.code, Path::new(out).exists()), (11, false), "{output:#?}");
    }
    check(
        folder.path(),
        &["replay", "serve", &damaged],
        "exit code 11, error: damaged.jsonl: line 3: found epoch 7 instead of epoch 2",
    );
    check(
        folder.path(),
        &["replay", "serve", &nothing],
        "exit code 11, error: nothing.jsonl: the replay breaks off after epoch 0, without a result",
    );
    check(
        folder.path(),
        &["replay", "serve", none],
        "exit code 11, error: none.jsonl cannot be read: No such file or directory (os error 2)",
    );
    fs::create_dir(out).unwrap();
    check(
        folder.path(),
        &["replay", "serve", out],
        "exit code 11, error: out contains no replays; write them with `arena match run --replay`",
    );
    let own = at("replay.jsonl", &whole);
    check(
        folder.path(),
        &["replay", "export", &own, "--format", "html", "--out", name],
        "exit code 2, error: --out contains the replay itself as replay.jsonl; give another folder",
    );
    check(
        folder.path(),
        &["replay", "export", &own, "--format", "html", "--out", &foreign],
        "exit code 10, error: cannot create the folder foreign.jsonl: File exists (os error 17)",
    );
    let missing = run(&["replay", "export", &own, "--format", "html"]);
    assert_eq!(missing.code, 2, "{missing:#?}");
    assert!(missing.stderr.contains("--out"), "{missing:#?}");
    // The complete part of a truncated replay is shown.
    let cut = at("cut.jsonl", whole.split_inclusive('\n').take(3).collect::<String>().as_str());
    check(
        folder.path(),
        &["replay", "export", &cut, "--format", "html", "--out", out],
        "exit code 0, note: cut.jsonl ends after epoch 2, without a result; the epochs before it are shown",
    );
}
