//! Scripted scoring strategies: their counts of games in the store. The server runs the scripts.

use std::collections::BTreeSet;
use std::sync::Arc;

use arena_model::{ScriptedStrategy, Session, StrategyRows};
use arena_store::{CommitError, EndingNo, RunStep, StrategyRun, StrategyState};
use serde_json::json;

use crate::Administrator;
use crate::engine::Engine;
use crate::request::{EngineError, unwritten};

impl Engine {
    /// Replaces the scripted strategies of the boards.
    pub fn set_scripted(&self, scripted: Vec<ScriptedStrategy>) {
        self.inner.store.set_scripted(scripted);
    }

    /// Returns the counts of a strategy, and the position of the last ending.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_strategy(&self, strategy: &str) -> Result<StrategyState, EngineError> {
        Ok(self.inner.store.find_strategy(strategy).await?)
    }

    /// Returns the ended sessions after `after`, in the order in which they ended, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_ended(&self, after: EndingNo, limit: usize) -> Result<Vec<(EndingNo, Session)>, EngineError> {
        let ended = self.inner.store.list_ended(after, limit).await?;
        Ok(ended.into_iter().map(|(n, _, session)| (n, session)).collect())
    }

    /// Begins a count without games.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn begin_run(&self, strategy: &str, version: &str) -> Result<(), EngineError> {
        self.inner.store.begin_run(strategy, version).await.map_err(unwritten)
    }

    /// Returns the stored rows of a count with these keys.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_rows(&self, run: i64, keys: &BTreeSet<(String, String)>) -> Result<StrategyRows, EngineError> {
        Ok(self.inner.store.find_rows(run, keys).await?)
    }

    /// Stores a step of a count, as `Store::advance_run` does.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the count has changed meanwhile. Also if the store can't write.
    pub async fn advance_run(&self, strategy: &str, run: StrategyRun, step: RunStep) -> Result<(), CommitError> {
        self.inner.store.advance_run(strategy, run, step).await
    }

    /// Removes a part of an old count. Returns true if rows may be left.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn remove_run(&self, run: i64) -> Result<bool, EngineError> {
        self.inner.store.remove_run(run).await.map_err(unwritten)
    }

    /// Has the games of a scripted strategy counted again. Leaderboards show the old numbers until then.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn restart_strategy(&self, by: Administrator, strategy: &str) -> Result<(), EngineError> {
        let inner = Arc::clone(&self.inner);
        inner.store.restart_strategy(strategy).await.map_err(unwritten)?;
        let audit = inner.audit(by, "recompute", json!({ "strategy": strategy }));
        inner.store.record(audit).await.map(drop).map_err(unwritten)
    }
}
