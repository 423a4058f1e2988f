//! Hiding messages: the content goes for good, its hash stays.

use arena_model::{Channel, ContentHash};
use rusqlite::{OptionalExtension, params};

use crate::audit::record;
use crate::job::{WriteError, Writing};
use crate::rows::channel_number;
use crate::{AuditEntry, CommitError, SessionNo, SqliteStore, StoreError};

impl SqliteStore {
    pub(crate) async fn hide_message(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        index: u64,
        audit: impl Fn(ContentHash) -> AuditEntry + Send + 'static,
    ) -> Result<Option<ContentHash>, CommitError> {
        let place = (no.map_or(0, |no| no.0), channel_number(channel), i64::try_from(index).unwrap_or(i64::MAX));
        self.writer
            .write(move |writing| {
                let Some((content, hidden)) = find_content(writing, place)? else { return Ok(None) };
                if let Some(hash) = hidden {
                    let hash = hash.parse().map_err(|error| StoreError::damaged(channel, error))?;
                    return Ok(Some(hash));
                }
                let hash = ContentHash::of(&content);
                erase(writing, |writing| {
                    writing.connection.execute(
                        "UPDATE messages SET content = '', hidden = ?4 WHERE session = ?1 AND channel = ?2 AND idx = ?3",
                        params![place.0, place.1, place.2, hash.to_string()],
                    )?;
                    Ok(())
                })?;
                record(writing.connection, &audit(hash))?;
                Ok(Some(hash))
            })
            .await
    }
}

/// The content of a message and the hash that it was hidden under, if it was.
fn find_content(
    writing: &Writing<'_>,
    (session, channel, index): (i64, i64, i64),
) -> Result<Option<(String, Option<String>)>, rusqlite::Error> {
    writing
        .connection
        .prepare_cached("SELECT content, hidden FROM messages WHERE session = ?1 AND channel = ?2 AND idx = ?3")?
        .query_row([session, channel, index], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Runs a write of which no trace shall stay: what it deletes is overwritten in the database file, and the log is emptied
/// when it is durable. Ordinary writes don't pay for that.
pub(crate) fn erase<T>(
    writing: &mut Writing<'_>,
    write: impl FnOnce(&mut Writing<'_>) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    writing.connection.pragma_update(None, "secure_delete", true)?;
    let result = write(writing);
    writing.connection.pragma_update(None, "secure_delete", false)?;
    writing.effects.erased = true;
    result
}
