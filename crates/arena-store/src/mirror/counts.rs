//! The number of sessions of each type and status, in blocks of session numbers.
//!
//! These counts locate a page in a list of sessions: the store adds up the counts of the blocks before the page instead
//! of reading their sessions. The store updates the counts in the commit that changes the sessions, and mirrors them in
//! memory. A block takes a few bytes, so a million sessions take some tens of KiB.
//!
//! Unlisted sessions are counted under the type [`UNLISTED`], which no list includes. They must be counted, because the
//! sum of all counts is compared with the number of sessions, and because exports search the blocks for running
//! sessions.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use arena_model::{SessionFacts, Status};

#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// The required challenge type; `None` matches every type.
    pub challenge: Option<String>,
    /// The required status; `None` matches every status.
    pub status: Option<Status>,
}

/// The number of session numbers in a block. Larger blocks make it slower to read a page; smaller blocks make it
/// slower to add up the counts.
pub(crate) const BLOCK: i64 = 256;

/// The type under which unlisted sessions are counted. Names of challenge types aren't empty.
pub(crate) const UNLISTED: &str = "";

/// The counts of one block or of all blocks, indexed by [`Counts::column`].
type Tally = Vec<u32>;

/// The changes of one transaction to the counts and totals.
#[derive(Debug, Default)]
pub(crate) struct Delta {
    /// The difference of each count, by block, type and status.
    pub(crate) sessions: BTreeMap<(i64, String, Status), i64>,
    /// The difference of each row of the table `totals`, by name.
    pub(crate) totals: BTreeMap<String, i64>,
}

impl Delta {
    pub(crate) fn add_session(&mut self, no: i64, facts: &SessionFacts, status: Status, n: i64) {
        let kind = if facts.is_unlisted { UNLISTED } else { facts.challenge.as_str() };
        self.add(no, kind, status, n);
    }

    fn add(&mut self, no: i64, challenge: &str, status: Status, n: i64) {
        *self.sessions.entry((no / BLOCK, challenge.to_owned(), status)).or_default() += n;
    }

    pub(crate) fn add_total(&mut self, name: &str, n: i64) {
        *self.totals.entry(name.to_owned()).or_default() += n;
    }

    pub(crate) fn merge(&mut self, other: Delta) {
        for (key, n) in other.sessions {
            *self.sessions.entry(key).or_default() += n;
        }
        for (name, n) in other.totals {
            *self.totals.entry(name).or_default() += n;
        }
    }
}

/// The mirror of the table `session_counts` in memory.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    types: Vec<String>,
    blocks: BTreeMap<i64, Tally>,
    total: Vec<u64>,
}

impl Counts {
    /// Adds differences. Returns false if a count would leave the range from 0 to [`BLOCK`], which is impossible for
    /// correct counts. Such a count stays at the end of the range.
    #[must_use]
    pub(crate) fn apply(&mut self, delta: &Delta) -> bool {
        let mut possible = true;
        for ((block, challenge, status), &n) in &delta.sessions {
            if n == 0 {
                continue;
            }
            let column = self.column(challenge, *status);
            let count = at(self.blocks.entry(*block).or_default(), column);
            let before = i64::from(*count);
            let wanted = before.saturating_add(n);
            let after = wanted.clamp(0, BLOCK);
            possible &= wanted == after && *block >= 0;
            // `clamp` has limited the value to 0..=256.
            *count = after as u32;
            let total = at(&mut self.total, column);
            *total = total.saturating_add_signed(after - before);
        }
        possible
    }

    /// Returns the number of sessions of a type and status in one block.
    pub(crate) fn count(&self, block: i64, challenge: &str, status: Status) -> i64 {
        let kind = self.types.iter().position(|kind| kind == challenge);
        let tally = self.blocks.get(&block);
        kind.zip(tally).and_then(|(kind, tally)| tally.get(column_of(kind, status))).copied().map_or(0, i64::from)
    }

    fn column(&mut self, challenge: &str, status: Status) -> usize {
        let kind = self.types.iter().position(|kind| kind == challenge).unwrap_or_else(|| {
            self.types.push(challenge.to_owned());
            self.types.len() - 1
        });
        column_of(kind, status)
    }

