//! Archival: the messages of ended sessions leave the store. The caller keeps them elsewhere, and returns them to
//! restore a session. All other data of a session stays, so lists, pages, boards and the log don't change.

use arena_model::{ChatMessage, ContentHash, SessionId, Timestamp};

use crate::audit::record;
use crate::dialect::{Table, columns};
use crate::job::{WriteError, Writing};
use crate::store::read_id;
use crate::tables::{Messages, read_commitment, read_message, session_channel};
use crate::value::{Columns, Value, count};
use crate::{AuditEntry, CommitError, EndingNo, SessionNo, Store, StoreError};

/// The condition of the messages in an archive. The parameters are the session, and the numbers of archived messages in
/// the chat and in the operator channel.
const ARCHIVED: &str = "session = $1 AND (channel = 0 AND idx <= $2 OR channel = 1 AND idx <= $3 OR channel = 3)";

/// The number of messages that one statement inserts.
const INSERTED: usize = 100;

/// The messages of a channel in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchivedChannel {
    /// The number of messages, which are the first ones of the channel.
    pub len: u64,
    /// The time of the last of them.
    pub last_at: Timestamp,
}

/// A session to archive, as its archive has it.
#[derive(Debug, Clone, Copy)]
pub struct NewArchive {
    /// The session.
    pub session: SessionNo,
    /// The time of the archival.
    pub at: Timestamp,
    /// The chat.
    pub chat: ArchivedChannel,
    /// The operator channel.
    pub operator: ArchivedChannel,
    /// The number of all messages in the archive, with inputs.
    pub messages: u64,
    /// The number of hidden messages among them.
    pub hidden: u64,
}

/// A message of an archive, and the commitment of its content if it was hidden with one.
pub type ArchivedMessage = (ChatMessage, Option<ContentHash>);

impl Store {
    /// Returns sessions that ended before `before` and aren't archived, in the order of their ends: the first `limit`
    /// after `after`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_archivable(
        &self,
        before: Timestamp,
        after: EndingNo,
        limit: usize,
    ) -> Result<Vec<(EndingNo, SessionId)>, StoreError> {
        let values = [after.0, before.0, count(limit as u64)];
        self.aside(values, |values, db| {
            let sql = "SELECT e.n, s.id FROM endings e JOIN sessions s ON s.no = e.session
                 WHERE e.n > $1 AND s.ended_at < $2 AND NOT EXISTS (SELECT 1 FROM archives a WHERE a.session = s.no)
                 ORDER BY e.n LIMIT $3";
            let read = |row: &dyn Columns| Ok((EndingNo(row.integer(0)?), read_id(row, 1)?));
            Box::pin(async move { db.list(sql, &values.map(Value::from), read).await })
        })
        .await
    }

    /// Returns the archived sessions after `after`, at most `limit`.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_archived(
        &self,
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<(SessionNo, SessionId)>, StoreError> {
        let sql = "SELECT a.session, s.id FROM archives a JOIN sessions s ON s.no = a.session
             WHERE a.session > $1 ORDER BY a.session LIMIT $2";
        let read = |row: &dyn Columns| Ok((SessionNo(row.integer(0)?), read_id(row, 1)?));
        self.list(sql, &[after.0.into(), count(limit as u64).into()], read).await
    }

    /// Returns true if the messages of a session were removed from the store.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn is_archived(&self, no: SessionNo) -> Result<bool, StoreError> {
        Ok(self.number("SELECT count(*) FROM archives WHERE session = $1", &[no.0.into()]).await? > 0)
    }

    /// Removes the messages of an ended session. The caller has them in an archive that survives a power failure.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the store has other messages than the archive, or the session is archived already.
    /// Also if the store can't write.
    pub async fn archive_session(&self, archive: NewArchive) -> Result<(), CommitError> {
        self.write(archive, |archive, writing| Box::pin(remove_messages(writing, *archive))).await
    }

    /// Adds the messages of an archived session again. Returns false if the session isn't archived.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn restore_session(
        &self,
        no: SessionNo,
        id: SessionId,
        messages: Vec<ArchivedMessage>,
        audit: Option<AuditEntry>,
    ) -> Result<bool, CommitError> {
        self.write((messages, audit), move |(messages, audit), writing| {
            Box::pin(async move {
                let archived = "DELETE FROM archives WHERE session = $1";
                if writing.db.execute(archived, &[no.0.into()]).await? == 0 {
                    return Ok(false);
                }
                // Messages that were added after the archival get new numbers, so that they still follow the others.
                let later = take_messages(writing, no, id).await?;
                insert_messages(writing, no, messages).await?;
                insert_messages(writing, no, &later).await?;
                if let Some(audit) = audit {
                    record(writing, audit).await?;
                }
                Ok(true)
            })
        })
        .await
    }
}

