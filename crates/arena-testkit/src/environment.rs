//! A manual clock and seeded randomness.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arena_engine::Environment;
use arena_model::Timestamp;
use parking_lot::Mutex;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The start time of every test clock, in milliseconds since the Unix epoch.
const START_MS: i64 = 1_700_000_000_000;

/// A clock and random numbers under the test's control. Two environments with the same seed give the same values.
#[derive(Clone)]
pub struct TestEnvironment {
    now_ms: Arc<AtomicI64>,
    rng: Arc<Mutex<ChaCha20Rng>>,
}

impl TestEnvironment {
    pub fn new(seed: u64) -> TestEnvironment {
        TestEnvironment {
            now_ms: Arc::new(AtomicI64::new(START_MS)),
            rng: Arc::new(Mutex::new(ChaCha20Rng::seed_from_u64(seed))),
        }
    }

    pub fn advance_ms(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn now(&self) -> Timestamp {
        Timestamp(self.now_ms.load(Ordering::SeqCst))
    }

    /// Returns the environment of an engine that uses this clock and random numbers.
    pub fn for_engine(&self) -> Environment {
        let (clock, rng) = (self.clone(), Arc::clone(&self.rng));
        Environment::new(move || clock.now(), move |bytes| rng.lock().fill_bytes(bytes))
    }
}
