//! What is told of an agent's process: what confines it, why it didn't start, how it ended.

use serde::{Deserialize, Serialize};

use super::Limits;

/// What confines an agent that has started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// Kinds of namespaces the agent has of its own; empty without namespaces.
    pub namespaces: Vec<String>,
    /// Version of the Landlock interface that is enforced, if any.
    pub landlock_abi: Option<u32>,
    /// Whether calls to the kernel are filtered.
    pub seccomp: bool,
    /// The user id as which the agent runs, as seen from outside.
    pub user_id: u32,
    /// The limits that were set.
    pub limits: Limits,
    /// What of the sandbox the system couldn't give, or what is weaker than usual: a sentence each.
    pub missing: Vec<String>,
}

/// Why an agent couldn't be started. Each is a sentence for the agent's author or for who runs the arena.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum StartError {
    /// There is no such program.
    #[error("there is no program {program}")]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// The program is a folder or a device.
    #[error("{program} is not a file, so it can't be run as a program")]
    NotAFile {
        /// As it was given.
        program: String,
    },
    /// The program isn't marked as executable.
    #[error("{program} is not executable (mend it with `chmod +x {program}`)")]
    NotExecutable {
        /// As it was given.
        program: String,
    },
    /// Something the agent needs can't be read by the user as whom it runs.
    #[error(
        "{path} can't be read by the unprivileged user {user_id}, as whom agents run when the arena runs as root \
         (mend it with `chmod -R o+rX {path}` and `chmod o+x` on the folders above, or run the arena as another user)"
    )]
    NotReadable {
        /// What can't be read.
        path: String,
        /// The unprivileged user.
        user_id: u32,
    },
    /// The interpreter that the program asks for is missing.
    #[error("{program} asks for the interpreter {interpreter}, which isn't there")]
    MissingInterpreter {
        /// As it was given.
        program: String,
        /// What its first line names, or the loader of a binary.
        interpreter: String,
    },
    /// The program is nothing that the kernel can run.
    #[error("{program} is neither a binary for this machine nor a script that begins with `#!`")]
    Format {
        /// As it was given.
        program: String,
    },
    /// The system refused to run the program for another reason.
    #[error("{program} could not be run: {reason}")]
    Refused {
        /// As it was given.
        program: String,
        /// In the words of the system.
        reason: String,
    },
    /// What was asked for makes no sense.
    #[error("the agent can't be started as asked: {reason}")]
    Spec {
        /// What is wrong.
        reason: String,
    },
    /// The system can't confine agents.
    #[error("this system can't confine agents: {lacks}")]
    NoSandbox {
        /// What is missing.
        lacks: String,
    },
    /// A step of setting up the sandbox failed.
    #[error("the sandbox could not be set up: {step}: {reason}")]
    Setup {
        /// What was tried.
        step: String,
        /// In the words of the system.
        reason: String,
    },
    /// The launcher itself couldn't be started.
    #[error("the launcher {program} could not be started: {reason}")]
    Launcher {
        /// The launcher.
        program: String,
        /// In the words of the system.
        reason: String,
    },
    /// The launcher ended without a word.
    #[error("the launcher ended before the agent had started")]
    Vanished,
    /// The launcher took too long.
    #[error("the launcher did not start the agent within {waited_ms} ms")]
    TooSlow {
        /// How long it was given, in milliseconds.
        waited_ms: u64,
    },
}

/// How an agent's process ended, and what it used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// How many of its processes still ran when its first one had exited by itself. They were ended.
    pub left_behind: u32,
    /// Most memory that was seen resident at one time, of the agent's processes together, in bytes. What lives for less
    /// than the watch's interval counts for its own process only.
    pub max_rss_bytes: u64,
    /// Processor time of the agent's processes, in microseconds.
    pub cpu_time_us: u64,
}

/// The end of an agent's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It exited by itself, with this code.
    Exited(i32),
    /// A signal ended it that wasn't ours.
    Signalled(i32),
    /// We ended it.
    Killed(KillReason),
    /// It never started.
    NotStarted,
    /// The launcher was killed, so nobody can tell.
    Unknown,
}

/// Why we ended an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillReason {
    /// Its processes used more memory than they may.
    Memory,
    /// It had more processes than it may.
    Processes,
    /// The match was over for it, or the runner was gone.
    Asked,
}
