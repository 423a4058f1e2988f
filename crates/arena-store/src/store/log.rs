//! The arena's log: its stored leaves, and the lists of creations and removals from which the sequencer makes leaves.
//! Leaves are never changed or removed.

use arena_model::{Ending, Seed, SessionId, Timestamp};

use crate::sql::{Columns, Dialect, Table, columns, count, table};
use crate::tables::{RemovedSessions, pass_over, read_bytes, read_ending, read_id, read_seed, to_json};
use crate::{CommitError, EndingNo, RemovedSession, SessionNo, Store, StoreError};

/// A leaf to append: its session, its kind, its line and the hash of the line.
pub type NewLeaf = (Option<SessionId>, String, String, [u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLeaf {
    /// The leaf's number, from 0.
    pub n: u64,
    pub session: Option<SessionId>,
    /// The kind, such as `created`.
    pub kind: String,
    /// The leaf's line, without a line break.
    pub data: String,
    /// The leaf's hash in the Merkle tree.
    pub hash: [u8; 32],
}

table! {
    LogLeaves "log_leaves", row: &'r StoredLeaf, 'r {
        N "n" Integer Once => count(row.n);
        Session "session" Text Once => row.session.map(|id| id.to_string());
        Kind "kind" Text Once => row.kind.as_str();
        Data "data" Text Once => row.data.as_str();
        Hash "hash" Bytes Once => &row.hash[..];
    }
}

/// The position up to which the events of the store are in the log. The default is the position before all events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCursor {
    pub created: SessionNo,
    pub ended: EndingNo,
    /// The number of the last removal.
    pub removed: u64,
}

/// A session, with the facts of its creation that the log needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedSession {
    pub no: SessionNo,
    pub id: SessionId,
    pub challenge: String,
    /// The seed, unless it is unknown because the session was imported.
    pub seed: Option<Seed>,
    pub at: Timestamp,
    /// True if the session counts on a leaderboard.
    pub is_rated: bool,
    /// True if no list shows the session.
    pub is_unlisted: bool,
    pub is_imported: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedSession {
    pub n: EndingNo,
    pub no: SessionNo,
    pub id: SessionId,
    pub at: Timestamp,
    pub ending: Ending,
    /// The number of messages in the chat, without archived ones.
    pub chat_len: u64,
    pub is_unlisted: bool,
    pub is_imported: bool,
}

/// The age at which a missing session number counts as unused, in milliseconds. In a shared database, a node draws a
/// session's number before its commit, so a later number may be committed first. No transaction takes this long.
const UNUSED_AFTER_MS: i64 = 30_000;

/// The time for which an import may insert sessions, in milliseconds.
const LONGEST_IMPORT_MS: i64 = 600_000;

const LOG_SIZE: &str = "SELECT coalesce(max(n) + 1, 0) FROM log_leaves";

impl Store {
    /// Returns the number of leaves in the log.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn log_size(&self) -> Result<u64, StoreError> {
        Ok(self.number(LOG_SIZE, &[]).await?.unsigned_abs())
    }

    /// Returns the cursor of the last [`Store::append_leaves`].
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn log_cursor(&self) -> Result<LogCursor, StoreError> {
        let read = |row: &dyn Columns| {
            let damaged = |error: serde_json::Error| StoreError::damaged("the cursor of the log", error);
            serde_json::from_str::<(i64, i64, u64)>(row.text(0)?).map_err(damaged)
        };
        let found = self.find("SELECT value FROM notes WHERE name = 'log'", &[], read).await?;
        let cursor =
            |(created, ended, removed)| LogCursor { created: SessionNo(created), ended: EndingNo(ended), removed };
        Ok(found.map(cursor).unwrap_or_default())
    }

    /// Appends leaves to the log and stores the cursor, in one transaction.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the log doesn't have `expected_size` leaves, because another node has appended.
    /// Also if the store can't write.
    pub async fn append_leaves(
        &self,
        expected_size: u64,
        leaves: Vec<NewLeaf>,
        cursor: LogCursor,
    ) -> Result<(), CommitError> {
        let leaf = |(n, (session, kind, data, hash))| StoredLeaf { n, session, kind, data, hash };
        let leaves: Vec<StoredLeaf> = (expected_size..).zip(leaves).map(leaf).collect();
        self.write(leaves, move |leaves, writing| {
            Box::pin(async move {
                if writing.db.number(LOG_SIZE, &[]).await? != count(expected_size) {
                    return Err(CommitError::Conflict.into());
                }
                let rows: Vec<&StoredLeaf> = leaves.iter().collect();
                writing.db.insert::<LogLeaves>(&rows, "").await?;
                let LogCursor { created, ended, removed } = cursor;
                let cursor = to_json(&(created.0, ended.0, removed));
                let sql = "INSERT INTO notes (name, value) VALUES ('log', $1)
                     ON CONFLICT (name) DO UPDATE SET value = excluded.value";
                writing.db.execute(sql, &[cursor.into()]).await?;
                Ok(())
            })
        })
        .await
    }

    /// Returns leaves from number `from` on, in order, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_leaves(&self, from: u64, limit: usize) -> Result<Vec<StoredLeaf>, StoreError> {
        let sql = format!("SELECT {} FROM log_leaves WHERE n >= $1 ORDER BY n LIMIT $2", columns::<LogLeaves>(""));
        self.list(&sql, &[count(from).into(), count(limit as u64).into()], read_leaf).await
    }

    /// Returns the leaves of a session with numbers below `before`, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_leaves_of(&self, session: SessionId, before: u64) -> Result<Vec<StoredLeaf>, StoreError> {
        // The signs exclude the primary key from the plan, which would read the log from its start.
        let sql = format!(
            "SELECT {} FROM log_leaves WHERE {} AND session = $1 AND +n < $2 ORDER BY +n",
            columns::<LogLeaves>(""),
            by_session(self.dialect())
        );
        self.list(&sql, &[session.to_string().into(), count(before).into()], read_leaf).await
    }

    /// Returns the number of the last leaf of a session of this kind.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_leaf(&self, session: SessionId, kind: &str) -> Result<Option<u64>, StoreError> {
        let by_session = by_session(self.dialect());
        // The sign excludes the primary key from the plan, which would read the log from its end.
        let sql = format!(
            "SELECT n FROM log_leaves WHERE {by_session} AND session = $1 AND kind = $2 ORDER BY +n DESC LIMIT 1"
        );
        let found = self.find(&sql, &[session.to_string().into(), kind.into()], |row| row.integer(0)).await?;
        Ok(found.map(i64::unsigned_abs))
    }

    /// Returns the sessions created after `after`, in the order of creation, at most `limit`. In a shared database, the
    /// list ends before a session whose creation another node may be committing.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_created(&self, after: SessionNo, limit: usize) -> Result<Vec<CreatedSession>, StoreError> {
        let sql = "SELECT no, created_at, id, type, seed, rated, unlisted, imported,
                CASE WHEN imported IS NULL THEN NULL ELSE (SELECT a.at FROM audit a WHERE a.no = sessions.imported) END
             FROM sessions WHERE no > $1 ORDER BY no LIMIT $2";
        let read = |row: &dyn Columns| {
            let age = RowAge {
                created_at: row.integer(1)?,
                of_id: row.text(2).map_or(0, time_of),
                import: row.integer_or_null(8)?,
            };
            Ok(((row.integer(0)?, age), pass_over(read_created(row))?))
        };
        let mut after = after.0;
        let mut sessions = Vec::new();
        // The list skips damaged sessions, so the loop reads more rows until the page is full.
        while sessions.len() < limit {
            let wanted = count((limit - sessions.len()) as u64);
            let mut rows = self.list(sql, &[after.into(), wanted.into()], read).await?;
            let found = rows.len();
            if let Some(nodes) = self.nodes() {
                let now = nodes.now().0;
                let places: Vec<(i64, i64)> =
                    rows.iter().map(|((no, age), _)| (*no, age.inserted_after(now))).collect();
                rows.truncate(settled(after, &places, now));
            }
            let is_last = rows.is_empty() || rows.len() < found;
            after = rows.last().map_or(after, |((no, _), _)| *no);
            sessions.extend(rows.into_iter().filter_map(|(_, read)| read));
            if is_last {
                break;
            }
        }
        Ok(sessions)
    }

    /// Returns the ended sessions after `after` in the order in which they ended, at most `limit`, without damaged ones.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_endings(&self, after: EndingNo, limit: usize) -> Result<Vec<EndedSession>, StoreError> {
        let sql = "SELECT e.n, s.no, s.id, s.ended_at, s.ending, s.unlisted, s.imported,
                 coalesce((SELECT m.idx FROM messages m WHERE m.session = s.no AND m.channel = 0 ORDER BY m.idx DESC LIMIT 1), 0)
             FROM endings e JOIN sessions s ON s.no = e.session WHERE e.n > $1 ORDER BY e.n LIMIT $2";
        self.list_after(sql, after, limit, |row| {
            let n = EndingNo(row.integer(0)?);
            Ok((n, pass_over(read_ended(row, n))?))
        })
        .await
    }

    /// Returns the removals after number `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_removed(&self, after: u64, limit: usize) -> Result<Vec<RemovedSession>, StoreError> {
        let sql = format!(
            "SELECT {}, n FROM removed_sessions WHERE n > $1 ORDER BY n LIMIT $2",
            columns::<RemovedSessions>("")
        );
        let read = |row: &dyn Columns| {
            let n = row.integer(RemovedSessions::COLUMNS.len())?.unsigned_abs();
            let id = row.text(RemovedSessions::Id as usize)?.parse::<SessionId>();
            Ok(RemovedSession {
                n,
                id: id.map_err(|error| StoreError::damaged(format!("removal {n}"), error))?,
                at: Timestamp(row.integer(RemovedSessions::At as usize)?),
                reason: row.text(RemovedSessions::Reason as usize)?.to_owned(),
            })
        };
        self.list(&sql, &[count(after).into(), count(limit as u64).into()], read).await
    }
}

