//! The archive: files with the messages of ended sessions, which then leave the store. Readers don't see a difference:
//! what the store doesn't have is read from the archive. The files are in a folder.
//!
//! The store has the hash of each file, and names each file before it exists.
//!
//! A session's file is `<first two digits of the id>/<id>.<archival>.jsonl.gz`. Each line is a message as in an export, in the
//! order of the commits, with the inputs of the session, and with `commitment` if the message was hidden with one.

mod file;
mod folder;

use std::path::PathBuf;
use std::sync::Arc;

use arena_model::{Channel, ChatMessage, SessionId, Timestamp};
use arena_store::{
    ArchivedChannel, ArchivedFile, ArchivedMessage, CommitError, EndingNo, NewArchive, SessionNo, StoreError,
};
use serde_json::json;

use crate::admin::Administrator;
use crate::completion::Completion;
use crate::engine::{Engine, Inner};
use crate::records::{MOST_BYTES, list_stored};
use crate::request::{EngineError, unwritten};

use self::file::unavailable;
use self::folder::ArchiveFolder;

pub(crate) use self::file::Archive;

/// The number of sessions in one read of the store.
const PAGE: usize = 100;

/// The number of attempts to read messages that move between the store and the archive.
const ATTEMPTS: usize = 5;

/// The age at which a noted file isn't being written anymore, neither by this node nor by another one.
const UNFINISHED_MS: i64 = 60 * 60 * 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchivedCount {
    pub sessions: u64,
    /// The number of their messages, with inputs.
    pub messages: u64,
    /// The number of sessions that stay in the store: they are too long, damaged, or have changed meanwhile.
    pub left_out: u64,
}

impl Engine {
    /// Sets the folder of the archive. Nodes that share a store need the same folder. Later calls have no effect.
    pub fn set_archive(&self, folder: PathBuf) {
        let folder = ArchiveFolder(folder);
        let archive = Archive::new(folder);
        // The error contains the archive of a later call.
        let _ = self.inner.archive.set(archive);
    }

    /// Archives the sessions that ended before `before`. Games go on meanwhile. `by` is the administrator who asks for
    /// it, for the audit; `None` if the arena does it by itself.
    ///
    /// # Errors
    /// If the store can't be read or write, a file can't be written, or the arena has no archive. The sessions before stay
    /// archived.
    pub async fn archive_ended(
        &self,
        by: Option<Administrator>,
        before: Timestamp,
    ) -> Result<ArchivedCount, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move { inner.archive_ended(by, before).await }).await
    }

    /// Removes the files of the archive that no session has: those of interrupted archivals, restorals and removals.
    /// Returns their number. Other files aren't touched.
    ///
    /// # Errors
    /// If the store can't be read or write, or a file can't be removed.
    pub async fn remove_unused_archive_files(&self) -> Result<u64, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let Some(archive) = inner.archive.get() else { return Ok(0) };
            // While the lock is held, only other nodes write files.
            let _archiving = archive.archiving.lock().await;
            let is_alone = inner.store.nodes().is_none();
            let before =
                if is_alone { Timestamp(i64::MAX) } else { Timestamp(inner.environment.now().0 - UNFINISHED_MS) };
            let unused = inner.store.list_unused_archive_files(before).await?;
            let removed = unused.len() as u64;
            for file in unused {
                archive.folder.delete(&file).await.map_err(|reason| unavailable(&file, reason))?;
                inner.store.forget_archive_file(file).await.map_err(unwritten)?;
            }
            Ok(removed)
        })
        .await
    }

    /// Moves the messages of an archived session back into the store. Returns false if the session isn't archived.
    ///
    /// # Errors
    /// If there is no such session, its file can't be read, the store can't write, or the arena has no archive.
    pub async fn restore(&self, by: Administrator, id: SessionId) -> Result<bool, EngineError> {
        let engine = self.clone();
        Completion::new(async move {
            let live = engine.current(id).await?.ok_or(EngineError::UnknownSession)?;
            engine.inner.archive.get().ok_or(EngineError::NoArchive)?;
            engine.inner.restore(Some(by), live.no, id).await
        })
        .await
    }

    /// Restores all archived sessions, and returns their number.
    ///
    /// # Errors
    /// If a file can't be read, the store can't be read or write, or the arena has no archive. The sessions before stay
    /// restored.
    pub async fn restore_all(&self, by: Administrator) -> Result<u64, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            inner.archive.get().ok_or(EngineError::NoArchive)?;
            let (mut after, mut restored) = (SessionNo::default(), 0);
            loop {
                let page = inner.store.list_archived(after, PAGE).await?;
                let Some((last, _)) = page.last() else { return Ok(restored) };
                after = *last;
                for (no, id) in page {
                    restored += u64::from(inner.restore(Some(by), no, id).await?);
                }
            }
        })
        .await
    }
}

