//! Evidence that a writer works. The writer's own transactions are the evidence, so that a health check needs no writes
//! while games are played.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{CommitError, StoreError};

/// The time for which a successful transaction is evidence that the writer works.
const PROVEN_FOR: Duration = Duration::from_secs(1);

/// The time for which a durable write is evidence. After that, a check makes an idle writer do a durable write, because
/// only a durable write detects a full disk. Before that, an empty transaction is enough.
const DURABLE_FOR: Duration = Duration::from_secs(60);

/// The duration of a transaction after which the writer counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// The time limit for an idle writer's response.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The evidence about one writer.
#[derive(Debug, Default)]
pub(crate) struct WriterHealth(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    /// The end of the last durable transaction.
    durable: Option<Instant>,
    /// The end of the last successful transaction, even if it wrote nothing.
    done: Option<Instant>,
    /// The time at which the writer's current work began; `None` while the writer is idle.
    begun: Option<Instant>,
    /// The number of failed transactions since the last proof that large writes succeed again.
    failures: u64,
}

/// The writer's state according to the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Works,
    Stuck,
    /// The writer is idle and should begin an empty transaction.
    AskToBegin,
    /// The writer is idle and should do a durable write.
    AskToWrite,
    /// A transaction has failed, and the writer should do a durable write that is as large as any. On a full disk, small
    /// writes may still succeed.
    AskToProve,
}

impl WriterHealth {
    pub(crate) fn begin(&self) {
        self.0.lock().begun = Some(Instant::now());
    }

    /// Records that the writer waits for work.
    pub(crate) fn rest(&self) {
        self.0.lock().begun = None;
    }

    /// Records a successful transaction. `wrote` is true if it wrote something durably.
    pub(crate) fn succeed(&self, wrote: bool) {
        let now = Instant::now();
        let mut found = self.0.lock();
        found.done = Some(now);
        if wrote {
            found.durable = Some(now);
        }
    }

    pub(crate) fn fail(&self) {
        self.0.lock().failures += 1;
    }

    /// Returns a guard that records the end of the writer when the guard is dropped. After that, the next check sends a
    /// write to the writer, gets no response, and fails.
    pub(crate) fn end_guard(self: &Arc<WriterHealth>) -> impl Drop + use<> {
        struct EndGuard(Arc<WriterHealth>);

        impl Drop for EndGuard {
            fn drop(&mut self) {
                self.0.fail();
                self.0.rest();
            }
        }

        EndGuard(Arc::clone(self))
    }

    /// Records a proof that these failures are over.
    fn recover(&self, failures: u64) {
        let mut found = self.0.lock();
        found.failures = found.failures.saturating_sub(failures);
    }

    pub(crate) fn verdict(&self, now: Instant) -> Verdict {
        let found = self.0.lock();
        let within = |at: Option<Instant>, bound: Duration| at.is_some_and(|at| now.duration_since(at) < bound);
        match found.begun {
            _ if found.failures > 0 => Verdict::AskToProve,
            Some(_) if within(found.begun, STUCK_AFTER) => Verdict::Works,
            Some(_) => Verdict::Stuck,
            None if within(found.done, PROVEN_FOR) => Verdict::Works,
            None if within(found.durable, DURABLE_FOR) => Verdict::AskToBegin,
            None => Verdict::AskToWrite,
        }
    }

    /// Checks that the writer works. If the evidence isn't sufficient, the check calls `ask` to make the writer begin a
    /// transaction or write.
    ///
    /// # Errors
    /// If the writer doesn't work.
    pub(crate) async fn check<A>(&self, ask: impl FnOnce(Verdict) -> A) -> Result<(), CommitError>
    where
        A: Future<Output = Result<(), CommitError>>,
    {
        let (verdict, failures) = (self.verdict(Instant::now()), self.0.lock().failures);
        let asked = match verdict {
            Verdict::Works => return Ok(()),
            Verdict::Stuck => None,
            Verdict::AskToBegin | Verdict::AskToWrite | Verdict::AskToProve => {
                tokio::time::timeout(ANSWER_WITHIN, ask(verdict)).await.ok()
            }
        };
        match asked {
            Some(answer) => answer.inspect(|()| self.recover(failures)),
            // The writer may have been busy with other work.
            None if self.verdict(Instant::now()) == Verdict::Works => Ok(()),
            None => Err(StoreError::Database("the store's writer did not respond in time".to_owned()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_asked_only_where_its_work_is_no_evidence() {
        let (health, now) = (WriterHealth::default(), Instant::now());
        let after = |s: u64| health.verdict(now + Duration::from_secs(s));
        assert_eq!(after(0), Verdict::AskToWrite, "nothing is known");
        health.succeed(true);
        assert_eq!(
            [after(0), after(3), after(59), after(62)],
            [Verdict::Works, Verdict::AskToBegin, Verdict::AskToBegin, Verdict::AskToWrite]
        );
        health.begin();
        assert_eq!([after(0), after(8), after(12)], [Verdict::Works, Verdict::Works, Verdict::Stuck]);
        health.fail();
        assert_eq!(after(8), Verdict::AskToProve, "a failure outweighs work");
        health.rest();
        health.succeed(true);
        assert_eq!(after(0), Verdict::AskToProve, "a write may be smaller than the one that has failed");
        health.recover(1);
        assert_eq!(after(0), Verdict::Works);
    }

    #[test]
    fn the_end_of_a_writer_shows_at_once_even_in_the_middle_of_its_work() {
        let health = Arc::<WriterHealth>::default();
        let end_guard = health.end_guard();
        health.succeed(true);
        health.begin();
        assert_eq!(health.verdict(Instant::now()), Verdict::Works);
        drop(end_guard);
        assert_eq!(health.verdict(Instant::now()), Verdict::AskToProve);
    }
}
