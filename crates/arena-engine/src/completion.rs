//! Futures that complete even if their callers are dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// A future that completes even if its caller is dropped: the caller polls it, and if it is dropped early, a task
/// continues. This saves a task per write.
pub(crate) struct Completion<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> Completion<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Completion<T> {
        Completion(Some(Box::pin(future)))
    }

    /// Returns true if the result was returned, or polling panicked.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_none()
    }
}

impl<T: Send + 'static> Future for Completion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // A future that panics is not put back, so no task polls it again.
        let mut future = self.0.take().expect("a future isn't polled after its result");
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(future);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Completion<T> {
    fn drop(&mut self) {
        // Without a runtime, the process is ending.
        if let Some(future) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { drop(future.await) });
        }
    }
}
