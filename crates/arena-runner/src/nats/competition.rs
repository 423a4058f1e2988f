//! The interface through which the dispatcher uses a tournament or a league.

use std::path::PathBuf;

use arena_model::TimeLimits;
use arena_tournament::{CheckedLine, GameLine, JournalLine, Pairing, SpreadLine};
use serde_json::{Map, Value};

use crate::competition::Competition;
use crate::executor::RunError;
use crate::journal::{Journal, REPLAYS};
use crate::nats::draw_id;

/// The largest number of a tournament's jobs that are on the queue or being played.
const AHEAD: usize = 256;

/// A competition whose matches workers can play.
pub trait WorkerCompetition: Competition {
    /// Returns the competition's id on the NATS server: letters, digits and hyphens. The id is the same in all runs.
    ///
    /// # Errors
    /// If the id can't be drawn or stored.
    fn shared_id<E>(&mut self) -> Result<String, RunError<E>>;

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

    /// Records a worker's result of a pairing durably. Returns the number that users see.
    ///
    /// # Errors
    /// If the result can't be written.
    fn record_game<E>(&mut self, pairing: &Pairing, game: GameLine) -> Result<usize, RunError<E>>;

    /// Records that a second worker has played a match, too.
    ///
    /// # Errors
    /// If the line can't be written.
    fn record_check<E>(&mut self, checked: CheckedLine) -> Result<(), RunError<E>>;
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

    fn record_game<E>(&mut self, pairing: &Pairing, game: GameLine) -> Result<usize, RunError<E>> {
        self.append(JournalLine::Game(Box::new(game)))?;
        Ok(pairing.number)
    }

    fn record_check<E>(&mut self, checked: CheckedLine) -> Result<(), RunError<E>> {
        Ok(self.append(JournalLine::Checked(checked))?)
    }
}
