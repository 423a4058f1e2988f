//! The engine's sources of time and randomness. Tests replace them.

use std::sync::Arc;

use arena_model::{Seed, Timestamp};
use uuid::Builder;

type Clock = dyn Fn() -> Timestamp + Send + Sync;
type Entropy = dyn Fn(&mut [u8]) + Send + Sync;

#[derive(Clone)]
pub struct Environment {
    clock: Arc<Clock>,
    entropy: Arc<Entropy>,
}

impl Environment {
    /// Returns the environment with the system's clock and random numbers.
    ///
    /// # Panics
    /// A later draw panics if the system has no random numbers, because secrets depend on them.
    pub fn system() -> Environment {
        Environment::new(system_clock, |bytes| getrandom::fill(bytes).expect("the system gives random bytes"))
    }

    pub fn new(
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
        entropy: impl Fn(&mut [u8]) + Send + Sync + 'static,
    ) -> Environment {
        Environment { clock: Arc::new(clock), entropy: Arc::new(entropy) }
    }

    pub fn with_clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Environment {
        Environment { clock: Arc::new(clock), ..self }
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.entropy)(&mut bytes);
        bytes
    }

    /// Draws a number below `bound`. The bias towards small numbers is negligible.
    pub(crate) fn draw_below(&self, bound: u64) -> u64 {
        u64::from_le_bytes(self.random()) % bound.max(1)
    }

    /// Returns a UUID of version 4: 74 random bits before a time, so that its first digits differ and indexes grow at
    /// one end (docs/decisions/0011).
    pub(crate) fn uuid(&self, now: Timestamp) -> uuid::Uuid {
        let mut bytes: [u8; 16] = self.random();
        bytes[10..].copy_from_slice(&now.0.to_be_bytes()[2..]);
        Builder::from_random_bytes(bytes).into_uuid()
    }

    pub(crate) fn seed(&self) -> Seed {
        Seed(self.random())
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn system_clock() -> Timestamp {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
