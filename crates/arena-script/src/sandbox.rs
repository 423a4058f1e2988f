//! The pool of workers: untrusted processes that each run one call at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arena_model::{SandboxMode, Script, ScriptVersion};
use arena_sandbox::process::{self, ExitCause, Launcher, Process, Spec, StartError};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::wire::{Loaded, Reply, Request, read_frame, replace_lone_surrogates, write_frame};
use crate::{Problem, ScriptKind};

/// The hidden command that makes the program `arena` act as a worker.
pub const RUN: &str = "run-scripts";

/// Within the limits, a call has the same result on every machine; only `wall_ms` depends on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum computation, in ticks of the engine. A tick is 10,000 function calls or loop iterations, which take
    /// a few tenths of a millisecond.
    pub ticks: u32,
    /// The maximum memory of a script in the engine, in bytes.
    pub memory_bytes: usize,
    /// The maximum size of the engine's stack, in bytes. It limits the depth of function calls.
    pub stack_bytes: usize,
    /// The maximum elapsed time, in milliseconds, after which the arena ends the worker. It limits work that ticks
    /// don't count.
    pub wall_ms: u64,
    /// The maximum number of messages of one call.
    pub messages: usize,
    /// The maximum size of a game's state, and of all messages of one call, in bytes each.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            ticks: 1000,
            memory_bytes: 16 << 20,
            stack_bytes: 256 << 10,
            wall_ms: 5000,
            messages: 1000,
            output_bytes: 256 << 10,
        }
    }
}

/// The program of the workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProgram {
    pub program: PathBuf,
    /// The arguments with which the program calls [`crate::worker_main`].
    pub args: Vec<OsString>,
    /// The launcher that starts the workers in their own namespaces.
    pub launcher: Launcher,
}

impl WorkerProgram {
    /// Returns the running program `arena`.
    ///
    /// # Errors
    /// If its file can't be found.
    pub fn this_program() -> io::Result<WorkerProgram> {
        let (program, args) = (std::env::current_exe()?, vec![RUN.into()]);
        Ok(WorkerProgram { program, args, launcher: Launcher::this_program(process::LAUNCH) })
    }
}

/// A handle to a pool of workers, which are started when needed. Clones share the same pool.
#[derive(Clone)]
pub struct Sandbox(Arc<Shared>);

struct Shared {
    program: WorkerProgram,
    limits: Limits,
    most: usize,
    workers: Mutex<Workers>,
    freed: Condvar,
    /// True after the report that workers have no namespaces.
    is_reported: AtomicBool,
}

#[derive(Default)]
struct Workers {
    idle: Vec<Worker>,
    /// The number of workers, including busy ones.
    count: usize,
}

