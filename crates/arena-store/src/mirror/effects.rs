//! The effects of writes on the data in memory.

use super::counts::Delta;
use super::ranking::{Move, Ranked};

/// The effects of a durable write on the data that is mirrored in memory.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) delta: Delta,
    pub(crate) moves: Vec<(Ranked, Move)>,
    /// True if standings were recomputed, which makes all rankings in memory outdated.
    pub(crate) recounted: bool,
    /// True if content was erased. SQLite must then remove the content from its write-ahead log, too.
    pub(crate) erased: bool,
    /// True if wrong derived tables are to be recomputed after all other writes.
    pub(crate) mend: bool,
    /// True if nothing was written, which is no evidence that the store can write. Only Postgres uses this field.
    pub(crate) nothing: bool,
    /// A description of an impossible value that the write found in a derived table.
    pub(crate) suspect: Option<&'static str>,
}

impl Effects {
    pub(crate) fn merge(&mut self, other: Effects) {
        self.delta.merge(other.delta);
        self.moves.extend(other.moves);
        self.recounted |= other.recounted;
        self.erased |= other.erased;
        self.mend |= other.mend;
        self.suspect = self.suspect.or(other.suspect);
    }
}
