//! Archival: the messages of ended sessions leave the store. The caller keeps them elsewhere, and returns them to
//! restore a session. All other data of a session stays, so lists, pages, boards and the log don't change.

use arena_model::{ChatMessage, ContentHash, SessionId, Status, Timestamp};

use super::audit::record;
use crate::errors::{Failure, WriteError};
use crate::sql::{Columns, INSERTED, Table, Value, columns, count, tuples};
use crate::tables::{Messages, read_commitment, read_id, read_message, session_channel};
use crate::writing::Writing;
use crate::{AuditEntry, CommitError, EndingNo, SessionNo, Store, StoreError};

/// The condition of the messages in an archive. The parameters are the session, and the numbers of archived messages in
/// the chat and in the operator channel.
const ARCHIVED: &str = "session = $1 AND (channel = 0 AND idx <= $2 OR channel = 1 AND idx <= $3 OR channel = 3)";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchivedChannel {
    /// The number of messages, which are the first ones of the channel.
    pub len: u64,
    /// The time of the last of them.
    pub last_at: Timestamp,
}

#[derive(Debug, Clone)]
pub struct NewArchive {
    pub session: SessionNo,
    /// The path of the file in the archive's folder. Each archival has a file of its own.
    pub file: String,
    pub sha256: ContentHash,
    pub at: Timestamp,
    pub chat: ArchivedChannel,
    pub operator: ArchivedChannel,
    /// The number of all messages in the archive, with inputs.
    pub messages: u64,
    /// The number of hidden messages among them.
    pub hidden: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedFile {
    /// The path of the file in the archive's folder.
    pub file: String,
    /// The hash of the file; `None` if an older program wrote it.
    pub sha256: Option<ContentHash>,
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
    ) -> Result<Vec<(EndingNo, SessionNo, SessionId)>, StoreError> {
        let values = [after.0, before.0, count(limit as u64)];
        self.aside(values, |values, db| {
            let sql = "SELECT e.n, s.no, s.id FROM endings e JOIN sessions s ON s.no = e.session
                 WHERE e.n > $1 AND s.ended_at < $2 AND NOT EXISTS (SELECT 1 FROM archives a WHERE a.session = s.no)
                 ORDER BY e.n LIMIT $3";
            let read =
                |row: &dyn Columns| Ok((EndingNo(row.integer(0)?), SessionNo(row.integer(1)?), read_id(row, 2)?));
            Box::pin(async move {
                db.read_whole_tables().await?;
                db.list(sql, &values.map(Value::from), read).await
            })
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

    /// Returns the file of an archived session, or `None` if all messages are in the store.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn find_archive(&self, no: SessionNo) -> Result<Option<ArchivedFile>, StoreError> {
        let sql = "SELECT file, sha256 FROM archives WHERE session = $1";
        let read = |row: &dyn Columns| {
            let sha256 = row.text_or_null(1)?.map(str::parse).transpose();
            let sha256 = sha256.map_err(|error| StoreError::damaged("an archive", format!("its hash: {error}")))?;
            Ok(ArchivedFile { file: row.text(0)?.to_owned(), sha256 })
        };
        self.find(sql, &[no.0.into()], read).await
    }

    /// Notes a file that the caller is about to write, so that it is found if the caller doesn't finish.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn note_archive_file(&self, file: String, at: Timestamp) -> Result<(), CommitError> {
        self.write(file, move |file, writing| Box::pin(async move { Ok(note_file(writing, file, at).await?) })).await
    }

    /// Returns the noted files that no session has: files whose writing began before `before`, and files to remove.
    ///
    /// # Errors
    /// If the store can't be read.
    pub async fn list_unused_archive_files(&self, before: Timestamp) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT file FROM archive_files WHERE at < $1 ORDER BY at, file";
        self.list(sql, &[before.0.into()], |row| Ok(row.text(0)?.to_owned())).await
    }

