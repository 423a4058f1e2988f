//! Sessions: one by id or invite, and lists.

use arena_model::{Channel, Ending, InviteCode, Score, Seed, Session, SessionId, Timestamp};

use crate::sql::{Columns, Dialect, Table, Value, columns, count};
use crate::tables::{Sessions, channel_number, read_ending, read_id, read_scores, read_session};
use crate::{Page, SessionFilter, Store, StoreError, StoredSession};

/// A session with its wake-up time, from the list of due sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub id: SessionId,
    pub at: Timestamp,
}

/// The number of sessions of one deal with the same result.
#[derive(Debug, Clone, PartialEq)]
pub struct DealResult {
    pub ending: Ending,
    /// The scores by seat.
    pub scores: Vec<Score>,
    pub games: u64,
}

impl Store {
    /// Returns a session by id.
    ///
    /// # Errors
    /// If the store can't be read, or the session's row is damaged.
    pub async fn find_session(&self, id: SessionId) -> Result<Option<StoredSession>, StoreError> {
        let edits = match self.dialect() {
            Dialect::Sqlite => "0",
            Dialect::Postgres => "s.edits",
        };
        let sql = format!(
            "SELECT {}, {}, {}, {edits} FROM sessions s WHERE {}",
            columns::<Sessions>("s."),
            last_message(channel_number(Channel::Chat(id)), "chat"),
            last_message(channel_number(Channel::Operator(id)), "operator"),
            self.dialect().by_id(),
        );
        self.find(&sql, &[id.to_string().into()], |row| {
            let (no, session) = read_session(row)?;
            let mut last_activity = session.facts.created_at;
            let mut len = |column: usize| -> Result<u64, StoreError> {
                let Some(last) = row.text_or_null(Sessions::COLUMNS.len() + column)? else { return Ok(0) };
                let read = || last.split_once(' ').and_then(|(idx, at)| Some((idx.parse().ok()?, at.parse().ok()?)));
                let (len, at) = read()
                    .ok_or_else(|| StoreError::damaged(format!("session {id}"), "its last message is invalid"))?;
                last_activity = last_activity.max(Timestamp(at));
                Ok(len)
            };
            let (chat_len, operator_len) = (len(0)?, len(1)?);
            let edits = row.integer(Sessions::COLUMNS.len() + 2)?.unsigned_abs();
            Ok(StoredSession { no, session, chat_len, operator_len, last_activity, edits })
        })
        .await
    }

    /// Returns those of these sessions that exist, each with true if it has ended.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_ended(&self, sessions: &[SessionId]) -> Result<Vec<(SessionId, bool)>, StoreError> {
        let ids: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
        let ends = ids.iter().map(|id| Value::from(&id[id.len() - 12..])).collect();
        let sql = format!("SELECT s.id, s.status FROM sessions s WHERE {}", self.dialect().by_ids());
        let ids = ids.iter().map(|id| Value::from(id.as_str())).collect();
        let read = |row: &dyn Columns| Ok((read_id(row, 0)?, row.text(1)? == "ended"));
        self.list(&sql, &[Value::List(ends), Value::List(ids)], read).await
    }

    /// Returns the session of an invite.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_invite(&self, invite: InviteCode) -> Result<Option<SessionId>, StoreError> {
        let by_code = self.dialect().by_code();
        let sql = format!("SELECT s.id FROM invites i JOIN sessions s ON s.no = i.session WHERE {by_code}");
        self.find(&sql, &[invite.to_string().into()], |row| read_id(row, 0)).await
    }

    /// Returns the sessions that match a filter, newest first: at most `limit` from `offset` on.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn list_sessions(
        &self,
        filter: &SessionFilter,
        offset: u64,
        limit: usize,
    ) -> Result<Page<Session>, StoreError> {
        self.refresh_counts().await?;
        let plan = self.mirror().counts.read().find_page(filter, offset, limit);
        let items = match self {
            Store::Sqlite(store) => store.list_sessions(filter, &plan, limit).await?,
            Store::Postgres(store) => store.list_sessions(filter, &plan, limit).await?,
        };
        Ok(Page { items, total: plan.total })
    }

    /// Returns the number of sessions that match a filter, as of the last [`Store::refresh_counts`].
    pub fn count_sessions(&self, filter: &SessionFilter) -> u64 {
        self.mirror().counts.read().find_page(filter, 0, 0).total
    }

    /// Returns the results of the unlisted sessions with this seed that ended before a time.
    ///
    /// # Errors
    /// If the store can't be read, or a session's row is damaged.
    pub async fn count_results(&self, seed: &Seed, before: Timestamp) -> Result<Vec<DealResult>, StoreError> {
        let sql = "SELECT s.ending, s.scores, count(*) FROM sessions s
            WHERE s.unlisted = 1 AND s.seed = $1 AND s.ended_at < $2 GROUP BY s.ending, s.scores";
        self.list(sql, &[(&seed.0[..]).into(), before.0.into()], |row| {
            let damaged = |reason| StoreError::damaged("a session of a deal", reason);
            let ending = read_ending(row.text(0)?).map_err(damaged)?;
            let scores = read_scores(row.text(1)?).map_err(damaged)?;
            Ok(DealResult { ending, scores, games: row.integer(2)?.unsigned_abs() })
        })
        .await
    }

    /// Returns the sessions whose `wake_at` has passed, earliest first, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_due(&self, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
        let sql =
            "SELECT id, wake_at FROM sessions WHERE wake_at IS NOT NULL AND wake_at <= $1 ORDER BY wake_at LIMIT $2";
        let values = [now.0.into(), count(limit as u64).into()];
        self.list(sql, &values, |row| Ok(Due { id: read_id(row, 0)?, at: Timestamp(row.integer(1)?) })).await
    }

    /// Returns the time at which the next session is due.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let sql = "SELECT min(wake_at) FROM sessions WHERE wake_at IS NOT NULL";
        let found = self.find(sql, &[], |row| row.integer_or_null(0)).await?;
        Ok(found.flatten().map(Timestamp))
    }
}

/// Returns the expression for index and time of the last message of a channel of the session `s`, as one text, so that a
/// query looks up each channel once. If the store has none, the session may be archived.
fn last_message(channel: i64, archived: &str) -> String {
    format!(
        "coalesce((SELECT m.idx || ' ' || m.at FROM messages m WHERE m.session = s.no AND m.channel = {channel}
             ORDER BY m.idx DESC LIMIT 1),
         (SELECT a.{archived}_len || ' ' || a.{archived}_at FROM archives a
             WHERE a.session = s.no AND a.{archived}_len > 0))"
    )
}
