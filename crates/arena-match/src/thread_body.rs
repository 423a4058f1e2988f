//! Agents that a thread of this program answers for: it reads messages from a pipe and writes answers to another pipe,
//! one line each. So the match loop handles only pipes, and its deadlines apply to all agents.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::body::{Body, End, Log};
use crate::link::Link;

pub struct ThreadBody {
    thread: Option<JoinHandle<()>>,
    end: Arc<OnceLock<String>>,
    notices: Notices,
}

/// The reports of an agent's thread to the match. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    /// The failure of a service that the agent depends on, such as the endpoint of a language model: a sentence without
    /// a full stop.
    pub outage: Notice,
    /// The event for which the thread waits, in words that follow the agent's name.
    pub awaited: Notice,
    /// The measurements of the agent's model, as JSON.
    pub metered: Notice,
}

/// A text that an agent's thread reports, and the match reads. Clones share the text.
#[derive(Debug, Clone, Default)]
pub struct Notice(Arc<Mutex<Option<String>>>);

impl Notice {
    /// Reports a text. A later one replaces it.
    pub fn begin(&self, text: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
    }

    /// Withdraws the text.
    pub fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn text(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Starts a thread named `name` that calls `carry` with the pipes of messages and answers. An error of `carry` is the
/// description of the agent's end, in words that follow the agent's name. `carry` may report to `notices`.
///
/// # Errors
/// If the pipes or the thread can't be created.
pub fn start(
    name: &str,
    notices: Notices,
    carry: impl FnOnce(File, &mut File) -> Result<(), String> + Send + 'static,
) -> io::Result<(Link, ThreadBody)> {
    let (messages, input) = pipe_with(PipeFlags::CLOEXEC)?;
    let (output, answers) = pipe_with(PipeFlags::CLOEXEC)?;
    for fd in [&input, &output] {
        fcntl_setfl(fd, OFlags::NONBLOCK)?;
    }
    let end = Arc::new(OnceLock::new());
    let run = {
        let end = end.clone();
        move || {
            let mut answers = File::from(answers);
            if let Err(sentence) = carry(File::from(messages), &mut answers) {
                let _ = end.set(sentence);
            }
            // Both pipes are closed at this point, so the match notices the end.
        }
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok((Link::new(input, output), ThreadBody { thread: Some(thread), end, notices }))
}

impl Body for ThreadBody {
    fn ended(&mut self, patience: Duration) -> Option<End> {
        self.join(patience);
        let sentence = self.end.get().cloned()?;
        Some(End { sentence, is_out_of_memory: false, code: None, left_behind: 0 })
    }

    fn outage(&self) -> Option<String> {
        self.notices.outage.text()
    }

    fn awaited(&self) -> Option<String> {
        self.notices.awaited.text()
    }

    fn metered(&self) -> Option<String> {
        self.notices.metered.text()
    }

    fn is_flooding(&self) -> bool {
        false
    }

    fn kill(&mut self) {}

    fn finish(&mut self, grace: Duration) -> Log {
        // A pending request ends by itself; its answer is ignored.
        self.join(grace);
        Log::default()
    }
}

impl ThreadBody {
    /// Waits up to `patience` for the thread to end.
    fn join(&mut self, patience: Duration) {
        let by = Instant::now() + patience;
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < by {
            thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            // If the thread panicked, it has reported the panic itself.
            let _ = thread.join();
        }
    }
}
