//! The arena's end of the workers: some processes, each busy with one call at a time, and none of them trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, BufReader, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arena_model::{Script, ScriptVersion};
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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

    /// Runs one call.
    pub(crate) fn call(
        &self,
        script: &Script,
        files: impl Fn() -> BTreeMap<String, String>,
        input: Box<RawValue>,
    ) -> Reply {
        let name = script.version().to_string();
        let answered = self.with_worker(|worker, patience| {
            if !worker.scripts.contains(&script.version()) {
                let load = Request::Load { name: Some(name.clone()), files: files() };
                if let Loaded::Faulty(problems) = worker.load(&load, patience)? {
                    return Ok(Reply::failed(problems.first().map(ToString::to_string).unwrap_or_default()));
                }
                worker.scripts.insert(script.version());
            }
            let answer = worker.ask(&Request::Call { name: name.clone(), input }, patience)?;
            // The text is the script's, if it wants: what isn't an answer is a fault of it, not of the worker.
            let reply = serde_json::from_slice(&answer).or_else(|_| serde_json::from_slice(&without_halves(&answer)));
            Ok(reply.unwrap_or_else(|error| Reply::failed(format!("the answer isn't one: {error}"))))
        });
        answered.unwrap_or_else(|reason| Reply::failed(reason.to_string()))
    }

    /// Takes a worker for a while. One that fails is ended.
    fn with_worker<T>(&self, work: impl FnOnce(&mut Worker, Instant) -> Result<T, Broken>) -> Result<T, Broken> {
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
            if let Some(worker) = workers.idle.pop() {
                return Ok(worker);
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
    #[error("took more than {0} ms, and was stopped")]
    Late(u64),
    #[error("the sandbox ended on it ({0}): it took too much memory, or nested too deeply")]
    Ended(String),
}

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
        write_frame(&mut worker.to, &Request::Limits(shared.limits))?;
        Ok(worker)
    }

    fn load(&mut self, request: &Request, patience: Instant) -> Result<Loaded, Broken> {
        let answer = self.ask(request, patience)?;
        serde_json::from_slice(&answer).map_err(|error| Broken::Ended(error.to_string()))
    }

    fn ask(&mut self, request: &Request, patience: Instant) -> Result<Vec<u8>, Broken> {
        let ended = |child: &mut Child| {
            let _ = child.kill();
            Broken::Ended(child.wait().map_or_else(|error| error.to_string(), |status| status.to_string()))
        };
        if write_frame(&mut self.to, request).is_err() {
            return Err(ended(&mut self.child));
        }
        // There is one answer on its way, so nothing of another is lost with the buffer.
        let timed = BufReader::new(Timed { from: &self.from, patience });
        match read_frame(timed) {
            Ok(Some(frame)) => Ok(frame),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Broken::Late(self.wall_ms)),
            Ok(None) | Err(_) => Err(ended(&mut self.child)),
        }
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
