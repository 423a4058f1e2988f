//! Challenges as scripts: a folder with a `challenge.json` and an `index.ts` or `index.js` is a challenge type, without trust in whoever
//! wrote it.
//!
//! A script sees what the operators of the reference server see, by the same imports. It is read and run by workers, processes that
//! can do nothing but compute; each call has a world of its own there, made anew, so sessions can't see each other, and a
//! call comes to the same wherever it is repeated. What comes out is judged here (`challenge.rs`): a call that goes wrong is
//! refused like any other action, and its owner is told why.
//!
//! How sessions are kept and served is left to the engine and the server; they know challenge types only.

mod challenge;
mod folder;
mod metadata;
mod sandbox;
mod wire;
mod worker;

use std::fmt;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

pub use challenge::{Fault, ScriptChallenge};
pub use folder::{Folder, find_folders};
pub use sandbox::{Limits, Sandbox};

/// What a process has to do that was started as a worker (see [`Sandbox::new`]).
pub fn worker_main() -> ExitCode {
    worker::main()
}

/// The modules that a script may import beside files of its own folder.
pub fn importable() -> impl Iterator<Item = &'static str> {
    worker::importable()
}

/// Something that is wrong with a challenge's folder, for its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, by its path in the folder.
    pub file: String,
    /// The line, from 1, if it is known.
    pub line: Option<u32>,
    /// What is wrong with it.
    pub message: String,
}

impl Problem {
    /// More than anybody reads of one folder.
    pub(crate) const MOST: usize = 20;

    pub(crate) fn of(file: &str, message: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line: None, message: message.into() }
    }

    pub(crate) fn at(file: &str, line: u32, message: impl Into<String>) -> Problem {
        Problem { file: file.to_owned(), line: (line > 0).then_some(line), message: message.into() }
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
