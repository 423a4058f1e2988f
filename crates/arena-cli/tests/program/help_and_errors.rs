//! The program's help and its error messages.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use expect_test::expect_file;

use crate::program::{arena, folder, run};

/// Returns all commands, found recursively from the top-level help.
fn verbs() -> Vec<Vec<String>> {
    let mut verbs = vec![Vec::new()];
    let mut next = 0;
    while next < verbs.len() {
        let verb: Vec<String> = verbs[next].clone();
        next += 1;
        let help = help(&verb);
        // The top-level help lists commands in groups before the options. Other helps list them under a heading.
        let (first, last) = if verb.is_empty() { ("Play:", "Options:") } else { ("Commands:", "") };
        let listed = help.lines().skip_while(|line| *line != first).skip(1).take_while(|line| *line != last);
        for line in listed {
            // A deeper indentation means that the line continues a description.
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
    expect_file!["help_and_errors/every_verb_has_help_with_examples.txt"].assert_eq(&names.join("\n"));
}

#[test]
fn version_is_that_of_the_package() {
    assert_eq!(run(&["--version"]).stdout, format!("arena {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn man_pages_are_written_for_all_commands() {
    let folder = folder();
    let pages = folder.path().join("man1");
    let written = run(&["man", pages.to_str().unwrap()]);
    assert_eq!(written.code, 0, "{written:#?}");
    for (page, part) in [("arena.1", "arena\\-tournament(1)"), ("arena-tournament-run.1", "\\-\\-rounds")] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(part), "{page}: {text}");
    }
}

#[test]
fn the_former_name_of_author_still_works() {
    assert_eq!(run(&["challenge", "--help"]).stdout, run(&["author", "--help"]).stdout);
}

#[test]
fn completions_contain_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("challenges") && script.stdout.contains("sync"), "{shell}");
    }
}

/// Runs the binary against an address and compares exit code and stderr, without the address.
#[track_caller]
fn check(url: &str, args: &[&str], expected: &str) {
    let run = run(&[args, &["--url", url]].concat());
    assert_eq!(run.stdout, "");
    assert_eq!(format!("{} {}", run.code, run.stderr.replace(url, "URL")).trim_end(), expected);
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
fn removed_commands_and_options_name_their_replacement() {
    for (args, name, replacement) in [
        (&["uci"][..], "uci", "arena match run chess"),
        (&["--url", "http://127.0.0.1:1", "admin", "bans"][..], "admin bans", "arena admin api GET /admin/bans"),
        (&["admin", "ban", "--user", "ada", "--reason", "noise"][..], "admin ban", "arena admin api POST /admin/bans"),
        (&["eval", "rescore", "quick"][..], "eval rescore", "--format inspect"),
        (&["eval", "run", "a.toml", "--url", "http://127.0.0.1:1"][..], "eval --url", "in memory on this machine"),
        (&["play", "ID", "--no-usage-report"][..], "play --no-usage-report", "Remove it"),
        (&["verify", "psi.jsonl", "--witness=a:b"][..], "--witness", "arena log check --since FILE"),
    ] {
        let run = run(args);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {}", run.stderr);
        let sentence = run.stderr.strip_prefix(&format!("error: `arena {name}` was removed: "));
        assert!(sentence.is_some_and(|sentence| sentence.contains(replacement)), "{args:?}: {}", run.stderr);
    }
    let id = "018f6b2e-0000-7000-8000-00000000abcd";
    let fork = run(&["session", "fork", id, "--at", "3"]);
    assert_eq!(fork.code, 2);
    assert!(fork.stderr.contains(&format!("arena record get {id} --out FILE")), "{}", fork.stderr);
    let unknown = run(&["admin", "sing"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("unrecognized subcommand 'sing'"), "{unknown:#?}");
}

#[test]
fn an_unreachable_server_is_reported() {
    // The listener is dropped, so nothing listens on its port.
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    check(
        &url,
        &["challenges", "metadata"],
        "4 error: cannot reach a server at URL: connection refused; check --url, or start a server with `arena serve`",
    );
    check(
        &url,
        &["challenges", "join", "inv_x"],
        "4 error: cannot reach a server at URL: connection refused; check --url, or start a server with `arena serve`",
    );
    let unknown = run(&["challenges", "metadata", "--url", "http://no-such-host.invalid"]);
    assert_eq!(unknown.code, 4);
    assert!(unknown.stderr.starts_with("error: cannot reach a server at http://no-such-host.invalid: "), "{unknown:?}");
}

fn answer(status: &str, header: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

const JSON: &str = "content-type: application/json";

/// Starts a server that answers every request with these bytes.
fn stranger(answer: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // The thread ends with the test process.
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            read_request(&mut stream);
            // The client may have closed the connection already.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

/// Reads a request: its head, and its body if it has one, which must be an object.
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
fn other_servers_are_distinguished_from_an_arena() {
    let metadata = ["challenges", "metadata"];
    check(
        &stranger(answer("404 Not Found", "content-type: text/html", "<html>")),
        &metadata,
        "4 error: no arena server at URL (check --url): the response is a web page (HTML, HTTP 404)",
    );
    check(
        &stranger(answer("200 OK", "content-type: text/plain", "hello")),
        &metadata,
        "4 error: no arena server at URL (check --url): the response is something that isn't JSON (HTTP 200)",
    );
    check(
        &stranger(answer("200 OK", JSON, "")),
        &metadata,
        "4 error: no arena server at URL (check --url): the response is an empty answer (HTTP 200)",
    );
    check(
        &stranger(answer("301 Moved", "location: https://arena.example/", "")),
        &metadata,
        "4 error: no arena server at URL (check --url): the response is a redirect to https://arena.example/; give --url the final address",
    );
    let ssh = stranger("SSH-2.0-OpenSSH\r\n".to_owned());
    check(
        &ssh,
        &metadata,
        "4 error: no arena server at URL (check --url): the response is something that isn't HTTP (http parse fail: invalid HTTP version)",
    );
}

#[test]
fn refusals_contain_the_arenas_sentence_and_code() {
    let refused = answer("400 Bad Request", JSON, r#"{"error":"Guess too\u001b large.","code":"GUESS_TOO_LARGE"}"#);
    check(
        &stranger(refused),
        &["challenges", "send", "ID", "guess", "1"],
        "3 error: the server refused the request: Guess too\\u{1b} large. (GUESS_TOO_LARGE, HTTP 400)",
    );
    let failed = answer("503 Service Unavailable", JSON, r#"{"error":"the disk is full"}"#);
    check(
        &stranger(failed),
        &["chat", "send", "ID", "hello"],
        "5 error: the server failed: the disk is full (HTTP 503)",
    );
    let reasonless = answer("418 I'm a teapot", JSON, "[]");
    check(
        &stranger(reasonless),
        &["chat", "sync", "ID"],
        "3 error: the server refused the request: no reason given; the response was [] (HTTP 418)",
    );
    let nobody = answer("400 Bad Request", JSON, r#"{"error":"from is required"}"#);
    check(
        &stranger(nobody),
        &["chat", "send", "ID", "hello"],
        "3 error: the server refused the request: from is required; give --from INVITE, or --auth KEY if the server requires keys (HTTP 400)",
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
fn a_closed_pipe_is_no_error() {
    let mut child = arena(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
