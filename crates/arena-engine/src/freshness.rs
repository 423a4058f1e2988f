//! Staleness of data in memory. Stale marks are counted: a mark that is set during a read of the store stays for the
//! next read, and a canceled read clears no mark.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of stale marks that were set, and the number that reads of the store have cleared.
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    marks: AtomicU64,
    seen: AtomicU64,
    hidings: AtomicU64,
    hidings_seen: AtomicU64,
}

/// The stale marks that one read of the store clears.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkSnapshot {
    marks: u64,
    hidings: u64,
    /// True if messages in memory may have lost their content.
    pub(crate) hidden: bool,
}

impl Freshness {
    /// Marks the data as stale: the store may have newer data.
    pub(crate) fn mark(&self) {
        self.marks.fetch_add(1, Ordering::SeqCst);
    }

    /// Marks the data as stale because a message may have been hidden in the store.
    pub(crate) fn mark_hidden(&self) {
        self.hidings.fetch_add(1, Ordering::SeqCst);
        self.mark();
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.marks.load(Ordering::SeqCst) != self.seen.load(Ordering::SeqCst)
    }

    /// Returns the marks that a read of the store clears if the read begins now.
    pub(crate) fn snapshot(&self) -> MarkSnapshot {
        let marks = self.marks.load(Ordering::SeqCst);
        let hidings = self.hidings.load(Ordering::SeqCst);
        MarkSnapshot { marks, hidings, hidden: hidings != self.hidings_seen.load(Ordering::SeqCst) }
    }

    /// Clears the marks of a read after its result is in memory. Reads of the same data don't overlap.
    pub(crate) fn clear(&self, snapshot: MarkSnapshot) {
        self.hidings_seen.store(snapshot.hidings, Ordering::SeqCst);
        self.seen.store(snapshot.marks, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_during_a_read_is_kept_for_the_next_read() {
        let freshness = Freshness::default();
        assert!(!freshness.is_stale());
        freshness.mark();
        let snapshot = freshness.snapshot();
        freshness.mark_hidden();
        freshness.clear(snapshot);
        assert!(freshness.is_stale() && !snapshot.hidden);
        let snapshot = freshness.snapshot();
        freshness.clear(snapshot);
        assert!(!freshness.is_stale() && snapshot.hidden && !freshness.snapshot().hidden);
    }
}
