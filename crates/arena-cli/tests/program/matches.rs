//! Matches with agents of all kinds: their results, and the absence of leftover processes and files.

mod engines;
mod hostile;
mod http;
mod kept;
mod model;
mod refused;
mod signals;
mod soak;
mod table;

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arena_testkit::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Run, arena};

/// An agent whose behavior depends on its file name.
const KIT: &str = include_str!("../hostile/agent.py");

/// The time limit for any match.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit for processes to end after the runner was killed.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// A folder for the agents and temporary files of one match. Its path is unique, so it identifies the match's processes
/// by their command lines.
pub struct MatchFixture {
    folder: TempDir,
}

impl MatchFixture {
    /// Creates an empty folder. The folder is accessible to all users, because agents may run as another user.
    pub fn new() -> MatchFixture {
        let fixture = MatchFixture { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(fixture.path().join("tmp")).unwrap();
        for folder in [fixture.path(), &fixture.path().join("tmp")] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        fixture
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Creates an agent with this behavior in its own folder, and returns its path.
    pub fn agent(&self, behavior: &str) -> String {
        self.script(behavior, &format!("{behavior}.py"), KIT)
    }

    /// Creates an executable script in its own folder, and returns its path.
    pub fn script(&self, folder: &str, name: &str, text: &str) -> String {
        let folder = self.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        for path in [&folder, &path] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        path.to_str().unwrap().to_owned()
    }

    /// Returns the path of a file beside the agents.
    pub fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn start(&self, args: &[&str]) -> Match {
        let mut command = arena(args);
        Match::start(command.env("TMPDIR", self.path().join("tmp")))
    }

    /// Runs `arena match run` to its end, with results in JSON.
    pub fn play(&self, args: &[&str]) -> Finished {
        self.start(&[&["match", "run", "--json"], args].concat()).finish()
    }

    /// Returns the leftover processes and temporary files of agents.
    pub fn remains(&self) -> Vec<String> {
        let mut found = processes_with(self.path().to_str().unwrap());
        found.extend(orphaned_launchers());
        for entry in fs::read_dir(self.path().join("tmp")).unwrap() {
            found.push(entry.unwrap().path().display().to_string());
        }
        found
    }

    /// Waits until nothing remains, for at most [`GONE_WITHIN`]. Use this after a kill of the runner.
    #[track_caller]
    pub fn check_nothing_remains_soon(&self) {
        let by = Instant::now() + GONE_WITHIN;
        while !self.remains().is_empty() && Instant::now() < by {
            thread::sleep(Duration::from_millis(20));
        }
        self.check_nothing_remains();
    }

    #[track_caller]
    pub fn check_nothing_remains(&self) {
        assert_eq!(self.remains(), Vec::<String>::new());
    }

    #[track_caller]
    pub fn wait_for_processes(&self, count: usize) {
        let marker = self.path().to_str().unwrap();
        until(&format!("{count} agents run"), || processes_with(marker).len() >= count);
    }
}

/// A running process of the binary, which is killed on drop.
pub struct Match {
    child: Child,
    pipes: Option<(JoinHandle<String>, JoinHandle<String>)>,
    began: Instant,
}

#[derive(Debug)]
pub struct Finished {
    pub run: Run,
    pub took: Duration,
    /// The runner's peak resident memory without the pages of its file, which depend on the build and the system.
    pub peak_bytes: u64,
}

impl Match {
    fn start(command: &mut Command) -> Match {
        let began = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pipes = (read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap()));
        Match { child, pipes: Some(pipes), began }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end of the run. A run that takes longer than [`TIMEOUT`] is killed, and has the exit code −1.
    pub fn finish(mut self) -> Finished {
        let mut peak_bytes = 0;
        let status = loop {
            // Memory that grows with an agent's output is held for longer than the time between two samples.
            peak_bytes = peak_bytes.max(memory(self.pid(), "RssAnon"));
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.began.elapsed() > TIMEOUT {
                self.child.kill().unwrap();
            }
            thread::sleep(Duration::from_millis(5));
        };
        let took = self.began.elapsed();
        let (stdout, stderr) = self.pipes.take().unwrap();
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        Finished { run: Run { code: status.code().unwrap_or(-1), stdout, stderr }, took, peak_bytes }
    }
}

impl Drop for Match {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Returns the result, or a message if the run printed no result.
    pub fn result(&self) -> Result<Value, String> {
        match serde_json::from_str(&self.run.stdout) {
            Ok(result) if self.run.code == 0 => Ok(result),
            _ => Err(format!("has no result: {self:?}")),
        }
    }
}

fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

/// Returns a value from the process's status, in bytes; 0 if the process has ended.
pub fn memory(pid: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Returns the command lines of the processes that contain this text.
pub fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id();
    let other = |pid: &u32| *pid != own && !is_runner(*pid);
    pids().filter(other).map(command_line).filter(|line| line.contains(text)).collect()
}

/// Returns agent launchers that still run after the end of their runner. Other tests kill runners at the same time, and
/// a launcher's runner is unknown, so each launcher gets time to end.
fn orphaned_launchers() -> Vec<String> {
    let ours = fs::canonicalize(env!("CARGO_BIN_EXE_arena")).unwrap();
    let is_our = |pid: u32| exe(pid).as_ref() == Some(&ours);
    let is_orphan = |pid: u32| {
        is_our(pid) && command_line(pid).contains("launch-agent") && parent(pid).is_some_and(|parent| !is_our(parent))
    };
    let mut orphans: Vec<u32> = pids().filter(|pid| is_orphan(*pid)).collect();
    let by = Instant::now() + GONE_WITHIN;
    while !orphans.is_empty() && Instant::now() < by {
        thread::sleep(Duration::from_millis(20));
        orphans.retain(|pid| is_orphan(*pid));
    }
    orphans.into_iter().map(|pid| format!("{pid} {}", command_line(pid))).collect()
}

/// Returns the number of a process's children: running, or ended and not yet reaped.
pub fn children(pid: u32) -> usize {
    pids().filter(|child| parent(*child) == Some(pid)).count()
}

/// Returns true if this process is a runner. The arguments of a runner contain the paths of the agents.
fn is_runner(pid: u32) -> bool {
    let line = command_line(pid);
    line.contains("\0match\0run\0") || line.contains("\0tournament\0run\0")
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns the arguments of a process, each followed by a zero byte. The text is empty if the process has ended.
fn command_line(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

fn exe(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
