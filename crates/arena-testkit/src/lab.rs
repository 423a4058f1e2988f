//! A clock that stands still and randomness that repeats.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arena_engine::Environment;
use arena_model::Timestamp;
use parking_lot::Mutex;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Where every lab's clock starts.
const START_MS: i64 = 1_700_000_000_000;

/// Time and randomness under the test's control. Two labs of the same seed give the same.
#[derive(Clone)]
pub struct Lab {
    now_ms: Arc<AtomicI64>,
    rng: Arc<Mutex<ChaCha20Rng>>,
}

impl Lab {
    /// A lab whose randomness follows from `seed`.
    pub fn new(seed: u64) -> Lab {
        Lab { now_ms: Arc::new(AtomicI64::new(START_MS)), rng: Arc::new(Mutex::new(ChaCha20Rng::seed_from_u64(seed))) }
    }

    /// Lets time pass.
    pub fn advance_ms(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        Timestamp(self.now_ms.load(Ordering::SeqCst))
    }

    /// The environment of an engine in this lab.
    pub fn environment(&self) -> Environment {
        let (clock, rng) = (self.clone(), Arc::clone(&self.rng));
        Environment::new(move || clock.now(), move |bytes| rng.lock().fill_bytes(bytes))
    }
}
