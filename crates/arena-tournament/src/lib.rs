//! Tournaments: plans, pairings, results, standings, and the line types of the journal that stores plan and results.
//!
//! The [`Shape`] of a tournament and the results so far determine all pairings; the order in which results arrive has
//! no effect. Therefore an interruption doesn't change the pairings of a resumed tournament. A [`League`] has no end: it
//! chooses each pairing from the results so far. `arena-runner` plays the matches and writes the journal.

mod format;
mod journal;
mod league;
mod matching;
mod plan;
mod record;
mod results;
mod schedule;
mod shape;
mod standings;
mod stop;

pub use format::{Format, FormatInfo};
pub use journal::{
    ChangedLine, CheckedLine, GameLine, JournalLine, QuarantinedLine, RemovedLine, SeasonClosedLine, SpreadLine,
    SuspendedLine, WorkerPart,
};
pub use league::{League, LeagueAgent, Membership};
pub use plan::{AgentAddress, Entrant, Openings, PlanError, ScriptPart, TournamentPlan};
pub use record::{InvalidLine, Record};
pub use results::results;
pub use schedule::league::Season;
pub use schedule::{Pairing, RecordError, Schedule, SequentialTest};
pub use shape::{MAX_GAMES, Shape, ShapeError};
pub use standings::{HeadToHead, TournamentStanding, cross_table, standings};
pub use stop::Stop;
