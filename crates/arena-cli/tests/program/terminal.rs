//! Command output on a terminal: tables for people, without control sequences from other players.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;

use expect_test::expect_file;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::program::{Running, arena, folder, run};

/// Runs a command on its own pseudo-terminal, and returns its exit code and its output.
fn on_terminal(mut command: Command) -> (i32, String) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let mut child = command.env("TERM", "xterm").stdin(theirs()).stdout(theirs()).stderr(theirs()).spawn().unwrap();
    // The command has a handle of the terminal, which would keep the terminal open.
    drop(command);
    let (mut file, mut bytes, mut buffer) = (File::from(ours), Vec::new(), [0; 4096]);
    // The loop ends when the program has closed the terminal.
    while let Ok(read @ 1..) = file.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (code, String::from_utf8(bytes).unwrap().replace("\r\n", "\n"))
}

/// Starts a server that answers every request with this JSON.
fn saying(answer: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
    // The thread ends with the test process.
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while request.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            request.read_exact(&mut vec![0; length]).unwrap();
            // The client may have closed the connection already.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

/// A text that clears the screen, sets the title, changes colors in two ways, and reverses the writing direction.
const HOSTILE: &str = "Eve\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{9d}0;y\u{9c}\u{202e}\u{2066}\u{200f}";

#[test]
fn texts_from_others_cannot_control_a_terminal() {
    let session = json!({
        "id": HOSTILE, "challengeType": HOSTILE, "createdAt": 0, "invites": [HOSTILE],
        "state": {"status": HOSTILE, "players": [HOSTILE], "scores": []},
    });
    let rules = json!({
        "name": HOSTILE, "description": HOSTILE, "players": 2, "prompt": HOSTILE,
        "methods": [{"name": HOSTILE, "description": HOSTILE}],
        "options": [{"name": HOSTILE, "type": HOSTILE, "description": HOSTILE, "default": HOSTILE}],
    });
    let message = json!({"index": 1, "timestamp": 0, "from": HOSTILE, "to": HOSTILE, "content": HOSTILE});
    let user = json!({"userId": HOSTILE, "username": HOSTILE, "model": HOSTILE});
    let entry =
        json!({"playerId": HOSTILE, "gamesPlayed": 1, "metrics": {HOSTILE: 1}, "username": HOSTILE, "model": HOSTILE});
    let cases: [(&[&str], Value); 15] = [
        (&["challenges", "metadata"], json!({HOSTILE: rules})),
        (&["challenges", "metadata", "x"], rules.clone()),
        (&["challenges", "list"], json!({"challenges": [session], "total": 1, "offset": 0})),
        (&["challenges", "create", "x"], session.clone()),
        (
            &["challenges", "join", "inv_x"],
            json!({"ChallengeID": HOSTILE, "ChallengeInfo": rules, "sessionKey": HOSTILE}),
        ),
        (&["challenges", "sync", "x"], json!({"messages": [message], "count": 1})),
        (&["challenges", "send", "x", "y", "z"], json!({"ok": HOSTILE})),
        (&["chat", "sync", "x"], json!({"messages": [message], "count": 1})),
        (&["chat", "send", "x", "y"], json!({"index": 1, "channel": HOSTILE, "to": HOSTILE})),
        (&["session", "invites", "x", "--creator-key", "k"], json!({"invites": [HOSTILE]})),
        (&["scoring"], json!([entry])),
        (&["scoring", "x"], json!({HOSTILE: [entry]})),
        (&["users", "get"], json!([user])),
        (&["users", "get", "x"], user.clone()),
        // A malformed profile.
        (&["users", "get", "y"], json!({"surprise": HOSTILE})),
    ];
    for (args, answer) in cases {
        let text = answer.to_string();
        assert!(text.contains('\u{9b}'), "JSON lets C1 through: {text}");
        let url = saying(&text);
        let args = [args, &["--url", &url]].concat();
        let piped = run(&args);
        assert_eq!((piped.code, piped.stdout), (0, format!("{text}\n")), "{args:?}: output into a pipe is unchanged");
        for more in [&[][..], &["--json"]] {
            let (code, output) = on_terminal(arena(&[&args[..], more].concat()));
            assert_eq!(code, 0, "{args:?}: {output}");
            let steers = |char: &char| char.is_control() && *char != '\n' || "\u{202e}\u{2066}\u{200f}".contains(*char);
            assert_eq!(output.chars().find(steers), None, "{args:?} {more:?}: {output:?}");
            if more == ["--json"] {
                assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), answer, "{args:?}: {output}");
            }
        }
    }
}

