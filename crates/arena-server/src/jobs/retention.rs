//! Archival of ended sessions, and removal of ended tournaments, by their age.

use std::time::Duration;

use arena_engine::{Administrator, ArchivedCount, EngineError};
use arena_model::Timestamp;

use crate::arena::Arena;

/// The time between two passes.
const EVERY: Duration = Duration::from_secs(60 * 60);

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Arena {
    /// Archives sessions and removes tournaments of the ages from the settings, now and then.
    pub(crate) async fn keep_retention(&self) {
        loop {
            match self.engine.remove_unused_archive_files().await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "removed files of interrupted archivals"),
                Err(error) => tracing::warn!(%error, "cannot remove files of interrupted archivals now: {error}"),
            }
            let days = self.settings.retention.archive_after_days;
            if days > 0 {
                match self.archive(None, days).await {
                    Ok(ArchivedCount { sessions: 0, .. }) => {}
                    Ok(ArchivedCount { sessions, messages, .. }) => {
                        tracing::info!(sessions, messages, "messages of ended sessions moved to the archive");
                    }
                    Err(EngineError::Archive { reason }) => {
                        tracing::error!("cannot archive sessions, which stay in the store: {reason}");
                    }
                    Err(error) => tracing::warn!(%error, "cannot archive sessions now: {error}"),
                }
            }
            self.remove_old_tournaments().await;
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn remove_old_tournaments(&self) {
        let days = self.settings.retention.remove_tournaments_after_days;
        let Some(tournaments) = self.tournaments.as_ref().filter(|_| days > 0) else { return };
        let before = self.days_ago(days);
        let removed = tournaments.run_blocking(move |tournaments| tournaments.remove_ended(before)).await;
        if removed > 0 {
            tracing::info!(removed, "old tournaments removed");
        }
    }

    fn days_ago(&self, days: u32) -> Timestamp {
        Timestamp(self.engine.now().0 - i64::from(days) * DAY_MS)
    }

    /// Archives the sessions that ended this many days ago or earlier.
    pub(crate) async fn archive(&self, by: Option<Administrator>, days: u32) -> Result<ArchivedCount, EngineError> {
        let count = self.engine.archive_ended(by, self.days_ago(days)).await?;
        self.metrics.archived_sessions.inc_by(count.sessions);
        Ok(count)
    }
}
