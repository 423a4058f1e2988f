//! Everything there is, by pages that are found from where the last one ended.

use arena_model::Session;

use crate::rows::{SESSION_COLUMNS, read_session};
use crate::standings::read_or_pass_over;
use crate::{SessionNo, SqliteStore, StoreError};

/// The place of an ended session in the order of endings: later ones have larger numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EndingNo(pub(crate) i64);

impl SqliteStore {
    pub(crate) async fn list_ended(
        &self,
        after: EndingNo,
        limit: usize,
    ) -> Result<Vec<(EndingNo, SessionNo, Session)>, StoreError> {
        let columns: Vec<String> = SESSION_COLUMNS.split(',').map(|column| format!("s.{}", column.trim())).collect();
        let sql = format!(
            "SELECT {}, e.n FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > ?1 ORDER BY e.n",
            columns.join(", ")
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([after.0])?;
            let mut sessions = Vec::new();
            while sessions.len() < limit
                && let Some(row) = rows.next()?
            {
                if let Some((no, session)) = read_or_pass_over(row)? {
                    sessions.push((EndingNo(row.get(columns.len())?), no, session));
                }
            }
            Ok(sessions)
        })
    }

    pub(crate) async fn list_running(&self, after: Option<SessionNo>) -> Result<Vec<(SessionNo, Session)>, StoreError> {
        let sql = format!(
            "SELECT {SESSION_COLUMNS} FROM sessions WHERE no BETWEEN ?1 AND ?2 AND status <> 'ended' ORDER BY no"
        );
        let mut next = after.map_or(1, |after| after.0 + 1);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            // A block may have none left behind `after`, or have lost those that it was counted for.
            while let Some(block) = self.counts.read().find_running(next) {
                let mut rows = statement.query([next.max(*block.start()), *block.end()])?;
                let mut sessions = Vec::new();
                while let Some(row) = rows.next()? {
                    sessions.push(read_session(row)?);
                }
                if !sessions.is_empty() {
                    return Ok(sessions);
                }
                next = block.end() + 1;
            }
            Ok(Vec::new())
        })
    }
}
