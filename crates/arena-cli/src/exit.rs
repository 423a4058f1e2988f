//! How the program ends: the named exit codes, and the failure that carries one together with its sentence.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use crate::output::printable;

/// Exit codes, in one place. Scripts branch on them, so a number never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// A fault of this program.
    Internal = 1,
    /// The arguments, the environment or the settings file are wrong. Also what the argument parser exits with.
    Usage = 2,
    /// The server understood the request and said no (HTTP 4xx).
    Refused = 3,
    /// No arena answers at the address: nothing listens, it took too long, or something else lives there. Or no NATS server that can be
    /// used.
    Unreachable = 4,
    /// The server answered that it failed (HTTP 5xx).
    ServerFailed = 5,
    /// `serve`, `demo` and `league`: the data folder or the database can't be used, or another process has it.
    StoreUnavailable = 6,
    /// `serve` and `demo`: the address can't be listened on.
    CannotListen = 7,
    /// There is no agent where the user says, or it can't be run.
    NoAgent = 8,
    /// This system can't confine agents as it should.
    NoSandbox = 9,
    /// A file that was asked for can't be written.
    CannotWrite = 10,
    /// A replay can't be read, or says something else than the rules.
    BadReplay = 11,
    /// An agent has faults; `agent check` told them.
    FaultyAgent = 12,
    /// A tournament can't be begun or gone on with in this folder: there is one, or none, it is damaged or in use, or an agent was changed.
    /// A league: there is one of that name, or none, or it has too few agents.
    /// Or there are no results to rate, or damaged ones.
    BadTournament = 13,
    /// The endpoint of a language model failed, and the session ended before it answered again.
    ModelFailed = 14,
    /// A challenge has faults; `challenge check` told them. Or its seats aren't equally good, as `challenge fairness` told, or its folder
    /// holds no challenge at all.
    FaultyChallenge = 15,
    /// A replay was played by another version of the rules than this program's, so it can't be verified. Nothing else in it is wrong.
    OtherRules = 16,
    /// The endpoint of a language model failed. The player has left its seat without resigning, and can come back to it.
    Parked = 17,
    /// A language model stopped before the end of its session: a limit was reached, or it refused to play.
    ModelStopped = 18,
    /// Interrupted: a match was called off; or, by a second Ctrl-C, a server stopped without finishing what was under way.
    Interrupted = 130,
    /// Asked to terminate twice: stopped at once.
    Terminated = 143,
}

/// The codes as `arena --help` lists them.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  done                     4  no arena (or NATS) answers
    1  internal error           5  the server failed (HTTP 5xx)
    2  usage or settings        6  store unavailable
    3  refused (HTTP 4xx)       7  can't listen on the address
    8  no such agent            9  agents can't be confined
   10  can't write a file      11  replay damaged or untrue
   12  the agent has faults    13  tournament damaged, in use or changed
   14  no language model       15  the challenge has faults
   16  replay by other rules   17  the seat is parked
   18  the model stopped early
  130, 143  called off by Ctrl-C, or stopped at once by a second one or a second SIGTERM";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why the program ends without having done what was asked.
#[derive(Debug)]
pub struct Failure {
    /// What the caller of the program branches on.
    pub exit: Exit,
    sentence: String,
}

impl Failure {
    /// A failure with one sentence for the person at the terminal: lower case, no full stop.
    pub fn new(exit: Exit, sentence: impl Display) -> Failure {
        Failure { exit, sentence: sentence.to_string() }
    }

    /// A failure told by an error and all that caused it.
    pub fn caused(exit: Exit, error: &dyn std::error::Error) -> Failure {
        let mut sentence = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some errors tell their cause themselves.
            if !sentence.ends_with(&text) {
                sentence.push_str(": ");
                sentence.push_str(&text);
            }
            source = cause.source();
        }
        Failure { exit, sentence }
    }

    /// The failure, whose sentence names what it is about.
    pub fn about(self, what: &dyn Display) -> Failure {
        Failure { sentence: format!("{what}: {}", self.sentence), ..self }
    }

    /// The sentence: lower case, no full stop.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Says the sentence on stderr. Parts of it may come from a server, so control characters are made visible.
    pub fn print(&self) {
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(std::io::stderr(), "error: {}", printable(&self.sentence));
    }
}
