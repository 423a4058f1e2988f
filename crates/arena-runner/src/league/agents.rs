//! Agents of a league: conversion to and from their stored descriptions, the check of their files for changes, and their
//! preparation for workers.

use std::path::Path;

use arena_match::Agent;
use arena_model::Timestamp;
use arena_nats::NatsUrl;
use arena_store::{CommitError, LeagueAgent, LeagueNo, NewLeagueAgent, Store, StoreError};
use arena_tournament::Entrant;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::entrants::{EntrantError, enter, fingerprint_of};
use crate::league::season::Season;
use crate::nats::{PrepareError, Prepared, prepare_agents};

/// A change of an agent that [`check_agents`] has found before a league is resumed.
#[derive(Debug)]
pub enum Change {
    /// Changed files. The agent's later games count for another version of the agent.
    NextVersion {
        before: LeagueAgent,
        /// The current version, which may have been in the league before.
        now: LeagueAgent,
    },
    /// Missing or unreadable files. The league continues without the agent, until a later check finds the files.
    Absent { agent: LeagueAgent, reason: String },
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Describes an agent for the store, with an absolute path, so that the league can be resumed from any folder. `data`
/// is the folder of the store, which the agent's fingerprint leaves out.
///
/// # Errors
/// [`EntrantError`] if the agent's files can't be read, or its paths aren't UTF-8.
pub fn facts_of(agent: &Agent, data: &Path) -> Result<NewLeagueAgent, EntrantError> {
    let mut entrant = enter(agent, data)?;
    if let Ok(path) = Path::new(&entrant.path).canonicalize() {
        entrant.path = path.into_os_string().into_string().map_err(|_| EntrantError::NotUtf8(agent.name.clone()))?;
    }
    Ok(converted(&entrant).expect("both descriptions have the same fields"))
}

/// Converts between the description of an agent in plans and the description in the store. Both serialize to the same
/// fields.
fn converted<T: DeserializeOwned>(description: &impl Serialize) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(description)?)
}

/// Returns the plan's form of an agent's stored description.
///
/// # Errors
/// [`StoreError::Damaged`] if the stored description is invalid.
pub fn entrant_of(agent: &LeagueAgent) -> Result<Entrant, StoreError> {
    converted(&agent.facts).map_err(|error| StoreError::Damaged {
        what: format!("agent {} of a league", agent.facts.name),
        reason: error.to_string(),
    })
}

/// Checks the agents of a league for changes, and stores new versions. `data` is the folder of the store, `search` the
/// value of `PATH`.
///
/// # Errors
/// [`AgentError`] if the store can't be read or written.
pub async fn check_agents(
    store: &Store,
    league: LeagueNo,
    data: &Path,
    search: &str,
    at: Timestamp,
) -> Result<Vec<Change>, AgentError> {
    let mut changes = Vec::new();
    for agent in store.leagues().list_agents(league).await?.into_iter().filter(|agent| agent.removed_at.is_none()) {
        match reload(&agent, data, search) {
            Ok(None) => {}
            Ok(Some(facts)) => {
                let now = store.enter_league_agent(league, facts, at).await?;
                changes.push(Change::NextVersion { before: agent, now });
            }
            Err(ReloadError::Store(error)) => return Err(error.into()),
            Err(ReloadError::Absent(reason)) => changes.push(Change::Absent { agent, reason }),
        }
    }
    Ok(changes)
}

enum ReloadError {
    Store(StoreError),
    Absent(String),
}

/// Reads an agent's files again, and returns the agent's new description if they have changed; otherwise `None`.
fn reload(agent: &LeagueAgent, data: &Path, search: &str) -> Result<Option<NewLeagueAgent>, ReloadError> {
    let absent = |error: &dyn std::fmt::Display| ReloadError::Absent(error.to_string());
    let entrant = entrant_of(agent).map_err(ReloadError::Store)?;
    let sha256 = match fingerprint_of(&entrant, data) {
        Ok(sha256) => sha256,
        Err(EntrantError::Files { path, source, .. }) => {
            return Err(ReloadError::Absent(format!("{} cannot be read: {source}", path.display())));
        }
        Err(error) => return Err(absent(&error)),
    };
    if sha256 == agent.facts.sha256 {
        return Ok(None);
    }
    let facts = &agent.facts;
    // If the user named the agent by its path, its manifest may have a new command and version. If the user gave a
    // command line with a version, the version belonged to the old files, so it is dropped.
    if facts.files.first() == Some(&facts.path) {
        let mut found = Agent::find(&facts.path, search).map_err(|error| absent(&error))?;
        found.name.clone_from(&facts.name);
        found.dialect = entrant.dialect;
        return facts_of(&found, data).map(Some).map_err(|error| absent(&error));
    }
    Ok(Some(NewLeagueAgent { version: None, sha256, ..facts.clone() }))
}

/// Packs the agents of a season that can play, and connects to the NATS server. `data` is the data folder, which the
/// archives leave out, and `search` the value of `PATH`.
///
/// # Errors
/// [`PrepareError`] if workers can't play the league.
pub fn prepare_for_workers(
    season: &Season,
    data: &Path,
    address: &NatsUrl,
    search: &str,
) -> Result<Prepared, PrepareError> {
    let entrant = |agent: usize| Ok((agent, entrant_of(&season.agents()[agent])?));
    let entrants: Vec<(usize, Entrant)> = season.ready().map(entrant).collect::<Result<_, StoreError>>()?;
    let entrants: Vec<(usize, &Entrant)> = entrants.iter().map(|(agent, entrant)| (*agent, entrant)).collect();
    prepare_agents(&entrants, data, address, search)
}
