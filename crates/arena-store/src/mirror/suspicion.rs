//! The suspicion that a derived table is wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A signal that a derived table may be wrong. The writer raises the signal, and the engine then calls
/// [`Store::check_derived`](crate::Store::check_derived).
#[derive(Default)]
pub(crate) struct Suspicion {
    raised: AtomicBool,
    raised_notify: Notify,
}

impl Suspicion {
    /// Raises the suspicion. Only the first call after a [`Suspicion::wait`] writes to the log.
    pub(crate) fn raise(&self, what: &str) {
        if !self.raised.swap(true, Ordering::SeqCst) {
            tracing::error!(
                "{what} disagrees with the sessions; all derived tables are now compared with the sessions"
            );
        }
        self.raised_notify.notify_one();
    }

    /// Waits until the suspicion is raised, and clears it.
    pub(crate) async fn wait(&self) {
        while !self.raised.swap(false, Ordering::SeqCst) {
            self.raised_notify.notified().await;
        }
    }
}
