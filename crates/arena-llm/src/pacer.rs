//! The pace of requests to an endpoint: a limit of concurrent requests that adapts to the endpoint's faults.
//!
//! The limit doubles per round of answers until the first fault, then grows by one per round. A fault halves it, but
//! once per round: faults of requests that were sent before the last halving have the same cause.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::{Fault, FaultClass};

/// The limit at the beginning.
const FIRST: usize = 8;

/// The pace of requests to one endpoint.
#[derive(Debug)]
pub struct Pacer {
    state: Mutex<PacerState>,
    /// Wakes one waiting request.
    freed: Notify,
}

#[derive(Debug)]
struct PacerState {
    /// The limit of concurrent requests; its fraction grows with each answer.
    limit: f64,
    most: f64,
    /// The number of requests that are being answered.
    open: usize,
    halvings: u64,
    /// The end of the pause that the endpoint requested, and the fault with the request.
    closed: Option<(Instant, Fault)>,
}

/// The permission to send one request. Without a result, as after a cancellation, it leaves the limit unchanged.
#[derive(Debug)]
pub struct Permit {
    pacer: Arc<Pacer>,
    /// The number of halvings before the request.
    halvings: u64,
}

/// The answer to the wish to send a request.
enum Admission {
    Admitted { halvings: u64, has_more: bool },
    Full,
    Closed(Instant, Fault),
}

/// Wakes the next waiting request when it is dropped, even if the waiting request before was cancelled.
struct WakeNext<'p>(&'p Notify);

impl Drop for WakeNext<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Pacer {
    /// Creates a pacer that allows at most `most` concurrent requests, and at least one.
    pub fn new(most: usize) -> Arc<Pacer> {
        let most = most.max(1);
        let limit = most.min(FIRST) as f64;
        let state = PacerState { limit, most: most as f64, open: 0, halvings: 0, closed: None };
        Arc::new(Pacer { state: Mutex::new(state), freed: Notify::new() })
    }

    /// Waits until a request may be sent. Requests are admitted roughly in the order of their calls.
    pub async fn permit(self: &Arc<Self>) -> Permit {
        loop {
            if let Ok(permit) = self.permit_within(Duration::MAX).await {
                return permit;
            }
        }
    }

    /// Waits like [`Pacer::permit`], but not while the endpoint requests a pause longer than `patience`.
    ///
    /// # Errors
    /// If it does: the fault with the request.
    pub(crate) async fn permit_within(self: &Arc<Self>, patience: Duration) -> Result<Permit, Fault> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // A release between the check and the wait would be missed otherwise.
            freed.as_mut().enable();
            let now = Instant::now();
            let admission = self.state.lock().admit(now);
            match admission {
                Admission::Admitted { halvings, has_more } => {
                    if has_more {
                        self.freed.notify_one();
                    }
                    return Ok(Permit { pacer: Arc::clone(self), halvings });
                }
                Admission::Full => freed.await,
                Admission::Closed(until, fault) => {
                    let _next = WakeNext(&self.freed);
                    if until - now > patience {
                        return Err(fault);
                    }
                    sleep_until(until).await;
                }
            }
        }
    }

    pub fn limit(&self) -> usize {
        self.state.lock().limit as usize
    }
}

impl PacerState {
    fn admit(&mut self, now: Instant) -> Admission {
        if let Some((until, fault)) = &self.closed {
            if now < *until {
                return Admission::Closed(*until, fault.clone());
            }
            self.closed = None;
        }
        if self.open >= self.limit as usize {
            return Admission::Full;
        }
        self.open += 1;
        Admission::Admitted { halvings: self.halvings, has_more: self.open < self.limit as usize }
    }

    fn grow(&mut self) {
        // A limit that isn't used proves nothing.
        if self.open * 2 < self.limit as usize {
            return;
        }
        let step = if self.halvings == 0 { 1.0 } else { 1.0 / self.limit };
        self.limit = (self.limit + step).min(self.most);
    }

    fn shrink(&mut self, halvings: u64) {
        if halvings == self.halvings {
            self.limit = (self.limit / 2.0).max(1.0);
            self.halvings += 1;
        }
    }
}

impl Permit {
    /// Records an answer.
    pub fn succeed(self) {
        self.pacer.state.lock().grow();
    }

