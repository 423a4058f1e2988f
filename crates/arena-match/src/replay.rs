//! Replays: records of matches as JSON lines, from which a match can be played again.
//!
//! The first line is the header with the seed. Each epoch has a line, with the state that the agents received and the
//! accepted actions. The result line contains the result and the final state. Nothing depends on the clock or the
//! machine, so equal seeds and equal replies give equal bytes, except for the time banks and for disqualifications by
//! timeout.
//!
//! Since format 2, each line begins with the hash of the line before it, and a seal may follow the result. Replays of
//! format 1 have neither, nor causes in the result.

mod cause;
mod chain;
mod export;
mod index;
mod pgn;
mod read;
#[cfg(test)]
mod tests;
mod verify;
mod write;

pub use chain::{ChainRepair, ReplaySeal, replay_hash, seal_line};
pub use export::export_reference;
pub use index::{DisqualifiedIn, ENTRY, Summary, index};
pub use pgn::{SessionGame, export_pgn, session_pgn};
pub use read::{EpochLine, HeaderLine, Replay, ReplayError, ReplayFork, ReplayLine, ResultLine, ResultPart, SeatLine};
pub use verify::{Verified, VerifiedResult, verified_result, verify, verify_by};
pub use write::{EpochRecord, Header, Recorder, SeatRecord, States};

/// The version of the format, stored in the header.
pub const VERSION: u32 = 2;

/// The oldest version that can be read.
const FIRST_VERSION: u32 = 1;

/// The maximum number of recorded rejections of one agent in one epoch; more are only counted.
const MAX_REJECTED: usize = 16;

/// The maximum size of a line, in bytes. Lines of replays are much shorter; the limit applies to files that aren't
/// replays.
const MAX_LINE: u64 = 64 << 20;
