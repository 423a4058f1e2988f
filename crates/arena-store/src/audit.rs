//! What administrators did: each entry in the transaction that does it.

use arena_model::Timestamp;
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::rows::to_json;
use crate::{CommitError, Page, SqliteStore, StoreError};

/// Something that an administrator did.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// The network address that it was asked for from.
    pub address: String,
    /// What, in a word, such as `ban`.
    pub action: String,
    /// To whom or what, and how: a JSON object.
    pub detail: Value,
}

/// The number of an entry: 1, 2, 3 … in the order of commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditNo(pub u64);

/// Adds an entry.
pub(crate) fn record(connection: &Connection, entry: &AuditEntry) -> Result<AuditNo, rusqlite::Error> {
    connection
        .prepare_cached("INSERT INTO audit (at, address, action, detail) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![entry.at.0, entry.address, entry.action, to_json(&entry.detail)])?;
    Ok(AuditNo(connection.last_insert_rowid().unsigned_abs()))
}

impl SqliteStore {
    pub(crate) async fn record(&self, entry: AuditEntry) -> Result<AuditNo, CommitError> {
        self.writer.write(move |writing| Ok(record(writing.connection, &entry)?)).await
    }

    pub(crate) async fn list_audit(
        &self,
        offset: u64,
        limit: usize,
    ) -> Result<Page<(AuditNo, AuditEntry)>, StoreError> {
        self.read(|connection| {
            let total: i64 = connection.query_row("SELECT coalesce(max(no), 0) FROM audit", [], |row| row.get(0))?;
            // Entries are numbered from 1 without gaps.
            let newest = total.saturating_sub(i64::try_from(offset).unwrap_or(i64::MAX));
            let mut statement = connection.prepare_cached(
                "SELECT no, at, address, action, detail FROM audit WHERE no <= ?1 ORDER BY no DESC LIMIT ?2",
            )?;
            let mut rows = statement.query(params![newest, i64::try_from(limit).unwrap_or(i64::MAX)])?;
            let mut items = Vec::new();
            while let Some(row) = rows.next()? {
                let no = AuditNo(row.get::<_, i64>(0)?.unsigned_abs());
                let detail = serde_json::from_str(row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?);
                let detail = detail.map_err(|error| StoreError::Damaged {
                    what: format!("audit entry {}", no.0),
                    reason: error.to_string(),
                })?;
                let entry =
                    AuditEntry { at: Timestamp(row.get(1)?), address: row.get(2)?, action: row.get(3)?, detail };
                items.push((no, entry));
            }
            Ok(Page { items, total: total.unsigned_abs() })
        })
    }
}
