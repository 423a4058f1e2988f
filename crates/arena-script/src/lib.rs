//! Challenges and scoring strategies as scripts: a folder with a `challenge.json` and an `index.ts` or `index.js` is a
//! challenge type, and one with a `scoring.json` is a strategy. Scripts are untrusted.
//!
//! A script sees the same interface as operators of the reference server, through the same imports. Workers load and
//! run scripts; they are processes that can only compute. Each call runs in a new world, so sessions can't see each
//! other, and a repeated call has the same result. `challenge/operator.rs` validates the output: a failed call is refused like
//! any other action, and the arena's owner gets the reason.
//!
//! The engine and the server don't depend on scripts: they handle every challenge type in the same way.

mod challenge;
mod folder;
mod metadata;
mod sandbox;
mod strategy;
mod ui;
mod wire;
mod worker;

use std::fmt;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

pub use challenge::{Fault, ScriptChallenge};
pub use folder::{Folder, find_folders, find_folders_of};
pub use sandbox::{Limits, RUN, Sandbox, WorkerProgram};
pub use strategy::{GameToCount, PlayedBatch, ScriptStrategy, StrategyFault};

/// Runs a worker until its input ends. This is the main function of the processes of a [`WorkerProgram`].
pub fn worker_main() -> ExitCode {
    worker::main()
}

/// Returns the modules that a script may import beside the files of its folder.
pub fn importable() -> impl Iterator<Item = &'static str> {
    worker::importable()
}

/// The purpose of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptKind {
    Challenge,
    Strategy,
}

impl ScriptKind {
    /// Returns the name of the file that describes a script of this kind.
    pub fn file(self) -> &'static str {
        match self {
            ScriptKind::Challenge => metadata::FILE,
            ScriptKind::Strategy => strategy::FILE,
        }
    }

    /// Returns the plural for people: `challenges` or `strategies`.
    pub fn plural(self) -> &'static str {
        match self {
            ScriptKind::Challenge => "challenges",
            ScriptKind::Strategy => "strategies",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            ScriptKind::Challenge => "challenge",
            ScriptKind::Strategy => "strategy",
        }
    }
}

/// A problem of a script's folder, for its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file's path in the folder.
    pub file: String,
    /// The line in the file, from 1, if known.
    pub line: Option<u32>,
    pub message: String,
}

impl Problem {
    /// The maximum number of problems reported for one folder.
    pub(crate) const MOST: usize = 20;

    pub(crate) fn of(file: &str, message: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line: None, message: message.into() }
    }

    pub(crate) fn at(file: &str, line: u32, message: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line: (line > 0).then_some(line), message: message.into() }
    }
}

/// Returns both results, or all problems.
fn both<A, B>(one: Result<A, Vec<Problem>>, two: Result<B, Vec<Problem>>) -> Result<(A, B), Vec<Problem>> {
    match (one, two) {
        (Ok(one), Ok(two)) => Ok((one, two)),
        (one, two) => Err(one.err().into_iter().chain(two.err()).flatten().collect()),
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}
