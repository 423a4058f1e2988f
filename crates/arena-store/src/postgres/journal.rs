//! The change journal, from which each node of a shared database reads the other nodes' commits. Journal entries have
//! numbers without gaps, in the order of the commits (docs/decisions/0024).

use std::collections::BTreeSet;
use std::time::Duration;

use arena_model::{Channel, SessionId, Status};
use tokio_postgres::{Client, Error, Row};

use super::connection::Sharing;
use crate::StoreError;
use crate::counts::Delta;
use crate::tables::to_json;
use crate::value::Columns;

/// The text that represents the public channel in an entry's list of sessions.
const PUBLIC: &str = "invites";

/// The text in an entry's list of sessions that means that derived tables were recomputed.
const DERIVED: &str = "derived";

/// The maximum number of rows in one read of the journal.
const PAGE: i64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct JournalEntry {
    /// Ids of sessions that have changed or have new messages; or [`PUBLIC`].
    pub(crate) changed: BTreeSet<String>,
    /// Ids of sessions in which a message was hidden; or [`PUBLIC`].
    pub(crate) hidden: BTreeSet<String>,
    /// Numbers of users whose standings have changed.
    pub(crate) users: BTreeSet<i64>,
    /// True if bans or benchmark models have changed.
    pub(crate) administration: bool,
    /// True if derived tables were recomputed, so that nodes must read all of them again.
    pub(crate) derived: bool,
}

impl JournalEntry {
    pub(crate) fn add_channel(&mut self, channel: Channel) {
        self.changed.insert(name_of(channel));
    }

    pub(crate) fn add_session(&mut self, id: SessionId) {
        self.changed.insert(id.to_string());
    }

    pub(crate) fn add_hidden(&mut self, channel: Channel) {
        self.hidden.insert(name_of(channel));
    }

    pub(crate) fn is_empty(&self, delta: &Delta) -> bool {
        let JournalEntry { changed, hidden, users, administration, derived } = self;
        let counted = delta.sessions.values().any(|n| *n != 0);
        changed.is_empty() && hidden.is_empty() && users.is_empty() && !administration && !derived && !counted
    }
}

fn name_of(channel: Channel) -> String {
    match channel {
        Channel::Chat(id) | Channel::Operator(id) | Channel::Inputs(id) => id.to_string(),
        Channel::Invites => PUBLIC.to_owned(),
    }
}

/// Blocks the commits of other nodes until this transaction ends. Returns the duration of the wait for the turn.
pub(crate) async fn take_turn(client: &Client, sharing: &Sharing) -> Result<Duration, Error> {
    let waited_us: i64 = client.query_one(&sharing.take_turn, &[]).await?.try_get(1)?;
    Ok(Duration::from_micros(waited_us.unsigned_abs()))
}

/// Writes the changes of the transaction to the journal. The transaction must have its turn to commit.
pub(crate) async fn write(
    client: &Client,
    sharing: &Sharing,
    entry: &JournalEntry,
    delta: &Delta,
) -> Result<(), Error> {
    let derived = entry.derived.then_some(DERIVED);
    let changed: Vec<&str> = entry.changed.iter().map(String::as_str).chain(derived).collect();
    let hidden: Vec<&str> = entry.hidden.iter().map(String::as_str).collect();
    let users: Vec<i64> = entry.users.iter().copied().collect();
    let counted = delta.sessions.iter().filter(|(_, n)| **n != 0);
    let counts: Vec<(i64, &str, &str, i64)> =
        counted.map(|((block, challenge, status), n)| (*block, challenge.as_str(), status.as_str(), *n)).collect();
    let counts = to_json(&counts);
    let row: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&sharing.node, &changed, &hidden, &users, &counts, &entry.administration];
    client.execute(&sharing.insert_journal, &row).await.map(drop)
}

/// The number and the identity of an entry. The identity is `None` if the journal has no such entry yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct JournalPosition {
    pub(crate) n: i64,
    pub(crate) mark: Option<String>,
}

/// Returns the statement that reads the journal after entry `$1`. Each row has the id of the arena or group of nodes
/// that uses the database, the database's time, the identity of entry `$1`, the last entry's number, and a later one.
pub(crate) fn select_entries() -> String {
    format!(
        "SELECT (SELECT value FROM notes WHERE name = 'holder'), {NOW_MS}, (SELECT mark FROM journal WHERE n = $1),
             (SELECT coalesce(max(n), 0) FROM journal), j.*
         FROM (VALUES (1)) AS once LEFT JOIN (SELECT n, node, changed, hidden, users, counts, administration, mark FROM journal
             WHERE n > $1 ORDER BY n LIMIT {PAGE}) j ON true ORDER BY j.n"
    )
}

/// Returns the statement that reads the journal from entry `$1` on, with the columns of [`select_entries`]. It costs the
/// database a third, and suffices as long as the journal has entry `$1`.
pub(crate) fn select_from_entry() -> String {
    format!(
        "SELECT (SELECT value FROM notes WHERE name = 'holder'), {NOW_MS}, NULL::text, NULL::bigint,
             n, node, changed, hidden, users, counts, administration, mark
         FROM journal WHERE n >= $1 ORDER BY n LIMIT {PAGE} + 1"
    )
}

/// The SQL expression for the database's time, in milliseconds since the epoch.
pub(crate) const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

