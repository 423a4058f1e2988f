//! Several arenas on one database, as whoever keeps something of it in memory sees them: who they are, what time it is for all of them,
//! and when one has written something.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use arena_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

/// What nodes have to agree in before they share a database, each under the name that people know it by; the first in which they don't
/// is told. What is secret stands here as something that shows only whether it is the same.
pub type Terms = Vec<(String, String)>;

/// This arena as one of the nodes that share a database.
pub struct Nodes {
    arena: String,
    node: String,
    pub(crate) clock: DatabaseClock,
    pub(crate) committed: watch::Sender<u64>,
}

impl Nodes {
    pub(crate) fn new(arena: String, node: String) -> Nodes {
        Nodes { arena, node, clock: DatabaseClock::default(), committed: watch::Sender::new(0) }
    }

    /// What the nodes of this database have in common, and no others: a random id.
    pub fn arena(&self) -> &str {
        &self.arena
    }

    /// Which node this is: a random id, another one at each start.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The time of the database: the same for all nodes, whatever their own clocks say. It never goes back.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Counts what this node has committed that others want to know.
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }
}

/// How long the best reading of the database's clock is good for. After that the next one takes its place, however long it took:
/// clocks that count seconds of different length drift apart by some ms in that time.
const GOOD_FOR: Duration = Duration::from_secs(10);

/// Longest time that a reading which takes the place of a better one may have taken; unless there has been none for as long as
/// [`GOOD_FOR`] many times over, as with a database that is far away.
const QUICK: Duration = Duration::from_millis(200);
const MANY: u32 = 60;

/// A clock that stands elsewhere: what it said when it was last asked, and what has passed since by this machine's own count.
#[derive(Default)]
pub(crate) struct DatabaseClock {
    reading: Mutex<Option<Reading>>,
    /// The latest time that was told.
    told: AtomicI64,
}

#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    ms: i64,
    /// How long question and answer took: it was read at some moment in between.
    took: Duration,
}

impl DatabaseClock {
    /// Takes in what the clock said to a question that was sent and answered at these moments.
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
        // Asked before a store can be used.
        let Some(Reading { at, ms, .. }) = reading else { return Timestamp(self.told.load(Ordering::Relaxed)) };
        let passed = i64::try_from(at.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = ms.saturating_add(passed);
        Timestamp(self.told.fetch_max(now, Ordering::Relaxed).max(now))
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
        // It took two seconds: at the one in between it was 10 s.
        clock.read(start, start + 2 * second, 10_000);
        let first = clock.now().0;
        assert!((29_000..60_000).contains(&first), "{first}");
        // A slow one doesn't replace it, a quick one does.
        clock.read(start, start + 4 * second, 99_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 10_000);
        clock.read(start + 5 * second, start + 5 * second, 5_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 5_000);
        assert!(clock.now().0 >= first);
        // One that is too old doesn't stand in the way, but of what took too long itself: its database stood still.
        clock.read(start + 8 * second, start + 17 * second, 40_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 5_000);
        clock.read(start + 16 * second, start + 16 * second + second / 10, 30_000);
        assert_eq!(clock.reading.lock().expect("a reading").ms, 30_000);
    }
}
