//! Agents that are servers, and fail as servers do.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Room;

const KIT: &str = include_str!("../../hostile/server.py");

/// A server with a behaviour. Killed when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(room: &Room, behaviour: &str) -> Server {
        let script = room.script("server", "server.py", KIT);
        let mut child = Command::new("python3").arg(script).arg(behaviour).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Server { child, url: format!("http://127.0.0.1:{}/", port.trim()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays against an honest process: what is told of the server, and of the match.
#[track_caller]
fn check(behaviour: &str, verdict: &str, detail: &str) {
    let room = Room::new();
    let server = Server::start(&room, behaviour);
    let honest = room.agent("honest");
    // Who isn't to be late has time enough, and doesn't need it.
    let bank_ms = if verdict == "TIMEOUT" { "4000" } else { "20000" };
    let options = ["food_catcher", "--set", "n_epochs=20", "--step-ms", "300", "--bank-ms", bank_ms];
    let finished = room.play(&[&options[..], &["--agent", &server.url, "--agent", &honest]].concat());
    drop(server);
    let result = finished.result().unwrap();
    room.check_nothing_remains();
    assert!(finished.took < Duration::from_secs(60) && finished.peak_bytes < 64 << 20, "{behaviour}: {finished:?}");
    let seat = |number: u64| result["scores"].as_array().unwrap().iter().find(|seat| seat["seat"] == number).unwrap();
    assert_eq!(seat(1)["tainted"], false, "{behaviour}: {result}");
    let (reason, sentence) = (&seat(0)["tainted_reason"], seat(0)["tainted_detail"].as_str().unwrap_or_default());
    assert_eq!(reason.as_str().unwrap_or_default(), verdict, "{behaviour}: {result}");
    assert!(sentence.contains(detail), "{behaviour}: {sentence}");
    if verdict.is_empty() {
        assert_eq!((&result["epochs"], &seat(0)["name"]), (&20.into(), &"far-away".into()), "{behaviour}: {result}");
    } else {
        assert_eq!(result["outcome"]["winner"], seat(1)["agent_id"], "{behaviour}: {result}");
    }
}

#[test]
fn a_server_plays_like_a_process() {
    check("plays", "", "");
}

#[test]
fn a_server_that_fails_is_out_and_the_match_goes_on() {
    // What the next message meets: nobody, or a system that hasn't noticed yet that nobody is there.
    check("dies", "CRASHED", "");
    check("fails", "TOO_MANY_ERRORS", "isn't JSON");
    check("redirects", "TOO_MANY_ERRORS", "isn't JSON");
    check("answers_rubbish", "TOO_MANY_ERRORS", "isn't JSON");
    check("answers_nothing", "MISSING_AGENT_ID", "11 replies");
    check("answers_five_megabytes", "OUTPUT_LIMIT", "beyond all bounds");
    check("breaks_off", "TOO_MANY_ERRORS", "isn't JSON");
}

#[test]
fn a_server_that_hangs_holds_nobody_up() {
    check("hangs", "TIMEOUT", "no answer within 4300 ms");
    check("trickles", "TIMEOUT", "no answer within 4300 ms");
    check("never_answers", "PING_FAIL", "no answer to the ping");
}

#[test]
fn a_server_that_is_not_there_did_not_start() {
    let room = Room::new();
    let honest = room.agent("honest");
    // Nobody may listen on this port but root, and root doesn't.
    let result = room.play(&["snake", "--agent", "http://127.0.0.1:1/", "--agent", &honest]).result().unwrap();
    assert_eq!(result["outcome"]["tainted_reason"], "STARTUP_FAIL", "{result}");
    assert_eq!(result["scores"][0]["name"], "honest", "{result}");
}
