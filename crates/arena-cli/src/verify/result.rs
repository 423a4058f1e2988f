//! The result of the check of one file: its sound parts, and the others with reasons; or the first fault.

use std::fmt::Display;

use arena_model::SessionId;
use serde::Serialize;

use crate::exit::Failure;

/// A part of a file, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FilePart {
    /// Each line, and its hash in the next one.
    Chain,
    /// The signature of the last hash.
    Seal,
    /// The origin of the key that signed.
    Key,
    /// The contents, against their commitments.
    Openings,
    /// The seed, against its commitment.
    Seed,
    /// All transitions and the result, by playing the game again.
    Rules,
    /// The entries in the arena's log.
    Log,
}

impl FilePart {
    /// Returns the name in the output.
    pub fn as_str(self) -> &'static str {
        match self {
            FilePart::Chain => "chain",
            FilePart::Seal => "seal",
            FilePart::Key => "key",
            FilePart::Openings => "openings",
            FilePart::Seed => "seed",
            FilePart::Rules => "rules",
            FilePart::Log => "log",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncheckedPart {
    pub part: FilePart,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    Record,
    Replay,
}

/// The result for a file without a contradiction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SoundFile {
    pub format: FileFormat,
    /// The name of the challenge or game.
    pub game: String,
    /// The session of a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The number of events, or epochs of a replay.
    pub events: u64,
    /// The number of messages, or states of a replay.
    pub messages: u64,
    pub checked: Vec<FilePart>,
    /// The parts that weren't checked, or not completely.
    pub unchecked: Vec<UncheckedPart>,
    /// Facts from the log that concern the session, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// False if a part can't be checked with the given rules, keys and log, although the file has it.
    #[serde(skip)]
    pub is_complete: bool,
}

impl SoundFile {
    /// Creates the result of a file with these numbers of events and messages, before its parts are checked.
    pub fn new(format: FileFormat, game: String, session: Option<SessionId>, events: u64, messages: u64) -> SoundFile {
        let (checked, unchecked, remarks) = (Vec::new(), Vec::new(), Vec::new());
        SoundFile { format, game, session, events, messages, checked, unchecked, remarks, is_complete: true }
    }

    /// Notes that a part wasn't checked, or not completely.
    pub fn leave_out(&mut self, part: FilePart, reason: impl Display) {
        self.unchecked.push(UncheckedPart { part, reason: reason.to_string() });
    }

    /// Notes that a part can't be checked with the given rules, keys and log, although the file has it.
    pub fn leave_incomplete(&mut self, part: FilePart, reason: impl Display) {
        self.leave_out(part, reason);
        self.is_complete = false;
    }
}

#[derive(Debug)]
pub struct FileFault {
    /// The failure, with the file's path.
    pub failure: Failure,
    /// The number of the first false line, from 1.
    pub line: Option<usize>,
    /// The number of the first false event, from 1.
    pub event: Option<u64>,
}

impl From<Failure> for FileFault {
    fn from(failure: Failure) -> FileFault {
        FileFault { failure, line: None, event: None }
    }
}