    /// Returns the indexes of the counts in a tally that match a filter. Unlisted sessions match none.
    fn columns(&self, filter: &SessionFilter) -> Vec<usize> {
        let types = self.types.iter().enumerate();
        types
            .filter(|(_, kind)| *kind != UNLISTED)
            .filter(|(_, kind)| filter.challenge.as_ref().is_none_or(|wanted| wanted == *kind))
            .flat_map(|(kind, _)| Status::ALL.map(|status| (kind, status)))
            .filter(|(_, status)| filter.status.is_none_or(|wanted| wanted == *status))
            .map(|(kind, status)| column_of(kind, status))
            .collect()
    }

    /// Returns the session numbers of the first block with sessions that haven't ended. The search begins with the
    /// block of session number `no`.
    pub(crate) fn find_running(&self, no: i64) -> Option<RangeInclusive<i64>> {
        let running: Vec<usize> = (0..self.types.len())
            .flat_map(|kind| [Status::Open, Status::Active].map(|status| column_of(kind, status)))
            .collect();
        let has_running = |tally: &Tally| running.iter().filter_map(|&column| tally.get(column)).any(|&n| n > 0);
        let (block, _) = self.blocks.range(no.max(0) / BLOCK..).find(|(_, tally)| has_running(tally))?;
        Some(range_of(*block))
    }

    /// Locates the page at `offset` in a list of sessions, newest first.
    pub(crate) fn find_page(&self, filter: &SessionFilter, offset: u64, limit: usize) -> PagePlan {
        let columns = self.columns(filter);
        let matching =
            |tally: &Tally| columns.iter().filter_map(|&column| tally.get(column)).map(|&n| u64::from(n)).sum::<u64>();
        let total = columns.iter().filter_map(|&column| self.total.get(column)).sum();
        let mut plan = PagePlan { total, ranges: Vec::new(), skip: 0 };
        let mut before = 0;
        let last = offset.saturating_add(limit as u64).min(total);
        for (block, tally) in self.blocks.iter().rev() {
            if before >= last || offset >= total {
                break;
            }
            let here = matching(tally);
            if here > 0 && before + here > offset {
                if plan.ranges.is_empty() {
                    plan.skip = offset - before;
                }
                plan.ranges.push(range_of(*block));
            }
            before += here;
        }
        plan
    }
}

/// Returns the index of a type and status in a tally.
fn column_of(kind: usize, status: Status) -> usize {
    kind * Status::ALL.len() + status as usize
}

fn range_of(block: i64) -> RangeInclusive<i64> {
    let first = block.saturating_mul(BLOCK);
    first..=first.saturating_add(BLOCK - 1)
}

/// Returns an item of a list, which grows as needed.
fn at<N: Copy + Default>(list: &mut Vec<N>, place: usize) -> &mut N {
    if list.len() <= place {
        list.resize(place + 1, N::default());
    }
    &mut list[place]
}

/// The result of [`Counts::find_page`].
#[derive(Debug)]
pub(crate) struct PagePlan {
    /// The total number of sessions that match the filter.
    pub(crate) total: u64,
    /// The ranges of session numbers to read, newest first.
    pub(crate) ranges: Vec<RangeInclusive<i64>>,
    /// The number of matching sessions to skip in the first range.
    pub(crate) skip: u64,
}

/// Returns true if a stored count is wrong: if it is out of range, or if it differs from `before + change`, where
/// `before` is the count in memory, if known.
pub(crate) fn is_count_wrong(after: Option<i64>, before: Option<i64>, change: i64) -> bool {
    after.is_none_or(|after| !(0..=BLOCK).contains(&after) || before.is_some_and(|before| before + change != after))
}