/// Returns the time at the end of a session's id; 0 if there is none.
fn time_of(id: &str) -> i64 {
    let digits = id.len().checked_sub(12).and_then(|start| id.get(start..));
    digits.and_then(|digits| i64::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// The times from which the age of a session's row follows.
#[derive(Debug, Clone, Copy)]
struct RowAge {
    created_at: i64,
    /// The time at the end of the id.
    of_id: i64,
    /// The start of the import, if the session was imported.
    import: Option<i64>,
}

impl RowAge {
    /// Returns a time shortly before the insertion of the row. A fork begins at a time of its original, but has a new id.
    /// The other times of an imported session are those of another arena.
    fn inserted_after(self, now: i64) -> i64 {
        match self.import {
            Some(start) => now.min(start.saturating_add(LONGEST_IMPORT_MS)),
            None if self.of_id <= now + UNUSED_AFTER_MS => self.created_at.max(self.of_id),
            None => self.created_at,
        }
    }
}

/// Reads a row of [`Store::list_created`].
fn read_created(row: &dyn Columns) -> Result<CreatedSession, StoreError> {
    let id = read_id(row, 2)?;
    Ok(CreatedSession {
        no: SessionNo(row.integer(0)?),
        id,
        challenge: row.text(3)?.to_owned(),
        seed: read_seed(row.bytes(4)?, &id)?,
        at: Timestamp(row.integer(1)?),
        // A session from before the column counts, see `read_rated`.
        is_rated: row.text_or_null(5)? != Some(""),
        is_unlisted: row.integer(6)? != 0,
        is_imported: row.integer_or_null(7)?.is_some(),
    })
}

/// Reads a row of [`Store::list_endings`].
fn read_ended(row: &dyn Columns, n: EndingNo) -> Result<EndedSession, StoreError> {
    let id = read_id(row, 2)?;
    let damaged = |reason: String| StoreError::damaged(format!("session {id}"), reason);
    Ok(EndedSession {
        n,
        no: SessionNo(row.integer(1)?),
        id,
        at: Timestamp(row.integer(3)?),
        ending: read_ending(row.text(4)?).map_err(damaged)?,
        is_unlisted: row.integer(5)? != 0,
        is_imported: row.integer_or_null(6)?.is_some(),
        chat_len: row.integer(7)?.unsigned_abs(),
    })
}

/// Returns the number of rows at the beginning of `rows` before which no other session can appear. Each row has a
/// session number, greater than `after`, and a time shortly before its insertion. `now` is the time of the database.
fn settled(after: i64, rows: &[(i64, i64)], now: i64) -> usize {
    let before = std::iter::once(after).chain(rows.iter().map(|(no, _)| *no));
    let is_open = |(before, (no, at)): (i64, &(i64, i64))| *no != before + 1 && *at > now - UNUSED_AFTER_MS;
    before.zip(rows).position(is_open).unwrap_or(rows.len())
}

/// Returns the condition that finds the leaves of the session `$1` by an index, together with `session = $1`.
fn by_session(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "substr(session, -12) = substr($1, -12)",
        Dialect::Postgres => "right(session, 12) = right($1, 12)",
    }
}

fn read_leaf(row: &dyn Columns) -> Result<StoredLeaf, StoreError> {
    let n = row.integer(LogLeaves::N as usize)?.unsigned_abs();
    let id = row.text_or_null(LogLeaves::Session as usize)?;
    let id = id.map(str::parse::<SessionId>).transpose();
    Ok(StoredLeaf {
        n,
        session: id.map_err(|error| StoreError::damaged(format!("leaf {n} of the log"), error))?,
        kind: row.text(LogLeaves::Kind as usize)?.to_owned(),
        data: row.text(LogLeaves::Data as usize)?.to_owned(),
        hash: read_bytes(row, LogLeaves::Hash as usize)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_fork_is_as_new_as_its_id() {
        let now = 1_700_000_000_000;
        let id = |at: i64| format!("0b8f6b2e-0000-4000-8000-{at:012x}");
        // The time of the creation, the id, and the time before the insertion.
        let cases = [
            (now - 5, id(now - 5), now - 5),
            (now - 900_000, id(now - 5), now - 5),
            (now - 900_000, id(now + 5), now + 5),
            (now - 900_000, id(0xffff_ffff_ffff), now - 900_000),
            (now - 900_000, id(1), now - 900_000),
            (now - 900_000, "no time".to_owned(), now - 900_000),
        ];
        for (created_at, id, expected) in cases {
            let age = RowAge { created_at, of_id: time_of(&id), import: None };
            assert_eq!(age.inserted_after(now), expected, "{created_at} {id}");
        }
    }

    #[test]
    fn a_number_before_an_imported_session_may_still_appear_while_the_import_may_run() {
        let now = 1_700_000_000_000;
        let age = |import: i64| RowAge { created_at: 5, of_id: 7, import: Some(import) };
        for (import, is_open) in [(now - 1, true), (now - LONGEST_IMPORT_MS, true), (now - 630_001, false)] {
            // Number 5 is missing before the imported session 6.
            let rows = [(6, age(import).inserted_after(now))];
            assert_eq!(settled(4, &rows, now), usize::from(!is_open), "{import}");
        }
    }

    #[test]
    fn a_list_of_creations_ends_before_a_number_that_may_still_appear() {
        let now = 100_000;
        let old = now - UNUSED_AFTER_MS;
        // The number before the rows, the rows as number and time, and the number of settled rows.
        type Row = (i64, i64);
        let cases: &[(i64, &[Row], usize)] = &[
            (0, &[], 0),
            (0, &[(1, now), (2, now)], 2),
            (4, &[(5, now), (7, now), (8, now)], 1),
            (4, &[(6, now)], 0),
            (4, &[(6, old), (9, old), (10, now)], 3),
            (4, &[(6, old), (9, old + 1), (10, now)], 1),
        ];
        for &(after, rows, expected) in cases {
            assert_eq!(settled(after, rows, now), expected, "{after} {rows:?}");
        }
    }
}
