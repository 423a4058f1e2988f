//! Whether what is in memory may be older than what is in the store: counted marks, so that one that comes while the store is being
//! asked isn't taken for one that came before, and who breaks off has done nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often something was marked as possibly old, and how many of these marks have been seen to.
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    marks: AtomicU64,
    seen: AtomicU64,
    hidings: AtomicU64,
    hidings_seen: AtomicU64,
}

/// The marks that a look at the store sees to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    marks: u64,
    hidings: u64,
    /// Whether messages that are in memory may have lost their content.
    pub(crate) hidden: bool,
}

impl Freshness {
    /// Notes that the store may hold something else by now.
    pub(crate) fn mark(&self) {
        self.marks.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that messages in the store may have lost their content.
    pub(crate) fn mark_hidden(&self) {
        self.hidings.fetch_add(1, Ordering::SeqCst);
        self.mark();
    }

    pub(crate) fn is_stale(&self) -> bool {
        self.marks.load(Ordering::SeqCst) != self.seen.load(Ordering::SeqCst)
    }

    /// What a look at the store that begins now sees to.
    pub(crate) fn look(&self) -> Look {
        let marks = self.marks.load(Ordering::SeqCst);
        let hidings = self.hidings.load(Ordering::SeqCst);
        Look { marks, hidings, hidden: hidings != self.hidings_seen.load(Ordering::SeqCst) }
    }

    /// Notes that what the look has found is in memory. Looks don't overlap.
    pub(crate) fn seen(&self, look: Look) {
        self.hidings_seen.store(look.hidings, Ordering::SeqCst);
        self.seen.store(look.marks, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_comes_during_a_look_is_left_for_the_next() {
        let freshness = Freshness::default();
        assert!(!freshness.is_stale());
        freshness.mark();
        let look = freshness.look();
        freshness.mark_hidden();
        freshness.seen(look);
        assert!(freshness.is_stale() && !look.hidden);
        let look = freshness.look();
        freshness.seen(look);
        assert!(!freshness.is_stale() && look.hidden && !freshness.look().hidden);
    }
}
