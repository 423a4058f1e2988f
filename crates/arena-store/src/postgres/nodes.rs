//! The nodes of a shared database: their ids, their common clock, and a signal for each commit of this node.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arena_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

/// The settings that all nodes of a shared database must have in common, as pairs of a display name and a value. An
/// error names the first setting that differs. The value for a secret is only a digest of the secret.
pub type NodeTerms = Vec<(String, String)>;

/// This process as one of the nodes that share a database.
pub struct Nodes {
    arena: String,
    node: String,
    pub(crate) clock: DatabaseClock,
    /// The start of the database's server, as last read.
    server_start: Mutex<String>,
    /// True if this node leads: it writes the log, plays tournaments and counts by scripts.
    pub(crate) leads: AtomicBool,
    /// The number of queries for rows that other nodes may have changed.
    pub(crate) checks: AtomicU64,
    pub(crate) committed: watch::Sender<u64>,
}

impl Nodes {
    pub(crate) fn new(arena: String, node: String, server_start: String) -> Nodes {
        Nodes {
            arena,
            node,
            clock: DatabaseClock::default(),
            server_start: Mutex::new(server_start),
            leads: AtomicBool::new(false),
            checks: AtomicU64::new(0),
            committed: watch::Sender::new(0),
        }
    }

    /// Returns the random id of this database, which all of its nodes share.
    pub fn arena(&self) -> &str {
        &self.arena
    }

    /// Returns the node's id. Each start of a node draws a new random id.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the time of the database's clock, which is the same for all nodes and never goes backward.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Notes the start of the database's server. Returns true if it differs from the last one, so that the database may
    /// have lost commits.
    pub(crate) fn is_new_server(&self, start: &str) -> bool {
        let mut known = self.server_start.lock();
        let is_new = *known != start;
        if is_new {
            start.clone_into(&mut known);
        }
        is_new
    }

    /// Returns the number of queries for rows that other nodes may have changed.
    pub fn checks(&self) -> u64 {
        self.checks.load(Ordering::Relaxed)
    }

    /// Returns a receiver for the number of this node's writes. The number changes after each write.
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }
}

/// The age at which a reading of the database's clock expires. Until then, only a reading with an equal or shorter
/// query replaces it. After that, any [`QUICK`] reading does. Two clocks drift apart by some milliseconds in this time.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// The longest query of a quick reading. With a distant database, all queries may be slower. A slower reading replaces
/// a reading with a shorter query only after [`MANY`] times [`GOOD_FOR`].
const QUICK: Duration = Duration::from_millis(200);
const MANY: u32 = 60;

/// An estimate of a remote clock: the last reading of the clock, plus the local time that has passed since the reading.
#[derive(Default)]
pub(crate) struct DatabaseClock {
    reading: Mutex<Option<Reading>>,
    /// The latest time that `now` has returned. Later calls never return an earlier time.
    latest: AtomicI64,
}

#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    ms: i64,
    /// The duration of the query. The database read its clock at some moment during the query.
    took: Duration,
}

impl DatabaseClock {
    /// Records the time `ms` that the clock returned for a query between `sent` and `answered`.
    pub(crate) fn read(&self, sent: Instant, answered: Instant, ms: i64) {
        let took = answered.saturating_duration_since(sent);
        let new = Reading { at: sent + took / 2, ms, took };
        let mut reading = self.reading.lock();
        let good_for = if new.took <= QUICK { GOOD_FOR } else { MANY * GOOD_FOR };
        let old = reading.filter(|old| old.took < new.took && answered.saturating_duration_since(old.at) < good_for);
        if old.is_none() {
            *reading = Some(new);
        }
    }

    fn now(&self) -> Timestamp {
        let reading = *self.reading.lock();
        // A store is only usable after the first reading.
        let Some(Reading { at, ms, .. }) = reading else { return Timestamp(self.latest.load(Ordering::Relaxed)) };
        let passed = i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = ms.saturating_add(passed);
        Timestamp(self.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quickest_answer_of_late_counts_and_time_never_goes_back() {
        let clock = DatabaseClock::default();
        let second = Duration::from_secs(1);
        let start = Instant::now().checked_sub(20 * second).expect("this machine runs for longer");
        // The query took two seconds, and the clock showed 10 s in the middle.
        clock.read(start, start + 2 * second, 10_000);
        let first = clock.now().0;
        assert!((29_000..60_000).contains(&first), "{first}");
        // A slower reading doesn't replace the first reading; a quicker one does.
        clock.read(start, start + 4 * second, 99_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 10_000);
        clock.read(start + 5 * second, start + 5 * second, 5_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 5_000);
        assert!(clock.now().0 >= first);
        // Any quick enough reading replaces an expired one. A query that took too long doesn't, because the database
        // had stalled.
        clock.read(start + 8 * second, start + 17 * second, 40_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 5_000);
        clock.read(start + 16 * second, start + 16 * second + second / 10, 30_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 30_000);
    }
}