    /// Removes the note of a file, which doesn't exist anymore.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn forget_archive_file(&self, file: String) -> Result<(), CommitError> {
        self.write(file, |file, writing| Box::pin(async move { Ok(forget_file(writing, file).await.map(drop)?) })).await
    }

    /// Removes the messages of an ended session. The caller has noted the file of the archive, which survives a power
    /// failure.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] if the store has other messages than the archive, the session is archived already, or
    /// the note of the file is gone. Also if the store can't write.
    pub async fn archive_session(&self, archive: NewArchive) -> Result<(), CommitError> {
        self.write(archive, |archive, writing| Box::pin(remove_messages(writing, archive))).await
    }

    /// Adds the messages of an archived session again. Returns false if the session isn't archived in `file`.
    ///
    /// # Errors
    /// If the store can't write.
    pub async fn restore_session(
        &self,
        no: SessionNo,
        id: SessionId,
        file: String,
        messages: Vec<ArchivedMessage>,
        audit: Option<AuditEntry>,
    ) -> Result<bool, CommitError> {
        self.write((file, messages, audit), move |(file, messages, audit), writing| {
            Box::pin(async move {
                lock_session(writing, no).await?;
                let archived = "DELETE FROM archives WHERE session = $1 AND file = $2";
                if writing.db.execute(archived, &[no.0.into(), file.as_str().into()]).await? == 0 {
                    return Ok(false);
                }
                note_file(writing, file, REMOVED).await?;
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

/// The time in the note of a file that is to be removed.
const REMOVED: Timestamp = Timestamp(0);

pub(crate) async fn note_removed_file(writing: &mut Writing, file: &str) -> Result<(), Failure> {
    note_file(writing, file, REMOVED).await
}

async fn note_file(writing: &mut Writing, file: &str, at: Timestamp) -> Result<(), Failure> {
    let sql = "INSERT INTO archive_files (file, at) VALUES ($1, $2)";
    writing.db.execute(sql, &[file.into(), at.0.into()]).await.map(drop)
}

/// Removes the note of a file. Returns false if there is none.
async fn forget_file(writing: &mut Writing, file: &str) -> Result<bool, Failure> {
    Ok(writing.db.execute("DELETE FROM archive_files WHERE file = $1", &[file.into()]).await? > 0)
}

/// Locks a session until the commit, so that no other node removes it or adds messages. Returns its status, or `None` if
/// there is no such session.
async fn lock_session(writing: &mut Writing, no: SessionNo) -> Result<Option<String>, WriteError> {
    let sql = format!("SELECT status FROM sessions WHERE no = $1{}", writing.db.dialect().for_update());
    Ok(writing.db.find(&sql, &[no.0.into()], |row| Ok(row.text(0)?.to_owned())).await?)
}

async fn remove_messages(writing: &mut Writing, archive: &NewArchive) -> Result<(), WriteError> {
    let NewArchive { session, file, sha256, at, chat, operator, messages, hidden } = archive;
    if lock_session(writing, *session).await?.as_deref() != Some(Status::Ended.as_str()) {
        return Err(CommitError::Conflict.into());
    }
    if !forget_file(writing, file).await? {
        return Err(CommitError::Conflict.into());
    }
    let sql = "INSERT INTO archives (session, file, at, chat_len, chat_at, operator_len, operator_at, sha256)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let [at, chat_len, chat_at, operator_len, operator_at] =
        [at.0, count(chat.len), chat.last_at.0, count(operator.len), operator.last_at.0].map(Value::from);
    let (session_no, sha256) = (session.0.into(), sha256.to_string().into());
    let values = [session_no, file.as_str().into(), at, chat_len, chat_at, operator_len, operator_at, sha256];
    writing.db.execute(sql, &values).await?;
    let place = [session.0, count(chat.len), count(operator.len)].map(Value::from);
    // A message that was hidden since the archive was written isn't removed as a visible one, so the counts differ.
    for (condition, expected) in [("hidden IS NULL", messages - hidden), ("hidden IS NOT NULL", *hidden)] {
        if erase(writing, &format!("{ARCHIVED} AND {condition}"), &place).await? != expected {
            return Err(CommitError::Conflict.into());
        }
    }
    Ok(())
}

/// Deletes messages, and leaves nothing of them in unused pages of the database. Returns their number.
async fn erase(writing: &mut Writing, condition: &str, values: &[Value<'_>]) -> Result<u64, WriteError> {
    writing.set_secure_delete(true)?;
    let erased = writing.db.execute(&format!("DELETE FROM messages WHERE {condition}"), values).await;
    writing.set_secure_delete(false)?;
    Ok(erased?)
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
    erase(writing, "session = $1", &[no.0.into()]).await?;
    Ok(messages)
}

async fn insert_messages(writing: &mut Writing, no: SessionNo, messages: &[ArchivedMessage]) -> Result<(), WriteError> {
    for part in messages.chunks(INSERTED) {
        let tuples = tuples(part.len(), Messages::COLUMNS.len() + 1);
        let sql = format!("INSERT INTO messages ({}, commitment) VALUES {tuples}", columns::<Messages>(""));
        let values = part.iter().flat_map(|(message, commitment)| {
            let mut row: Vec<Value<'_>> = Messages::values(&(no.0, message)).collect();
            row.push(commitment.map(|commitment| commitment.to_string()).into());
            row
        });
        writing.db.execute(&sql, &values.collect::<Vec<_>>()).await?;
    }
    Ok(())
}
