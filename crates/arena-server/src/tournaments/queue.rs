//! The tournaments of a server: creating, finding, stopping and removing them. `runner.rs` plays those in the queue.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use arena_engine::Once;
use arena_model::Timestamp;
use arena_runner::{Journal, JournalError};

use super::facts::{Ended, Ending, Home, OnceFacts, TournamentFacts};
use super::id::{AgentId, TournamentId};
use super::plan::{self, NewTournament};
use super::state::{CreatedId, Entry, TournamentSnapshot};
use super::{LET_GO_WITHIN, LOOK, TournamentRefusal, Tournaments, folder};

impl Tournaments {
    /// Queues a tournament. A repeated request returns the tournament that the first request queued. `maker` is the
    /// network whose limits the tournament counts against.
    ///
    /// # Errors
    /// If the settings are invalid or a limit is reached.
    pub(crate) fn create(
        &self,
        request: NewTournament,
        once: Option<Once>,
        maker: Option<IpAddr>,
    ) -> Result<TournamentId, TournamentRefusal> {
        let shared = &*self.0;
        let _lock = self.lock_creation()?;
        let once = once.as_ref().map(OnceFacts::of);
        if let Some(CreatedId::Tournament(id)) = self.created_before(once.as_ref())? {
            return Ok(id);
        }
        let agents = {
            let state = self.state();
            let waiting = state.queue.len() + usize::from(state.current.is_some());
            if waiting >= shared.settings.max_tournaments {
                return Err(TournamentRefusal::QueueFull(waiting));
            }
            let own = maker.map_or(0, |maker| state.count_made(maker, |id| matches!(id, CreatedId::Tournament(_))));
            let most_own = shared.settings.max_tournaments_per_address;
            if most_own > 0 && own >= most_own {
                return Err(TournamentRefusal::TooManyOwnTournaments(own));
            }
            if state.tournaments.len() >= shared.settings.tournaments {
                return Err(TournamentRefusal::TooManyTournaments(state.tournaments.len()));
            }
            let find =
                |id: &AgentId| state.agents.get(id).cloned().ok_or_else(|| TournamentRefusal::NoAgent(id.to_string()));
            request.agents.iter().map(find).collect::<Result<Vec<_>, _>>()?
        };
        let id = TournamentId(shared.engine.draw_id());
        let seed = request.seed.clone().unwrap_or_else(|| shared.engine.draw_seed());
        let plan = plan::plan(&request, &agents, seed, &shared.settings, &shared.agents)?;
        if agents.iter().any(|agent| matches!(agent.home, Home::Files { .. })) {
            self.check_sandbox()?;
        }
        let nonce = shared.engine.draw_seed().reveal();
        let facts = plan::facts(id, request, &agents, &plan, nonce, (shared.engine.now(), once));
        let draft = folder::Draft::begin(&shared.tournaments, &id.to_string())?;
        folder::write_facts(draft.path(), &facts)?;
        let journal = Journal::create(draft.path(), plan).map_err(|error| match error {
            JournalError::Plan(error) => TournamentRefusal::Plan(error.to_string()),
            error => TournamentRefusal::Write(io::Error::other(error)),
        })?;
        let games = journal.record().schedule.games();
        drop(journal);
        draft.finish()?;
        tracing::info!(tournament = %id, games, "queued tournament {id} of {games} games");
        let mut state = self.state();
        state.add_tournament(Entry { facts: Arc::new(facts), games_played: 0, games, journal_bytes: 0 });
        state.makers.extend(maker.map(|maker| (CreatedId::Tournament(id), maker)));
        // A read of the folder may have found it already.
        if !state.queue.contains(&id) && state.current.as_ref().is_none_or(|current| current.id != id) {
            state.queue.push_back(id);
        }
        drop(state);
        shared.changed.notify_all();
        Ok(id)
    }

    /// Finds the agent or tournament that an earlier request with the same key created.
    pub(super) fn created_before(&self, once: Option<&OnceFacts>) -> Result<Option<CreatedId>, TournamentRefusal> {
        let Some(once) = once else { return Ok(None) };
        match self.state().created.get(&once.key) {
            None => Ok(None),
            Some(created) if created.request == once.request => Ok(Some(created.id)),
            Some(_) => Err(TournamentRefusal::KeyReused),
        }
    }

    /// Finds a tournament.
    ///
    /// # Errors
    /// If it is unknown.
    pub(crate) fn find(&self, id: TournamentId) -> Result<TournamentSnapshot, TournamentRefusal> {
        let state = self.state();
        let entry = state.tournaments.get(&id).ok_or_else(|| TournamentRefusal::NoTournament(id.to_string()))?;
        Ok(state.snapshot(entry))
    }

    /// Returns a page of the tournaments for which `counts` is true, newest first, and their total number.
    pub(crate) fn list(
        &self,
        offset: u64,
        limit: usize,
        counts: impl Fn(&TournamentSnapshot) -> bool,
    ) -> (Vec<TournamentSnapshot>, usize) {
        let state = self.state();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let all = state.tournaments.values().rev().map(|entry| state.snapshot(entry));
        let (mut page, mut total) = (Vec::new(), 0);
        for snapshot in all.filter(counts) {
            if total >= offset && page.len() < limit {
                page.push(snapshot);
            }
            total += 1;
        }
        (page, total)
    }

