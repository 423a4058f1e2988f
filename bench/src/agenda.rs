//! The agenda of an open loop: tasks are added at a fixed rate, even if the workers can't keep up.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::latency::Latencies;

/// Tasks that are due and not started. `None` is a mark that ends one worker.
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
    /// Adds each task at its intended start, then one end mark per worker. Returns the delays of the additions.
    ///
    /// Runs on a thread of its own, because tokio's clock counts whole milliseconds only.
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

    /// Waits for the next task and returns its intended start, or `None` if there are no more tasks.
    pub async fn next(&self) -> Option<Instant> {
        self.count.acquire().await.expect("the semaphore is never closed").forget();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten()
    }
}
