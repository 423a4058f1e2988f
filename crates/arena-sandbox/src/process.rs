//! The runner's side of an agent's process: its start through the launcher, its pipes, and its end.
//!
//! [`crate::launcher`] contains the steps between [`start`] and the agent's first instruction. The functions
//! here block the calling thread or return at once; none is async. Agents share no state.

mod report;
pub(crate) mod wire;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

pub use arena_model::{Limits, SandboxMode};
pub use report::{ActiveSandbox, Ended, ExitCause, KillReason, StartError};
use wire::{Order, Report};

use crate::launcher::scratch;

/// Time limit from [`start`] to the start of the agent's program. It usually takes some milliseconds.
const START_WITHIN: Duration = Duration::from_secs(10);

/// Time limit for the end of all processes of an agent after the runner's request.
const GONE_WITHIN: Duration = Duration::from_secs(6);

/// The environment of the launcher's stages. Without this setting, the mimalloc allocator commits 1 GiB at
/// its start. A process that uses more memory than the agent's limit can't start a child with that limit.
pub(crate) const LAUNCHER_ENV: [(&str, &str); 1] = [("MIMALLOC_ARENA_EAGER_COMMIT", "0")];

/// The path of the running program. It works even if the program's file has been replaced or removed, or lies below a
/// folder that the user can't enter, such as another user's home folder.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The hidden command that makes the program `arena` act as the launcher.
pub const LAUNCH: &str = "launch-agent";

/// The program's `main` passes all arguments after `args` to [`crate::launcher::main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The launcher's program, usually the running one.
    pub program: PathBuf,
    /// The arguments that make the program act as the launcher.
    pub args: Vec<OsString>,
}

impl Launcher {
    /// Returns the running program as the launcher. `arg` makes it act as the launcher.
    pub fn this_program(arg: &str) -> Launcher {
        Launcher { program: PathBuf::from(THIS_PROGRAM), args: vec![OsString::from(arg)] }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The agent's program: a path, or a name that the launcher looks up in `PATH`.
    pub program: PathBuf,
    /// The program's arguments. Paths among them must be absolute, because the agent starts in its scratch
    /// folder.
    pub args: Vec<OsString>,
    /// The agent's own folder, which it can read.
    pub folder: PathBuf,
    /// Environment variables of the agent, besides `PATH`, `HOME`, `TMPDIR` and `LANG`. A `PATH` in this list
    /// replaces the runner's.
    pub env: Vec<(OsString, OsString)>,
    /// Further files and folders that the agent may read.
    pub expose: Vec<PathBuf>,
    /// Files and folders that the agent can't read although they lie in readable folders, such as an
    /// opponent's files in a shared folder. The files that start the agent can't be hidden.
    pub hidden: Vec<PathBuf>,
    pub sandbox: SandboxMode,
    pub limits: Limits,
    /// The files of the scratch folder and the agent's only connection, if the agent uses services of the arena.
    pub setup: Option<ScratchSetup>,
}

/// The setup of an agent that uses services of the arena, such as a command-line agent. [`FOLDER`] in the arguments,
/// the environment and the files is replaced by the path of the scratch folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScratchSetup {
    /// The files that the scratch folder contains at the start: relative paths, and texts.
    pub files: Vec<(PathBuf, String)>,
    /// The port on the loopback interface that the agent may connect to. With namespaces, [`Process::take_listener`]
    /// returns the socket that listens there. Without a sandbox, a socket of the arena does.
    pub port: u16,
}

/// The text that stands for the path of the scratch folder.
pub const FOLDER: &str = "{folder}";

/// A started agent, with the runner's ends of its pipes. They are non-blocking, and no other process inherits
/// them.
///
/// Dropping the value ends the agent and all its processes, and waits for their end.
#[derive(Debug)]
pub struct Process {
    /// The pipe to the agent's stdin. Dropping it closes the agent's stdin.
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    control: OwnedFd,
    launcher: Child,
    deadline: Instant,
    start: Option<Result<ActiveSandbox, StartError>>,
    pidfd: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    ended: Option<Ended>,
    hung_up: bool,
    reaped: bool,
}