async fn remove_messages(writing: &mut Writing, archive: NewArchive) -> Result<(), WriteError> {
    let NewArchive { session, at, chat, operator, messages, hidden } = archive;
    let sql = "INSERT INTO archives (session, at, chat_len, chat_at, operator_len, operator_at)
         SELECT no, CAST($1 AS bigint), CAST($2 AS bigint), CAST($3 AS bigint), CAST($4 AS bigint), CAST($5 AS bigint)
         FROM sessions WHERE no = $6 AND status = 'ended'";
    let values = [at.0, count(chat.len), chat.last_at.0, count(operator.len), operator.last_at.0, session.0];
    if writing.db.execute(sql, &values.map(Value::from)).await? == 0 {
        return Err(CommitError::Conflict.into());
    }
    let place = [session.0, count(chat.len), count(operator.len)].map(Value::from);
    // A message that was hidden since the archive was written isn't removed as a visible one, so the counts differ.
    for (condition, expected) in [("hidden IS NULL", messages - hidden), ("hidden IS NOT NULL", hidden)] {
        let sql = format!("DELETE FROM messages WHERE {ARCHIVED} AND {condition}");
        if writing.db.execute(&sql, &place).await? != expected {
            return Err(CommitError::Conflict.into());
        }
    }
    Ok(())
}

/// Removes all messages of a session, and returns them in the order of their commits.
async fn take_messages(
    writing: &mut Writing,
    no: SessionNo,
    id: SessionId,
) -> Result<Vec<ArchivedMessage>, WriteError> {
    let sql = format!(
        "SELECT {}, commitment FROM messages WHERE session = $1 ORDER BY coalesce(no, 0), at, channel, idx",
        columns::<Messages>("")
    );
    let read = |row: &dyn Columns| {
        let channel = session_channel(row.integer(Messages::Channel as usize)?, id)?;
        Ok((read_message(row, channel)?, read_commitment(row, Messages::COLUMNS.len(), id)?))
    };
    let messages = writing.db.list(&sql, &[no.0.into()], read).await?;
    writing.db.execute("DELETE FROM messages WHERE session = $1", &[no.0.into()]).await?;
    Ok(messages)
}

async fn insert_messages(writing: &mut Writing, no: SessionNo, messages: &[ArchivedMessage]) -> Result<(), WriteError> {
    let width = Messages::COLUMNS.len() + 1;
    for part in messages.chunks(INSERTED) {
        let row = |row: usize| {
            let parameters: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
            format!("({})", parameters.join(", "))
        };
        let rows: Vec<String> = (0..part.len()).map(row).collect();
        let sql = format!("INSERT INTO messages ({}, commitment) VALUES {}", columns::<Messages>(""), rows.join(", "));
        let values = part.iter().flat_map(|(message, commitment)| {
            let mut row: Vec<Value<'_>> = Messages::values(&(no.0, message)).collect();
            row.push(commitment.map(|commitment| commitment.to_string()).into());
            row
        });
        writing.db.execute(&sql, &values.collect::<Vec<_>>()).await?;
    }
    Ok(())
}
