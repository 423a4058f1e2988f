//! The launcher's reports on an agent's process: the sandbox, a failed start, and the end of the process.

use serde::{Deserialize, Serialize};

use super::Limits;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveSandbox {
    /// The kinds of namespaces that the agent has for itself. Empty if it has none.
    pub namespaces: Vec<String>,
    /// The Landlock version in force, or `None` without Landlock.
    pub landlock_abi: Option<u32>,
    /// True if system calls are filtered.
    pub seccomp: bool,
    /// The agent's user id outside of its namespaces.
    pub user_id: u32,
    pub limits: Limits,
    /// The parts of the sandbox that are missing or weakened on this system, one sentence each.
    pub missing: Vec<String>,
}

/// The reason that an agent couldn't be started, as shown to the agent's author or the arena's operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum StartError {
    #[error("there is no program {program}")]
    NotFound {
        /// The program, as the user named it.
        program: String,
    },
    /// The program is a folder or a device.
    #[error("{program} is not a file, so it cannot be run as a program")]
    NotAFile { program: String },
    #[error("{program} is not executable (run `chmod +x {program}`)")]
    NotExecutable { program: String },
    /// The agent's user can't read a file that the agent needs.
    #[error(
        "{path} cannot be read by the unprivileged user {user_id}, the user of agents when the arena runs as root \
         (run `chmod -R o+rX {path}` and `chmod o+x` on the folders above, or run the arena as another user)"
    )]
    NotReadable {
        path: String,
        /// The user id that the agent runs as.
        user_id: u32,
    },
    #[error("{program} needs the interpreter {interpreter}, which doesn't exist")]
    MissingInterpreter {
        program: String,
        /// The interpreter in the first line, or the loader of a binary.
        interpreter: String,
    },
    /// The program has no format that the kernel can run.
    #[error("{program} is neither a binary for this machine nor a script that begins with `#!`")]
    Format { program: String },
    /// The program is a script whose first line the kernel can't read.
    #[error("{program} cannot be run: {problem}")]
    Script {
        program: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// The system refused to run the program for another reason.
    #[error("{program} could not be run: {reason}")]
    Refused {
        program: String,
        /// The operating system's error message.
        reason: String,
    },
    /// The runner's order is invalid, for example because of a path.
    #[error("the agent cannot be started with these settings: {reason}")]
    Spec { reason: String },
    #[error("this system cannot confine agents: {lacks}")]
    NoSandbox { lacks: String },
    #[error("the sandbox could not be set up: {step}: {reason}")]
    Setup { step: String, reason: String },
    #[error("the launcher {program} could not be started: {reason}")]
    Launcher { program: String, reason: String },
    #[error("the launcher ended before the agent had started")]
    Vanished,
    #[error("the launcher did not start the agent within {waited_ms} ms")]
    TooSlow {
        /// The time limit, in milliseconds.
        waited_ms: u64,
    },
}

impl StartError {
    /// Returns true if the agent is at fault, rather than the system.
    pub fn is_agents_fault(&self) -> bool {
        match self {
            StartError::NotFound { .. }
            | StartError::NotAFile { .. }
            | StartError::NotExecutable { .. }
            | StartError::NotReadable { .. }
            | StartError::MissingInterpreter { .. }
            | StartError::Format { .. }
            | StartError::Script { .. }
            | StartError::Refused { .. } => true,
            StartError::Spec { .. }
            | StartError::NoSandbox { .. }
            | StartError::Setup { .. }
            | StartError::Launcher { .. }
            | StartError::Vanished
            | StartError::TooSlow { .. } => false,
        }
    }
}

/// The termination cause of an agent and its resource usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub cause: ExitCause,
    /// The number of processes that still ran after the agent's first process had exited by itself. The
    /// launcher kills them.
    pub left_behind: u32,
    /// The peak resident memory of all the agent's processes together, in bytes. For a process that ends between two
    /// measurements, only its own peak counts.
    pub max_rss_bytes: u64,
    /// CPU time of the agent's processes, in microseconds.
    pub cpu_time_us: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    Exited(i32),
    /// A signal ended the agent, and the launcher didn't send it.
    Signaled(i32),
    /// The launcher ended the agent.
    Killed(KillReason),
    NotStarted,
    /// The launcher was killed, so the end is unknown.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillReason {
    Memory,
    /// The agent exceeded the process limit.
    Processes,
    /// The runner requested the end, or ended itself.
    Requested,
}
