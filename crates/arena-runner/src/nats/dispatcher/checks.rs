//! Cross-checks: a second worker plays a sample of the matches, too. Differences are listed at the end and have no other
//! consequences.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use arena_tournament::Pairing;

use super::Dispatcher;
use crate::competition::{Competition, Event};
use crate::executor::RunError;
use crate::nats::wire::WorkerIdentity;

/// The time after the start within which all running workers announce their presence.
const INTRODUCTIONS: Duration = Duration::from_secs(3);

/// The cross-check of a recorded match: a second worker plays the match, too.
#[derive(Debug)]
pub(super) struct CrossCheck {
    /// The worker that has played the match.
    pub(super) worker: WorkerIdentity,
    /// The hash of its replay without times; see [`arena_match::VerifiedResult::played`].
    pub(super) played: String,
    /// The id of the second worker, while it has a job for this check.
    pub(super) asked: Option<String>,
}

#[derive(Debug)]
pub(super) struct CrossChecks {
    /// The cross-checks without a second result, by match number.
    pub(super) open: BTreeMap<usize, CrossCheck>,
    /// The matches that two workers played differently, as text.
    pub(super) differences: Vec<String>,
    began: Instant,
}

impl CrossChecks {
    pub(super) fn new() -> CrossChecks {
        CrossChecks { open: BTreeMap::new(), differences: Vec::new(), began: Instant::now() }
    }

    /// Returns true if results of second workers are expected. In the first seconds all open checks count, because some
    /// workers may not have announced their presence yet.
    pub(super) fn are_expected(&self) -> bool {
        let is_early = self.began.elapsed() < INTRODUCTIONS;
        self.open.values().any(|check| is_early || check.asked.is_some())
    }
}

/// Returns true if a match is in the sample. `share` is the share of such matches, 0 to 1.
pub(super) fn is_checked(pairing: &Pairing, share: f64) -> bool {
    pairing.seed.rng(&format!("cross-check of game {}", pairing.number)).unit() < share
}

impl<C: Competition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'_, C, T> {
    /// Gives a recorded match to a second worker, if there is one that can play it.
    pub(super) async fn ask_second_worker(&mut self, number: usize) -> Result<(), RunError<E>> {
        let Some(check) = self.checks.open.get(&number).filter(|check| check.asked.is_none()) else { return Ok(()) };
        let Some(id) = self.pool.find_other(&check.worker.id).cloned() else { return Ok(()) };
        self.publish(number, Some(&id)).await?;
        if let Some(check) = self.checks.open.get_mut(&number) {
            check.asked = Some(id);
        }
        Ok(())
    }

    /// Adds remarks on the matches that two workers played differently, and on those without a second worker.
    pub(super) fn report_checks(&mut self) -> Result<(), RunError<E>> {
        let CrossChecks { open, differences, .. } = &self.checks;
        let (count, games) = (open.len(), differences.join(", "));
        if count > 0 {
            let unchecked = if count == 1 { "1 game".to_owned() } else { format!("{count} games") };
            self.note(format!("{unchecked} couldn't be checked, because there was no second worker"))?;
        }
        if !games.is_empty() {
            self.note(format!("two workers played these games differently: {games}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arena_model::Seed;

    use super::*;

    #[test]
    fn a_share_of_all_matches_is_checked() {
        let pairing =
            |number| Pairing { number, round: 1, meeting: 1, leg: 1, agents: vec![0, 1], seed: Seed::from_number(1) };
        let count = |share: f64| (1..=1000).filter(|number| is_checked(&pairing(*number), share)).count();
        assert_eq!((count(0.0), count(1.0)), (0, 1000));
        assert!((150..250).contains(&count(0.2)), "{}", count(0.2));
    }
}
