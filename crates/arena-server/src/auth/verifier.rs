//! The thread that checks signatures. A check takes as long as ten requests, and any client can cause checks. So they
//! don't run on the threads that serve requests.

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::oneshot;

use crate::error::{ApiError, ApiResult};

/// Time to wait before a retry when the queue is full: enough for a few hundred checks.
const COME_AGAIN: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;

/// The verifier: a thread with a bounded queue. The thread ends when the verifier is dropped.
pub(crate) struct Verifier {
    /// The sending end of the queue; `None` only during drop.
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    places: NonZeroU16,
}

impl Verifier {
    /// Starts a verifier with a queue of at most `places` checks.
    ///
    /// # Errors
    /// If the thread can't be started.
    pub(crate) fn start(places: NonZeroU16) -> std::io::Result<Verifier> {
        let (jobs, queue) = sync_channel(places.get().into());
        let thread = thread::Builder::new().name("arena-verifier".to_owned()).spawn(move || work(queue))?;
        Ok(Verifier { jobs: Some(jobs), thread: Some(thread), places })
    }

    /// Queues a check and waits for its result.
    ///
    /// # Errors
    /// 503 if the queue is full.
    pub(crate) async fn run<T: Send + 'static>(&self, check: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
        let (verdict, asked) = oneshot::channel();
        let job = Box::new(move || {
            // The check is skipped if the client has disconnected.
            if !verdict.is_closed() {
                let _ = verdict.send(check());
            }
        });
        match self.jobs.as_ref().map(|jobs| jobs.try_send(job)) {
            Some(Ok(())) => asked.await.map_err(|_| broken()),
            Some(Err(TrySendError::Full(_))) => Err(self.busy()),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(broken()),
        }
    }

    fn busy(&self) -> ApiError {
        let text = format!("{} signature checks are queued (limits.signature_queue); try again", self.places);
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "SIGNATURES_BUSY", text).retry_after(COME_AGAIN)
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // No client waits for the queued checks, so they are skipped. An error means a panic, which is logged.
            let _ = thread.join();
        }
    }
}

fn broken() -> ApiError {
    tracing::error!("cannot check a signature: the check panicked, or its thread has ended");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "cannot check the signature")
}

fn work(queue: Receiver<Job>) {
    yield_to_others();
    for job in queue {
        // After a panic the waiting client gets an error, and the thread continues.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

/// Lowers the priority below that of the threads that serve requests. On Linux it applies to a single thread.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(10) {
        tracing::debug!(%error, "cannot lower the priority of signature checks: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::Barrier;

    #[tokio::test]
    async fn a_full_queue_refuses_and_says_when_to_come_again() {
        let verifier = Arc::new(Verifier::start(NonZeroU16::MIN).expect("a thread"));
        let (begun, held) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let under_way = {
            let (verifier, begun, held) = (verifier.clone(), begun.clone(), held.clone());
            tokio::spawn(async move {
                let check = move || {
                    begun.wait();
                    held.wait();
                    1
                };
                verifier.run(check).await.expect("a verdict")
            })
        };
        tokio::task::spawn_blocking(move || begun.wait()).await.expect("the first is under way");
        let waiting = {
            let verifier = verifier.clone();
            tokio::spawn(async move { verifier.run(|| 2).await.expect("a verdict") })
        };
        // The second check enters the queue at its first poll, which is now, on this single thread.
        tokio::task::yield_now().await;
        let refusal = format!("{:?}", verifier.run(|| 3).await.expect_err("no place"));
        assert!(
            refusal.contains("503") && refusal.contains("SIGNATURES_BUSY") && refusal.contains("100ms"),
            "{refusal}"
        );
        tokio::task::spawn_blocking(move || held.wait()).await.expect("the first goes on");
        assert_eq!((under_way.await.expect("done"), waiting.await.expect("done")), (1, 2));
        assert_eq!(verifier.run(|| 4).await.expect("a place again"), 4);
    }

    #[tokio::test]
    async fn a_check_that_panics_is_an_error_and_no_silence() {
        let verifier = Verifier::start(NonZeroU16::MIN).expect("a thread");
        let check = || {
            if true {
                panic!("on purpose")
            }
        };
        for _ in 0..3 {
            assert!(format!("{:?}", verifier.run(check).await.expect_err("no verdict")).contains("INTERNAL"));
        }
        assert_eq!(verifier.run(|| 4).await.expect("a verdict"), 4, "the thread lives on");
    }
}
