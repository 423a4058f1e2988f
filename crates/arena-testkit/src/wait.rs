//! Waits for conditions that the test can't be notified of.

use std::thread;
use std::time::{Duration, Instant};

/// The time limit of a wait. It is far longer than needed, because build machines are slow and busy.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Polls until `look` returns something. `what` completes the sentence "timeout while waiting until".
///
/// # Panics
/// After two minutes.
#[track_caller]
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "timeout while waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Polls until a condition holds, as [`eventually`].
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    eventually(what, || holds().then_some(()));
}
