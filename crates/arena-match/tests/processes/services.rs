//! Agents with services of the arena: the files in the scratch folder, and the only address that can be reached.

use std::io::{Read, Write};
use std::net::TcpListener;

use arena_match::process::{ExitCause, KillReason, Limits, SandboxMode, ScratchSetup, StartError};

use crate::agent::{Agent, Listeners, PATIENCE, read_to_end};

const TEXT: &str = r#"
import os
print(open("notes/a.txt").read(), sys.argv[1], os.environ["WHERE"])
def attempt(name, act):
    try:
        print(name, act())
    except OSError as error:
        print(name, error.strerror)
def ask(port):
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(b"hello")
        return connection.recv(9).decode()
attempt("service", lambda: ask(int(sys.argv[2])))
attempt("other port", lambda: ask(int(sys.argv[3])))
attempt("datagrams", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(sys.argv[2]))))
attempt("listener", lambda: socket.create_server(("127.0.0.1", 5000)) and "listens")
attempt("interfaces", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) and "opened")
"#;

fn setup(port: u16) -> ScratchSetup {
    ScratchSetup { files: vec![("notes/a.txt".into(), "in {folder}".to_owned())], port }
}

#[test]
fn an_agent_reaches_its_service_and_nothing_else() {
    let mut agent = Agent::python(SandboxMode::On, TEXT);
    let listeners = Listeners::open(agent.around.path());
    agent = agent.args(&["{folder}", "4000", &listeners.args[0]]);
    agent.spec.env = vec![("WHERE".into(), "{folder}/x".into())];
    agent.spec.setup = Some(setup(4000));
    let mut process = agent.start();
    let listener = TcpListener::from(process.take_listener().unwrap());
    let (mut connection, from) = listener.accept().unwrap();
    assert!(from.ip().is_loopback());
    let mut heard = [0; 5];
    connection.read_exact(&mut heard).unwrap();
    connection.write_all(b"welcome!!").unwrap();
    let output = read_to_end(&process.stdout);
    process.wait(PATIENCE);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[..2], ["in /tmp/agent /tmp/agent /tmp/agent/x", "service welcome!!"], "{output}");
    // Without Landlock, the namespace refuses the other port.
    assert!(["other port Permission denied", "other port Connection refused"].contains(&lines[2]), "{output}");
    assert_eq!((lines[3], lines[5]), ("datagrams Operation not permitted", "interfaces Operation not permitted"));
}

#[test]
fn what_waits_in_connections_counts_as_memory() {
    let text = r#"
import os
held = []
while True:
    connection = socket.create_connection(("127.0.0.1", 4000))
    connection.setblocking(False)
    held.append(connection)
    try:
        while True: connection.send(bytes(1 << 16))
    except BlockingIOError: pass
"#;
    let mut agent = Agent::python(SandboxMode::On, text);
    agent.spec.setup = Some(setup(4000));
    agent = agent.limits(Limits { memory_bytes: Some(100 << 20), ..Limits::default() });
    let mut process = agent.start();
    // The service never accepts a connection.
    let _listener = process.take_listener().unwrap();
    assert_eq!(process.ended(PATIENCE).unwrap().cause, ExitCause::Killed(KillReason::Memory));
}

#[test]
fn services_need_namespaces_or_no_sandbox() {
    let mut agent = Agent::python(SandboxMode::NoNamespaces, TEXT);
    agent.spec.setup = Some(setup(4000));
    assert!(matches!(agent.start_error(), StartError::NoSandbox { lacks } if lacks.contains("needs namespaces")));
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let mut agent = Agent::python(SandboxMode::Off, "print(open('notes/a.txt').read() == 'in ' + os.getcwd())");
    agent.spec.setup = Some(setup(port));
    assert_eq!(agent.run("").stdout, "True\n");
}