impl Sandbox {
    pub fn new(program: WorkerProgram, limits: Limits) -> Sandbox {
        let most = std::thread::available_parallelism().map_or(2, usize::from);
        Sandbox(Arc::new(Shared {
            program,
            limits,
            most,
            workers: Mutex::default(),
            freed: Condvar::new(),
            is_reported: AtomicBool::new(false),
        }))
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Checks that a script can be run, and returns the paths of its files.
    pub(crate) fn inspect(
        &self,
        kind: ScriptKind,
        files: &BTreeMap<String, String>,
    ) -> Result<Vec<String>, Vec<Problem>> {
        let request = Request::Load { name: None, kind, files: files.clone() };
        match self.with_worker(|worker, patience| worker.load(&request, patience)) {
            Ok(Loaded::Fine(used)) => Ok(used),
            Ok(Loaded::Faulty(problems)) => Err(problems),
            Err(reason) => Err(vec![Problem::of("index", format!("cannot be read: {reason}"))]),
        }
    }

    /// Runs one call. With several inputs, runs all of them in one world and returns the answer to the last.
    pub(crate) fn call(
        &self,
        kind: ScriptKind,
        script: &Script,
        files: impl Fn() -> BTreeMap<String, String>,
        inputs: Vec<Box<RawValue>>,
    ) -> Reply {
        let name = script.version().to_string();
        let request = Request::Call { name: name.clone(), inputs };
        let answered = self.with_worker(|worker, patience| {
            if !worker.scripts.contains(&script.version()) {
                let load = Request::Load { name: Some(name.clone()), kind, files: files() };
                if let Loaded::Faulty(problems) = worker.load(&load, patience)? {
                    return Ok(Reply::failed(problems.first().map(ToString::to_string).unwrap_or_default()));
                }
                worker.scripts.insert(script.version());
            }
            let answer = worker.ask(&request, patience)?;
            // The script may produce any text, so an invalid answer is the script's fault, not the worker's.
            let reply =
                serde_json::from_slice(&answer).or_else(|_| serde_json::from_slice(&replace_lone_surrogates(&answer)));
            Ok(reply.unwrap_or_else(|error| Reply::failed(format!("invalid answer: {error}"))))
        });
        answered.unwrap_or_else(|reason| Reply::failed(reason.to_string()))
    }

    /// Runs `work` on a worker. If the failure may have an outside cause, repeats `work` on another worker a few
    /// times. Workers keep no state of sessions, so a repeat is safe.
    fn with_worker<T>(&self, work: impl Fn(&mut Worker, Instant) -> Result<T, Broken>) -> Result<T, Broken> {
        let mut repeats = 0;
        loop {
            let broken = match self.try_worker(&work) {
                Err(broken) if repeats < broken.repeats() => broken,
                result => return result,
            };
            repeats += 1;
            tracing::warn!("a script worker gave no answer ({broken}); the call is repeated on another worker");
        }
    }

    /// Runs `work` on a worker once. A worker that fails is ended.
    fn try_worker<T>(&self, work: impl Fn(&mut Worker, Instant) -> Result<T, Broken>) -> Result<T, Broken> {
        let mut worker = self.take()?;
        // The deadline also suffices for the first call, which must start the type stripper.
        let patience = Instant::now() + Duration::from_millis(self.0.limits.wall_ms);
        let result = work(&mut worker, patience);
        let mut workers = self.0.workers.lock();
        match &result {
            Ok(_) => workers.idle.push(worker),
            Err(_) => workers.count -= 1,
        }
        drop(workers);
        self.0.freed.notify_one();
        result
    }

    fn take(&self) -> Result<Worker, Broken> {
        let mut workers = self.0.workers.lock();
        loop {
            if let Some(mut worker) = workers.idle.pop() {
                // A worker that died before its call isn't a failure of the call.
                if worker.process.is_running() {
                    return Ok(worker);
                }
                workers.count -= 1;
                continue;
            }
            if workers.count < self.0.most {
                workers.count += 1;
                break;
            }
            self.0.freed.wait(&mut workers);
        }
        drop(workers);
        Worker::start(&self.0).map_err(|error| {
            self.0.workers.lock().count -= 1;
            self.0.freed.notify_one();
            Broken::Start(error)
        })
    }
}

/// The reason why a worker gives no answer.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("cannot start the sandbox: {0}")]
    Start(#[source] io::Error),
    #[error("the script exceeded the limit of {wall_ms} ms and was stopped")]
    Late {
        wall_ms: u64,
        /// True if the worker got little CPU time.
        was_starved: bool,
    },
    #[error("the worker process ended ({status}); the script probably used too much memory or recursed too deeply")]
    Ended {
        /// The exit status, or the error if the status is unknown.
        status: String,
        /// True if an outside signal ended the worker.
        was_killed: bool,
    },
}

impl Broken {
    /// Returns the number of repeats after this failure. One repeat shows if the script itself ends its workers. If
    /// the worker was killed from outside, or by a kernel that is out of memory, more repeats follow.
    fn repeats(&self) -> u32 {
        match self {
            Broken::Start(_) | Broken::Late { was_starved: false, .. } => 0,
            Broken::Late { was_starved: true, .. } | Broken::Ended { was_killed: false, .. } => 1,
            Broken::Ended { was_killed: true, .. } => 4,
        }
    }

    fn ended(status: impl ToString) -> Broken {
        Broken::Ended { status: status.to_string(), was_killed: false }
    }
}

/// The signals by which users and the system end a program.
const KILLING: [Signal; 5] = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// The time in which the end of a process that has closed its pipes is known.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// A worker's process. Dropping it ends the process, which can be killed in any state, because it holds no resources
/// that need cleanup.
enum WorkerProcess {
    /// A process in namespaces of its own, as agents are.
    Launched(Box<Process>),
    /// A process on a system that allows no namespaces. The worker's own restrictions hold.
    Bare(Child),
}

struct Worker {
    process: WorkerProcess,
    /// The process id, if it is known.
    pid: Option<u32>,
    to: OwnedFd,
    from: OwnedFd,
    wall_ms: u64,
    scripts: BTreeSet<ScriptVersion>,
}

impl WorkerProcess {
    fn is_running(&mut self) -> bool {
        match self {
            WorkerProcess::Launched(process) => process.is_running(),
            WorkerProcess::Bare(child) => matches!(child.try_wait(), Ok(None)),
        }
    }

