//! Runs of the binary under test: to its end, or as a server in the background.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use arena_testkit::Client;
#[allow(unused_imports, reason = "not every test binary waits")]
pub use arena_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The time limit for any step. It is far longer than needed, because build machines are slow and busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a command with these arguments, without environment variables that would change its behavior.
pub fn arena(args: &[&str]) -> Command {
    arena_at(Path::new(env!("CARGO_BIN_EXE_arena")), args)
}

/// Returns a command of another build of the program, like [`arena`].
pub fn arena_at(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    let names = "HTTP_PROXY http_proxy ALL_PROXY all_proxy ARENA_URL ARENA_AUTH ARENA_CACERT ARENA_ADMIN_TOKEN \
        ARENA_CREATOR_KEY ARENA_LOG ARENA_NATS_URL AUTH_SECRET ADMIN_TOKEN PORT DATABASE_URL NATS_URL";
    for name in names.split(' ') {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// Returns the output of a successful run as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

pub fn run(args: &[&str]) -> Run {
    run_with(args, &[])
}

/// Runs the binary to its end with these environment variables.
pub fn run_with(args: &[&str], environment: &[(&str, &str)]) -> Run {
    finished(arena(args).envs(environment.iter().copied()).output().unwrap())
}

pub fn finished(output: Output) -> Run {
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server in the background, which is killed on drop.
pub struct Running {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: Option<thread::JoinHandle<String>>,
    pub url: String,
}

/// Starts a program. Returns it, its lines of stdout as they come, and a thread that returns stderr after the end.
pub fn piped(mut command: Command) -> (Child, mpsc::Receiver<String>, thread::JoinHandle<String>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
            // The receiver may be gone, because the test has ended.
            let _ = line_out.send(line);
        }
    });
    (child, lines, stderr)
}

impl Running {
    /// Starts the binary and waits until it prints its URL.
    pub fn start(args: &[&str]) -> Running {
        Running::start_with(args, &[])
    }

    /// Starts the binary, as [`Running::start`], with these environment variables.
    pub fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Running {
        Running::start_saying("arena listens on ", args, environment)
    }

    /// Starts the binary, as [`Running::start_with`], with another text before the URL.
    pub fn start_saying(beginning: &str, args: &[&str], environment: &[(&str, &str)]) -> Running {
        let mut command = arena(args);
        command.envs(environment.iter().copied());
        Running::start_command(beginning, command)
    }

    /// Starts a command of the program, as [`Running::start_saying`].
    pub fn start_command(beginning: &str, command: Command) -> Running {
        let (child, stdout, stderr) = piped(command);
        let mut running = Running { child, stdout, stderr: Some(stderr), url: String::new() };
        running.url = running.line_after(beginning);
        running
    }

    /// Starts a server on a free port, with its store in `folder`.
    pub fn serve(folder: &Path) -> Running {
        Running::start(&["serve", "--listen", "127.0.0.1:0", "--data", folder.to_str().unwrap()])
    }

    /// Reads stdout up to a line with this beginning, and returns the rest of that line.
    #[track_caller]
    pub fn line_after(&mut self, beginning: &str) -> String {
        let until = Instant::now() + TIMEOUT;
        let mut seen = Vec::new();
        loop {
            match self.stdout.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => match line.strip_prefix(beginning) {
                    Some(rest) => return rest.to_owned(),
                    None => seen.push(line),
                },
                Err(_) => {
                    // The process is killed, so that stderr, which contains the reason, can be read to its end.
                    let _ = self.child.kill();
                    let stderr = self.stderr.take().unwrap().join().unwrap();
                    panic!("no line starts with {beginning:?}; stdout: {seen:#?}; stderr: {stderr}");
                }
            }
        }
    }

    /// Returns the unread lines of stdout of a finished process.
    pub fn rest(&self) -> Vec<String> {
        self.stdout.iter().collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns a value from the process's status, such as `VmHWM`, in bytes.
    pub fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let kib =
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().strip_suffix(" kB"));
        kib.unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Stops a server, which must end without an error.
    #[track_caller]
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.ended().code(), Some(0));
    }

    pub fn client(&self) -> Client {
        Client::new(self.url.strip_prefix("http://").expect("an http address").parse().expect("an address"))
    }

    /// Waits for the process to end by itself.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the process doesn't end");
            // The standard library has no wait for a child with a timeout, so the test polls.
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the content of stderr of a finished process.
    pub fn said(&mut self) -> String {
        self.stderr.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes a file into a folder and returns its path.
pub fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
