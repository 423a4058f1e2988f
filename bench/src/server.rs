//! The server under load, which is a child process: the real `arena` binary, or this binary as the ceiling. The module
//! starts the server, reads the address from its output, measures its usage, and stops it by its process id.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::usage::Usage;

/// The time limit for a server to print its address.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The time limit for a server to end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The prefix of the names of arenas' folders. The process id of the creator follows.
const PREFIX: &str = "arena-";

/// For sessions that stay open for longer than ten minutes. Open sessions are never removed.
pub const KEEP_OPEN_SESSIONS: &str = "[sessions]\nstale_open_s = 0\n";

/// The folder of one arena: its data, its configuration and its log. Removed when dropped.
pub struct ArenaFolder {
    folder: TempDir,
    binary: PathBuf,
    config: Option<PathBuf>,
}

impl ArenaFolder {
    /// Creates an empty folder below `work`, for the arena at `binary`; `config` is the text of an `arena.toml`.
    ///
    /// # Errors
    /// If the folder can't be created.
    pub fn new(binary: &Path, work: &Path, config: Option<&str>) -> anyhow::Result<ArenaFolder> {
        fs::create_dir_all(work).with_context(|| format!("could not create {}", work.display()))?;
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", process::id()))
            .tempdir_in(work)
            .with_context(|| format!("could not create a folder in {}", work.display()))?;
        let config = match config {
            None => None,
            Some(text) => {
                let path = folder.path().join("arena.toml");
                fs::write(&path, text).context("could not write arena.toml")?;
                Some(path)
            }
        };
        Ok(ArenaFolder { folder, binary: binary.to_owned(), config })
    }

    /// Starts an arena on this folder. A second start uses the data of the first one.
    ///
    /// # Errors
    /// If the arena doesn't start. The error contains the end of its log.
    pub fn start(&self) -> anyhow::Result<Server> {
        self.start_with(&[])
    }

    /// Starts an arena on this folder with these environment variables.
    ///
    /// # Errors
    /// As [`ArenaFolder::start`].
    pub fn start_with(&self, environment: &[(&str, String)]) -> anyhow::Result<Server> {
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(self.folder.path().join("data"));
        command.envs(environment.iter().cloned());
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        Server::start(command, "arena", &self.folder.path().join("arena.log"))
    }

    /// Returns the number of bytes below this folder.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn size(&self) -> anyhow::Result<u64> {
        size_of(self.folder.path())
    }
}

/// Checks that the binary exists.
///
/// # Errors
/// If the binary doesn't exist. The error names the command that builds it.
pub fn check_binary(binary: &Path) -> anyhow::Result<()> {
    ensure!(
        binary.is_file(),
        "{} doesn't exist; build it with `cargo build --profile dist`, or give another path with --arena",
        binary.display()
    );
    Ok(())
}

/// Removes the folders of killed runs, because a store of a million sessions is large.
///
/// # Errors
/// If such a folder can't be removed.
pub fn sweep(work: &Path) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(work) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            fs::remove_dir_all(entry.path()).with_context(|| format!("could not remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

fn size_of(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

/// A running server, which is killed on drop.
pub struct Server {
    child: Child,
    address: SocketAddr,
    spawned: Instant,
}

impl Server {
    /// Starts this binary as the ceiling.
    ///
    /// # Errors
    /// If the ceiling doesn't start.
    pub fn start_ceiling(work: &Path) -> anyhow::Result<Server> {
        let binary = std::env::current_exe().context("could not find this binary's own path")?;
        fs::create_dir_all(work).with_context(|| format!("could not create {}", work.display()))?;
        let mut command = Command::new(binary);
        command.arg("ceiling-server");
        Server::start(command, "ceiling", &work.join("ceiling.log"))
    }

    fn start(mut command: Command, name: &str, log: &Path) -> anyhow::Result<Server> {
        let log_file =
            File::options().create(true).append(true).open(log).context("could not open the server's log")?;
        let spawned = Instant::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .with_context(|| format!("could not start {}", command.get_program().to_string_lossy()))?;
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let (found, address) = mpsc::channel();
        // The thread continues to read after the address, so that the server never writes into a closed pipe. It ends
        // when the server ends.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(address) = address_in(&line) {
                    // Only the first address is needed.
                    found.send(address).ok();
                }
            }
        });
        let address = address.recv_timeout(START_LIMIT);
        match address {
            Ok(address) => Ok(Server { child, address, spawned }),
            Err(_) => {
                // An error means that the server has ended by itself.
                child.kill().ok();
                let status = child.wait().context("could not wait for the server")?;
                bail!("{name} did not start ({status}); its log ends with: {}", tail_of(log));
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the start time of the process.
    pub fn spawned(&self) -> Instant {
        self.spawned
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the server's usage so far.
    ///
    /// # Errors
    /// If the server has ended.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid())
    }

    /// Sends SIGTERM, waits until the server has ended, and returns the duration.
    ///
    /// # Errors
    /// If the server doesn't end in time or ends with a failure.
    pub fn terminate(mut self) -> anyhow::Result<Duration> {
        let asked = Instant::now();
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM).context("could not send SIGTERM")?;
        let Some(status) = self.wait(STOP_LIMIT)? else {
            bail!("the server was still running {} s after SIGTERM", STOP_LIMIT.as_secs());
        };
        let took = asked.elapsed();
        if !status.success() {
            bail!("the server ended with {status} after SIGTERM");
        }
        Ok(took)
    }

    /// Sends SIGKILL and waits until the server has ended.
    ///
    /// # Errors
    /// If the server can't be killed.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().context("could not send SIGKILL")?;
        self.child.wait().context("could not wait for the server")?;
        Ok(())
    }

    fn wait(&mut self, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            let status = self.child.try_wait().context("could not wait for the server")?;
            if status.is_some() || Instant::now() > until {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `terminate` or `kill` the process has ended, and these calls do nothing.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns the first `http://IP:PORT` in a line.
fn address_in(line: &str) -> Option<SocketAddr> {
    let rest = &line[line.find("http://")? + "http://".len()..];
    let end = rest.find(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c))).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns the end of a log, for an error message.
fn tail_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(3)..].join(" / ");
    if tail.is_empty() { "(nothing)".to_owned() } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_dead_processes_are_swept() {
        let work = tempfile::tempdir().unwrap();
        let mine = format!("arena-{}-abc", process::id());
        // No process has the id 4294967295.
        for name in ["arena-4294967295-abc", &mine, "arena-abc", "other"] {
            fs::create_dir(work.path().join(name)).unwrap();
        }
        sweep(work.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(work.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [mine.as_str(), "arena-abc", "other"]);
    }

    #[test]
    fn the_address_is_found_in_any_text() {
        let found = |line| address_in(line).map(|address| address.to_string());
        assert_eq!(found("arena listens on http://127.0.0.1:4711").as_deref(), Some("127.0.0.1:4711"));
        assert_eq!(found("page: http://127.0.0.1:80/ (Ctrl-C ends)").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(found("{\"url\":\"http://[::1]:9000\"}").as_deref(), Some("[::1]:9000"));
        assert_eq!(found("http://localhost is not an address"), None);
        assert_eq!(found("no address here"), None);
    }
}
