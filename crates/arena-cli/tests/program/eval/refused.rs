//! Wrong run files and endpoints that are no language models. Each gets a sentence and an exit code, and the games of
//! the run stay.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::{EvalFixture, RunSpec, model};
use crate::program::{Run, run};

/// Starts an endpoint that answers each request with these bytes and closes the connection. Returns its URL.
fn endpoint(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || respond(stream, &answer));
        }
    });
    url
}

/// Reads a request to its end and writes the answer. The client may leave at any time.
fn respond(stream: TcpStream, answer: &[u8]) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    reader.get_mut().write_all(answer).ok()
}

/// Returns an answer with status 200.
fn ok(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    [head.as_bytes(), body.as_bytes()].concat()
}

/// A finished run, to which the tests add something wrong.
struct Finished {
    fixture: EvalFixture,
    spec: RunSpec,
    report: String,
}

impl Finished {
    fn new() -> Finished {
        let fixture = EvalFixture::new();
        let spec = RunSpec::new(&["leaky", "careful"], &["psi"], 1);
        let file = fixture.write("good.toml", &spec.toml());
        fixture.play(&file, "run");
        let report = fixture.report("run");
        Finished { fixture, spec, report }
    }

    fn run(&self, text: &str, more: &[&str]) -> Run {
        let file = self.fixture.write("bad.toml", text);
        let dir = self.fixture.path("run");
        run(&[&["eval", "run", &file, "--out", dir.to_str().unwrap(), "--patience", "1"], more].concat())
    }

    /// Continues the run with a wrong run file, which gives this exit code and a sentence with this part. Then continues
    /// it with the right one.
    #[track_caller]
    fn check(&self, name: &str, text: &str, code: i32, part: &str) {
        let refused = self.run(text, &[]);
        assert_eq!(refused.code, code, "{name}: {refused:#?}");
        assert!(refused.stderr.contains(part), "{name}: {refused:#?}");
        assert!(!refused.stderr.contains("panicked"), "{name}: {refused:#?}");
        let continued = self.run(&self.spec.toml(), &[]);
        assert_eq!(continued.code, 0, "{name}: {continued:#?}");
        assert_eq!(self.fixture.report("run"), self.report, "{name}: the results have changed");
    }
}

#[test]
fn wrong_run_files_are_refused_with_the_reason() {
    let finished = Finished::new();
    let good = finished.spec.toml();
    let endpoint = format!("{:?}", finished.spec.endpoint);
    let check = |name: &str, before: &str, after: &str, part: &str| {
        let text = good.replacen(before, after, 1);
        assert_ne!(text, good, "{name}");
        finished.check(name, &text, 2, part);
    };
    check("no TOML", "seeds = 1", "seeds = ", "line 2");
    check("an unknown key", "seeds = 1", "seeds = 1\nrounds = 3", "rounds");
    check("no seeds", "seeds = 1", "seeds = 0", "seeds must be 1 to");
    check("a negative price", "input = 1.0", "input = -1.0", "price of at least 0");
    check("a price in words", "input = 1.0", "input = \"one\"", "line");
    check("swapped prices", "cached = 0.1", "cached = 2.0", "are they swapped?");
    check("an unknown challenge", "name = \"psi\"", "name = \"pis\"", "pis");
    check("an unknown option", "name = \"psi\"", "name = \"psi\"\noptions = { setsize = 3 }", "setsize");
    check("an unknown harness", "concurrency = 4", "concurrency = 4\nharness = \"plain\"", "no harness `plain`");
    check("an unknown endpoint", &endpoint, "\"openroute\"", "openroute");
    check("an invalid URL", &endpoint, "\"http://a b/v1\"", "isn't the URL of an endpoint");
    check("an unknown API", "concurrency = 4", "concurrency = 4\napi = \"soap\"", "unknown api `soap`");
    check("a name twice", "name = \"careful\"", "name = \"leaky\"", "used twice");
    check("a missing prompt", "max_turns = 80", "prompt = \"absent.md\"", "absent.md");
    check("a key in the file", "concurrency = 4", "key_env = \"sk-or-1\"", "not the key itself");
}

