//! Records of sessions that can be checked without trust in the arena.
//!
//! A record is a file of JSON Lines: a header, one line for each event, the end, openings and a seal. Each line of the
//! chain has the hash of the line before it. Contents and user ids are commitments; an opening has the salt and the
//! content of one commitment, and can be left out. [`write_record`] derives a record from a stored session, [`read`]
//! checks all that needs no rules, and [`reexecute`] plays the game again and compares.
//!
//! This crate is pure: the caller opens files, draws random bytes and keeps keys.

pub mod boards;
pub mod forks;
mod format;
mod handover;
mod hash;
mod key;
pub mod log;
mod read;
mod reexecute;
mod salts;
#[cfg(test)]
mod tests;
mod write;

pub use format::{
    AttributionRow, Cause, End, EndKind, Event, EventKind, ForkOf, Header, InputsStored, LogProof, Opening,
    RecordedChannel, RecordedMessage, RecordedParty, RecordedRules, Seal,
};
pub use handover::{KeyHandover, KeyKind, connected_keys};
pub use hash::{Commitment, Hash, HexError, Salt};
pub use key::{RecordKey, RecordPublicKey, SealSignature};
pub use read::{Lie, Parsed, ReadError, ReadLimits, read};
pub use reexecute::{Reexecuted, Unchecked, has_rules, reexecute, reexecute_to, unplayable};
pub use salts::{SaltSecret, SessionSalts};
pub use write::{RecordError, RecordInput, RecordViewer, is_refusal, last_hash, record_hash, strip, write_record};
