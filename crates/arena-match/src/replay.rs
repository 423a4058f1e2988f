//! Replays: the record of a match as JSON lines, from which it can be played again.
//!
//! The first line is the header with the seed; then comes a line for each epoch, with the state as the agents saw it and the actions
//! that were taken; the last line holds the result and the final state. Nothing in it depends on the clock or the machine, so equal
//! seeds and equal replies give equal bytes. (Time shows only as far as the rules do: in the banks, and in forfeits on time.)

mod export;
mod index;
mod pgn;
mod read;
#[cfg(test)]
mod tests;
mod verify;
mod write;

pub use export::export_reference;
pub use index::{DisqualifiedIn, ENTRY, Summary, index};
pub use pgn::export_pgn;
pub use read::{EpochLine, HeaderLine, Line, Replay, ReplayError, ResultLine, ResultPart, SeatLine};
pub use verify::{Account, Verified, account, verify, verify_by};
pub use write::{EpochRecord, Header, Recorder, ResultRecord, SeatRecord, States};

/// The version of the format, which a header names.
pub const VERSION: u32 = 1;

/// More rejections than these, of one agent in one epoch, are only counted.
const MAX_REJECTED: usize = 16;

/// A line has at most this many bytes. Far more than any game shows: it is there for files that have no lines.
const MAX_LINE: u64 = 64 << 20;
