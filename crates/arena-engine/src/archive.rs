//! The archive: a folder with the messages of ended sessions, which then leave the store. Readers don't see a
//! difference: what the store doesn't have is read from the archive.
//!
//! A session's file is `<first two digits of the id>/<id>.jsonl.gz`. Each line is a message as in an export, in the
//! order of the commits, with the inputs of the session, and with `commitment` if the message was hidden with one.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_model::{Channel, ChatMessage, ContentHash, Record, SessionId, Timestamp, read_record};
use arena_store::{ArchivedChannel, ArchivedMessage, CommitError, EndingNo, NewArchive, SessionNo};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::admin::Administrator;
use crate::completion::Completion;
use crate::engine::{Engine, Inner};
use crate::live::LiveRef;
use crate::records::{MOST_BYTES, list_stored};
use crate::request::EngineError;
use crate::users::unwritten;

/// The number of sessions in one read of the store.
const PAGE: usize = 100;

/// The maximum number of files that are read at the same time, because decompression takes a whole core.
const READERS: usize = 2;

/// The number of sessions that a pass has archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchivedCount {
    /// The number of archived sessions.
    pub sessions: u64,
    /// The number of their messages, with inputs.
    pub messages: u64,
    /// The number of sessions that stay in the store: they are too long, damaged, or have changed meanwhile.
    pub left_out: u64,
}

/// The archive of an engine.
pub(crate) struct Archive {
    folder: PathBuf,
    readers: Arc<Semaphore>,
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

/// The field of a line that a message of an export doesn't have.
#[derive(Deserialize)]
struct Commitment {
    commitment: Option<String>,
}

impl Engine {
    /// Sets the folder of the archive. Nodes that share a store need the same folder. Later calls have no effect.
    pub fn set_archive(&self, folder: PathBuf) {
        let archive =
            Archive { folder, readers: Arc::new(Semaphore::new(READERS)), archiving: tokio::sync::Mutex::new(()) };
        // The error contains the archive of a later call.
        let _ = self.inner.archive.set(archive);
    }

