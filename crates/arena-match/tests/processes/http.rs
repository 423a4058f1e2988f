//! Agents behind HTTP: test servers on the loopback interface, each with its own kind of answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use arena_match::{Agent, CheckPlan, Confinement, MatchPlan, PlayedMatch, SandboxMode, check, play_match};
use arena_model::{Seed, TimeLimits};
use expect_test::expect;
use serde_json::{Map, Value, json};

use crate::agent::launcher;
use crate::check::BESIDE_THE_POINT;

enum Answer {
    /// The end of the status line, and the body.
    Whole(&'static str, String),
    /// These bytes, after which the connection is closed.
    Raw(String),
}

impl Answer {
    fn ok(body: impl Into<String>) -> Answer {
        Answer::Whole("200 OK", body.into())
    }
}

/// Starts a server with these answers. Returns its address and the received messages.
fn serve(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/agent", listener.local_addr().unwrap());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (answer, noted) = (Arc::new(answer), Arc::clone(&heard));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
            thread::spawn(move || converse(&stream, &*answer, &noted));
        }
    });
    (address, heard)
}

/// Answers the messages of one connection until it is closed.
fn converse(stream: &TcpStream, answer: &dyn Fn(&Value) -> Answer, heard: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream);
    while let Some(message) = request(&mut reader) {
        heard.lock().unwrap().push(message.clone());
        let mut stream = stream;
        let (response, is_last) = match answer(&message) {
            Answer::Whole(status, body) => {
                (format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()), false)
            }
            Answer::Raw(bytes) => (bytes, true),
        };
        if stream.write_all(response.as_bytes()).is_err() || is_last {
            return;
        }
    }
}

fn request(reader: &mut BufReader<&TcpStream>) -> Option<Value> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let header = line.trim_end().to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// Returns a correct agent's answer. The agent's id comes from `set_agent_id`, or is the first id in a state.
fn proper(message: &Value) -> String {
    let id = message["agent_ids"][0].as_str().or(message["set_agent_id"].as_str());
    match id {
        Some(id) => json!({"agent_id": id, "agent_name": "far", "actions": []}).to_string(),
        None => json!({"pong": "pong"}).to_string(),
    }
}

/// Plays three epochs with a single agent at this address.
fn play(address: &str) -> PlayedMatch {
    play_at(address, false)
}

fn play_at(address: &str, public_only: bool) -> PlayedMatch {
    let agent = Agent::find(address, "").unwrap();
    let options = Map::from_iter([("n_epochs".to_owned(), json!(3))]);
    let confinement = Confinement { public_only, ..Confinement::new(launcher(), SandboxMode::Off) };
    let plan = MatchPlan {
        game: arena_games::game("cherry_picker").unwrap(),
        options: &options,
        seed: Seed::from_number(1),
        limits: TimeLimits { step_ms: 2000, bank_ms: 0 },
        agents: vec![&agent],
        confinement: &confinement,
        adjudication: None,
    };
    play_match(&plan, None, None, &AtomicBool::new(false)).unwrap()
}

/// Plays a match with a correct server, except for its answers to states.
#[track_caller]
fn states(answer: impl Fn(&Value) -> Answer + Send + Sync + 'static, expected: &str) {
    let (address, _) = serve(move |message| match message["epoch"].is_u64() {
        true => answer(message),
        false => Answer::ok(proper(message)),
    });
    tell(&address, expected);
}

#[track_caller]
fn tell(address: &str, expected: &str) {
    let played_match = play(address);
    let seat = &played_match.result.seats[0];
    let mut actual = format!("{} epochs, {} faults\n", played_match.result.epochs, seat.faults);
    for same in played_match.logs[0].faults.chunk_by(|a, b| (&a.what, &a.line) == (&b.what, &b.line)) {
        actual += &format!("{}: {} <- {}\n", same.len(), same[0].what, same[0].line);
    }
    if let (Some(verdict), Some(detail)) = (seat.verdict, &seat.detail) {
        actual += &format!("{verdict}: {detail}\n");
    }
    assert_eq!(actual.replace(address, "URL").trim_end(), expected);
}

#[test]
fn a_server_plays() {
    let (address, heard) = serve(|message| Answer::ok(proper(message)));
    let played_match = play(&address);
    let seat = &played_match.result.seats[0];
    assert_eq!(
        (seat.agent.name.as_str(), seat.verdict.is_some(), seat.faults, played_match.result.epochs),
        ("far", false, 0, 3)
    );
    let heard = heard.lock().unwrap();
    let keys: Vec<&str> = (heard.iter())
        .map(|message| {
            let known = ["ping", "set_agent_id", "epoch", "stop"];
            known.into_iter().find(|key| !message[key].is_null()).unwrap_or("none of them")
        })
        .collect();
    assert_eq!(keys, ["ping", "set_agent_id", "epoch", "epoch", "epoch", "stop"]);
}

#[test]
fn json_may_have_line_ends() {
    states(
        |message| {
            let answer: Value = serde_json::from_str(&proper(message)).unwrap();
            Answer::ok(serde_json::to_string_pretty(&answer).unwrap().replace('\n', "\r\n") + "\r\n")
        },
        "3 epochs, 0 faults",
    );
}

