//! Lists of all sessions for exports. Each page starts after the last item of the previous page.

use arena_model::Session;

use crate::sql::dialect::{Table, columns};
use crate::sql::value::{Columns, count};
use crate::tables::sessions::{Sessions, read_or_pass_over, read_session};
use crate::{EndingNo, SessionNo, Store, StoreError};

impl Store {
    /// Returns the ended sessions after `after` in the order in which they ended, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_ended(
        &self,
        after: EndingNo,
        limit: usize,
    ) -> Result<Vec<(EndingNo, SessionNo, Session)>, StoreError> {
        let sql = format!(
            "SELECT {}, e.n FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > $1 ORDER BY e.n LIMIT $2",
            columns::<Sessions>("s.")
        );
        let mut after = after.0;
        let mut sessions = Vec::new();
        // The list skips damaged sessions, so the loop reads more rows until the page is full. The caller takes a short
        // page for the end of the list.
        while sessions.len() < limit {
            let wanted = count((limit - sessions.len()) as u64);
            let read =
                |row: &dyn Columns| Ok((EndingNo(row.integer(Sessions::COLUMNS.len())?), read_or_pass_over(row)?));
            let rows = self.list(&sql, &[after.into(), wanted.into()], read).await?;
            let Some((last, _)) = rows.last() else { break };
            after = last.0;
            sessions.extend(rows.into_iter().filter_map(|(n, read)| read.map(|(no, session)| (n, no, session))));
        }
        Ok(sessions)
    }

    /// Returns sessions that haven't ended, in the order of creation. One call searches for the first such session
    /// after `after` (`None`: from the first session) and returns it with the later ones in its block of session
    /// numbers. An empty list is the end.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn list_running(&self, after: Option<SessionNo>) -> Result<Vec<(SessionNo, Session)>, StoreError> {
        let sql = format!(
            "SELECT {} FROM sessions WHERE no BETWEEN $1 AND $2 AND status <> 'ended' ORDER BY no",
            columns::<Sessions>("")
        );
        self.refresh_counts().await?;
        let mut next = after.map_or(1, |after| after.0 + 1);
        loop {
            // The loop continues with the next block if this one has none after `after`, or its count is too high.
            let Some(block) = self.mirror().counts.read().find_running(next) else { return Ok(Vec::new()) };
            let range = [next.max(*block.start()).into(), (*block.end()).into()];
            let sessions = self.list(&sql, &range, read_session).await?;
            if !sessions.is_empty() {
                return Ok(sessions);
            }
            next = block.end() + 1;
        }
    }
}
