//! What the program says about itself, and how it says that something went wrong.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use expect_test::{Expect, expect};

use crate::program::{arena, run};

/// The verbs, by walking the help from the top: what it lists is what exists.
fn verbs() -> Vec<Vec<String>> {
    let mut verbs = vec![Vec::new()];
    let mut next = 0;
    while next < verbs.len() {
        let verb: Vec<String> = verbs[next].clone();
        next += 1;
        let help = help(&verb);
        let listed =
            help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
        for line in listed {
            // A description that goes on in the next line is indented further.
            if let Some(name) = line.strip_prefix("  ").filter(|line| !line.starts_with(' ')) {
                let name = name.split(' ').next().unwrap();
                if name != "help" {
                    verbs.push([verb.clone(), vec![name.to_owned()]].concat());
                }
            }
        }
    }
    verbs
}

fn help(verb: &[String]) -> String {
    let args: Vec<&str> = verb.iter().map(String::as_str).chain(["--help"]).collect();
    let run = run(&args);
    assert_eq!(run.code, 0, "{run:#?}");
    run.stdout
}

#[test]
fn every_verb_has_help_with_examples() {
    let verbs = verbs();
    for verb in &verbs {
        let help = help(verb);
        assert!(help.contains("\nExamples:\n  arena "), "arena {} --help has no examples:\n{help}", verb.join(" "));
    }
    let names: Vec<String> = verbs.iter().map(|verb| verb.join(" ")).collect();
    expect![[r#"

        serve
        demo
        play
        match
        tournament
        worker
        league
        rate
        agent
        replay
        challenge
        challenges
        chat
        scoring
        users
        admin
        identity
        completions
        match run
        match games
        tournament run
        tournament resume
        tournament standings
        tournament rate
        league create
        league add
        league rm
        league run
        league show
        league season
        league list
        agent check
        agent new
        replay show
        replay serve
        replay verify
        replay export
        challenge new
        challenge check
        challenge play
        challenge fairness
        challenge types
        challenges metadata
        challenges list
        challenges create
        challenges join
        challenges sync
        challenges send
        chat send
        chat sync
        users get
        users update
        admin benchmark
        admin hide
        admin ban
        admin unban
        admin bans
        admin remove
        admin recompute
        admin export
        admin import
        admin audit
        identity new
        identity list"#]]
    .assert_eq(&names.join("\n"));
}

#[test]
fn version_is_that_of_the_package() {
    assert_eq!(run(&["--version"]).stdout, format!("arena {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("challenges") && script.stdout.contains("sync"), "{shell}");
    }
}

/// Runs the binary against an address and compares exit code and stderr, with the address itself left out.
#[track_caller]
fn check(url: &str, args: &[&str], expected: Expect) {
    let run = run(&[args, &["--url", url]].concat());
    assert_eq!(run.stdout, "");
    expected.assert_eq(&format!("{} {}", run.code, run.stderr.replace(url, "URL")));
}

#[test]
fn wrong_arguments_are_usage_errors() {
    for args in [
        &["challenges", "create", "psi", "--options", "[1]"][..],
        &["challenges", "sync", "ID", "--wait", "51"],
        &["challenges", "sync", "ID", "--index", "-1"],
        &["challenges", "list", "--status", "closed"],
        &["challenges", "list", "--url", "localhost:3001"],
        &["challenges"],
        &["sing"],
        &["serve", "--listen", "everywhere"],
        &["serve", "--log", "arena=loud", "--listen", "127.0.0.1:0"],
        &[],
    ] {
        let run = run(args);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn nobody_there_is_said_so() {
    // A port that was free a moment ago.
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    check(
        &url,
        &["challenges", "metadata"],
        expect![[r#"
        4 error: can't reach an arena at URL: connection refused; is it running? "arena serve" starts one
    "#]],
    );
    check(
        &url,
        &["challenges", "join", "inv_x"],
        expect![[r#"
        4 error: can't reach an arena at URL: connection refused; is it running? "arena serve" starts one
    "#]],
    );
    let unknown = run(&["challenges", "metadata", "--url", "http://no-such-host.invalid"]);
    assert_eq!(unknown.code, 4);
    assert!(unknown.stderr.starts_with("error: can't reach an arena at http://no-such-host.invalid: "), "{unknown:?}");
}

/// An answer in HTTP.
fn answer(status: &str, header: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

const JSON: &str = "content-type: application/json";

/// A server that answers with these bytes, whatever is asked, as often as it's asked.
fn stranger(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // Lives as long as the test process; it holds nothing but a socket.
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            read_request(&mut stream);
            // The client may have seen enough already.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

/// Reads a request: its head, and a body if it has one, which is an object.
fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut byte = [0];
    let ends = |request: &[u8]| match request.starts_with(b"POST") {
        true => request.ends_with(b"}"),
        false => request.ends_with(b"\r\n\r\n"),
    };
    while !ends(&request) && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        request.push(byte[0]);
    }
    String::from_utf8(request).unwrap()
}

#[test]
fn what_is_not_an_arena_is_told_from_one() {
    let metadata = ["challenges", "metadata"];
    check(
        &stranger(answer("404 Not Found", "content-type: text/html", "<html>")),
        &metadata,
        expect![[r#"
        4 error: what answers at URL doesn't seem to be an arena: it sent a web page (HTML, HTTP 404)
    "#]],
    );
    check(
        &stranger(answer("200 OK", "content-type: text/plain", "hello")),
        &metadata,
        expect![[r#"
        4 error: what answers at URL doesn't seem to be an arena: it sent something that isn't JSON (HTTP 200)
    "#]],
    );
    check(
        &stranger(answer("200 OK", JSON, "")),
        &metadata,
        expect![[r#"
        4 error: what answers at URL doesn't seem to be an arena: it sent an empty answer (HTTP 200)
    "#]],
    );
    check(
        &stranger(answer("301 Moved", "location: https://arena.example/", "")),
        &metadata,
        expect![[r#"
        4 error: what answers at URL doesn't seem to be an arena: it sent a redirect to https://arena.example/; give --url the final address
    "#]],
    );
    let ssh = stranger("SSH-2.0-OpenSSH\r\n".to_owned());
    check(
        &ssh,
        &metadata,
        expect![[r#"
        4 error: what answers at URL doesn't seem to be an arena: it sent something that isn't HTTP (http parse fail: invalid HTTP version)
    "#]],
    );
}

#[test]
fn refusals_carry_the_arenas_sentence_and_code() {
    let refused = answer("400 Bad Request", JSON, r#"{"error":"Guess too\u001b large.","code":"GUESS_TOO_LARGE"}"#);
    check(
        &stranger(refused),
        &["challenges", "send", "ID", "guess", "1"],
        expect![[r#"
        3 error: the arena refused: Guess too\u{1b} large. (GUESS_TOO_LARGE, HTTP 400)
    "#]],
    );
    let failed = answer("503 Service Unavailable", JSON, r#"{"error":"the disk is full"}"#);
    check(
        &stranger(failed),
        &["chat", "send", "ID", "hello"],
        expect![[r#"
        5 error: the arena failed: the disk is full (HTTP 503)
    "#]],
    );
    let reasonless = answer("418 I'm a teapot", JSON, "[]");
    check(
        &stranger(reasonless),
        &["chat", "sync", "ID"],
        expect![[r#"
        3 error: the arena refused: it gave no reason, only [] (HTTP 418)
    "#]],
    );
    let nobody = answer("400 Bad Request", JSON, r#"{"error":"from is required"}"#);
    check(
        &stranger(nobody),
        &["chat", "send", "ID", "hello"],
        expect![[r#"
        3 error: the arena refused: from is required; say who you are with --from INVITE, or with --auth KEY where keys are asked for (HTTP 400)
    "#]],
    );
}

#[test]
fn a_write_is_sent_again_with_the_same_key_when_the_connection_breaks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        [String::new(), answer("200 OK", JSON, "{}")].map(|answer| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = read_request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
            request.lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap().to_owned()
        })
    });
    let run = run(&["challenges", "create", "psi", "--url", &url]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{}\n"), "{}", run.stderr);
    let keys = server.join().unwrap();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 32);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = arena(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