#[test]
fn output_on_a_terminal_is_a_table() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let created = run(&["challenges", "create", "psi", "--url", &server.url]).json();
    let session = created["id"].as_str().unwrap();
    let [one, two] = [0, 1].map(|seat| created["invites"][seat].as_str().unwrap());
    for (invite, user) in [(one, "ada"), (two, "bob")] {
        run(&["challenges", "join", invite, "--user-id", user, "--url", &server.url]).json();
    }
    for invite in [one, two] {
        run(&["challenges", "send", session, "guess", "1", "--from", invite, "--url", &server.url]).json();
    }
    let output = |args: &[&str]| {
        let (code, output) = on_terminal(arena(&[args, &["--url", &server.url]].concat()));
        assert_eq!(code, 0, "{args:?}: {output}");
        output.replace(session, "SESSION").replace(one, "INVITE-1").replace(two, "INVITE-2")
    };
    let listed = output(&["challenges", "list", "psi"]);
    let row = listed.lines().find(|line| line.contains("SESSION")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        (cells[1], cells[2], cells[3], &cells[4..7]),
        ("SESSION", "psi", "ended", &["2", "of", "2"][..]),
        "{listed}"
    );
    assert!(listed.ends_with("\n1 to 1 of 1 session\n"), "{listed}");
    let messages = output(&["challenges", "sync", session, "--from", one]);
    assert!(messages.lines().any(|line| line.contains("INVITE-1 to operator: (guess) 1")), "{messages}");
    assert!(output(&["challenges", "metadata", "psi"]).contains("│ guess"));
    assert!(output(&["challenges", "metadata"]).contains("│ millionaire"));
    assert!(output(&["challenges", "create", "psi"]).contains("\narena play inv_"));
    assert!(output(&["users", "get"]).contains("│ ada"));
    assert_eq!(output(&["challenges", "list", "millionaire"]), "no sessions on this page (0 in total)\n");
    assert_eq!(output(&["chat", "sync", session]), "no messages\n");
}

#[test]
fn missing_objects_are_refused() {
    let folder = folder();
    let server = Running::serve(folder.path());
    let session = run(&["challenges", "create", "psi", "--url", &server.url]).json()["id"].as_str().unwrap().to_owned();
    let unknown = "01890000-0000-7000-8000-000000000000";
    let output: String = [
        &["challenges", "sync", "nope"][..],
        &["challenges", "sync", unknown],
        &["challenges", "sync", &format!("challenge_{unknown}")],
        &["chat", "sync", "nope"],
        &["chat", "sync", unknown],
        &["challenges", "list", "nope"],
        &["challenges", "metadata", "../psi"],
        &["challenges", "create", "nope"],
        &["challenges", "create", "psi", "--options", r#"{"players": 9}"#],
        &["challenges", "join", "inv_none"],
        &["scoring", "nope"],
        &["users", "get", "nope"],
        &["challenges", "sync", &session],
        &["chat", "sync", &session],
        &["chat", "sync", "invites"],
        &["challenges", "list", "millionaire"],
    ]
    .iter()
    .map(|args| {
        let run = run(&[args, &["--url", &server.url][..]].concat());
        assert_eq!(run.code == 0, !run.stdout.is_empty(), "{run:#?}");
        format!("{} {}: {}{}\n", args[0], args[1], run.code, run.stderr.trim_end().replace("error", ""))
    })
    .collect();
    expect_file!["terminal/missing_objects_are_refused.txt"].assert_eq(&output);
}

#[test]
fn options_of_other_verbs_are_refused() {
    let bot = "/bin/true";
    let output: String = [
        &["match", "run", "psi", "--agent", bot, "--agent", bot, "--set", "players=1"][..],
        &"tournament run psi --agent a=/bin/true --agent b=/bin/true --set players=3 --out x"
            .split(' ')
            .collect::<Vec<_>>(),
        &["match", "run", "psi", "--model", "x"],
        &["tournament", "run", "psi", "--model", "x"],
        &["match", "games", "--url", "http://127.0.0.1:1"],
        &["--auth", "KEY", "match", "games"],
        &["serve", "--from", "inv_1"],
        &["play", "--from", "inv_1", "--user-id", "ada"],
        &["play", "inv_1", "--patience", "1"],
        &["users", "get", "--cacert", "nowhere.pem"],
    ]
    .iter()
    .map(|args| {
        let run = run(args);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {run:#?}");
        run.stderr.lines().next().unwrap().to_owned() + "\n"
    })
    .collect();
    expect_file!["terminal/options_of_other_verbs_are_refused.txt"].assert_eq(&output);
}

#[test]
fn an_agents_stderr_is_truncated_and_escaped() {
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("bot");
    let script = "#!/bin/sh\nread ping\nprintf 'first\\n' >&2\nhead -c 200000 /dev/zero | tr '\\0' x >&2\n\
                  printf '\\033[2J\\033]0;x\\007\\302\\233y\\nlast\\033[2J\\n' >&2\nexit 3\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let path = path.to_str().unwrap();
    let (code, output) =
        on_terminal(arena(&["match", "run", "snake", "--agent", path, "--agent", path, "--seed", "1", "--no-live"]));
    assert_eq!(code, 0, "{output}");
    assert!(output.len() < 10_000, "{} bytes", output.len());
    assert_eq!(output.chars().find(|char| char.is_control() && *char != '\n'), None, "{output:?}");
    let quoted = format!("  | first\n  | {}… (200013 bytes)\n  | last\\u{{1b}}[2J\n", "x".repeat(300));
    assert_eq!(output.matches(&quoted).count(), 2, "{output}");

    let server = Running::serve(&folder.path().join("data"));
    let created = run(&["challenges", "create", "psi", "--url", &server.url]).json();
    let played = run(&["play", created["invites"][0].as_str().unwrap(), "--agent", path, "--url", &server.url]);
    assert_eq!(played.code, 12, "{played:#?}");
    assert!(
        played.stderr.len() < 5_000 && played.stderr.ends_with("… (200013 bytes)\nlast\\u{1b}[2J\n"),
        "{played:#?}"
    );
}