    /// A fault that too many requests may cause halves the limit. A requested pause closes the endpoint until then.
    pub fn fail(self, fault: &Fault) {
        let mut state = self.pacer.state.lock();
        match fault.class {
            FaultClass::Busy | FaultClass::Failing | FaultClass::Silent | FaultClass::Slow => {
                state.shrink(self.halvings);
            }
            FaultClass::Unauthorized
            | FaultClass::Unpaid
            | FaultClass::Rejected
            | FaultClass::Unreachable
            | FaultClass::Malformed => {}
        }
        // A longer pause replaces a shorter one.
        if let Some(until) = fault.retry_after.and_then(|pause| Instant::now().checked_add(pause))
            && state.closed.as_ref().is_none_or(|(before, _)| *before < until)
        {
            state.closed = Some((until, fault.clone()));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pacer.state.lock().open -= 1;
        self.pacer.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(class: FaultClass, pause_s: Option<u64>) -> Fault {
        Fault { retry_after: pause_s.map(Duration::from_secs), ..Fault::new(class, "it fails") }
    }

    async fn permits(pacer: &Arc<Pacer>, count: usize) -> Vec<Permit> {
        let mut permits = Vec::new();
        for _ in 0..count {
            permits.push(pacer.permit().await);
        }
        permits
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_grows_with_answers_and_halves_once_per_round() {
        assert_eq!((Pacer::new(0).limit(), Pacer::new(3).limit()), (1, 3));
        let pacer = Pacer::new(100);
        let mut limits = vec![pacer.limit()];
        for _ in 0..3 {
            permits(&pacer, pacer.limit()).await.into_iter().for_each(Permit::succeed);
            limits.push(pacer.limit());
        }
        // The limit would double if all answers of a round came at a time when the limit is used.
        assert!(limits[0] == 8 && limits.is_sorted() && limits[3] > 16 && limits[3] <= 64, "{limits:?}");
        let before = pacer.limit();
        for permit in permits(&pacer, before).await {
            permit.fail(&fault(FaultClass::Busy, None));
        }
        assert_eq!(pacer.limit(), before / 2, "faults of one round have one cause");
        let [malformed, failing] = [FaultClass::Malformed, FaultClass::Failing];
        pacer.permit().await.fail(&fault(malformed, None));
        assert_eq!(pacer.limit(), before / 2);
        for _ in 0..20 {
            pacer.permit().await.fail(&fault(failing, None));
        }
        assert_eq!(pacer.limit(), 1);
        pacer.permit().await.succeed();
        assert_eq!(pacer.limit(), 2, "after a fault, the limit grows by one per round");
        drop(permits(&pacer, 2).await);
        assert_eq!(pacer.limit(), 2, "a cancelled request says nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_requests_than_the_limit_are_open() {
        let pacer = Pacer::new(2);
        let open = permits(&pacer, 2).await;
        let waiting = tokio::spawn({
            let pacer = Arc::clone(&pacer);
            async move { drop(pacer.permit().await) }
        });
        let early = tokio::time::timeout(Duration::from_secs(60), pacer.permit()).await;
        assert!(early.is_err(), "the limit is reached");
        drop(open);
        waiting.await.unwrap();
        assert_eq!(pacer.state.lock().open, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_requested_pause_closes_the_endpoint() {
        let pacer = Pacer::new(8);
        let begun = Instant::now();
        let open = permits(&pacer, 2).await;
        for (permit, pause_s) in open.into_iter().zip([30, 10]) {
            permit.fail(&fault(FaultClass::Busy, Some(pause_s)));
        }
        let refused = pacer.permit_within(Duration::from_secs(20)).await.unwrap_err();
        assert_eq!((refused.retry_after, begun.elapsed()), (Some(Duration::from_secs(30)), Duration::ZERO));
        // All of many waiting requests go on afterwards, although some are cancelled.
        let waiting: Vec<_> = (0..50)
            .map(|_| {
                let pacer = Arc::clone(&pacer);
                tokio::spawn(async move { pacer.permit().await.succeed() })
            })
            .collect();
        tokio::task::yield_now().await;
        for task in waiting.iter().step_by(7) {
            task.abort();
        }
        for (number, task) in waiting.into_iter().enumerate() {
            assert_eq!(task.await.is_ok(), number % 7 != 0, "{number}");
        }
        assert!(begun.elapsed() >= Duration::from_secs(30));
    }
}
