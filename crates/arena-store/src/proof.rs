//! Evidence that a writer works: the outcome of its own transactions, so that no write is made where play makes some.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{CommitError, StoreError};

/// Time for which a transaction that succeeded is evidence.
const PROVEN_FOR: Duration = Duration::from_secs(1);

/// Time after which an idle writer makes a durable write when it is asked. Only that meets a full disk; until then, a transaction that begins and
/// writes nothing is enough.
const DURABLE_FOR: Duration = Duration::from_secs(60);

/// Time that a transaction may take until the writer counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// Time that an idle writer has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The evidence about one writer.
#[derive(Debug, Default)]
pub(crate) struct Proof(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    /// The end of the last transaction that is durable.
    durable: Option<Instant>,
    /// The end of the last transaction that succeeded, if it wrote or not.
    done: Option<Instant>,
    /// The beginning of the present work.
    begun: Option<Instant>,
    /// True if the last transaction failed.
    failed: bool,
}

/// The writer's state as the evidence has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Works,
    /// It has been at one transaction for too long.
    Stuck,
    /// It is idle: ask it to begin a transaction.
    AskToBegin,
    /// It is idle, or has failed: ask it to write.
    AskToWrite,
}

impl Proof {
    /// Notes that the writer has taken up work.
    pub(crate) fn begin(&self) {
        self.0.lock().begun = Some(Instant::now());
    }

    /// Notes that the writer waits for work.
    pub(crate) fn rest(&self) {
        self.0.lock().begun = None;
    }

    /// Notes that a transaction has succeeded; `wrote` if something is durable by it.
    pub(crate) fn succeed(&self, wrote: bool) {
        let now = Instant::now();
        let mut found = self.0.lock();
        found.done = Some(now);
        if wrote {
            found.durable = Some(now);
            found.failed = false;
        }
    }

    /// Notes that the store has failed.
    pub(crate) fn fail(&self) {
        self.0.lock().failed = true;
    }

    pub(crate) fn verdict(&self, now: Instant) -> Verdict {
        let found = self.0.lock();
        let within = |at: Option<Instant>, bound: Duration| at.is_some_and(|at| now.duration_since(at) < bound);
        match found.begun {
            _ if found.failed => Verdict::AskToWrite,
            Some(_) if within(found.begun, STUCK_AFTER) => Verdict::Works,
            Some(_) => Verdict::Stuck,
            None if within(found.done, PROVEN_FOR) => Verdict::Works,
            None if within(found.durable, DURABLE_FOR) => Verdict::AskToBegin,
            None => Verdict::AskToWrite,
        }
    }

    /// Finds out if the writer works: from the evidence, or by asking it to begin a transaction, or to write.
    ///
    /// # Errors
    /// If it doesn't.
    pub(crate) async fn check<A>(&self, ask: impl FnOnce(Verdict) -> A) -> Result<(), CommitError>
    where
        A: Future<Output = Result<(), CommitError>>,
    {
        let verdict = self.verdict(Instant::now());
        let asked = match verdict {
            Verdict::Works => return Ok(()),
            Verdict::Stuck => None,
            Verdict::AskToBegin | Verdict::AskToWrite => tokio::time::timeout(ANSWER_WITHIN, ask(verdict)).await.ok(),
        };
        match asked {
            Some(answer) => answer,
            // Other work may have come before it.
            None if self.verdict(Instant::now()) == Verdict::Works => Ok(()),
            None => Err(StoreError::Database("the store's writer doesn't answer".to_owned()).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_asked_only_where_its_work_is_no_evidence() {
        let (proof, now) = (Proof::default(), Instant::now());
        let after = |s: u64| proof.verdict(now + Duration::from_secs(s));
        assert_eq!(after(0), Verdict::AskToWrite, "nothing is known");
        proof.succeed(true);
        assert_eq!(
            [after(0), after(3), after(59), after(62)],
            [Verdict::Works, Verdict::AskToBegin, Verdict::AskToBegin, Verdict::AskToWrite]
        );
        proof.begin();
        assert_eq!([after(0), after(8), after(12)], [Verdict::Works, Verdict::Works, Verdict::Stuck]);
        proof.fail();
        assert_eq!(after(8), Verdict::AskToWrite, "a failure outweighs work");
        proof.rest();
        proof.succeed(false);
        assert_eq!(after(0), Verdict::AskToWrite, "only a write shows that writes succeed again");
        proof.succeed(true);
        assert_eq!(after(0), Verdict::Works);
    }
}