#[test]
fn a_missing_file_or_folder_is_named() {
    let fixture = EvalFixture::new();
    let path = |name: &str| fixture.path(name).to_str().unwrap().to_owned();
    fixture.write("notes.txt", "not a run");
    let good = fixture.write("good.toml", &RunSpec::new(&["leaky", "careful"], &["psi"], 1).toml());
    let folder = fixture.folder.path().to_str().unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["plan", &path("absent.toml")], 2, "absent.toml cannot be read"),
        (&["resume", &path("absent")], 13, "there is no evaluation"),
        (&["report", &path("absent")], 13, "there is no evaluation"),
        (&["status", &path("absent")], 13, "there is no evaluation"),
        (&["run", &good, "--out", folder], 13, "other files"),
    ];
    for (args, code, part) in cases {
        let refused = run(&[&["eval"], args].concat());
        assert_eq!(refused.code, code, "{args:?}: {refused:#?}");
        assert!(refused.stderr.contains(part), "{args:?}: {refused:#?}");
    }
}

#[test]
fn a_model_that_does_not_work_is_paused_with_the_reason() {
    let finished = Finished::new();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let huge = "x".repeat(10 << 20);
    let cases = [
        ("an unknown model", finished.spec.endpoint.clone(), "does not exist"),
        ("a web page", endpoint(ok("text/html", "<!doctype html><p>Sign in</p>")), "isn't JSON"),
        ("half of the JSON", endpoint(ok("application/json", r#"{"choices": [{"mess"#)), "isn't JSON"),
        ("no choices", endpoint(ok("application/json", r#"{"choices": []}"#)), "doesn't fit the API"),
        ("10 MB", endpoint(ok("application/json", &huge)), "isn't JSON"),
        ("nothing", endpoint(Vec::new()), "connection broke"),
        ("no listener", closed, "cannot be connected"),
    ];
    for (name, url, part) in cases {
        let text = format!("{}{}", finished.spec.toml(), model("broken", "gpt-0", &url));
        finished.check(name, &text, 17, part);
    }
}

#[test]
fn a_missing_key_is_named_before_a_call() {
    let finished = Finished::new();
    let keyed =
        model("keyed", "gpt-0", "http://127.0.0.1:9/v1").replace("concurrency = 4", "key_env = \"ARENA_TEST_NO_KEY\"");
    let refused = finished.run(&format!("{}{keyed}", finished.spec.toml()), &[]);
    assert_ne!(refused.code, 0, "{refused:#?}");
    assert!(refused.stderr.contains("ARENA_TEST_NO_KEY"), "{refused:#?}");
    // Without the key, no folder is created.
    let file = finished.fixture.path("bad.toml");
    let new = finished.fixture.path("new");
    let refused = run(&["eval", "run", file.to_str().unwrap(), "--out", new.to_str().unwrap()]);
    assert!(refused.code == 2 && refused.stderr.contains("ARENA_TEST_NO_KEY"), "{refused:#?}");
    assert!(!new.exists());
    assert_eq!(finished.run(&finished.spec.toml(), &[]).code, 0);
    assert_eq!(finished.fixture.report("run"), finished.report);
}

#[test]
fn a_run_file_of_an_earlier_program_names_the_replacement() {
    let fixture = EvalFixture::new();
    let mut spec = RunSpec::new(&["leaky", "careful"], &["psi"], 1);
    let good = spec.toml();
    spec.endpoint = "stand-in".to_owned();
    for (text, part) in [
        (format!("{good}[[judges]]\nname = \"privacy\"\n"), "the setting judges was removed: Export the log"),
        (format!("{good}[stand_in]\nseed = 1\n"), "the setting stand_in was removed: For a run without a model"),
        (spec.toml(), "the setting stand_in was removed: For a run without a model"),
    ] {
        let file = fixture.write("run.toml", &text);
        let refused = run(&["eval", "plan", &file]);
        assert_eq!(refused.code, 2, "{refused:#?}");
        assert!(refused.stderr.contains(part), "{refused:#?}");
    }
    let refused = run(&["eval", "stand-in", "--port", "0"]);
    assert!(refused.code == 2 && refused.stderr.contains("`arena eval stand-in` was removed"), "{refused:#?}");
}

#[test]
fn a_cap_that_allows_no_call_stops_the_run() {
    let fixture = EvalFixture::new();
    let mut spec = RunSpec::new(&["leaky", "careful"], &["psi"], 1);
    spec.end = "[budget]\nusd = 0.000001\n".to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    let dir = fixture.path("run");
    let stopped = run(&["eval", "run", &file, "--out", dir.to_str().unwrap()]);
    assert_eq!(stopped.code, 19, "{stopped:#?}");
    assert!(stopped.stderr.contains("cap `usd`"), "{stopped:#?}");
    assert!(fixture.lines("run", "journal.jsonl", "game").is_empty());
    // A higher cap continues the same folder.
    spec.end = "[budget]\nusd = 1.0\n".to_owned();
    let file = fixture.write("run.toml", &spec.toml());
    fixture.play(&file, "run");
}
