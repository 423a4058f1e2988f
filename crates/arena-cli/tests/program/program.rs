//! Runs the binary under test: once to its end, or as a server in the background.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longest time that anything here may take. Far more than it does, because build machines are slow and busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary with these arguments, and with nothing of the environment that would change what it does.
pub fn arena(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arena"));
    let proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let ours = [
        "ARENA_URL",
        "ARENA_AUTH",
        "ARENA_CACERT",
        "ARENA_ADMIN_TOKEN",
        "ARENA_LOG",
        "ARENA_NATS_URL",
        "AUTH_SECRET",
        "ADMIN_TOKEN",
        "PORT",
        "DATABASE_URL",
        "NATS_URL",
    ];
    for name in ours.iter().chain(&proxies) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
}

impl Run {
    /// What it printed, as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Runs the binary to its end.
pub fn run(args: &[&str]) -> Run {
    run_with(args, &[])
}

/// Runs the binary to its end, with these variables in its environment.
pub fn run_with(args: &[&str], environment: &[(&str, &str)]) -> Run {
    finished(arena(args).envs(environment.iter().copied()).output().unwrap())
}

/// What a process that has ended leaves behind.
pub fn finished(output: Output) -> Run {
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server (or a demo) that runs in the background. Killed when dropped.
pub struct Running {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: Option<thread::JoinHandle<String>>,
    /// Where it listens.
    pub url: String,
}

impl Running {
    /// Starts the binary and waits until it says where it listens.
    pub fn start(args: &[&str]) -> Running {
        Running::start_with(args, &[])
    }

    /// [`Running::start`], with these variables in its environment.
    pub fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Running {
        Running::start_saying("arena listens on ", args, environment)
    }

    /// [`Running::start_with`], where the line that says the address has another beginning.
    pub fn start_saying(beginning: &str, args: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut command = arena(args);
        command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            text
        });
        let (line_out, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // Nobody reads on once the test is over.
                let _ = line_out.send(line);
            }
        });
        let mut running = Running { child, stdout: lines, stderr: Some(stderr), url: String::new() };
        running.url = running.line_after(beginning);
        running
    }

    /// A server on a free port, with its store in `folder`.
    pub fn serve(folder: &Path) -> Running {
        Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()])
    }

    /// Reads stdout up to a line with this beginning, and returns the rest of that line.
    #[track_caller]
    pub fn line_after(&mut self, beginning: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            match self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match line.strip_prefix(beginning) {
                    Some(rest) => return rest.to_owned(),
                    None => seen.push(line),
                },
                Err(_) => {
                    // The reason is on stderr, which ends with the process.
                    let _ = self.child.kill();
                    let stderr = self.stderr.take().unwrap().join().unwrap();
                    panic!("no line begins with {beginning:?}; stdout: {seen:#?}; stderr: {stderr}");
                }
            }
        }
    }

    /// The lines of stdout that weren't read, once the process has ended.
    pub fn rest(&self) -> Vec<String> {
        self.stdout.iter().collect()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the process a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the process to end by itself.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the process goes on");
            // There is no waiting for a child with a timeout in std, so this one looks again and again.
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that the process said on stderr. It has to have ended.
    pub fn said(&mut self) -> String {
        self.stderr.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary folder.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes a file into a folder and returns its path.
pub fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
