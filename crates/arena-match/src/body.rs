//! The [`Body`] of an agent: the process, HTTP server or test thread that runs it.

use std::time::Duration;

use crate::cpu_times::CpuTimes;

/// The time limit for an agent to end after `stop`.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// The program that runs an agent.
pub trait Body: Send {
    /// Waits up to `patience` for the end of the program. Returns `None` if it still runs.
    fn ended(&mut self, patience: Duration) -> Option<End>;

    /// Returns the CPU accounting of the program, or zero if it can't be measured.
    fn cpu_times(&self) -> CpuTimes {
        CpuTimes::default()
    }

    /// Returns the failure of a service that the agent depends on, in a sentence, while the failure lasts. The agent isn't
    /// at fault then, so the match ends without a result.
    fn outage(&self) -> Option<String> {
        None
    }

    /// Returns the event for which a driver waits, such as `hasn't sent uciok`, in words that follow the agent's name. For
    /// an agent that speaks the protocol, returns the usual causes of silence at the start.
    fn awaited(&self) -> Option<String> {
        None
    }

    /// Returns the measurements of the agent's model as JSON, if the arena measures them.
    fn metered(&self) -> Option<String> {
        None
    }

    /// Returns the log since the last call, while the program runs.
    fn take_log(&mut self) -> Log {
        Log::default()
    }

    /// Returns true if the program's stderr output has exceeded its limit.
    fn is_flooding(&self) -> bool;

    /// Kills the program and all its descendants, and waits for their end. [`Body::finish`] still returns the
    /// log.
    fn kill(&mut self);

    /// Waits up to `grace` for the end of the program, then kills it and its descendants. Returns the log.
    fn finish(&mut self, grace: Duration) -> Log;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// A description of the end, such as `exited with code 1`.
    pub sentence: String,
    pub is_out_of_memory: bool,
    /// The exit code, if the process exited by itself.
    pub code: Option<i32>,
    /// The number of child processes that still ran after the end and had to be killed.
    pub left_behind: u32,
}

/// The log of an agent: the start and the end of its stderr.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The start of the stderr output.
    pub head: Vec<u8>,
    /// The number of discarded bytes between `head` and `tail`.
    pub left_out: u64,
    /// The end of the stderr output. Empty if `head` contains all of it.
    pub tail: Vec<u8>,
}

/// The body of an agent that didn't start, or whose process has been taken over.
pub(crate) struct Absent;

impl Body for Absent {
    fn ended(&mut self, _patience: Duration) -> Option<End> {
        None
    }

    fn is_flooding(&self) -> bool {
        false
    }

    fn kill(&mut self) {}

    fn finish(&mut self, _grace: Duration) -> Log {
        Log::default()
    }
}
