//! The interface through which the dispatcher uses a tournament or a league.

use std::path::PathBuf;

use arena_model::{Seed, TimeLimits};
use arena_tournament::{CheckedLine, GameLine, JournalLine, Pairing, QuarantinedLine, SpreadLine};
use serde_json::{Map, Value};

use crate::competition::Competition;
use crate::executor::RunError;
use crate::journal::{Journal, REPLAYS};
use crate::nats::draw_id;
use crate::nats::referee::is_same;
use crate::nats::wire::WorkerIdentity;

/// The largest number of a tournament's jobs that are on the queue or being played.
const AHEAD: usize = 256;

/// A competition whose matches workers can play. The competition knows which worker has played a match, because the
/// results of a worker that is quarantined later don't count.
pub trait WorkerCompetition: Competition {
    /// Returns the competition's id on the NATS server: letters, digits and hyphens. The id is the same in all runs.
    ///
    /// # Errors
    /// If the id can't be drawn or stored.
    fn shared_id<E>(&mut self) -> Result<String, RunError<E>>;

    /// Returns the seed that decides which matches two workers play. Workers don't know it.
    ///
    /// # Errors
    /// If the competition has no valid seed.
    fn check_seed<E>(&self) -> Result<Seed, RunError<E>>;

    /// Returns the folder for replays and logs, if they are kept.
    fn replays(&self) -> Option<PathBuf>;

    /// Returns the largest number of jobs that may be on the queue or being played, if all workers together can play
    /// `slots` matches at once.
    fn most_open(&self, slots: usize) -> usize;

    /// Returns the name of the game, the game's options that differ from the defaults, and the time limits of agents.
    fn conditions(&self) -> (&str, &Map<String, Value>, TimeLimits);

    /// Returns the pairing with this number; `None` if the competition has no such pairing.
    fn pairing(&self, number: usize) -> Option<Pairing>;

    /// Returns the name of a match in sentences.
    fn match_name(&self, number: usize) -> String;

    /// Returns true if the match with this number has a result.
    fn has_result(&self, number: usize) -> bool;

    /// Returns the result of a match, if a worker has played it.
    fn game(&self, number: usize) -> Option<&GameLine>;

    /// Returns the results by workers that no other worker has confirmed.
    fn unconfirmed(&self) -> Vec<&GameLine>;

    /// Records a worker's result of a pairing durably. Returns the number that users see.
    ///
    /// # Errors
    /// If the result can't be written.
    fn record_game<E>(&mut self, pairing: &Pairing, game: GameLine) -> Result<usize, RunError<E>>;

    /// Records that another worker has confirmed a result.
    ///
    /// # Errors
    /// If the confirmation can't be written.
    fn confirm<E>(&mut self, checked: CheckedLine) -> Result<(), RunError<E>>;

    /// Puts a worker in quarantine because of this evidence. Returns the numbers of the matches that don't count any
    /// more: those that only this worker has played, and those that depend on them. They will be played again.
    ///
    /// # Errors
    /// If the quarantine can't be written.
    fn quarantine<E>(&mut self, worker: &WorkerIdentity, why: &str) -> Result<Vec<usize>, RunError<E>>;

    /// Returns true if a worker is in quarantine.
    fn is_quarantined(&self, worker: &WorkerIdentity) -> bool;
}

/// Returns the identity of the worker that has played a match; `None` if no worker has.
pub fn player_of(game: &GameLine) -> Option<WorkerIdentity> {
    let part = game.worker.as_ref()?;
    Some(WorkerIdentity { id: part.id.clone(), name: part.name.clone() })
}

impl WorkerCompetition for Journal {
    fn shared_id<E>(&mut self) -> Result<String, RunError<E>> {
        if let Some(spread) = &Journal::record(self).spread {
            return Ok(spread.id.clone());
        }
        let id = draw_id().map_err(|error| RunError::System(error.to_string()))?;
        self.append(JournalLine::Spread(SpreadLine { id: id.clone() }))?;
        Ok(id)
    }

    fn check_seed<E>(&self) -> Result<Seed, RunError<E>> {
        Ok(Seed::from_revealed(&self.record().plan.seed).ok_or(arena_tournament::PlanError::Seed)?)
    }

    fn replays(&self) -> Option<PathBuf> {
        self.record().plan.replays.then(|| self.folder().join(REPLAYS))
    }

    fn most_open(&self, _slots: usize) -> usize {
        AHEAD
    }

    fn conditions(&self) -> (&str, &Map<String, Value>, TimeLimits) {
        let plan = &self.record().plan;
        (&plan.game, &plan.options, plan.limits)
    }

    fn pairing(&self, number: usize) -> Option<Pairing> {
        self.record().schedule.pairing(number).cloned()
    }

    fn match_name(&self, number: usize) -> String {
        format!("game {number}")
    }

    fn has_result(&self, number: usize) -> bool {
        self.record().game(number).is_some()
    }

    fn game(&self, number: usize) -> Option<&GameLine> {
        self.record().game(number)
    }

    fn unconfirmed(&self) -> Vec<&GameLine> {
        let record = self.record();
        let is_confirmed = |game: &GameLine| record.checked.iter().any(|checked| checked.fixture == game.number);
        record.games().filter(|game| game.worker.is_some() && !is_confirmed(game)).collect()
    }

    fn record_game<E>(&mut self, pairing: &Pairing, game: GameLine) -> Result<usize, RunError<E>> {
        self.append(JournalLine::Game(Box::new(game)))?;
        Ok(pairing.number)
    }

    fn confirm<E>(&mut self, checked: CheckedLine) -> Result<(), RunError<E>> {
        Ok(self.append(JournalLine::Checked(checked))?)
    }

    fn quarantine<E>(&mut self, worker: &WorkerIdentity, why: &str) -> Result<Vec<usize>, RunError<E>> {
        let is_its = |game: &&GameLine| player_of(game).is_some_and(|player| is_same(&player, worker));
        let its: Vec<usize> = self.unconfirmed().into_iter().filter(is_its).map(|game| game.number).collect();
        let void = Journal::record(self).void_with(|game| its.contains(&game.number));
        let (name, id) = (worker.name.clone(), worker.id.clone());
        let line = QuarantinedLine { worker: name, id, why: why.to_owned(), void: void.clone() };
        self.append(JournalLine::Quarantined(line))?;
        // The quarantine can change later pairings.
        self.rewind();
        Ok(void)
    }

    fn is_quarantined(&self, worker: &WorkerIdentity) -> bool {
        let lines = &self.record().quarantined;
        lines.iter().any(|line| line.id == worker.id || line.worker == worker.name)
    }
}
