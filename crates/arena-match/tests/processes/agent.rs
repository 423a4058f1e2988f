//! Helpers that run small agents in temporary folders.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use arena_match::process::{ActiveSandbox, Ended, Launcher, Limits, Process, SandboxMode, Spec, StartError, start};
use tempfile::TempDir;

/// Time limit of every step. It is far longer than needed, because build machines are slow and busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub const MODES: [SandboxMode; 3] = [SandboxMode::On, SandboxMode::NoNamespaces, SandboxMode::Off];

pub const CONFINED: [SandboxMode; 2] = [SandboxMode::On, SandboxMode::NoNamespaces];

/// The system's Python, in a place that all users can read.
pub const PYTHON: &str = "/usr/bin/python3";

pub fn launcher() -> Launcher {
    Launcher { program: env!("CARGO_BIN_EXE_arena-launch").into(), args: Vec::new() }
}

/// An agent in its own folder, which is removed with this value.
pub struct Agent {
    /// The parent of the agent's folder, for files that the agent mustn't see.
    pub around: TempDir,
    pub spec: Spec,
}

impl Agent {
    /// Creates an agent with this program text, including its first line.
    pub fn with_text(mode: SandboxMode, text: &str) -> Agent {
        let around = tempfile::tempdir().unwrap();
        // An agent that runs as another user must be able to enter the folder.
        fs::set_permissions(around.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let folder = fs::canonicalize(around.path()).unwrap().join("agent");
        fs::create_dir(&folder).unwrap();
        let program = folder.join("agent");
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let spec = Spec {
            setup: None,
            program,
            args: Vec::new(),
            folder,
            env: Vec::new(),
            expose: Vec::new(),
            hidden: Vec::new(),
            sandbox: mode,
            limits: Limits::default(),
        };
        Agent { around, spec }
    }

    pub fn python(mode: SandboxMode, text: &str) -> Agent {
        Agent::with_text(mode, &format!("#!{PYTHON}\nimport os, sys, socket, time, signal\n{text}"))
    }

    pub fn args(mut self, args: &[&str]) -> Agent {
        self.spec.args = args.iter().map(Into::into).collect();
        self
    }

    pub fn limits(mut self, limits: Limits) -> Agent {
        self.spec.limits = limits;
        self
    }

    #[track_caller]
    pub fn start(&self) -> Process {
        let mut process = start(&launcher(), &self.spec).unwrap();
        process.in_force().unwrap_or_else(|error| panic!("{error}"));
        process
    }

    pub fn start_error(&self) -> StartError {
        match start(&launcher(), &self.spec) {
            Ok(mut process) => process.in_force().expect_err("it should not start").clone(),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub fn run(&self, input: &str) -> Run {
        let mut process = self.start();
        let in_force = process.in_force().unwrap().clone();
        let stdin = process.stdin.take().unwrap();
        fs::File::from(stdin).write_all(input.as_bytes()).unwrap();
        let stdout = read_to_end(&process.stdout);
        let stderr = read_to_end(&process.stderr);
        Run { stdout, stderr, ended: process.wait(PATIENCE), in_force }
    }
}

#[derive(Debug)]
pub struct Run {
    pub stdout: String,
    pub stderr: String,
    pub ended: Ended,
    pub in_force: ActiveSandbox,
}

/// Reads until all writers have closed the pipe.
#[track_caller]
pub fn read_to_end(fd: &OwnedFd) -> String {
    let (text, at_end) = read_until(fd, |_| false);
    assert!(at_end, "the pipe is still open after {text:?}");
    text
}

#[track_caller]
pub fn read_line(fd: &OwnedFd) -> String {
    let (text, _) = read_until(fd, |text| text.ends_with('\n'));
    text.trim_end().to_owned()
}

fn read_until(fd: &OwnedFd, is_enough: impl Fn(&str) -> bool) -> (String, bool) {
    let until = Instant::now() + PATIENCE;
    let mut file = fs::File::from(fd.as_fd().try_clone_to_owned().unwrap());
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while Instant::now() < until && !is_enough(&String::from_utf8_lossy(&bytes)) {
        match file.read(&mut chunk) {
            Ok(0) => return (String::from_utf8_lossy(&bytes).into_owned(), true),
            Ok(read) => bytes.extend(&chunk[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
    }
    (String::from_utf8_lossy(&bytes).into_owned(), false)
}

#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "condition not met in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the ids of processes whose command line contains this text.
pub fn processes_with(marker: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        pid != std::process::id() && String::from_utf8_lossy(&command).contains(marker)
    })
    .collect()
}

/// Listeners of all kinds on this machine, and the arguments with which an agent can find them.
pub struct Listeners {
    _tcp: TcpListener,
    _udp: UdpSocket,
    _path: std::os::unix::net::UnixListener,
    _abstract: std::os::unix::net::UnixListener,
    pub args: Vec<String>,
}

impl Listeners {
    pub fn open(folder: &Path) -> Listeners {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixListener};
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let path: PathBuf = folder.join("socket");
        let by_path = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let name = format!("arena-test-{}-{}", std::process::id(), tcp.local_addr().unwrap().port());
        let by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let port = |address: std::net::SocketAddr| address.port().to_string();
        let args =
            vec![port(tcp.local_addr().unwrap()), port(udp.local_addr().unwrap()), path.display().to_string(), name];
        Listeners { _tcp: tcp, _udp: udp, _path: by_path, _abstract: by_name, args }
    }
}
