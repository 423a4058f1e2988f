//! The start and the stop of a server.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread;
use std::time::Duration;

use arena_testkit::data_folder;
use rustix::process::Signal;

use crate::program::{Running, eventually, file, run};

/// Runs `serve` with arguments with which it can't start, and returns its error message.
#[track_caller]
fn refused(code: i32, args: &[&str]) -> String {
    let run = run(&[&["serve"], args].concat());
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{args:?}: {}", run.stderr);
    let sentences = run.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(sentences, 1, "{args:?}: {}", run.stderr);
    run.stderr
}

#[test]
fn second_server_on_the_same_folder_is_refused_with_the_reason() {
    let folder = data_folder();
    let data = folder.path().to_str().unwrap();
    let first = Running::serve(folder.path());
    let said = refused(6, &["--listen", "127.0.0.1:0", "--data", data]);
    assert!(said.contains(data) && said.contains("another"), "{said}");
    // The first server still works.
    assert_eq!(run(&["challenges", "create", "psi", "--url", &first.url]).code, 0);
}

#[test]
fn the_memory_of_a_server_has_no_huge_pages() {
    let folder = data_folder();
    let server = Running::serve(folder.path());
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", server.pid())).unwrap();
    let flags = |flag: &str| {
        let lines = maps.lines().filter_map(|line| line.strip_prefix("VmFlags:"));
        lines.filter(|flags| flags.split_ascii_whitespace().any(|other| other == flag)).count()
    };
    // The allocator asks for no huge pages in its areas, whatever the system's default is.
    assert!(flags("nh") > 0 && flags("hg") == 0, "{} and {}", flags("nh"), flags("hg"));
}

#[test]
fn signal_ends_the_server_gracefully() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = data_folder();
        let mut server = Running::serve(folder.path());
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(0), "{signal:?}");
    }
}

#[test]
fn a_service_manager_is_notified_of_start_and_stop() {
    let folder = data_folder();
    let file = folder.path().join("notify");
    let name = format!("arena-test-{}", std::process::id());
    let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
    for (manager, outcome) in [
        (UnixDatagram::bind(&file).unwrap(), file.display().to_string()),
        (UnixDatagram::bind_addr(&abstract_name).unwrap(), format!("@{name}")),
    ] {
        manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let hear = || {
            let mut message = [0; 64];
            let length = manager.recv(&mut message).unwrap();
            String::from_utf8_lossy(&message[..length]).into_owned()
        };
        let data = folder.path().join("data");
        let args = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
        let mut server = Running::start_with(&args, &[("NOTIFY_SOCKET", &outcome)]);
        assert_eq!(hear(), "READY=1");
        server.signal(Signal::TERM);
        assert_eq!(hear(), "STOPPING=1");
        assert_eq!(server.ended().code(), Some(0));
    }
    // A missing service manager doesn't prevent the start.
    let gone = folder.path().join("gone").display().to_string();
    let data = folder.path().join("data");
    let args = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let mut server = Running::start_with(&args, &[("NOTIFY_SOCKET", &gone)]);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().code(), Some(0));
}

/// Sends a request without the last byte of its body, and waits until the server reads it.
fn half_a_request(server: &Running) -> TcpStream {
    let mut stream = connect(server).unwrap();
    let head =
        "POST /api/challenges/psi HTTP/1.1\r\nhost: arena\r\ncontent-type: application/json\r\ncontent-length: 2";
    stream.write_all(format!("{head}\r\n\r\n{{").as_bytes()).unwrap();
    // After an answer on a later connection, the server has accepted this connection too.
    assert_eq!(run(&["challenges", "metadata", "--url", &server.url]).code, 0);
    stream
}

fn connect(server: &Running) -> std::io::Result<TcpStream> {
    TcpStream::connect(server.url.strip_prefix("http://").unwrap())
}

/// Sends a signal and waits until the server accepts no more connections.
fn signal_and_wait(server: &Running, signal: Signal) {
    server.signal(signal);
    while connect(server).is_ok() {
        thread::yield_now();
    }
}

#[test]
fn second_signal_ends_the_server_at_once() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let folder = data_folder();
        let mut server = Running::serve(folder.path());
        let _stream = half_a_request(&server);
        signal_and_wait(&server, Signal::TERM);
        server.signal(signal);
        assert_eq!(server.ended().code(), Some(code), "{signal:?}");
    }
}

#[test]
fn other_addresses_require_trust_network() {
    let folder = data_folder();
    let data = folder.path().to_str().unwrap();
    let said = refused(2, &["--listen", "0.0.0.0:0", "--data", data]);
    assert!(said.contains("--trust-network") && said.contains("claim to be any player"), "{said}");
    let config = file(folder.path(), "open.toml", "listen = \"0.0.0.0:0\"\n");
    refused(2, &["--config", &config, "--data", data]);
    let server = Running::start(&["serve", "--listen", "0.0.0.0:0", "--trust-network", "--data", data]);
    assert!(server.url.starts_with("http://0.0.0.0:"), "{}", server.url);
}

