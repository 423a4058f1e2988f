//! The runner's side of an agent's process: starting it through the launcher, its pipes, its end.
//!
//! What the launcher does between [`start`] and the agent's first instruction is in [`crate::launcher`]. Everything here
//! blocks or is polled from a plain thread; nothing here is shared between agents.

mod report;
pub(crate) mod wire;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{self, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};

pub use arena_model::{Limits, SandboxMode};
pub use report::{Ended, How, InForce, KillReason, StartError};
use wire::{Order, Report};

use crate::launcher::scratch;

/// Longest time from [`start`] until the agent's program runs. It takes some milliseconds; a machine under load more.
const START_WITHIN: Duration = Duration::from_secs(10);

/// Longest time for all processes of an agent to be gone once that was asked for.
const GONE_WITHIN: Duration = Duration::from_secs(6);

/// The environment of the launcher's stages. The allocator that the program may have would otherwise commit a GiB before it is asked
/// for any, and a process with more than the limit of memory can start none that is held to that limit.
pub(crate) const LAUNCHER_ENV: [(&str, &str); 1] = [("MIMALLOC_ARENA_EAGER_COMMIT", "0")];

/// How to call the launcher: a program whose `main` hands the arguments after these to [`crate::launcher::main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The program, usually the one that is running.
    pub program: PathBuf,
    /// The arguments that make it the launcher.
    pub args: Vec<OsString>,
}

/// An agent to be started.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What to run: a path, or a bare name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments. Paths among them must be absolute, because the agent starts in its scratch folder.
    pub args: Vec<OsString>,
    /// The agent's own folder, which it can read.
    pub folder: PathBuf,
    /// Environment of the agent, besides `PATH`, `HOME`, `TMPDIR` and `LANG`. A `PATH` in here replaces the runner's.
    pub env: Vec<(OsString, OsString)>,
    /// Further files and folders that the agent may read.
    pub expose: Vec<PathBuf>,
    /// Files and folders that the agent can't read although they lie in what it may: its opponents', where they share a
    /// folder. What the agent itself is started from can't be hidden from it.
    pub hidden: Vec<PathBuf>,
    /// Whether it is confined.
    pub sandbox: SandboxMode,
    /// What it may use.
    pub limits: Limits,
}

/// An agent that was started, with our ends of its pipes: they don't block, and no other process inherits them.
///
/// Dropping it ends the agent and all its processes at once, and waits for that.
#[derive(Debug)]
pub struct Process {
    /// Where the agent reads; dropping it tells the agent that nothing more comes.
    pub stdin: Option<OwnedFd>,
    /// What the agent writes.
    pub stdout: OwnedFd,
    /// What it writes besides.
    pub stderr: OwnedFd,
    control: OwnedFd,
    launcher: Child,
    deadline: Instant,
    start: Option<Result<InForce, StartError>>,
    pidfd: Option<OwnedFd>,
    ended: Option<Ended>,
    hung_up: bool,
    reaped: bool,
}

/// Begins to start an agent. Several may start at the same time: this returns before the sandbox is up, and
/// [`Process::in_force`] waits for it. The agent inherits the processor affinity and the priority of the thread that
/// calls this.
///
/// # Errors
/// If the launcher can't be started or the description of the agent can't be told to it. What is wrong with the agent's
/// program is known later, by [`Process::in_force`].
pub fn start(launcher: &Launcher, spec: &Spec) -> Result<Process, StartError> {
    let order = order(spec).map_err(|error| StartError::Spec { reason: error.to_string() })?;
    let failed = |error: io::Error| StartError::Launcher {
        program: launcher.program.display().to_string(),
        reason: error.to_string(),
    };
    let ((stdin, agents_stdin), (stdout, agents_stdout), (stderr, agents_stderr)) =
        (|| Ok((pipe()?.swapped(), pipe()?.plain(), pipe()?.plain())))().map_err(failed)?;
    let (control, launchers_control) = wire::pair().map_err(failed)?;
    // The order waits in the socket for the launcher. Its files travel the same way, so no other process that is
    // started at this moment can inherit them.
    wire::send(&control, &order, &[agents_stdin.as_fd(), agents_stdout.as_fd(), agents_stderr.as_fd()])
        .map_err(|error| StartError::Spec { reason: error.to_string() })?;
    for fd in [&stdin, &stdout, &stderr] {
        fcntl_getfl(fd).and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK)).map_err(|e| failed(e.into()))?;
    }
    // No death signal ties the launcher to us: that would follow the thread that called, not the process. The end of
    // the control socket does it.
    let child = Command::new(&launcher.program)
        .args(&launcher.args)
        .env_clear()
        .envs(LAUNCHER_ENV)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(launchers_control))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    Ok(Process {
        stdin: Some(stdin),
        stdout,
        stderr,
        control,
        launcher: child,
        deadline: Instant::now() + START_WITHIN,
        start: None,
        pidfd: None,
        ended: None,
        hung_up: false,
        reaped: false,
    })
}

/// What this system confines agents by, in the mode that takes nothing less than namespaces: found out by starting a program that does
/// nothing.
///
/// # Errors
/// If it can't confine them so; says why.
pub fn try_sandbox(launcher: &Launcher) -> Result<InForce, StartError> {
    let spec = Spec {
        program: PathBuf::from("true"),
        args: Vec::new(),
        folder: PathBuf::from("/"),
        env: Vec::new(),
        expose: Vec::new(),
        hidden: Vec::new(),
        sandbox: SandboxMode::Required,
        limits: Limits::default(),
    };
    start(launcher, &spec)?.in_force().cloned()
}