pub(crate) fn is_total_wrong(after: Option<i64>) -> bool {
    after.is_none_or(|after| after < 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the total number of sessions, with those that are unlisted.
    fn sum_of(counts: &Counts) -> u64 {
        counts.total.iter().sum()
    }

    #[test]
    fn a_count_that_cannot_be_is_noticed_and_stays_in_its_range() {
        let mut counts = Counts::default();
        let all = SessionFilter::default();
        let step = |no: i64, n: i64| {
            let mut delta = Delta::default();
            delta.add(no, "psi", Status::Open, n);
            delta
        };
        assert!(counts.apply(&step(300, 2)));
        assert!(!counts.apply(&step(300, -3)), "the block has only two sessions");
        assert!(!counts.apply(&step(1, -1)), "the block has no sessions");
        assert_eq!((sum_of(&counts), counts.find_page(&all, 0, 9).ranges), (0, vec![]));
        assert!(!counts.apply(&step(i64::MAX, i64::MAX)), "a block has 256 numbers");
        assert!(!counts.apply(&step(-BLOCK, 1)), "numbers begin at 1");
        assert_eq!((counts.count(i64::MAX / BLOCK, "psi", Status::Open), sum_of(&counts)), (BLOCK, 257));
        counts.find_page(&all, 0, 999);
        assert!(counts.find_running(i64::MAX).is_some());
    }

    #[test]
    fn unlisted_sessions_are_counted_and_in_no_list() {
        let (mut counts, mut delta) = (Counts::default(), Delta::default());
        delta.add(1, "psi", Status::Ended, 1);
        delta.add(2, UNLISTED, Status::Active, 1);
        delta.add(300, UNLISTED, Status::Open, 1);
        assert!(counts.apply(&delta));
        for (challenge, status, listed) in [
            (None, None, 1),
            (None, Some(Status::Ended), 1),
            (None, Some(Status::Active), 0),
            (Some("psi"), None, 1),
            (Some(UNLISTED), None, 0),
            (Some(UNLISTED), Some(Status::Open), 0),
        ] {
            let filter = SessionFilter { challenge: challenge.map(str::to_owned), status };
            assert_eq!(counts.find_page(&filter, 0, 9).total, listed, "{filter:?}");
        }
        assert_eq!((sum_of(&counts), counts.count(0, UNLISTED, Status::Active)), (3, 1));
        assert_eq!((counts.find_running(1), counts.find_running(256)), (Some(0..=255), Some(256..=511)));
    }

    proptest! {
        // Compares the plan with a simple implementation: filter, skip, take.
        #[test]
        fn a_page_is_where_walking_would_find_it(
            statuses in prop::collection::vec((0usize..2, 0usize..4), 1..2000),
            challenge in 0usize..3,
            status in 0usize..4,
            offset in 0u64..2100,
            limit in 1usize..100,
        ) {
            let types = ["psi", "chess"];
            let mut delta = Delta::default();
            let mut sessions = Vec::new();
            for (i, &(kind, status)) in statuses.iter().enumerate() {
                let no = i as i64 + 1;
                // Index 3 has no status and represents a removed session.
                if let Some(&status) = Status::ALL.get(status) {
                    delta.add(no, types[kind], status, 1);
                    sessions.push((no, types[kind], status));
                }
            }
            let mut counts = Counts::default();
            prop_assert!(counts.apply(&delta));
            let filter = SessionFilter {
                challenge: types.get(challenge).map(|kind| kind.to_string()),
                status: Status::ALL.get(status).copied(),
            };
            let matches: Vec<i64> = sessions.iter().rev()
                .filter(|(_, kind, status)| filter.challenge.as_deref().is_none_or(|c| c == *kind)
                    && filter.status.is_none_or(|s| s == *status))
                .map(|(no, ..)| *no)
                .collect();
            let expected: Vec<i64> = matches.iter().copied().skip(offset as usize).take(limit).collect();
            let plan = counts.find_page(&filter, offset, limit);
            let found: Vec<i64> = plan.ranges.iter()
                .flat_map(|range| matches.iter().copied().filter(|no| range.contains(no)))
                .skip(plan.skip as usize).take(limit).collect();
            prop_assert_eq!(plan.total, matches.len() as u64);
            prop_assert_eq!(found, expected);
        }
    }
}