/// Starts an agent in the background. The function returns before the sandbox is set up, so several agents can start in
/// parallel; [`Process::in_force`] waits for the start. The agent inherits the CPU affinity and the priority of the
/// calling thread.
///
/// # Errors
/// If the launcher can't be started or the order can't be sent to it. Errors in the agent's program are
/// reported by [`Process::in_force`].
pub fn start(launcher: &Launcher, spec: &Spec) -> Result<Process, StartError> {
    let order = order(spec).map_err(|error| StartError::Spec { reason: error.to_string() })?;
    let failed = |error: io::Error| StartError::Launcher {
        program: launcher.program.display().to_string(),
        reason: error.to_string(),
    };
    let ((stdin, agents_stdin), (stdout, agents_stdout), (stderr, agents_stderr)) =
        (|| Ok((pipe()?.swapped(), pipe()?.plain(), pipe()?.plain())))().map_err(failed)?;
    let (control, launchers_control) = wire::pair().map_err(failed)?;
    // The order stays in the socket until the launcher reads it. The files are sent through the socket too, so no other
    // process started at this moment can inherit them.
    wire::send(&control, &order, &[agents_stdin.as_fd(), agents_stdout.as_fd(), agents_stderr.as_fd()])
        .map_err(|error| StartError::Spec { reason: error.to_string() })?;
    for fd in [&stdin, &stdout, &stderr] {
        fcntl_getfl(fd).and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK)).map_err(|e| failed(e.into()))?;
    }
    // The launcher gets no parent death signal, because the kernel would send it at the end of the calling
    // thread, not of the process. Instead, the launcher ends when this side of the control socket is closed.
    let mut command = Command::new(&launcher.program);
    if launcher.program == Path::new(THIS_PROGRAM) {
        // Process lists show the program's own name.
        command.arg0(env::args_os().next().unwrap_or_else(|| THIS_PROGRAM.into()));
    }
    let child = command
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
        listener: None,
        ended: None,
        hung_up: false,
        reaped: false,
    })
}

/// Tests the sandbox: starts a program that does nothing in the mode [`SandboxMode::Required`], and returns
/// the sandbox that was in force.
///
/// # Errors
/// The reason that the system doesn't support that mode.
pub fn try_sandbox(launcher: &Launcher) -> Result<ActiveSandbox, StartError> {
    let spec = Spec {
        program: PathBuf::from("true"),
        args: Vec::new(),
        folder: PathBuf::from("/"),
        env: Vec::new(),
        expose: Vec::new(),
        hidden: Vec::new(),
        sandbox: SandboxMode::Required,
        limits: Limits::default(),
        setup: None,
    };
    start(launcher, &spec)?.in_force().cloned()
}

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    /// Returns both ends with the runner's end first, for a pipe to the agent.
    fn swapped(self) -> (OwnedFd, OwnedFd) {
        (self.writer, self.reader)
    }

    /// Returns both ends with the runner's end first, for a pipe from the agent.
    fn plain(self) -> (OwnedFd, OwnedFd) {
        (self.reader, self.writer)
    }
}

fn pipe() -> io::Result<Pipe> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok(Pipe { reader, writer })
}

/// Returns the launcher's order for an agent with this specification.
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
        setup: spec.setup.clone(),
    })
}