#[test]
fn invalid_settings_are_named() {
    let folder = data_folder();
    let said = |name: &str, text: &str| refused(2, &["--config", &file(folder.path(), name, text)]);
    let unknown = said("unknown.toml", "lisen = \"127.0.0.1:0\"\n");
    assert!(unknown.contains("lisen") && unknown.contains("unknown.toml"), "{unknown}");
    let mistyped = said("mistyped.toml", "listen = 7\n");
    assert!(mistyped.contains("listen"), "{mistyped}");
    let broken = said("broken.toml", "listen = \n");
    assert!(broken.contains("broken.toml"), "{broken}");
    let reference = said("config.json", r#"{"challenges": [{"name": "go-fish"}]}"#);
    assert!(reference.contains("go-fish"), "{reference}");
    let options = said("options.json", r#"{"challenges": [{"name": "psi", "options": {"setSice": 3}}]}"#);
    assert!(options.contains("setSice"), "{options}");
    let missing = refused(2, &["--config", "no-such-file.toml"]);
    assert!(missing.contains("no-such-file.toml"), "{missing}");
}

#[test]
fn configuration_of_the_reference_server_is_supported() {
    let folder = data_folder();
    let config = file(
        folder.path(),
        "config.json",
        r#"{"challenges": [{"name": "psi", "options": {"players": 2, "setSize": 4}}]}"#,
    );
    let data = folder.path().join("data");
    let server =
        Running::start(&["serve", "--config", &config, "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let metadata = run(&["challenges", "metadata", "psi", "--url", &server.url]).json();
    assert!(metadata["prompt"].as_str().unwrap().contains("set of 7 different"), "{metadata}");
}

#[test]
fn an_address_in_use_is_reported() {
    let folder = data_folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(7, &["--listen", &address, "--data", folder.path().to_str().unwrap()]);
    assert!(said.contains(&address), "{said}");
}

#[test]
fn port_of_the_environment_is_used_without_listen() {
    let folder = data_folder();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = held.local_addr().unwrap().port();
    let data = folder.path().to_str().unwrap();
    // The error names the port, so the server tried the port of the environment.
    let output = crate::program::arena(&["serve", "--data", data]).env("PORT", taken.to_string()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{taken}")), "{said}");
    drop(held);
}

#[test]
fn log_can_be_json_lines() {
    let folder = data_folder();
    let data = folder.path().to_str().unwrap();
    let mut server =
        Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", data, "--log-format", "json", "--log", "debug"]);
    run(&["challenges", "create", "psi", "--url", &server.url]).json();
    server.signal(Signal::TERM);
    server.ended();
    let said = server.said();
    assert!(!said.is_empty());
    for line in said.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
}

#[test]
fn old_games_are_archived_by_their_age_and_stay_readable() {
    let folder = data_folder();
    let data = folder.path().join("data");
    let settings = file(folder.path(), "arena.toml", "[retention]\narchive_after_days = 2\n");
    let server = Running::serve(&data);
    let client = server.client();
    let [old, young] = [(); 2].map(|()| {
        let (session, invites) = client.create("psi");
        invites.iter().for_each(|invite| drop(client.join(invite).ok()));
        client.chat(&session, &invites[0], "well met").ok();
        invites.iter().for_each(|invite| drop(client.act(&session, invite, "guess", "1").ok()));
        session
    });
    server.stop();
    // Nobody waits for days: the end of one game is moved into the past.
    let database = rusqlite::Connection::open(data.join("arena.sqlite3")).unwrap();
    let age = "UPDATE sessions SET ended_at = ended_at - 3 * 24 * 3600 * 1000 WHERE id = ?1";
    assert_eq!(database.execute(age, [&old]).unwrap(), 1);
    let stored = |session: &str| -> i64 {
        let sql = "SELECT count(*) FROM messages m JOIN sessions s ON s.no = m.session WHERE s.id = ?1";
        database.query_row(sql, [session], |row| row.get(0)).unwrap()
    };
    let listen = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap(), "--config", &settings];
    let server = Running::start(&listen);
    eventually("the old game is archived", || (stored(&old) == 0).then_some(()));
    assert!(stored(&young) > 0);
    for session in [&old, &young] {
        let chat = server.client().get(&format!("/api/chat/sync?channel={session}")).ok();
        assert_eq!(chat["messages"][0]["content"], "well met");
    }
    server.stop();
}
