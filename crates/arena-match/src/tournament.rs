//! Tournaments that are kept: a folder with a journal, from which they go on wherever they were broken off.
//!
//! The journal is one file, `tournament.jsonl`: first the plan, then a line for each match that was played, written and synced to the
//! disk the moment it ended. Who meets whom is `arena-tournament`'s.

mod fingerprint;
mod journal;
mod line;
mod plan;
mod play;
mod record;
mod watch;

pub(crate) use fingerprint::entries as files_of;
pub use journal::{Journal, JournalError};
pub use line::{ChangedLine, CheckedLine, GameLine, QuarantinedLine, SpreadLine, TimePart, WorkerPart};
pub use plan::{Entrant, Plan, PlanError, Reach, ScriptPart};
pub use play::{Ended, FilesChanged, How, PlayError, check_folder, places, play};
pub use record::Record;
pub use watch::FileWatch;

/// The name of the journal in its folder.
pub const FILE: &str = "tournament.jsonl";

/// The folder of replays and logs in it, if they are kept.
pub const REPLAYS: &str = "replays";
