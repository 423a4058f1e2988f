//! The agents of a server: adding, finding and removing them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use arena_engine::Once;
use arena_match::process::try_sandbox;

use super::facts::{AgentFacts, OnceFacts};
use super::id::AgentId;
use super::source::{self, AgentSource, NewAgent};
use super::state::{CreatedId, Entry};
use super::{TournamentRefusal, Tournaments, folder};

impl Tournaments {
    /// Adds an agent. A repeated request returns the agent that the first request added. `maker` is the network whose
    /// limit the agent counts against. An agent that joins a ladder is checked first.
    ///
    /// # Errors
    /// If the source is invalid or not allowed, a limit is reached, or the files can't be written.
    pub(crate) fn add_agent(
        &self,
        request: NewAgent<'_>,
        once: Option<Once>,
        maker: Option<IpAddr>,
    ) -> Result<Arc<AgentFacts>, TournamentRefusal> {
        let shared = &*self.0;
        let once = once.as_ref().map(OnceFacts::of);
        let replaces = request.ladder.as_ref().and_then(|entry| entry.replaces);
        if let Some(facts) = self.agent_before(once.as_ref(), replaces, maker)? {
            return Ok(facts);
        }
        match request.source {
            AgentSource::Url(_) if !shared.settings.urls => return Err(TournamentRefusal::UrlsOff),
            AgentSource::Url(url) => source::check_url(url, shared.settings.private_urls)?,
            AgentSource::Files { .. } => self.check_sandbox()?,
        }
        let id = AgentId(shared.engine.draw_id());
        let made = (shared.engine.now(), once);
        // Unpacking is slow, so it happens before the lock is taken. The second lookup below finds the agent of a
        // concurrent request with the same key.
        let max_bytes = shared.settings.unpacked_bytes;
        let (draft, facts) = source::draft(&shared.agents, id, request, made, max_bytes)?;
        if let Some(entry) = &facts.ladder {
            self.check_plays(&facts, draft.path(), &entry.game, maker)?;
        }
        let _lock = self.lock_creation()?;
        if let Some(facts) = self.agent_before(facts.once.as_ref(), replaces, maker)? {
            return Ok(facts);
        }
        draft.finish()?;
        tracing::info!(agent = %id, "added agent {id}");
        let mut state = self.state();
        state.makers.extend(maker.map(|maker| (CreatedId::Agent(id), maker)));
        let facts = state.add_agent(facts);
        drop(state);
        shared.changed.notify_all();
        Ok(facts)
    }

    /// Finds the agent that an earlier request with the same key added. If there is none, checks that a new agent is
    /// allowed. Agents that have a next version don't count: they are removed soon. `replaces` is the agent of which the
    /// new one is the next version.
    ///
    /// # Errors
    /// If the earlier request was different, its agent was removed, or a new agent would exceed the limit.
    fn agent_before(
        &self,
        once: Option<&OnceFacts>,
        replaces: Option<AgentId>,
        maker: Option<IpAddr>,
    ) -> Result<Option<Arc<AgentFacts>>, TournamentRefusal> {
        if let Some(CreatedId::Agent(id)) = self.created_before(once)? {
            return self.find_agent(id).map(Some).ok_or_else(|| TournamentRefusal::NoAgent(id.to_string()));
        }
        let settings = &self.0.settings;
        let state = self.state();
        let entries = state.agents.values().filter_map(|facts| facts.ladder.as_ref());
        let replaced: BTreeSet<AgentId> = entries.filter_map(|entry| entry.replaces).chain(replaces).collect();
        let counts = |id| matches!(id, CreatedId::Agent(id) if !replaced.contains(&id));
        let own = maker.map_or(0, |maker| state.count_made(maker, counts));
        let all = state.agents.keys().filter(|id| !replaced.contains(id)).count();
        if all >= settings.agents {
            return Err(TournamentRefusal::TooManyAgents(settings.agents));
        }
        if settings.agents_per_address > 0 && own >= settings.agents_per_address {
            return Err(TournamentRefusal::TooManyOwnAgents(own));
        }
        Ok(None)
    }

    /// Checks that the sandbox with namespaces works.
    pub(super) fn check_sandbox(&self) -> Result<(), TournamentRefusal> {
        try_sandbox(&self.0.launcher).map(drop).map_err(|error| TournamentRefusal::NoSandbox(error.to_string()))
    }

    pub(crate) fn find_agent(&self, id: AgentId) -> Option<Arc<AgentFacts>> {
        self.state().agents.get(&id).cloned()
    }

    /// Returns a page of agents, newest first, and their total number.
    pub(crate) fn list_agents(&self, offset: u64, limit: usize) -> (Vec<Arc<AgentFacts>>, usize) {
        let state = self.state();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        (state.agents.values().rev().skip(offset).take(limit).cloned().collect(), state.agents.len())
    }

    /// Removes an agent with its files.
    ///
    /// # Errors
    /// If the agent is unknown, an unfinished tournament uses it, or its files can't be removed.
    pub(crate) fn remove_agent(&self, id: AgentId) -> Result<(), TournamentRefusal> {
        // Nothing begins to use the agent while this lock is held.
        let _lock = self.lock_creation()?;
        let state = self.state();
        if !state.agents.contains_key(&id) {
            return Err(TournamentRefusal::NoAgent(id.to_string()));
        }
        let needs =
            |entry: &Entry| entry.facts.ended.is_none() && entry.facts.agents.iter().any(|agent| agent.id == id);
        if state.tournaments.values().any(needs) {
            return Err(TournamentRefusal::InUse);
        }
        drop(state);
        folder::remove(&self.0.agents.join(id.to_string()))?;
        let mut state = self.state();
        state.agents.remove(&id);
        state.forget_created(CreatedId::Agent(id));
        drop(state);
        // The agent's ladder goes on without it.
        self.0.changed.notify_all();
        Ok(())
    }
}
