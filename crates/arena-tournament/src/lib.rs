//! Tournaments: the plan, the pairings, the results, the standings, and the lines of the journal that holds plan and results.
//!
//! All pairings follow from the [`Shape`] of a tournament and the results so far, in whatever order these came in. A tournament that was
//! interrupted therefore continues as if it hadn't been. `arena-runner` plays the matches and writes the journal.

mod format;
mod journal;
mod matching;
mod plan;
mod record;
mod results;
mod schedule;
mod shape;
mod standings;
mod stop;

pub use format::{Format, FormatInfo};
pub use journal::{ChangedLine, CheckedLine, GameLine, Line, QuarantinedLine, SpreadLine, WorkerPart};
pub use plan::{Entrant, Plan, PlanError, Reach, ScriptPart, check_game};
pub use record::{Record, Wrong};
pub use results::results;
pub use schedule::{Pairing, RecordError, Schedule, Trial};
pub use shape::{MAX_GAMES, Shape, ShapeError};
pub use standings::{Standing, Versus, cross_table, standings};
pub use stop::Stop;