#[test]
fn what_is_no_answer_is_a_fault() {
    states(
        |_| Answer::Whole("500 Internal Server Error", "KeyError: 'foods'".to_owned()),
        "3 epochs, 3 faults\n3: the line isn't JSON (expected value at line 1 column 1); logs belong on stderr <- HTTP 500 Internal Server Error: KeyError: 'foods'",
    );
    states(
        |_| Answer::ok("<html>"),
        "3 epochs, 3 faults\n3: the line isn't JSON (expected value at line 1 column 1); logs belong on stderr <- <html>",
    );
    states(|_| Answer::ok(""), "3 epochs, 3 faults\n3: the reply lacks `agent_id` <- {}");
    states(
        |_| Answer::Whole("204 No Content", String::new()),
        "3 epochs, 3 faults\n3: the reply lacks `agent_id` <- {}",
    );
}

#[test]
fn redirects_are_not_followed() {
    let (elsewhere, heard) = serve(|message| Answer::ok(proper(message)));
    let location = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    states(
        move |_| Answer::Raw(location.clone()),
        "3 epochs, 3 faults\n3: the line isn't JSON (expected value at line 1 column 1); logs belong on stderr <- HTTP 307 Temporary Redirect",
    );
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn connections_that_break_end_it() {
    states(|_| Answer::Raw(String::new()), "1 epochs, 0 faults\nCRASHED: closed the connection without an answer");
    states(
        |_| Answer::Raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"agent_id\"".to_owned()),
        "3 epochs, 3 faults\n3: the line isn't JSON (expected ident at line 1 column 2); logs belong on stderr <- the answer is incomplete: Peer disconnected",
    );
    states(
        |_| Answer::Raw("no HTTP at all\r\n\r\n".to_owned()),
        "1 epochs, 0 faults\nCRASHED: doesn't speak HTTP (http parse fail: invalid HTTP version)",
    );
}

#[test]
fn a_connection_that_is_closed_between_two_messages_is_opened_again() {
    states(
        |message| {
            let body = proper(message);
            Answer::Raw(format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
        },
        "3 epochs, 0 faults",
    );
}

#[test]
fn a_connection_that_is_closed_without_a_word_is_opened_again() {
    for _ in 0..100 {
        states(
            |message| {
                let body = proper(message);
                Answer::Raw(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
            },
            "3 epochs, 0 faults",
        );
    }
}

#[test]
fn a_server_that_is_late_is_not_waited_for() {
    let began = Instant::now();
    states(
        |message| {
            thread::sleep(Duration::from_secs(6));
            Answer::ok(proper(message))
        },
        "1 epochs, 0 faults\nTIMEOUT: no answer within 2000 ms (2000 ms a step and 0 ms in the bank)",
    );
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[test]
fn an_answer_of_five_megabytes_is_too_long() {
    states(
        |_| Answer::ok(" ".repeat(5 << 20)),
        "1 epochs, 0 faults\nOUTPUT_LIMIT: wrote a line or unrequested output beyond the limit",
    );
    states(|message| Answer::ok(format!("{}{}", proper(message), " ".repeat((1 << 20) - 200))), "3 epochs, 0 faults");
}

#[test]
fn where_nobody_listens_no_match_begins() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/agent", listener.local_addr().unwrap());
    drop(listener);
    tell(&address, "0 epochs, 0 faults\nSTARTUP_FAIL: can't be reached: Connection refused (os error 111)");
}

#[test]
fn servers_can_be_checked() {
    let (address, _) = serve(|message| match message["epoch"].as_u64() {
        Some(20) => Answer::Whole("500 Internal Server Error", "KeyError: 'foods'".to_owned()),
        _ => Answer::ok(proper(message)),
    });
    let agent = Agent::find(&address, "").unwrap();
    let confinement = Confinement::new(launcher(), SandboxMode::Off);
    let games = [arena_games::game("food_catcher").unwrap()];
    let plan = CheckPlan { agent: &agent, games: &games, seed: &Seed::from_number(1), confinement: &confinement };
    let checked = check(plan, &AtomicBool::new(false)).unwrap();
    let actual: Vec<String> = checked
        .findings
        .iter()
        .filter(|finding| !BESIDE_THE_POINT.iter().any(|known| finding.what.starts_with(known)))
        .map(|finding| format!("{:?}: {} <- {:?}\n", finding.severity, finding.what, finding.line))
        .collect();
    expect![[r#"
        Wrong: the line isn't JSON (expected value at line 1 column 1); logs belong on stderr <- Some("HTTP 500 Internal Server Error: KeyError: 'foods'")
        Advice: doesn't send its version <- Some("{\"actions\":[],\"agent_id\":\"878df9b8-362f-4cc5-8097-12d606f70be5\",\"agent_name\":\"far\"}")
        Advice: doesn't answer a `ping` that comes with a state <- Some("{\"actions\":[],\"agent_id\":\"878df9b8-362f-4cc5-8097-12d606f70be5\",\"agent_name\":\"far\"}")
    "#]].assert_eq(&actual.concat());
}

#[test]
fn where_only_public_addresses_are_asked_nobody_else_hears_of_it() {
    let (address, heard) = serve(|message| Answer::ok(proper(message)));
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    for address in [address, format!("http://localhost:{port}")] {
        let played_match = play_at(&address, true);
        let seat = &played_match.result.seats[0];
        expect!["can't be reached: its address isn't a public one"].assert_eq(&seat.detail.clone().unwrap_or_default());
    }
    assert!(heard.lock().unwrap().is_empty());
}