pub(crate) struct JournalRead {
    /// The id of the arena or group of nodes that uses the database.
    pub(crate) holder: Option<String>,
    pub(crate) now_ms: i64,
    /// The identity of the entry directly before those of this read; `None` if the journal doesn't have it.
    seen: Option<String>,
    /// The number of the last entry in the journal.
    last: i64,
    pub(crate) entries: Vec<JournalRow>,
    /// True if the read reached its row limit, so that there may be more entries.
    pub(crate) is_full: bool,
}

pub(crate) struct JournalRow {
    pub(crate) n: i64,
    pub(crate) node: String,
    pub(crate) mark: String,
    pub(crate) content: JournalEntry,
    pub(crate) delta: Delta,
}

impl JournalRead {
    /// Reads the rows of [`select_from_entry`]. Returns `None` if they don't begin with the entry at this position.
    pub(crate) fn read_after(rows: &[Row], position: &JournalPosition) -> Result<Option<JournalRead>, StoreError> {
        let Some((first, later)) = rows.split_first() else { return Ok(None) };
        if position.mark.is_none() || first.text_or_null(11)? != position.mark.as_deref() {
            return Ok(None);
        }
        let entries = later.iter().map(|row| JournalRow::read(row.integer(4)?, row)).collect::<Result<Vec<_>, _>>()?;
        let last = entries.last().map_or(position.n, |entry| entry.n);
        let (holder, now_ms) = (first.text_or_null(0)?.map(str::to_owned), first.integer(1)?);
        let is_full = later.len() as i64 >= PAGE;
        Ok(Some(JournalRead { holder, now_ms, seen: position.mark.clone(), last, entries, is_full }))
    }

    /// Reads the rows of [`select_entries`].
    pub(crate) fn read(rows: &[Row]) -> Result<JournalRead, StoreError> {
        let first =
            rows.first().ok_or_else(|| StoreError::Database("a read of the journal returned no row".to_owned()))?;
        let mut entries = Vec::new();
        for row in rows {
            let Some(n) = row.integer_or_null(4)? else { continue };
            entries.push(JournalRow::read(n, row)?);
        }
        let is_full = rows.len() as i64 >= PAGE;
        let text = |column: usize| -> Result<_, StoreError> { Ok(first.text_or_null(column)?.map(str::to_owned)) };
        let (holder, now_ms, seen, last) = (text(0)?, first.integer(1)?, text(2)?, first.integer(3)?);
        Ok(JournalRead { holder, now_ms, seen, last, entries, is_full })
    }

    /// Returns true if the database has lost the entry at this position, which this node has read before.
    pub(crate) fn is_rewound(&self, position: &JournalPosition) -> bool {
        let was_removed = self.seen.is_none() && self.last > position.n;
        position.mark.is_some() && self.seen != position.mark && !was_removed
    }

    /// Returns true if the entry at this position, or entries after this position, were removed because of their age.
    pub(crate) fn is_forgotten(&self, position: &JournalPosition) -> bool {
        (position.mark.is_some() && self.seen.is_none())
            || self.entries.first().is_some_and(|first| first.n != position.n + 1)
    }
}

impl JournalRow {
    fn read(n: i64, row: &Row) -> Result<JournalRow, StoreError> {
        let damaged = |reason: String| StoreError::damaged(format!("entry {n} of the journal"), reason);
        let names = |column: usize| -> Result<BTreeSet<String>, StoreError> {
            Ok(row.try_get::<_, Vec<String>>(column)?.into_iter().collect())
        };
        let counts: Vec<(i64, String, String, i64)> =
            serde_json::from_str(row.text(9)?).map_err(|error| damaged(error.to_string()))?;
        let mut delta = Delta::default();
        for (block, challenge, status, n) in counts {
            let known = Status::from_wire(&status).ok_or_else(|| damaged(format!("unknown status {status}")))?;
            delta.sessions.insert((block, challenge, known), n);
        }
        let users: Vec<i64> = row.try_get(8)?;
        let (changed, hidden) = (names(6)?, names(7)?);
        let derived = changed.contains(DERIVED);
        let users = users.into_iter().collect();
        let content = JournalEntry { changed, hidden, users, administration: row.try_get(10)?, derived };
        Ok(JournalRow { n, node: row.text(5)?.to_owned(), mark: row.text(11)?.to_owned(), content, delta })
    }
}

/// The changes of other nodes. A node updates its caches with them.
#[derive(Debug, Default)]
pub struct Changes {
    /// Sessions that have changed or have new messages.
    pub sessions: BTreeSet<SessionId>,
    /// Sessions in which a message was hidden.
    pub hidden: BTreeSet<SessionId>,
    /// True if the public channel has new messages.
    pub public: bool,
    /// True if a message of the public channel was hidden.
    pub public_hidden: bool,
    /// True if bans or benchmark models have changed.
    pub administration: bool,
    /// True if the changes are unknown, for example because they are too old. The node must then empty every cache.
    pub everything: bool,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        let Changes { sessions, hidden, public, public_hidden, administration, everything } = self;
        sessions.is_empty() && hidden.is_empty() && !(*public || *public_hidden || *administration || *everything)
    }

    pub(crate) fn add(&mut self, entry: &JournalEntry) {
        for name in &entry.changed {
            match name.parse() {
                Ok(id) => drop(self.sessions.insert(id)),
                Err(_) => self.public |= name == PUBLIC,
            }
        }
        for name in &entry.hidden {
            match name.parse() {
                Ok(id) => drop(self.hidden.insert(id)),
                Err(_) => self.public_hidden |= name == PUBLIC,
            }
        }
        self.administration |= entry.administration;
    }
}
