//! Exit codes, and failures with their exit code and message.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use crate::output::printable;

/// Exit codes; [`EXITS`] has their meanings. Scripts depend on the numbers, so a number never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Internal = 1,
    Usage = 2,
    Refused = 3,
    Unreachable = 4,
    ServerFailed = 5,
    StoreUnavailable = 6,
    CannotListen = 7,
    NoAgent = 8,
    NoSandbox = 9,
    CannotWrite = 10,
    BadReplay = 11,
    FaultyAgent = 12,
    BadTournament = 13,
    ModelFailed = 14,
    FaultyChallenge = 15,
    OtherRules = 16,
    Parked = 17,
    ModelStopped = 18,
    OverBudget = 19,
    Interrupted = 130,
    Terminated = 143,
}

/// Every exit code but 0, with its label in `arena --help` and its meaning in `docs/reference/exit-codes.md`.
pub const EXITS: [(Exit, &str, &str); 21] = [
    (Exit::Internal, "internal error", "An internal error of this program."),
    (
        Exit::Usage,
        "usage or settings",
        "Wrong arguments, environment or settings file; the argument parser uses this code too.",
    ),
    (Exit::Refused, "refused (HTTP 4xx)", "The server refused the request (HTTP 4xx)."),
    (
        Exit::Unreachable,
        "server or NATS unreachable",
        "The server or the NATS server is unreachable: no listener, a timeout, or another service at the address.",
    ),
    (Exit::ServerFailed, "server error (HTTP 5xx)", "The server failed (HTTP 5xx)."),
    (
        Exit::StoreUnavailable,
        "store unavailable",
        "`serve`, `demo` and `admin copy-store`: the data folder or the database is unusable or in use by another process.",
    ),
    (
        Exit::CannotListen,
        "cannot listen on the address",
        "`serve`, `demo` and `replay serve`: the program cannot listen on the address.",
    ),
    (Exit::NoAgent, "agent not found", "The agent isn't found or cannot be started."),
    (Exit::NoSandbox, "sandbox not supported", "The system doesn't support the requested sandbox."),
    (Exit::CannotWrite, "cannot write a file", "An output file cannot be written."),
    (
        Exit::BadReplay,
        "replay, record or log false",
        "A replay is unreadable, damaged or contradicts the rules. A record or a log is false: it contradicts itself, its keys, the rules or a checkpoint. `eval verify`: the files of an evaluation contradict its recorded answers.",
    ),
    (
        Exit::FaultyAgent,
        "faulty agent",
        "`agent check` found faults. `play`: the agent was disqualified, or the server refused its actions. `author fairness`: agents were disqualified, so fewer than two deals count.",
    ),
    (
        Exit::BadTournament,
        "tournament damaged, in use or changed",
        "A tournament cannot be created or resumed in this folder: it exists already, is missing, damaged or in use, or an agent has changed. A league has too few agents. There are no results to rate, or they are damaged. The folder of an evaluation is missing, damaged or in use, or its prompts, options or rules have changed.",
    ),
    (
        Exit::ModelFailed,
        "model endpoint failed",
        "The endpoint of a language model failed, and the session ended before it recovered. `match` and `tournament`: the game doesn't count, and a tournament can be resumed.",
    ),
    (
        Exit::FaultyChallenge,
        "faulty challenge",
        "`author check` found faults, `author fairness` found unequal seats, or a folder contains no challenge.",
    ),
    (
        Exit::OtherRules,
        "not completely verifiable",
        "A replay or record belongs to other rules, its session isn't in the given log, or the copy of the log is older than the record, so it cannot be verified completely. It has no other faults. `eval verify`: some games can't be played again, and the others agree.",
    ),
    (
        Exit::Parked,
        "seat parked",
        "The endpoint of a language model failed. The player left its seat without resigning and can return to it. `eval`: the endpoints of some models failed; the other games are finished, and the run can be continued.",
    ),
    (
        Exit::ModelStopped,
        "model stopped early",
        "A language model stopped early: it reached a limit, refused to play, or gave unusable answers.",
    ),
    (
        Exit::OverBudget,
        "cap reached",
        "`eval`: the next call could exceed a cap of the run file, so the run stopped. With a higher cap it continues.",
    ),
    (
        Exit::Interrupted,
        "interrupted by Ctrl-C",
        "Interrupted by Ctrl-C; or a server was stopped by a second Ctrl-C before it finished its requests.",
    ),
    (Exit::Terminated, "stopped at once by a second SIGTERM", "Stopped at once by a second SIGTERM."),
];

/// Returns the list of exit codes in `arena --help`.
pub fn exit_codes() -> String {
    let mut text = "Exit codes:\n    0  success".to_owned();
    for (exit, label, _) in EXITS {
        text += &format!("\n{:5}  {label}", exit as u8);
    }
    text
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    sentence: String,
}

impl Failure {
    /// Creates a failure with a message. By convention, a message begins in lower case and ends without a full stop.
    pub fn new(exit: Exit, sentence: impl Display) -> Failure {
        Failure { exit, sentence: sentence.to_string() }
    }

    /// Creates a failure of wrong arguments or settings.
    pub fn usage(sentence: impl Display) -> Failure {
        Failure::new(Exit::Usage, sentence)
    }

    /// Creates an internal failure: the system doesn't do something.
    pub fn cannot(what: &str, error: impl Display) -> Failure {
        Failure::new(Exit::Internal, format_args!("cannot {what}: {error}"))
    }

    /// Creates a failure from an error and the chain of its causes.
    pub fn caused(exit: Exit, error: &dyn std::error::Error) -> Failure {
        let mut sentence = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some errors include the text of their cause, which isn't repeated.
            if !sentence.ends_with(&text) {
                sentence.push_str(": ");
                sentence.push_str(&text);
            }
            source = cause.source();
        }
        Failure { exit, sentence }
    }

    /// Adds a prefix to the message: the name of the file or object that failed.
    pub fn about(self, what: &dyn Display) -> Failure {
        Failure { sentence: format!("{what}: {}", self.sentence), ..self }
    }

    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Prints the message to stderr. Control characters are escaped, since parts of the message may come from a server.
    pub fn print(&self) {
        // If stderr is closed, the error can't be reported anywhere.
        let _ = writeln!(std::io::stderr(), "error: {}", printable(&self.sentence));
    }
}