impl Process {
    /// Waits for a limited time until the agent's program runs, and returns the sandbox in force.
    ///
    /// # Errors
    /// The reason that the agent didn't start. Later calls return the same error.
    pub fn in_force(&mut self) -> Result<&ActiveSandbox, StartError> {
        while self.start.is_none() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if !self.receive_report(left) {
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

    /// Returns the socket that listens on the loopback interface of the agent's network namespace. Its connections come
    /// from the agent's processes only. Available once after [`Process::in_force`], with [`Spec::setup`] and namespaces.
    pub fn take_listener(&mut self) -> Option<OwnedFd> {
        self.listener.take()
    }

    /// Returns true if the agent runs or is starting.
    pub fn is_running(&mut self) -> bool {
        while self.receive_report(Duration::ZERO) {}
        if self.ended.is_some() || self.hung_up || matches!(self.start, Some(Err(_))) {
            return false;
        }
        self.pidfd.as_ref().is_none_or(|pidfd| !wait_readable(pidfd, Duration::ZERO))
    }

    /// Returns the agent's process id in the runner's namespace, for files such as `/proc/PID/schedstat`.
    /// Returns `None` before the agent's start, after its end, and on kernels without pidfds.
    pub fn agent_pid(&self) -> Option<u32> {
        let pidfd = self.pidfd.as_ref()?;
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).ok()?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse::<i64>().ok()?;
        // The kernel reports -1 for a process that has ended.
        u32::try_from(pid).ok().filter(|&pid| pid > 0)
    }

    /// Waits up to `within` for the agent's end. Returns `None` if the agent still runs.
    pub fn ended(&mut self, within: Duration) -> Option<&Ended> {
        let until = Instant::now() + within;
        while self.ended.is_none() && self.receive_report(until.saturating_duration_since(Instant::now())) {}
        self.ended.as_ref()
    }

    /// Returns the launcher's process id. The agent's processes are its descendants.
    pub fn launcher_pid(&self) -> u32 {
        self.launcher.id()
    }

    /// Requests the end of the agent and all its processes. Returns at once; [`Process::wait`] waits for the
    /// end.
    pub fn kill(&mut self) {
        // The launcher ends the agent when this side of the socket is closed, which also happens if the
        // runner is killed.
        let _ = shutdown(&self.control, Shutdown::Write);
    }

    /// Waits up to `grace` for the agent's end, then ends the agent. Returns after the end of all its
    /// processes.
    pub fn wait(mut self, grace: Duration) -> Ended {
        self.finish(grace);
        match (self.ended.take(), &self.start) {
            (Some(ended), _) => ended,
            (None, start) => {
                let cause = if matches!(start, Some(Err(_))) { ExitCause::NotStarted } else { ExitCause::Unknown };
                Ended { cause, left_behind: 0, max_rss_bytes: 0, cpu_time_us: 0 }
            }
        }
    }

    fn finish(&mut self, grace: Duration) {
        if self.reaped {
            return;
        }
        let until = Instant::now() + grace.min(Duration::from_secs(24 * 60 * 60));
        while self.ended.is_none() && !self.hung_up {
            if !self.receive_report(until.saturating_duration_since(Instant::now())) {
                break;
            }
        }
        self.kill();
        let until = Instant::now() + GONE_WITHIN;
        while !self.hung_up {
            if !self.receive_report(until.saturating_duration_since(Instant::now())) {
                // The launcher doesn't react, so kill it. Its children then end through their parent death
                // signal.
                if let Some(group) = i32::try_from(self.launcher.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                break;
            }
        }
        let status = self.launcher.wait();
        self.reaped = true;
        // A launcher that was killed has not removed its scratch folder.
        if status.is_ok_and(|status| status.code().is_none()) {
            scratch::remove_left_by(self.launcher.id(), &env::temp_dir());
        }
    }

    /// Waits up to `within` for one report from the launcher. Returns false if none arrived.
    fn receive_report(&mut self, within: Duration) -> bool {
        if self.hung_up || !wait_readable(&self.control, within) {
            return false;
        }
        match wire::receive(&self.control) {
            Ok(Some((Report::Started(in_force), fds))) => {
                self.start = Some(Ok(in_force));
                self.pidfd = fds.into_iter().next();
            }
            Ok(Some((Report::Listening, fds))) => self.listener = fds.into_iter().next(),
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

/// Waits up to `within` for input. Returns true if input is available or the other side is closed.
pub fn wait_readable(fd: &impl AsFd, within: Duration) -> bool {
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
