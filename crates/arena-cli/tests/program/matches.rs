//! Matches, with agents of all sorts: what becomes of them, and that nothing of them is left.

mod hostile;
mod http;
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

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Run, arena};

/// The kit: one program, whose name is its behaviour.
const KIT: &str = include_str!("../hostile/agent.py");

/// Longest time that a match may hang before it is ended, whatever its own bound is.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long processes may take to go after the runner was killed.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// Room for agents and for temporary files, for one match. No other process has its path in its command line.
pub struct Room {
    folder: TempDir,
}

impl Room {
    /// An empty room. Agents may run as another user, so all may enter.
    pub fn new() -> Room {
        let room = Room { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(room.path().join("tmp")).unwrap();
        for folder in [room.path(), &room.path().join("tmp")] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        room
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An agent with this behaviour, in a folder of its own.
    pub fn agent(&self, behaviour: &str) -> String {
        self.script(behaviour, &format!("{behaviour}.py"), KIT)
    }

    /// A script in a folder of its own.
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

    /// The file with this name, beside the agents.
    pub fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// Begins a run of the binary.
    pub fn start(&self, args: &[&str]) -> Match {
        let mut command = arena(args);
        Match::start(command.env("TMPDIR", self.path().join("tmp")))
    }

    /// `arena match run` to its end, with results in JSON.
    pub fn play(&self, args: &[&str]) -> Finished {
        self.start(&[&["match", "run", "--json"], args].concat()).finish()
    }

    /// What agents left: processes, and temporary files.
    pub fn remains(&self) -> Vec<String> {
        let mut found = processes_with(self.path().to_str().unwrap());
        found.extend(orphaned_launchers());
        for entry in fs::read_dir(self.path().join("tmp")).unwrap() {
            found.push(entry.unwrap().path().display().to_string());
        }
        found
    }

    /// Waits until nothing is left, for as long as that may take when the runner was killed.
    #[track_caller]
    pub fn check_nothing_remains_soon(&self) {
        let by = Instant::now() + GONE_WITHIN;
        while !self.remains().is_empty() && Instant::now() < by {
            thread::sleep(Duration::from_millis(20));
        }
        self.check_nothing_remains();
    }

    /// Nothing may be left by now.
    #[track_caller]
    pub fn check_nothing_remains(&self) {
        assert_eq!(self.remains(), Vec::<String>::new());
    }

    /// Waits until so many processes of agents run.
    #[track_caller]
    pub fn wait_for_processes(&self, count: usize) {
        let by = Instant::now() + PATIENCE;
        while processes_with(self.path().to_str().unwrap()).len() < count {
            assert!(Instant::now() < by, "no {count} processes of agents");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A run of the binary under way. Killed when dropped.
pub struct Match {
    child: Child,
    pipes: Option<(JoinHandle<String>, JoinHandle<String>)>,
    began: Instant,
}

/// A run of the binary that is over.
#[derive(Debug)]
pub struct Finished {
    /// How, and what it printed.
    pub run: Run,
    /// How long it took.
    pub took: Duration,
    /// The most memory that the runner had resident.
    pub peak_bytes: u64,
}

impl Match {
    fn start(command: &mut Command) -> Match {
        let began = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pipes = (read(child.stdout.take().unwrap()), read(child.stderr.take().unwrap()));
        Match { child, pipes: Some(pipes), began }
    }

    /// The runner's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the runner a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end. A run that hangs is killed, and then has no exit code.
    pub fn finish(mut self) -> Finished {
        let mut peak_bytes = 0;
        let status = loop {
            // The peak only grows, so the last look before the end is next to all of it.
            peak_bytes = peak_bytes.max(memory(self.pid(), "VmHWM"));
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.began.elapsed() > PATIENCE {
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
        // It may have ended already, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// The result, or what went wrong instead.
    pub fn result(&self) -> Result<Value, String> {
        match serde_json::from_str(&self.run.stdout) {
            Ok(result) if self.run.code == 0 => Ok(result),
            _ => Err(format!("came to no result: {self:?}")),
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

/// A line of a process' status, in bytes; 0 once it is gone.
pub fn memory(pid: u32, key: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Processes of which the command line holds this text, with their command lines.
pub fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id();
    let other = |pid: &u32| *pid != own && !is_runner(*pid);
    pids().filter(other).map(command_line).filter(|line| line.contains(text)).collect()
}

/// Launchers of agents whose runner is gone and that stay. They tell nobody whose they are, and other tests kill runners; so each is
/// given the time that it has to go.
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

/// How many children a process has: running, or over and not yet seen to.
pub fn children(pid: u32) -> usize {
    pids().filter(|child| parent(*child) == Some(pid)).count()
}

/// Whether this is a runner, which names the agents in its arguments.
fn is_runner(pid: u32) -> bool {
    command_line(pid).contains("\0match\0run\0")
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The arguments, each with a zero behind it. A process that is over has none.
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
