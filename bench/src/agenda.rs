//! An open loop's agenda: things are entered at a given rate, whether or not anybody keeps up.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::latency::Latencies;

/// Things that should have started and that nobody has taken up yet; `None` sends a worker home.
pub struct Agenda {
    waiting: Mutex<VecDeque<Option<Instant>>>,
    count: Semaphore,
}

impl Default for Agenda {
    fn default() -> Agenda {
        Agenda { waiting: Mutex::default(), count: Semaphore::new(0) }
    }
}

impl Agenda {
    /// Enters so many things at their time, and an end for each of so many workers. Returns how late it was itself.
    ///
    /// A thread of its own, since tokio's clock counts whole milliseconds only.
    pub fn fill(&self, rate: u64, things: u64, workers: usize) -> Latencies {
        let mut late = Latencies::default();
        let start = Instant::now();
        for thing in 0..things {
            let intended = start + Duration::from_nanos(1_000_000_000 * thing / rate);
            if let Some(wait) = intended.checked_duration_since(Instant::now()) {
                thread::sleep(wait);
            }
            late.record(intended.elapsed());
            self.enter(Some(intended));
        }
        for _ in 0..workers {
            self.enter(None);
        }
        late
    }

    fn enter(&self, entry: Option<Instant>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(entry);
        self.count.add_permits(1);
    }

    /// The next thing's intended start, once it has come; `None` when there is nothing more to do.
    pub async fn next(&self) -> Option<Instant> {
        self.count.acquire().await.expect("the semaphore is never closed").forget();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
    }
}