    /// Ends the process, and returns the reason why it gave no answer. A process that has closed its pipes ends by itself.
    fn end(&mut self, has_closed_pipes: bool) -> Broken {
        let status = match self {
            WorkerProcess::Launched(process) => {
                let cause =
                    has_closed_pipes.then(|| process.ended(ENDS_WITHIN).map(|ended| ended.cause.clone())).flatten();
                process.kill();
                match cause {
                    Some(ExitCause::Exited(code)) => ExitStatus::from_raw(code << 8),
                    Some(ExitCause::Signaled(signal)) => ExitStatus::from_raw(signal),
                    // The launcher was killed, and the worker with it.
                    _ => ExitStatus::from_raw(Signal::KILL.as_raw()),
                }
            }
            WorkerProcess::Bare(child) => {
                // A process that has closed its pipes already has its exit status, so the signal has no effect.
                let _ = child.kill();
                match child.wait() {
                    Ok(status) => status,
                    Err(error) => return Broken::ended(error),
                }
            }
        };
        let is_from_outside = |signal| KILLING.iter().any(|killing| killing.as_raw() == signal);
        let was_killed = has_closed_pipes && status.signal().is_some_and(is_from_outside);
        Broken::Ended { status: status.to_string(), was_killed }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if let WorkerProcess::Bare(child) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Worker {
    fn start(shared: &Shared) -> io::Result<Worker> {
        let started = Worker::launch(shared).or_else(|error| {
            if !shared.is_reported.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "script workers have no namespaces of their own ({error}); a filter of system calls and the lack \
                     of capabilities still restrict them"
                );
            }
            Worker::spawn(shared)
        });
        let mut worker = started?;
        // If the worker has already ended, its first request reports it with the reason.
        let patience = Instant::now() + Duration::from_millis(shared.limits.wall_ms);
        let _ = write_frame(Timed { pipe: worker.to.as_fd(), patience }, &Request::Limits(shared.limits));
        worker.pid = worker.pid.filter(|_| worker.process.is_running());
        Ok(worker)
    }

    /// Starts a worker as agents are started: without capabilities, as an unprivileged user, and in its own namespaces, in
    /// which it sees no network, no other process, and no files but programs.
    fn launch(shared: &Shared) -> Result<Worker, StartError> {
        let WorkerProgram { program, args, launcher } = &shared.program;
        let spec = Spec {
            program: program.clone(),
            args: args.clone(),
            folder: PathBuf::from("/"),
            env: Vec::new(),
            expose: Vec::new(),
            hidden: Vec::new(),
            sandbox: SandboxMode::Required,
            // The worker limits itself.
            limits: arena_model::Limits::NONE,
            setup: None,
        };
        let mut process = process::start(launcher, &spec)?;
        process.in_force()?;
        let pid = process.agent_pid();
        let (Some(to), Ok(from)) = (process.stdin.take(), process.stdout.try_clone()) else {
            return Err(StartError::Vanished);
        };
        Ok(Worker::new(WorkerProcess::Launched(Box::new(process)), pid, to, from, shared))
    }

    fn spawn(shared: &Shared) -> io::Result<Worker> {
        let WorkerProgram { program, args, .. } = &shared.program;
        let mut child = Command::new(program)
            .args(args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take().expect("stdin is a pipe").into();
        let from = child.stdout.take().expect("stdout is a pipe").into();
        let pid = Some(child.id());
        Ok(Worker::new(WorkerProcess::Bare(child), pid, to, from, shared))
    }

    fn new(process: WorkerProcess, pid: Option<u32>, to: OwnedFd, from: OwnedFd, shared: &Shared) -> Worker {
        Worker { process, pid, to, from, wall_ms: shared.limits.wall_ms, scripts: BTreeSet::new() }
    }

    fn load(&mut self, request: &Request, patience: Instant) -> Result<Loaded, Broken> {
        let answer = self.ask(request, patience)?;
        serde_json::from_slice(&answer).map_err(Broken::ended)
    }

    fn ask(&mut self, request: &Request, patience: Instant) -> Result<Vec<u8>, Broken> {
        let began = self.cpu_ms();
        let written = write_frame(Timed { pipe: self.to.as_fd(), patience }, request);
        // The worker sends only one answer per request, so dropping the buffer loses no data.
        let read = |()| read_frame(BufReader::new(Timed { pipe: self.from.as_fd(), patience }));
        match written.and_then(read) {
            Ok(Some(frame)) => Ok(frame),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let wall_ms = self.wall_ms;
                let computed = self.cpu_ms().zip(began).map(|(now, began)| now.saturating_sub(began));
                Err(Broken::Late { wall_ms, was_starved: computed.is_some_and(|ms| ms < wall_ms / 2) })
            }
            Ok(None) => Err(self.process.end(true)),
            Err(error) => {
                let closed = [io::ErrorKind::UnexpectedEof, io::ErrorKind::BrokenPipe];
                Err(self.process.end(closed.contains(&error.kind())))
            }
        }
    }

    /// Returns the CPU time of the process, in milliseconds.
    fn cpu_ms(&self) -> Option<u64> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.pid?.cast_signed())).ok()?;
        let taken = clock.now().ok()?;
        Some(Duration::from(taken).as_millis() as u64)
    }
}

/// A pipe with a deadline.
struct Timed<'p> {
    pipe: BorrowedFd<'p>,
    patience: Instant,
}

impl Timed<'_> {
    /// Waits until the pipe is ready.
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        loop {
            let left = self.patience.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::from_borrowed_fd(self.pipe, flags)], Some(&timeout)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::IN)?;
        Ok(rustix::io::read(self.pipe, buffer)?)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(PollFlags::OUT)?;
        Ok(rustix::io::write(self.pipe, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
