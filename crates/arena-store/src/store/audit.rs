//! The audit log: entries about actions of administrators. An entry is written in the same transaction as its action.

use arena_model::Timestamp;
use serde_json::Value as Json;

use crate::errors::WriteError;
use crate::sql::{Columns, Value, count};
use crate::tables::{AUDIT, to_json};
use crate::writing::Writing;
use crate::{AuditNo, CommitError, Page, Store, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub address: String,
    /// The action's name, such as `ban`.
    pub action: String,
    /// The action's object and options, as a JSON object.
    pub detail: Json,
}

/// Callers add it last in a transaction, because other nodes can't number their entries until the commit.
pub(crate) async fn record(writing: &mut Writing, entry: &AuditEntry) -> Result<AuditNo, WriteError> {
    writing.lock_number(AUDIT).await?;
    let sql = "INSERT INTO audit (no, at, address, action, detail)
         SELECT coalesce(max(no), 0) + 1, CAST($1 AS bigint), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text) FROM audit
         RETURNING no";
    let AuditEntry { at, address, action, detail } = entry;
    let values = [at.0.into(), Value::prose(address), Value::prose(action), to_json(detail).into()];
    Ok(AuditNo(writing.db.number(sql, &values).await?.unsigned_abs()))
}

impl Store {
    /// Records an administrator's action that changes nothing else in the store.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn record(&self, entry: AuditEntry) -> Result<AuditNo, CommitError> {
        self.write(entry, |entry, writing| Box::pin(record(writing, entry))).await
    }

    /// Returns audit entries with their numbers, newest first: at most `limit` entries from `offset` on.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_audit(&self, offset: u64, limit: usize) -> Result<Page<(AuditNo, AuditEntry)>, StoreError> {
        let total = self.number("SELECT coalesce(max(no), 0) FROM audit", &[]).await?;
        // Entries have numbers from 1 without gaps, so the number of the first entry follows from the offset.
        let newest = total.saturating_sub(count(offset));
        let sql = "SELECT no, at, address, action, detail FROM audit WHERE no <= $1 ORDER BY no DESC LIMIT $2";
        let read = |row: &dyn Columns| {
            let no = AuditNo(row.integer(0)?.unsigned_abs());
            let detail = serde_json::from_str(row.text(4)?).map_err(|error| StoreError::Damaged {
                what: format!("audit entry {}", no.0),
                reason: error.to_string(),
            })?;
            let (at, address, action) = (Timestamp(row.integer(1)?), row.prose(2)?, row.prose(3)?);
            Ok((no, AuditEntry { at, address: address.into_owned(), action: action.into_owned(), detail }))
        };
        let items = self.list(sql, &[newest.into(), count(limit as u64).into()], read).await?;
        Ok(Page { items, total: total.unsigned_abs() })
    }
}
