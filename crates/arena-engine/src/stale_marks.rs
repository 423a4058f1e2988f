//! Marks of data in memory that must be read again from the store. Marks are counted: a mark that is set during a read
//! stays for the next read, and a canceled read clears no mark.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of marks that were set, and the number that reads of the store have followed.
#[derive(Debug, Default)]
pub(crate) struct StaleMarks {
    set: AtomicU64,
    followed: AtomicU64,
}

impl StaleMarks {
    pub(crate) fn set(&self) {
        self.set.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.count() != self.followed.load(Ordering::SeqCst)
    }

    /// Returns the number of marks that a read of the store follows if it begins now.
    pub(crate) fn count(&self) -> u64 {
        self.set.load(Ordering::SeqCst)
    }

    /// Clears the first `count` marks after the read that followed them is in memory. Reads of the same data don't overlap.
    pub(crate) fn clear(&self, count: u64) {
        self.followed.store(count, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_during_a_read_stays_for_the_next_read() {
        let marks = StaleMarks::default();
        assert!(!marks.is_stale());
        marks.set();
        let first = marks.count();
        marks.set();
        marks.clear(first);
        assert!(marks.is_stale());
        marks.clear(marks.count());
        assert!(!marks.is_stale());
    }
}