impl Inner {
    async fn archive_ended(&self, by: Option<Administrator>, before: Timestamp) -> Result<ArchivedCount, EngineError> {
        let archive = self.archive.get().ok_or(EngineError::NoArchive)?;
        let _archiving = archive.archiving.lock().await;
        let (mut after, mut count) = (EndingNo::default(), ArchivedCount::default());
        loop {
            let page = self.store.list_archivable(before, after, PAGE).await?;
            let Some((last, ..)) = page.last() else { break };
            after = *last;
            for (_, no, id) in page {
                match self.archive_session(archive, no, id).await? {
                    Some(messages) => {
                        count.sessions += 1;
                        count.messages += messages;
                    }
                    None => count.left_out += 1,
                }
            }
        }
        if let Some(by) = by {
            let ArchivedCount { sessions, messages, left_out } = count;
            let detail =
                json!({ "endedBefore": before, "sessions": sessions, "messages": messages, "leftOut": left_out });
            self.store.record(self.audit(by, "archive", detail)).await.map_err(unwritten)?;
        }
        Ok(count)
    }

    /// Archives a session and returns the number of its messages, or `None` if it stays in the store.
    async fn archive_session(
        &self,
        archive: &Archive,
        no: SessionNo,
        id: SessionId,
    ) -> Result<Option<u64>, EngineError> {
        if self.store.session_bytes(no).await? > MOST_BYTES {
            return Ok(None);
        }
        let messages = match list_stored(&self.store, no, id).await {
            Ok(messages) => messages,
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(session = %id, %error, "the session {id} isn't archived: {error}");
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let of = |wanted: Channel| {
            let mut channel = ArchivedChannel::default();
            for (message, _) in messages.iter().filter(|(message, _)| message.channel == wanted) {
                channel = ArchivedChannel { len: channel.len + 1, last_at: message.at };
            }
            channel
        };
        let at = self.environment.now();
        let file = file_of(id, self.environment.uuid(at));
        let (chat, operator, count) = (of(Channel::Chat(id)), of(Channel::Operator(id)), messages.len() as u64);
        let hidden = messages.iter().filter(|(message, _)| message.hidden.is_some()).count() as u64;
        self.store.note_archive_file(file.clone(), at).await.map_err(unwritten)?;
        let Some(sha256) = archive.write(&file, messages).await? else {
            self.remove_file(archive, file).await;
            tracing::warn!(session = %id, "the session {id} isn't archived: a file cannot hold one of its messages");
            return Ok(None);
        };
        let new = NewArchive { session: no, file: file.clone(), sha256, at, chat, operator, messages: count, hidden };
        match self.store.archive_session(new).await {
            Ok(()) => Ok(Some(count)),
            // The commit may have happened, so the file stays.
            Err(error @ CommitError::Unavailable(StoreError::Unsure)) => Err(unwritten(error)),
            Err(error) => {
                self.remove_file(archive, file).await;
                match error {
                    CommitError::Conflict | CommitError::Answered(_) => Ok(None),
                    error @ CommitError::Unavailable(_) => Err(unwritten(error)),
                }
            }
        }
    }

    /// Moves the messages of an archived session back into the store. Returns false if the session isn't archived.
    pub(crate) async fn restore(
        &self,
        by: Option<Administrator>,
        no: SessionNo,
        id: SessionId,
    ) -> Result<bool, EngineError> {
        let Some(archive) = self.archive.get() else { return Ok(false) };
        let Some(file) = self.store.find_archive(no).await? else { return Ok(false) };
        let messages = match archive.read_all(&file).await {
            Ok(messages) => messages,
            Err(error) => return self.check_replaced(no, &file, error).await.map(|()| false),
        };
        let audit = by.map(|by| self.audit(by, "restore", json!({ "session": id, "messages": messages.len() })));
        let ArchivedFile { file, .. } = file;
        let restored = self.store.restore_session(no, id, file.clone(), messages, audit).await.map_err(unwritten)?;
        if restored {
            self.remove_file(archive, file).await;
        }
        Ok(restored)
    }

    /// Removes a file that no session has, and its note. A failure is logged, because the change that it follows is
    /// made. The note stays then, so a later pass removes the file.
    async fn remove_file(&self, archive: &Archive, file: String) {
        let removed = match archive.folder.delete(&file).await {
            Ok(()) => self.store.forget_archive_file(file.clone()).await.map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = removed {
            tracing::error!("cannot remove a file of the archive that isn't used any more: {file}: {reason}");
        }
    }

    pub(crate) async fn remove_archive(&self, file: Option<String>) {
        if let (Some(archive), Some(file)) = (self.archive.get(), file) {
            self.remove_file(archive, file).await;
        }
    }

    /// Returns all messages of a session: those of the archive, then those of the store.
    pub(crate) async fn list_all(&self, no: SessionNo, id: SessionId) -> Result<Vec<ArchivedMessage>, EngineError> {
        for _ in 0..ATTEMPTS {
            let file = self.store.find_archive(no).await?;
            let mut messages = match (self.archive.get(), &file) {
                (Some(archive), Some(file)) => match archive.read_all(file).await {
                    Ok(messages) => messages,
                    Err(error) => {
                        self.check_replaced(no, file, error).await?;
                        continue;
                    }
                },
                (None, Some(_)) => return Err(EngineError::NoArchive),
                (_, None) => Vec::new(),
            };
            messages.extend(list_stored(&self.store, no, id).await?);
            // Between the two reads, the messages may have moved.
            if self.store.find_archive(no).await? == file {
                return Ok(messages);
            }
        }
        Err(EngineError::Contended)
    }

    /// Returns messages of a channel as [`Store::list_messages_within`] does. The archive fills a gap at the beginning.
    pub(crate) async fn list_messages(
        &self,
        no: Option<SessionNo>,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, EngineError> {
        let from = from.max(1);
        let mut is_in_store = false;
        for _ in 0..ATTEMPTS {
            let messages = self.store.list_messages_within(no, channel, from, limit, most_bytes).await?;
            let is_whole = limit == 0 || messages.first().is_some_and(|first| first.index == from);
            let Some(no) = no.filter(|_| !is_whole && !is_in_store) else { return Ok(messages) };
            let file = self.store.find_archive(no).await?;
            match (self.archive.get(), file) {
                (Some(archive), Some(file)) => {
                    match archive.read_channel(&file, channel, from, limit, most_bytes).await {
                        Ok(archived) => return Ok(followed_by(archived, messages, limit, most_bytes)),
                        Err(error) => self.check_replaced(no, &file, error).await?,
                    }
                }
                (None, Some(_)) => return Err(EngineError::NoArchive),
                // The messages may have been restored since the read, so the next read is final.
                (_, None) => is_in_store = true,
            }
        }
        Err(EngineError::Contended)
    }

    /// Returns the error of reading a session's file, unless the session was restored or archived again meanwhile.
    async fn check_replaced(&self, no: SessionNo, file: &ArchivedFile, error: EngineError) -> Result<(), EngineError> {
        match self.store.find_archive(no).await? {
            Some(current) if current == *file => Err(error),
            _ => Ok(()),
        }
    }
}

/// Adds the messages of the store to those of the archive, up to the limits of one read.
fn followed_by(
    mut archived: Vec<ChatMessage>,
    stored: Vec<ChatMessage>,
    limit: usize,
    most_bytes: usize,
) -> Vec<ChatMessage> {
    let mut bytes: usize = archived.iter().map(|message| message.content.len()).sum();
    for message in stored {
        let is_next = archived.last().is_none_or(|last| last.index + 1 == message.index);
        if !is_next || archived.len() >= limit || bytes >= most_bytes {
            break;
        }
        bytes += message.content.len();
        archived.push(message);
    }
    archived
}

/// Returns the key of a file: its path in the folder. Each archival has a file of its own, so that the
/// removal of an old one can't hit a new one.
fn file_of(id: SessionId, archival: uuid::Uuid) -> String {
    let id = id.to_string();
    format!("{}/{id}.{archival}.jsonl.gz", &id[..2])
}
