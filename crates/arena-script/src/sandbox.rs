//! The arena's end of the workers: some processes, each busy with one call at a time, and none of them trusted.

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
use crate::wire::{Loaded, Reply, Request, read_frame, without_halves, write_frame};

/// What one call of a script may take. Calls within them come to the same on every machine, but for the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Computing, in ticks of the engine: 10,000 calls of functions and rounds of loops each, a few tenths of a millisecond.
    pub ticks: u32,
    /// Memory of the engine, in bytes.
    pub memory_bytes: usize,
    /// Depth of calls, in bytes of the engine's stack.
    pub stack_bytes: usize,
    /// Time by the clock, in milliseconds, after which the worker is ended. For what isn't counted in ticks; no more than a backstop.
    pub wall_ms: u64,
    /// Most messages of one call.
    pub messages: usize,
    /// Longest state of a game, and most text of one call's messages, in bytes each.
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

/// Where scripts are run: a handle to some workers, which are started when they are needed. Clones are handles to the same ones.
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
    /// With those that are busy.
    count: usize,
}

impl Sandbox {
    /// A sandbox whose workers are processes of `program`, started with `args`, which has to call [`crate::worker_main`] then.
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

    /// What one call may take.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Whether a script can be run, and of which of these files it is made.
    pub(crate) fn inspect(&self, files: &BTreeMap<String, String>) -> Result<Vec<String>, Vec<Problem>> {
        let request = Request::Load { name: None, files: files.clone() };
        match self.with_worker(|worker, patience| worker.load(&request, patience)) {
            Ok(Loaded::Fine(used)) => Ok(used),
            Ok(Loaded::Faulty(problems)) => Err(problems),
            Err(reason) => Err(vec![Problem::of("index", format!("can't be read: {reason}"))]),
        }
    }

    /// Runs one call; of more inputs than one, all in one world, for the answer to the last.
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
            // The text is the script's, if it wants: what isn't an answer is a fault of it, not of the worker.
            let reply = serde_json::from_slice(&answer).or_else(|_| serde_json::from_slice(&without_halves(&answer)));
            Ok(reply.unwrap_or_else(|error| Reply::failed(format!("the answer isn't one: {error}"))))
        });
        answered.unwrap_or_else(|reason| Reply::failed(reason.to_string()))
    }

    /// Lets a worker do something. All that workers do can be done again, so what fails for a reason that may lie outside of it is
    /// repeated by another worker, a few times.
    fn with_worker<T>(&self, work: impl Fn(&mut Worker, Instant) -> Result<T, Broken>) -> Result<T, Broken> {
        let mut repeats = 0;
        loop {
            let broken = match self.try_worker(&work) {
                Err(broken) if repeats < broken.repeats() => broken,
                result => return result,
            };
            repeats += 1;
            tracing::warn!("a worker of scripts gave no answer, and its call is repeated by another one: {broken}");
        }
    }

    /// Takes a worker for a while. One that fails is ended.
    fn try_worker<T>(&self, work: impl Fn(&mut Worker, Instant) -> Result<T, Broken>) -> Result<T, Broken> {
        let mut worker = self.take()?;
        // The type stripper has to be started on the first call; more than enough for it.
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
                // One that was ended meanwhile has failed at nothing.
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

/// Why a worker gives no answer.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the sandbox can't be started: {0}")]
    Start(#[source] io::Error),
    #[error("took more than {wall_ms} ms, and was stopped")]
    Late {
        wall_ms: u64,
        /// True if the worker was mostly kept from computing.
        was_starved: bool,
    },
    #[error("the sandbox ended on it ({told}): it took too much memory, or nested too deeply")]
    Ended {
        told: String,
        /// True if it was ended by a signal that no program gets for what it does.
        was_killed: bool,
    },
}

impl Broken {
    /// The number of times that such work is repeated. A script that ends its workers itself is found by the first repeat; one under which
    /// they are ended by others, or by a kernel that is out of memory, gets a few more.
    fn repeats(&self) -> u32 {
        match self {
            Broken::Start(_) | Broken::Late { was_starved: false, .. } => 0,
            Broken::Late { was_starved: true, .. } | Broken::Ended { was_killed: false, .. } => 1,
            Broken::Ended { was_killed: true, .. } => 4,
        }
    }

    fn ended(told: impl ToString) -> Broken {
        Broken::Ended { told: told.to_string(), was_killed: false }
    }
}

/// The signals that come from outside of a program.
const KILLING: [Signal; 5] = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// One process.
struct Worker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    wall_ms: u64,
    /// What it has loaded.
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
        let to = child.stdin.take().expect("it was asked for");
        let from = child.stdout.take().expect("it was asked for");
        let mut worker = Worker { child, to, from, wall_ms: shared.limits.wall_ms, scripts: BTreeSet::new() };
        // Should it have ended already, its first request finds out, and why.
        let _ = write_frame(&mut worker.to, &Request::Limits(shared.limits));
        Ok(worker)
    }

    fn load(&mut self, request: &Request, patience: Instant) -> Result<Loaded, Broken> {
        let answer = self.ask(request, patience)?;
        serde_json::from_slice(&answer).map_err(Broken::ended)
    }

    fn ask(&mut self, request: &Request, patience: Instant) -> Result<Vec<u8>, Broken> {
        // A process that has let go of its pipes has its exit status already, so the second signal doesn't show.
        let ended = |child: &mut Child, has_let_go: bool| {
            let _ = child.kill();
            match child.wait() {
                Ok(status) => {
                    let is_from_outside = |signal| KILLING.iter().any(|killing| killing.as_raw() == signal);
                    let was_killed = has_let_go && status.signal().is_some_and(is_from_outside);
                    Broken::Ended { told: status.to_string(), was_killed }
                }
                Err(error) => Broken::ended(error),
            }
        };
        let began = self.cpu_ms();
        if let Err(error) = write_frame(&mut self.to, request) {
            return Err(ended(&mut self.child, error.kind() == io::ErrorKind::BrokenPipe));
        }
        // There is one answer on its way, so nothing of another is lost with the buffer.
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

    /// The CPU time that the process has taken, in milliseconds.
    fn cpu_ms(&self) -> Option<u64> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.child.id().cast_signed())).ok()?;
        let taken = clock.now().ok()?;
        Some(Duration::from(taken).as_millis() as u64)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be anywhere, and hold nothing that would have to be put in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pipe that is read up to a time.
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
