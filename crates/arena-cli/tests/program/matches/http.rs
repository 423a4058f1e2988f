//! Agents that are HTTP servers, including servers with faults.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::MatchFixture;

const KIT: &str = include_str!("../../hostile/server.py");

/// An HTTP agent with a behavior. Its process is killed on drop.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(fixture: &MatchFixture, behavior: &str) -> Server {
        let script = fixture.script("server", "server.py", KIT);
        let mut child = Command::new("python3").arg(script).arg(behavior).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Server { child, url: format!("http://127.0.0.1:{}/", port.trim()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays a match of a server against an honest process, and checks the verdict on the server. An empty `verdict` means
/// that the server plays to the end.
#[track_caller]
fn check(behavior: &str, verdict: &str, detail: &str) {
    let fixture = MatchFixture::new();
    let server = Server::start(&fixture, behavior);
    let honest = fixture.agent("honest");
    // The time bank is long unless the server must exceed it.
    let bank_ms = if verdict == "TIMEOUT" { "4000" } else { "20000" };
    let options = ["food_catcher", "--set", "n_epochs=20", "--step-ms", "300", "--bank-ms", bank_ms];
    let finished = fixture.play(&[&options[..], &["--agent", &server.url, "--agent", &honest]].concat());
    drop(server);
    let result = finished.result().unwrap();
    fixture.check_nothing_remains();
    assert!(finished.took < Duration::from_secs(60) && finished.peak_bytes < 96 << 20, "{behavior}: {finished:?}");
    let seat = |number: u64| result["scores"].as_array().unwrap().iter().find(|seat| seat["seat"] == number).unwrap();
    assert_eq!(seat(1)["tainted"], false, "{behavior}: {result}");
    let (reason, sentence) = (&seat(0)["tainted_reason"], seat(0)["tainted_detail"].as_str().unwrap_or_default());
    assert_eq!(reason.as_str().unwrap_or_default(), verdict, "{behavior}: {result}");
    assert!(sentence.contains(detail), "{behavior}: {sentence}");
    if verdict.is_empty() {
        assert_eq!((&result["epochs"], &seat(0)["name"]), (&20.into(), &"far-away".into()), "{behavior}: {result}");
    } else {
        assert_eq!(result["outcome"]["winner"], seat(1)["agent_id"], "{behavior}: {result}");
    }
}

#[test]
fn a_server_plays_like_a_process() {
    check("plays", "", "");
}

#[test]
fn a_server_that_hangs_or_floods_does_not_delay_the_match() {
    // Most matches wait for time limits, so they are played at the same time.
    thread::scope(|scope| {
        for (behavior, verdict, detail) in [
            ("hangs", "TIMEOUT", "no answer within 4300 ms"),
            ("trickles", "TIMEOUT", "no answer within 4300 ms"),
            ("never_answers", "PING_FAIL", "no answer to the ping"),
            ("answers_five_megabytes", "OUTPUT_LIMIT", "beyond the limit"),
        ] {
            scope.spawn(move || check(behavior, verdict, detail));
        }
    });
}

#[test]
fn a_server_that_is_not_running_fails_at_startup() {
    let fixture = MatchFixture::new();
    let honest = fixture.agent("honest");
    // Nothing listens on port 1.
    let result = fixture.play(&["snake", "--agent", "http://127.0.0.1:1/", "--agent", &honest]).result().unwrap();
    assert_eq!(result["outcome"]["tainted_reason"], "STARTUP_FAIL", "{result}");
    assert_eq!(result["scores"][0]["name"], "honest", "{result}");
}
