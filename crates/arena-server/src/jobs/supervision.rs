//! Supervision of the server's required tasks: a task that ends is restarted, and its end is logged.
//!
//! The tasks keep their state in the store or the engine, so a restart loses nothing.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;

/// The pause before a restart, so that a task that panics at once doesn't flood the log.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of tasks that have ended and wait for their restart.
#[derive(Default)]
pub(crate) struct RestartingTasks(AtomicUsize);

impl RestartingTasks {
    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// Runs a task and restarts it when it ends. `what` completes the phrase "the task that …".
pub(crate) async fn keep_running<F: Future<Output = ()>>(
    restarting: &RestartingTasks,
    what: &str,
    task: impl Fn() -> F,
) {
    loop {
        let pause_s = PAUSE.as_secs();
        match AssertUnwindSafe(task()).catch_unwind().await {
            Ok(()) => tracing::warn!("the task that {what} ended unexpectedly; restarting it in {pause_s} s"),
            Err(_) => tracing::error!("the task that {what} panicked; restarting it in {pause_s} s"),
        }
        restarting.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(PAUSE).await;
        restarting.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_begins_again_and_shows_meanwhile() {
        let (restarting, begun) = (Arc::<RestartingTasks>::default(), Arc::new(AtomicUsize::new(0)));
        let task = {
            let begun = Arc::clone(&begun);
            move || {
                let time = begun.fetch_add(1, Ordering::SeqCst);
                async move {
                    assert!(time >= 2, "on purpose");
                    std::future::pending().await
                }
            }
        };
        let running = tokio::spawn({
            let restarting = Arc::clone(&restarting);
            async move { keep_running(&restarting, "is tested", task).await }
        });
        let mut seen = Vec::new();
        for _ in 0..5 {
            tokio::time::sleep(PAUSE / 2).await;
            seen.push((begun.load(Ordering::SeqCst), restarting.is_any()));
        }
        assert_eq!((seen[0], seen[4]), ((1, true), (3, false)), "{seen:?}");
        running.abort();
    }
}
