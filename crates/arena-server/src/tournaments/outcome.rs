//! A tournament's results, read from the journal and cached: the record of its games, and the agents' ratings and
//! head-to-head counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use arena_report::{Interval, Ratings};
use arena_runner::Journal;
use arena_tournament::Record;

use super::{TournamentId, TournamentRefusal, TournamentSnapshot, Tournaments};

/// A tournament's results so far, by agent number.
pub(crate) struct TournamentOutcome {
    /// Elo with its interval; `None` for agents without games.
    pub(crate) ratings: Vec<Option<(f64, Interval)>>,
    /// Numbers of games in which the first agent was ranked above, equal to, and below the second.
    pub(crate) against: BTreeMap<(usize, usize), [u32; 3]>,
}

impl TournamentOutcome {
    fn of(record: &Record) -> TournamentOutcome {
        let numbers: BTreeMap<&str, usize> =
            (0..record.plan.agents.len()).map(|agent| (record.name(agent), agent)).collect();
        let mut against: BTreeMap<(usize, usize), [u32; 3]> = BTreeMap::new();
        let mut games = vec![0_u32; record.plan.agents.len()];
        for result in record.games().map(|game| &game.result).filter(|result| !result.outcome.is_void()) {
            let seats: Vec<usize> = result.names().into_iter().filter_map(|name| numbers.get(name).copied()).collect();
            for (seat, agent) in seats.iter().enumerate() {
                games[*agent] += 1;
                for (other, opponent) in seats.iter().enumerate().filter(|(other, _)| *other != seat) {
                    let compared = match result.seats[seat].rank.cmp(&result.seats[other].rank) {
                        std::cmp::Ordering::Less => 0,
                        std::cmp::Ordering::Equal => 1,
                        std::cmp::Ordering::Greater => 2,
                    };
                    against.entry((*agent, *opponent)).or_default()[compared] += 1;
                }
            }
        }
        let fit = Ratings::of(record);
        let rating = |agent: usize| {
            let rating = fit.as_ref()?.rating(agent);
            (games[agent] > 0).then_some((rating.elo, rating.interval))
        };
        TournamentOutcome { ratings: (0..games.len()).map(rating).collect(), against }
    }
}

impl Tournaments {
    /// Returns a tournament's snapshot and the record of its journal.
    ///
    /// # Errors
    /// If the tournament is unknown, or its journal can't be read.
    pub(crate) fn record(&self, id: TournamentId) -> Result<(TournamentSnapshot, Arc<Record>), TournamentRefusal> {
        let mut state = self.state();
        let entry = state.tournaments.get(&id).ok_or_else(|| TournamentRefusal::NoTournament(id.to_string()))?;
        let (snapshot, played) = (state.snapshot(entry), entry.games_played);
        if let Some((at, record)) = state.records.get(&id)
            && *at == played
        {
            return Ok((snapshot, Arc::clone(record)));
        }
        drop(state);
        let record =
            Journal::load_record(&self.folder_of(id)).map_err(|error| TournamentRefusal::Damaged(error.to_string()))?;
        let record = Arc::new(record);
        let at = record.schedule.games_played();
        self.state().records.insert(id, (at, Arc::clone(&record)));
        Ok((snapshot, record))
    }

    /// Returns a tournament's results so far.
    ///
    /// # Errors
    /// If the tournament is unknown, or its journal can't be read.
    pub(crate) fn outcome(&self, id: TournamentId) -> Result<Arc<TournamentOutcome>, TournamentRefusal> {
        let played = self.find(id)?.entry.games_played;
        let known =
            self.state().outcomes.get(&id).filter(|(at, _)| *at == played).map(|(_, outcome)| Arc::clone(outcome));
        if let Some(outcome) = known {
            return Ok(outcome);
        }
        let (_, record) = self.record(id)?;
        let outcome = Arc::new(TournamentOutcome::of(&record));
        self.state().outcomes.insert(id, (record.schedule.games_played(), Arc::clone(&outcome)));
        Ok(outcome)
    }
}
