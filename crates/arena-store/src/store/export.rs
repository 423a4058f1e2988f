//! Lists of all sessions for exports. Each page starts after the last item of the previous page.

use arena_model::Session;

use crate::sql::{Columns, Table, columns, count};
use crate::tables::{Sessions, read_or_pass_over, read_session};
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
        self.list_after(&sql, after, limit, |row| {
            let n = EndingNo(row.integer(Sessions::COLUMNS.len())?);
            Ok((n, read_or_pass_over(row)?.map(|(no, session)| (n, no, session))))
        })
        .await
    }

    /// Returns what `read` makes of the rows after an ending, at most `limit`. `read` also returns the ending of the row,
    /// and `None` for a damaged row.
    pub(super) async fn list_after<T>(
        &self,
        sql: &str,
        mut after: EndingNo,
        limit: usize,
        read: impl Fn(&dyn Columns) -> Result<(EndingNo, Option<T>), StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut items = Vec::new();
        // The list skips damaged rows, so the loop reads more until the page is full. The caller takes a short page for
        // the end of the list.
        while items.len() < limit {
            let wanted = count((limit - items.len()) as u64);
            let rows = self.list(sql, &[after.0.into(), wanted.into()], &read).await?;
            let Some((last, _)) = rows.last() else { break };
            after = *last;
            items.extend(rows.into_iter().filter_map(|(_, item)| item));
        }
        Ok(items)
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
