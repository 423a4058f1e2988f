//! Cross-checks: a second worker plays a sample of the matches, too. Differences are listed at the end and have no other
//! consequences.

use std::time::Duration;

use arena_tournament::Pairing;

use super::{Dispatcher, LastPresence};
use crate::competition::{Competition, Event};
use crate::executor::RunError;

/// The time after the start within which all running workers announce their presence.
const INTRODUCTIONS: Duration = Duration::from_secs(3);

/// Returns true if a match is in the sample. `share` is the share of such matches, 0 to 1.
pub(super) fn is_checked(pairing: &Pairing, share: f64) -> bool {
    pairing.seed.rng(&format!("cross-check of game {}", pairing.number)).unit() < share
}

impl<C: Competition, E, T: FnMut(&C, Event) -> Result<(), E>> Dispatcher<'_, C, T> {
    /// Gives a recorded match to a second worker, if there is one that can play it.
    pub(super) async fn ask_second_worker(&mut self, number: usize) -> Result<(), RunError<E>> {
        let Some(check) = self.checks.get(&number).filter(|check| check.asked.is_none()) else { return Ok(()) };
        let others = self.workers.iter().filter(|(id, _)| **id != check.worker.id && !self.unable.contains(*id));
        let busy =
            |seen: &LastPresence| seen.presence.playing.values().sum::<usize>() * 1000 / seen.presence.slots.max(1);
        let Some(id) = others.min_by_key(|(_, seen)| busy(seen)).map(|(id, _)| id.clone()) else { return Ok(()) };
        self.publish(number, Some(&id)).await?;
        if let Some(check) = self.checks.get_mut(&number) {
            check.asked = Some(id);
        }
        Ok(())
    }

    /// Returns true if the dispatcher still expects results of second workers. In the first seconds all open checks count,
    /// because some workers may not have announced their presence yet.
    pub(super) fn is_checking(&self) -> bool {
        let is_early = self.began.elapsed() < INTRODUCTIONS;
        self.checks.values().any(|check| is_early || check.asked.is_some())
    }

    /// Adds remarks on the matches that two workers played differently, and on those without a second worker.
    pub(super) fn report_checks(&mut self) -> Result<(), RunError<E>> {
        if !self.checks.is_empty() {
            let games =
                if self.checks.len() == 1 { "1 game".to_owned() } else { format!("{} games", self.checks.len()) };
            self.note(format!("{games} couldn't be checked, because there was no second worker"))?;
        }
        if !self.differences.is_empty() {
            let games = self.differences.join(", ");
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