    /// Stops an unfinished tournament permanently and waits until its matches have ended, for at most
    /// [`LET_GO_WITHIN`].
    ///
    /// # Errors
    /// If the tournament is unknown, or the end of a queued tournament can't be written.
    pub(crate) fn stop(&self, id: TournamentId) -> Result<(), TournamentRefusal> {
        let mut state = self.state();
        if !state.tournaments.contains_key(&id) {
            return Err(TournamentRefusal::NoTournament(id.to_string()));
        }
        if let Some(current) = state.current.as_ref().filter(|current| current.id == id) {
            current.stop_for_good();
            let until = Instant::now() + LET_GO_WITHIN;
            while state.current.as_ref().is_some_and(|current| current.id == id) {
                if self.0.changed.wait_until(&mut state, until).timed_out() {
                    return Ok(());
                }
            }
            // This node may only have tried to play what another one plays.
        }
        if !state.queue.contains(&id) {
            return Ok(());
        }
        drop(state);
        // Nobody begins to play a tournament whose journal is locked.
        let lock = if self.is_shared() { self.lock_journal(id)? } else { None };
        if self.is_shared() && lock.is_none() {
            return self.stop_elsewhere(id);
        }
        if self.has_ended_elsewhere(id) {
            return Ok(self.read_changes()?);
        }
        self.state().queue.retain(|queued| *queued != id);
        let (facts, written) = self.end(id, Ending::Stopped);
        match written {
            Ok(()) => self.note_end(id, facts),
            Err(error) => {
                // The end isn't on disk, so the tournament stays queued.
                self.state().queue.push_front(id);
                self.0.changed.notify_all();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Stops a tournament that another node plays, and waits for its end, for at most [`LET_GO_WITHIN`].
    fn stop_elsewhere(&self, id: TournamentId) -> Result<(), TournamentRefusal> {
        self.request_stop(id)?;
        let until = Instant::now() + LET_GO_WITHIN;
        while !self.has_ended_elsewhere(id) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        self.read_changes()?;
        Ok(())
    }

    /// Returns the changed facts, `None` for an unknown tournament, and the result of writing.
    pub(super) fn end(&self, id: TournamentId, how: Ending) -> (Option<TournamentFacts>, io::Result<()>) {
        let Some(entry) = self.state().tournaments.get(&id).cloned() else { return (None, Ok(())) };
        let Entry { facts, games_played, games, .. } = entry;
        let ended = Ended { how, at: self.0.engine.now().0, games_played, games };
        let facts = TournamentFacts { ended: Some(ended), ..(*facts).clone() };
        let written = folder::write_facts(&self.folder_of(id), &facts);
        (Some(facts), written)
    }

    /// Logs the end of a tournament and updates its facts in memory.
    pub(super) fn note_end(&self, id: TournamentId, facts: Option<TournamentFacts>) {
        let mut state = self.state();
        state.makers.remove(&CreatedId::Tournament(id));
        state.played.remove(&id);
        state.elsewhere.remove(&id);
        if let (Some(entry), Some(facts)) = (state.tournaments.get_mut(&id), facts) {
            let how = facts.ended.as_ref().map(|ended| &ended.how);
            tracing::info!(tournament = %id, "tournament {id} ended: {how:?}");
            entry.facts = Arc::new(facts);
        }
    }

    /// Stops a tournament and deletes its data.
    ///
    /// # Errors
    /// If the tournament is unknown, doesn't stop, or can't be removed.
    pub(crate) fn remove(&self, id: TournamentId) -> Result<(), TournamentRefusal> {
        self.stop(id)?;
        let _lock = self.lock_creation()?;
        let state = self.state();
        let entry = state.tournaments.get(&id).ok_or_else(|| TournamentRefusal::NoTournament(id.to_string()))?;
        let is_elsewhere = entry.facts.ended.is_none() && state.elsewhere.contains(&id);
        if is_elsewhere || state.current.as_ref().is_some_and(|current| current.id == id) {
            return Err(TournamentRefusal::Running);
        }
        drop(state);
        folder::remove(&self.folder_of(id))?;
        self.0.replay_cache.forget(id);
        self.state().forget_tournament(id);
        Ok(())
    }

    /// Removes the tournaments that ended before this time. Returns their number.
    pub(crate) fn remove_ended(&self, before: Timestamp) -> usize {
        if self.is_shared() {
            self.try_read_changes();
        }
        let has_ended = |entry: &&Entry| entry.facts.ended.as_ref().is_some_and(|ended| ended.at < before.0);
        let old: Vec<TournamentId> =
            self.state().tournaments.values().filter(has_ended).map(|entry| entry.facts.id).collect();
        let remove = |id: &&TournamentId| match self.remove(**id) {
            Ok(()) => true,
            // Another node has removed it.
            Err(TournamentRefusal::NoTournament(_)) => false,
            Err(refusal) => {
                tracing::warn!(tournament = %id, "cannot remove the old tournament {id}: {refusal}");
                false
            }
        };
        old.iter().filter(remove).count()
    }
}
