//! Long and blocking work, away from the threads of the runtime.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

/// Runs a long or blocking function on another thread. A panic goes on in the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        // The server is stopping, and drops this task too.
        Err(_) => pending().await,
    }
}