    /// Archives the sessions that ended before `before`. Games go on meanwhile. `by` is the administrator who asks for
    /// it, for the audit; `None` if the arena does it by itself.
    ///
    /// # Errors
    /// If the store can't be read or write, or a file can't be written. The sessions before stay archived.
    pub async fn archive_ended(
        &self,
        by: Option<Administrator>,
        before: Timestamp,
    ) -> Result<ArchivedCount, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move { inner.archive_ended(by, before).await }).await
    }

    /// Moves the messages of an archived session back into the store. Returns false if the session isn't archived.
    ///
    /// # Errors
    /// If there is no such session, its file can't be read, or the store can't write.
    pub async fn restore(&self, by: Administrator, id: SessionId) -> Result<bool, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
            let live = inner.live.find(id, &inner.store).await?.ok_or(EngineError::UnknownSession)?;
            inner.restore(Some(by), live.no, id).await
        })
        .await
    }

    /// Restores all archived sessions, and returns their number.
    ///
    /// # Errors
    /// If a file can't be read, or the store can't be read or write. The sessions before stay restored.
    pub async fn restore_all(&self, by: Administrator) -> Result<u64, EngineError> {
        let inner = Arc::clone(&self.inner);
        Completion::new(async move {
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
        let Some(archive) = self.archive.get() else { return Ok(ArchivedCount::default()) };
        let _archiving = archive.archiving.lock().await;
        let (mut after, mut count) = (EndingNo::default(), ArchivedCount::default());
        loop {
            let page = self.store.list_archivable(before, after, PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            for (_, id) in page {
                match self.archive_session(archive, id).await? {
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
    async fn archive_session(&self, archive: &Archive, id: SessionId) -> Result<Option<u64>, EngineError> {
        let Some(live) = self.live.find(id, &self.store).await? else { return Ok(None) };
        // Nobody hides a message of the session at this node until it is archived.
        let _deciding = live.deciding.lock().await;
        if self.store.session_bytes(live.no).await? > MOST_BYTES {
            return Ok(None);
        }
        let messages = match list_stored(&self.store, live.no, id).await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::warn!(session = %id, %error, "the session {id} isn't archived: {error}");
                return Ok(None);
            }
        };
        let of = |wanted: Channel| {
            let mut channel = ArchivedChannel::default();
            for (message, _) in messages.iter().filter(|(message, _)| message.channel == wanted) {
                channel = ArchivedChannel { len: channel.len + 1, last_at: message.at };
            }
            channel
        };
        let new = NewArchive {
            session: live.no,
            at: self.environment.now(),
            chat: of(Channel::Chat(id)),
            operator: of(Channel::Operator(id)),
            messages: messages.len() as u64,
            hidden: messages.iter().filter(|(message, _)| message.hidden.is_some()).count() as u64,
        };
        let draft = format!("{id}.{}.new", self.environment.uuid(new.at));
        if !archive.write(id, draft, messages).await? {
            tracing::warn!(session = %id, "the session {id} isn't archived: the archive can't hold one of its messages");
            return Ok(None);
        }
        match self.store.archive_session(new).await {
            Ok(()) => Ok(Some(new.messages)),
            Err(CommitError::Conflict | CommitError::Answered(_)) => Ok(None),
            Err(error) => Err(unwritten(error)),
        }
    }

    /// Moves the messages of an archived session back into the store. Returns false if the session isn't archived.
    async fn restore(&self, by: Option<Administrator>, no: SessionNo, id: SessionId) -> Result<bool, EngineError> {
        let Some(archive) = self.archive.get() else { return Ok(false) };
        if !self.store.is_archived(no).await? {
            return Ok(false);
        }
        let messages = archive.read_all(id).await?.ok_or_else(|| missing(id))?;
        let audit = by.map(|by| self.audit(by, "restore", json!({ "session": id, "messages": messages.len() })));
        let restored = self.store.restore_session(no, id, messages, audit).await.map_err(unwritten)?;
        archive.remove(id).await?;
        Ok(restored)
    }

    /// Makes sure that the archive has no copy of a session's messages before one of them is erased.
    pub(crate) async fn leave_archive(&self, live: &LiveRef) -> Result<(), EngineError> {
        let id = live.committed.read().session.facts.id;
        self.restore(None, live.no, id).await?;
        self.remove_archived(id).await
    }

    /// Removes the file of a session that isn't archived, if there is one.
    pub(crate) async fn remove_archived(&self, id: SessionId) -> Result<(), EngineError> {
        match self.archive.get() {
            Some(archive) => archive.remove(id).await,
            None => Ok(()),
        }
    }

    /// Returns all messages of a session that isn't whole in the store: those of the archive, then those of the store.
    pub(crate) async fn list_archived(
        &self,
        no: SessionNo,
        id: SessionId,
    ) -> Result<Vec<ArchivedMessage>, EngineError> {
        let mut messages = match self.archive.get() {
            Some(archive) if self.store.is_archived(no).await? => match archive.read_all(id).await? {
                Some(messages) => messages,
                None => self.restored(no, id).await.map(|()| Vec::new())?,
            },
            _ => Vec::new(),
        };
        messages.extend(list_stored(&self.store, no, id).await?);
        Ok(messages)
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
        let stored = || self.store.list_messages_within(no, channel, from, limit, most_bytes);
        let messages = stored().await?;
        let (Channel::Chat(id) | Channel::Operator(id) | Channel::Inputs(id)) = channel else { return Ok(messages) };
        let (Some(no), Some(archive)) = (no, self.archive.get()) else { return Ok(messages) };
        let is_whole = limit == 0 || messages.first().is_some_and(|first| first.index == from);
        if is_whole || !self.store.is_archived(no).await? {
            return Ok(messages);
        }
        match archive.read_channel(id, channel, from, limit, most_bytes).await? {
            Some(mut archived) => {
                let mut bytes: usize = archived.iter().map(|message| message.content.len()).sum();
                // The messages in the store follow those of the archive.
                for message in messages {
                    let is_next = archived.last().is_none_or(|last| last.index + 1 == message.index);
                    if !is_next || archived.len() >= limit || bytes >= most_bytes {
                        break;
                    }
                    bytes += message.content.len();
                    archived.push(message);
                }
                Ok(archived)
            }
            None => {
                self.restored(no, id).await?;
                Ok(stored().await?)
            }
        }
    }

    /// Checks that a session whose file is missing has been restored.
    async fn restored(&self, no: SessionNo, id: SessionId) -> Result<(), EngineError> {
        if self.store.is_archived(no).await? { Err(missing(id)) } else { Ok(()) }
    }
}

fn missing(id: SessionId) -> EngineError {
    EngineError::Archive { reason: format!("the file of session {id} is missing") }
}

impl Archive {
    fn path_of(&self, id: SessionId) -> (PathBuf, String) {
        let id = id.to_string();
        (self.folder.join(&id[..2]), format!("{id}.jsonl.gz"))
    }

    /// Runs file operations on another thread.
    async fn run<T: Send + 'static>(
        &self,
        id: SessionId,
        work: impl FnOnce(&Path, &str) -> io::Result<T> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (folder, name) = self.path_of(id);
        let path = folder.join(&name);
        let done = spawn_blocking(move || work(&folder, &name)).await.unwrap_or_else(|panic| Err(panic.into()));
        done.map_err(|error| EngineError::Archive { reason: format!("{}: {error}", path.display()) })
    }

    /// Writes the file of a session so that it survives a power failure, and replaces an existing one. Returns false if a
    /// file can't hold one of the messages.
    async fn write(&self, id: SessionId, draft: String, messages: Vec<ArchivedMessage>) -> Result<bool, EngineError> {
        let root = self.folder.clone();
        self.run(id, move |folder, name| {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let draft = folder.join(draft);
            let written = write_file(&draft, &messages).and_then(|()| fs::rename(&draft, folder.join(name)));
            if written.is_err() {
                // The first error is the one that matters.
                let _ = fs::remove_file(&draft);
            }
            match written {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(false),
                written => written?,
            }
            File::open(folder)?.sync_all()?;
            File::open(root)?.sync_all()?;
            Ok(true)
        })
        .await
    }

    /// Removes the file of a session, and drafts of it that a crash has left.
    async fn remove(&self, id: SessionId) -> Result<(), EngineError> {
        self.run(id, move |folder, _| {
            let entries = match fs::read_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            let id = id.to_string();
            for entry in entries {
                let entry = entry?;
                if is_of(&entry.file_name(), &id) {
                    fs::remove_file(entry.path())?;
                }
            }
            File::open(folder)?.sync_all()
        })
        .await
    }

    /// Returns all messages of a session's file, or `None` if there is no file.
    async fn read_all(&self, id: SessionId) -> Result<Option<Vec<ArchivedMessage>>, EngineError> {
        self.read(id, |lines| lines.map(|line| read_line(&line?)).collect()).await
    }

    /// Returns messages of a channel as [`Store::list_messages_within`] does, or `None` if there is no file.
    async fn read_channel(
        &self,
        id: SessionId,
        channel: Channel,
        from: u64,
        limit: usize,
        most_bytes: usize,
    ) -> Result<Option<Vec<ChatMessage>>, EngineError> {
        self.read(id, move |lines| {
            let (mut messages, mut bytes) = (Vec::new(), 0);
            for line in lines {
                let (message, _) = read_line(&line?)?;
                if message.channel != channel || message.index < from {
                    continue;
                }
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
        id: SessionId,
        read: impl FnOnce(&mut dyn Iterator<Item = io::Result<String>>) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, EngineError> {
        let _reader = self.readers.acquire().await;
        self.run(id, move |folder, name| {
            let file = match File::open(folder.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                file => file?,
            };
            let mut lines = BufReader::new(GzDecoder::new(BufReader::new(file))).lines();
            read(&mut lines).map(Some)
        })
        .await
    }
}

/// Returns true for the file of a session and for its drafts.
fn is_of(file: &OsStr, id: &str) -> bool {
    file.to_str().and_then(|name| name.strip_prefix(id)).is_some_and(|rest| rest.starts_with('.'))
}

fn write_file(path: &Path, messages: &[ArchivedMessage]) -> io::Result<()> {
    // Private messages are readable by the arena's user only, as in the store.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut lines = GzEncoder::new(BufWriter::new(file), Compression::default());
    for archived in messages {
        let line = serde_json::to_string(&Line::of(archived))?;
        // The store removes its copy.
        if read_line(&line).ok().as_ref() != Some(archived) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        io::Write::write_all(&mut lines, line.as_bytes())?;
        io::Write::write_all(&mut lines, b"\n")?;
    }
    lines.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
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
