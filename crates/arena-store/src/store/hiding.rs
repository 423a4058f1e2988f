//! Hiding of messages: the content is erased permanently, and its hash is kept.

use arena_model::{Channel, ContentHash};

use super::audit::record;
use crate::errors::Failure;
use crate::sql::{Value, count};
use crate::tables::{PUBLIC, channel_number};
use crate::writing::Writing;
use crate::{AuditEntry, CommitError, SessionNo, Store, StoreError};

impl Store {
    /// Erases the content of a message permanently. Returns its hash, which is kept, or `None` if there is no such
    /// message. `no` is the session's number, or `None` for the public channel. Hiding a message again changes
    /// nothing and adds no audit entry. `commit` returns the commitment of the content, which is kept for the session's
    /// record.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn hide_message(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        index: u64,
        commit: impl Fn(&str) -> Option<ContentHash> + Send + 'static,
        audit: impl Fn(ContentHash) -> AuditEntry + Send + 'static,
    ) -> Result<Option<ContentHash>, CommitError> {
        let place = [no.map_or(0, |no| no.0), channel_number(channel), count(index)];
        self.write((place, commit, audit), move |(place, commit, audit), writing| {
            Box::pin(async move {
                match channel {
                    Channel::Invites => drop(writing.changed.insert(PUBLIC)),
                    _ => writing.count_edit(place[0]).await?,
                }
                let place = place.map(Value::from);
                let sql = format!(
                    "SELECT content, hidden FROM messages WHERE session = $1 AND channel = $2 AND idx = $3{}",
                    writing.db.dialect().for_update()
                );
                let found = writing.db.find(&sql, &place, |row| {
                    Ok((row.prose(0)?.into_owned(), row.text_or_null(1)?.map(str::to_owned)))
                });
                let Some((content, hidden)) = found.await? else { return Ok(None) };
                if let Some(hash) = hidden {
                    let what = format!("message {index} of channel {channel}");
                    return Ok(Some(hash.parse().map_err(|error| StoreError::damaged(what, error))?));
                }
                let hash = ContentHash::of(&content);
                let [session, number, index] = place;
                let commitment = commit(&content).map(|commitment| commitment.to_string());
                let values = [hash.to_string().into(), commitment.into(), session, number, index.clone()];
                writing.begin_to_erase()?;
                let erased = erase(writing, &values, &[channel.to_string().into(), index]).await;
                writing.end_erasing()?;
                erased?;
                let entry = audit(hash);
                record(writing, &entry).await?;
                Ok(Some(hash))
            })
        })
        .await
    }
}

/// Removes a message's content, and what quotes it.
async fn erase(writing: &mut Writing, message: &[Value<'_>], place: &[Value<'_>]) -> Result<(), Failure> {
    let sql = "UPDATE messages SET content = '', hidden = $1, commitment = $2
         WHERE session = $3 AND channel = $4 AND idx = $5";
    writing.db.execute(sql, message).await?;
    // Earlier versions stored reports by readers, which may quote the message.
    writing.db.execute("DELETE FROM reports WHERE channel = $1 AND idx = $2", place).await.map(drop)
}