/// The two ends of a pipe.
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    /// Our end first, for what we write.
    fn swapped(self) -> (OwnedFd, OwnedFd) {
        (self.writer, self.reader)
    }

    /// Our end first, for what we read.
    fn plain(self) -> (OwnedFd, OwnedFd) {
        (self.reader, self.writer)
    }
}

fn pipe() -> io::Result<Pipe> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(Pipe { reader, writer })
}

/// The order that starts an agent.
pub(crate) fn order(spec: &Spec) -> io::Result<Order> {
    let is_bare = !spec.program.as_os_str().as_encoded_bytes().contains(&b'/');
    let given = spec.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    Ok(Order {
        program: if is_bare { spec.program.clone() } else { path::absolute(&spec.program)? },
        args: spec.args.clone(),
        folder: path::absolute(&spec.folder)?,
        env: spec.env.iter().filter(|(name, _)| name != "PATH").cloned().collect(),
        search_path: given.or_else(|| env::var_os("PATH")).unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
        home: env::home_dir(),
        expose: spec.expose.iter().map(path::absolute).collect::<io::Result<_>>()?,
        hidden: spec.hidden.iter().map(path::absolute).collect::<io::Result<_>>()?,
        sandbox: spec.sandbox,
        limits: spec.limits,
        scratch_in: env::temp_dir(),
    })
}

impl Process {
    /// What confines the agent, once its program runs. Waits for that, but not for ever.
    ///
    /// # Errors
    /// Why the agent didn't start. The same answer comes each time.
    pub fn in_force(&mut self) -> Result<&InForce, StartError> {
        while self.start.is_none() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if !self.hear(left) {
                let waited_ms = START_WITHIN.as_millis().try_into().unwrap_or(u64::MAX);
                self.start = Some(Err(StartError::TooSlow { waited_ms }));
                self.kill();
            }
        }
        match &self.start {
            Some(Ok(in_force)) => Ok(in_force),
            Some(Err(error)) => Err(error.clone()),
            None => Err(StartError::Vanished),
        }
    }

    /// Whether the agent still runs, or is about to.
    pub fn is_running(&mut self) -> bool {
        while self.hear(Duration::ZERO) {}
        if self.ended.is_some() || self.hung_up || matches!(self.start, Some(Err(_))) {
            return false;
        }
        self.pidfd.as_ref().is_none_or(|pidfd| !wait_readable(pidfd, Duration::ZERO))
    }

    /// The agent's process id as seen from here, once it has started: for `/proc/PID/schedstat` and the like.
    pub fn agent_pid(&self) -> Option<u32> {
        let pidfd = self.pidfd.as_ref()?;
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse::<i64>().ok()?;
        // A process that is gone has -1 here.
        u32::try_from(pid).ok().filter(|&pid| pid > 0)
    }

    /// How the agent ended, if it does so within this time.
    pub fn ended(&mut self, within: Duration) -> Option<&Ended> {
        let until = Instant::now() + within;
        while self.ended.is_none() && self.hear(until.saturating_duration_since(Instant::now())) {}
        self.ended.as_ref()
    }

    /// The launcher's process id: the agent's processes are below it.
    pub fn launcher_pid(&self) -> u32 {
        self.launcher.id()
    }

    /// Has the agent and all its processes ended. Returns at once; [`Process::wait`] waits for it.
    pub fn kill(&mut self) {
        // The end of our side is the order to end: it arrives as well when we are killed.
        let _ = shutdown(&self.control, Shutdown::Write);
    }

    /// Waits until the agent has ended, for `grace` at most, then has it ended. Returns when all its processes are gone.
    pub fn wait(mut self, grace: Duration) -> Ended {
        self.finish(grace);
        match (self.ended.take(), &self.start) {
            (Some(ended), _) => ended,
            (None, start) => {
                let how = if matches!(start, Some(Err(_))) { How::NotStarted } else { How::Unknown };
                Ended { how, left_behind: 0, max_rss_bytes: 0, cpu_time_us: 0 }
            }
        }
    }

    fn finish(&mut self, grace: Duration) {
        if self.reaped {
            return;
        }
        let until = Instant::now() + grace.min(Duration::from_secs(24 * 60 * 60));
        while self.ended.is_none() && !self.hung_up {
            if !self.hear(until.saturating_duration_since(Instant::now())) {
                break;
            }
        }
        self.kill();
        let until = Instant::now() + GONE_WITHIN;
        while !self.hung_up {
            if !self.hear(until.saturating_duration_since(Instant::now())) {
                // Last resort. What the launcher started dies with it, by its death signal.
                if let Some(group) = i32::try_from(self.launcher.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                break;
            }
        }
        let status = self.launcher.wait();
        self.reaped = true;
        // A launcher that was killed couldn't clean up.
        if status.is_ok_and(|status| status.code().is_none()) {
            scratch::remove_left_by(self.launcher.id(), &env::temp_dir());
        }
    }

    /// Takes in one report, waiting for it at most so long. False if none came.
    fn hear(&mut self, within: Duration) -> bool {
        if self.hung_up || !wait_readable(&self.control, within) {
            return false;
        }
        match wire::receive(&self.control) {
            Ok(Some((Report::Started(in_force), fds))) => {
                self.start = Some(Ok(in_force));
                self.pidfd = fds.into_iter().next();
            }
            Ok(Some((Report::Failed(error), _))) => self.start = Some(Err(error)),
            Ok(Some((Report::Ended(ended), _))) => self.ended = Some(ended),
            Ok(None) | Err(_) => {
                self.hung_up = true;
                self.start.get_or_insert(Err(StartError::Vanished));
            }
        }
        true
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.finish(Duration::ZERO);
    }
}

/// Whether something can be read within this time; the end of the other side counts.
pub(crate) fn wait_readable(fd: &impl AsFd, within: Duration) -> bool {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 });
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
