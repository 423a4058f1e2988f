//! The archive: files with the messages of ended sessions, which then leave the store. Readers don't see a difference:
//! what the store doesn't have is read from the archive. The files are in a folder.
//!
//! The store has the hash of each file, and names each file before it exists.
//!
//! A session's file is `<first two digits of the id>/<id>.<archival>.jsonl.gz`. Each line is a message as in an export, in the
//! order of the commits, with the inputs of the session, and with `commitment` if the message was hidden with one.

mod folder;

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arena_model::{Channel, ChatMessage, ContentHash, Record, SessionId, Timestamp, read_record};
use arena_store::{
    ArchivedChannel, ArchivedFile, ArchivedMessage, CommitError, EndingNo, NewArchive, SessionNo, StoreError,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::admin::Administrator;
use crate::completion::Completion;
use crate::engine::{Engine, Inner};
use crate::records::{MOST_BYTES, list_stored};
use crate::request::EngineError;
use crate::users::unwritten;

use self::folder::ArchiveFolder;

/// The number of sessions in one read of the store.
const PAGE: usize = 100;

/// The maximum number of files that are read at the same time, because decompression takes a whole core.
const READERS: usize = 2;

/// The longest wait for the end of another read.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

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

pub(crate) struct Archive {
    folder: ArchiveFolder,
    readers: Semaphore,
    /// A lock that a pass holds, so that a node runs one at a time.
    archiving: tokio::sync::Mutex<()>,
}

/// A line of a file, which [`read_record`] reads.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'m> {
    channel: String,
    index: u64,
    timestamp: Timestamp,
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    method: Option<&'m str>,
    content: &'m str,
    #[serde(rename = "contentSha256", skip_serializing_if = "Option::is_none")]
    hidden: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commitment: Option<String>,
}

impl Line<'_> {
    fn of((message, commitment): &ArchivedMessage) -> Line<'_> {
        let ChatMessage { channel, index, from, to, content, method, at, hidden } = message;
        Line {
            channel: channel.to_string(),
            index: *index,
            timestamp: *at,
            from: from.to_string(),
            to: to.as_ref().map(ToString::to_string),
            method: method.as_deref(),
            content,
            hidden: hidden.as_ref().map(ToString::to_string),
            commitment: commitment.as_ref().map(ToString::to_string),
        }
    }
}

#[derive(Deserialize)]
struct LinePlace<'l> {
    #[serde(borrow)]
    channel: Cow<'l, str>,
    index: u64,
}

/// The field of a line that a message of an export doesn't have.
#[derive(Deserialize)]
struct Commitment {
    commitment: Option<String>,
}

impl Engine {
    /// Sets the folder of the archive. Nodes that share a store need the same folder. Later calls have no effect.
    pub fn set_archive(&self, folder: PathBuf) {
        let folder = ArchiveFolder(folder);
        let archive = Archive { folder, readers: Semaphore::new(READERS), archiving: tokio::sync::Mutex::new(()) };
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
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let live = inner.live.find(id, &inner.store).await?.ok_or(EngineError::UnknownSession)?;
            inner.archive.get().ok_or(EngineError::NoArchive)?;
            inner.restore(Some(by), live.no, id).await
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

fn unavailable(file: &str, reason: impl Display) -> EngineError {
    EngineError::Archive { reason: format!("{file}: {reason}") }
}

impl Archive {
    /// Survives a power failure. Returns the hash, or `None` if the file can't hold one of the messages.
    async fn write(&self, file: &str, messages: Vec<ArchivedMessage>) -> Result<Option<ContentHash>, EngineError> {
        let compress = move || compress(&messages).map(|bytes| (ContentHash::of_bytes(&bytes), bytes));
        let (sha256, compressed) = match run(compress).await {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
            compressed => compressed.map_err(|error| unavailable(file, error))?,
        };
        let written = self.folder.put(file, compressed).await;
        if written.is_err() {
            // The first error is the one that matters.
            let _ = self.folder.delete(file).await;
        }
        written.map(|()| Some(sha256)).map_err(|reason| unavailable(file, reason))
    }

    async fn read_all(&self, file: &ArchivedFile) -> Result<Vec<ArchivedMessage>, EngineError> {
        self.read(file, |lines| lines.map(|line| read_line(&line?)).collect()).await
    }

    /// Returns messages of a channel as [`Store::list_messages_within`] does.
    async fn read_channel(
        &self,
        file: &ArchivedFile,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Vec<ChatMessage>, EngineError> {
        let name = channel.to_string();
        self.read(file, move |lines| {
            let (mut messages, mut bytes) = (Vec::new(), 0);
            for line in lines {
                let line = line?;
                let LinePlace { channel, index } = serde_json::from_str(&line)?;
                if channel != name || index < from {
                    continue;
                }
                let (message, _) = read_line(&line)?;
                bytes += message.content.len();
                messages.push(message);
                if messages.len() >= limit || bytes >= most_bytes {
                    break;
                }
            }
            Ok(messages)
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        ArchivedFile { file, sha256 }: &ArchivedFile,
        read: impl FnOnce(&mut dyn Iterator<Item = io::Result<String>>) -> io::Result<T> + Send + 'static,
    ) -> Result<T, EngineError> {
        let _reader = timeout(LONGEST_WAIT, self.readers.acquire())
            .await
            .map_err(|_| unavailable(file, "too many files are being read"))?;
        let content = self.folder.get(file).await.map_err(|reason| unavailable(file, reason))?;
        let content = content.ok_or_else(|| unavailable(file, "the file is missing"))?;
        let sha256 = *sha256;
        let lines = run(move || {
            if sha256.is_some_and(|sha256| sha256 != ContentHash::of_bytes(&content)) {
                return Err(io::Error::other(
                    "the file isn't the one that was archived: its SHA-256 differs; restore it from a backup",
                ));
            }
            read(&mut BufReader::new(GzDecoder::new(&content[..])).lines())
        });
        lines.await.map_err(|error| unavailable(file, error))
    }
}

/// Runs compression on another thread, because it takes a whole core.
async fn run<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|panic| Err(panic.into()))
}

fn compress(messages: &[ArchivedMessage]) -> io::Result<Bytes> {
    let mut lines = GzEncoder::new(Vec::new(), Compression::default());
    for archived in messages {
        let line = serde_json::to_string(&Line::of(archived))?;
        // The store removes its copy.
        if read_line(&line).ok().as_ref() != Some(archived) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        lines.write_all(line.as_bytes())?;
        lines.write_all(b"\n")?;
    }
    lines.finish().map(Bytes::from)
}

fn read_line(line: &str) -> io::Result<ArchivedMessage> {
    let Record::Message(message) = read_record(line).map_err(io::Error::other)? else {
        return Err(io::Error::other("a line isn't a message"));
    };
    let Commitment { commitment } = serde_json::from_str(line)?;
    let commitment: Option<ContentHash> =
        commitment.map(|commitment| commitment.parse()).transpose().map_err(io::Error::other)?;
    Ok((message, commitment))
}
