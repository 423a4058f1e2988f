//! The pool of workers: untrusted processes that each run one call at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_model::{Script, ScriptVersion};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Problem;
use crate::wire::{Loaded, Reply, Request, read_frame, replace_lone_surrogates, write_frame};

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

/// A handle to a pool of workers, which are started when needed. Clones share the same pool.
#[derive(Clone)]
pub struct Sandbox(Arc<Shared>);

struct Shared {
    program: PathBuf,
    args: Vec<OsString>,
    limits: Limits,
    most: usize,
    workers: Mutex<Workers>,
    freed: Condvar,
}

#[derive(Default)]
struct Workers {
    idle: Vec<Worker>,
    /// The number of workers, including busy ones.
    count: usize,
}

impl Sandbox {
    /// Workers are processes of `program` with `args`. The program must then call [`crate::worker_main`].
    pub fn new(program: PathBuf, args: impl IntoIterator<Item = OsString>, limits: Limits) -> Sandbox {
        let most = std::thread::available_parallelism().map_or(2, usize::from);
        Sandbox(Arc::new(Shared {
            program,
            args: args.into_iter().collect(),
            limits,
            most,
            workers: Mutex::default(),
            freed: Condvar::new(),
        }))
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Checks that a script can be run, and returns the paths of its files.
    pub(crate) fn inspect(&self, files: &BTreeMap<String, String>) -> Result<Vec<String>, Vec<Problem>> {
        let request = Request::Load { name: None, files: files.clone() };
        match self.with_worker(|worker, patience| worker.load(&request, patience)) {
            Ok(Loaded::Fine(used)) => Ok(used),
            Ok(Loaded::Faulty(problems)) => Err(problems),
            Err(reason) => Err(vec![Problem::of("index", format!("cannot be read: {reason}"))]),
        }
    }

    /// Runs one call. With several inputs, runs all of them in one world and returns the answer to the last.
    pub(crate) fn call(
        &self,
        script: &Script,
        files: impl Fn() -> BTreeMap<String, String>,
        inputs: Vec<Box<RawValue>>,
    ) -> Reply {
        let name = script.version().to_string();
        let request = Request::Call { name: name.clone(), inputs };
        let answered = self.with_worker(|worker, patience| {
            if !worker.scripts.contains(&script.version()) {
                let load = Request::Load { name: Some(name.clone()), files: files() };
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
                match worker.child.try_wait() {
                    Ok(None) => return Ok(worker),
                    Ok(Some(_)) | Err(_) => {
                        workers.count -= 1;
                        continue;
                    }
                }
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

struct Worker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    wall_ms: u64,
    scripts: BTreeSet<ScriptVersion>,
}

impl Worker {
    fn start(shared: &Shared) -> io::Result<Worker> {
        let mut child = Command::new(&shared.program)
            .args(&shared.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take().expect("stdin is a pipe");
        let from = child.stdout.take().expect("stdout is a pipe");
        let mut worker = Worker { child, to, from, wall_ms: shared.limits.wall_ms, scripts: BTreeSet::new() };
        // If the worker has already ended, its first request reports it with the reason.
        let _ = write_frame(&mut worker.to, &Request::Limits(shared.limits));
        Ok(worker)
    }

    fn load(&mut self, request: &Request, patience: Instant) -> Result<Loaded, Broken> {
        let answer = self.ask(request, patience)?;
        serde_json::from_slice(&answer).map_err(Broken::ended)
    }

    fn ask(&mut self, request: &Request, patience: Instant) -> Result<Vec<u8>, Broken> {
        // A process that has closed its pipes already has its exit status, so the second signal has no effect.
        let ended = |child: &mut Child, has_closed_pipes: bool| {
            let _ = child.kill();
            match child.wait() {
                Ok(status) => {
                    let is_from_outside = |signal| KILLING.iter().any(|killing| killing.as_raw() == signal);
                    let was_killed = has_closed_pipes && status.signal().is_some_and(is_from_outside);
                    Broken::Ended { status: status.to_string(), was_killed }
                }
                Err(error) => Broken::ended(error),
            }
        };
        let began = self.cpu_ms();
        if let Err(error) = write_frame(&mut self.to, request) {
            return Err(ended(&mut self.child, error.kind() == io::ErrorKind::BrokenPipe));
        }
        // The worker sends only one answer per request, so dropping the buffer loses no data.
        let timed = BufReader::new(Timed { from: &self.from, patience });
        match read_frame(timed) {
            Ok(Some(frame)) => Ok(frame),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let wall_ms = self.wall_ms;
                let computed = self.cpu_ms().zip(began).map(|(now, began)| now.saturating_sub(began));
                Err(Broken::Late { wall_ms, was_starved: computed.is_some_and(|ms| ms < wall_ms / 2) })
            }
            Ok(None) => Err(ended(&mut self.child, true)),
            Err(error) => Err(ended(&mut self.child, error.kind() == io::ErrorKind::UnexpectedEof)),
        }
    }

    /// Returns the CPU time of the process, in milliseconds.
    fn cpu_ms(&self) -> Option<u64> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.child.id().cast_signed())).ok()?;
        let taken = clock.now().ok()?;
        Some(Duration::from(taken).as_millis() as u64)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker can be killed in any state, because it holds no resources that need cleanup.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pipe with a deadline for reads.
struct Timed<'p> {
    from: &'p ChildStdout,
    patience: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.patience.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut fds = [PollFd::from_borrowed_fd(self.from.as_fd(), PollFlags::IN)];
        loop {
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return Ok(rustix::io::read(self.from, buffer)?),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
