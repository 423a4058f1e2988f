//! Agents of a league: what is written of them, and whether they still are what was written.

use std::path::Path;

use arena_match::Agent;
use arena_model::Timestamp;
use arena_store::{CommitError, LeagueAgent, LeagueNo, NewLeagueAgent, SqliteStore, StoreError};
use arena_tournament::Entrant;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::entrants::{EntrantError, enter, fingerprint_of};

/// What is found out about an agent before a league goes on.
#[derive(Debug)]
pub enum Change {
    /// Its files aren't what they were, so it is another version from here on.
    NextVersion {
        /// What it was.
        before: LeagueAgent,
        /// What it is. It may be a version that was in the league before.
        now: LeagueAgent,
    },
    /// It isn't where it was, or can't be read: the league goes on without it for now.
    Absent {
        /// Which.
        agent: LeagueAgent,
        /// Why, in a sentence.
        reason: String,
    },
}

/// Agents can't be looked after.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// What the store has of one can't be understood.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A change can't be kept.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// What a league writes of an agent. One that was named by its path is known by that in full, wherever the league goes on. `data`: the
/// folder of the store, which isn't the agent's wherever it is.
///
/// # Errors
/// When its files can't be read, or its paths can't be written down.
pub fn facts_of(agent: &Agent, data: &Path) -> Result<NewLeagueAgent, EntrantError> {
    let mut entrant = enter(agent, data)?;
    if let Ok(path) = Path::new(&entrant.path).canonicalize() {
        entrant.path = path.into_os_string().into_string().map_err(|_| EntrantError::NotUtf8(agent.name.clone()))?;
    }
    Ok(converted(&entrant).expect("the store's description has the same fields"))
}

/// Turns an agent's description for plans into that for the store, or back: they have the same fields.
fn converted<T: DeserializeOwned>(description: &impl Serialize) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(description)?)
}

/// The agent that a league has written of.
///
/// # Errors
/// If it can't be understood: changed by hand, or damaged.
pub fn entrant_of(agent: &LeagueAgent) -> Result<Entrant, StoreError> {
    converted(&agent.facts).map_err(|error| StoreError::Damaged {
        what: format!("agent {} of a league", agent.facts.name),
        reason: error.to_string(),
    })
}

/// Looks whether the agents of a league are what they were, and keeps it of those that aren't. `data` is the folder
/// of the store, `search` the value of `PATH`.
///
/// # Errors
/// If the store can't be read or written.
pub async fn check_agents(
    store: &SqliteStore,
    league: LeagueNo,
    data: &Path,
    search: &str,
    at: Timestamp,
) -> Result<Vec<Change>, AgentError> {
    let mut changes = Vec::new();
    for agent in store.leagues().list_agents(league).await?.into_iter().filter(|agent| agent.removed_at.is_none()) {
        match look_again(&agent, data, search) {
            Ok(None) => {}
            Ok(Some(facts)) => {
                let now = store.enter_league_agent(league, facts, at).await?;
                changes.push(Change::NextVersion { before: agent, now });
            }
            Err(LookError::Store(error)) => return Err(error.into()),
            Err(LookError::Absent(reason)) => changes.push(Change::Absent { agent, reason }),
        }
    }
    Ok(changes)
}

enum LookError {
    Store(StoreError),
    Absent(String),
}

/// What an agent is now, if its files aren't what they were.
fn look_again(agent: &LeagueAgent, data: &Path, search: &str) -> Result<Option<NewLeagueAgent>, LookError> {
    let absent = |error: &dyn std::fmt::Display| LookError::Absent(error.to_string());
    let entrant = entrant_of(agent).map_err(LookError::Store)?;
    let sha256 = match fingerprint_of(&entrant, data) {
        Ok(sha256) => sha256,
        Err(EntrantError::Files { path, source, .. }) => {
            return Err(LookError::Absent(format!("{} can't be read: {source}", path.display())));
        }
        Err(error) => return Err(absent(&error)),
    };
    if sha256 == agent.facts.sha256 {
        return Ok(None);
    }
    let facts = &agent.facts;
    // What was named by its path may be started in another way now, and its manifest may tell another version. Who named the version
    // of a command line meant the files as they were.
    if facts.files.first() == Some(&facts.path) {
        let mut found = Agent::find(&facts.path, search).map_err(|error| absent(&error))?;
        found.name.clone_from(&facts.name);
        found.dialect = entrant.dialect;
        return facts_of(&found, data).map(Some).map_err(|error| absent(&error));
    }
    Ok(Some(NewLeagueAgent { version: None, sha256, ..facts.clone() }))
}
