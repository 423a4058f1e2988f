//! A file of the archive: the messages of a session as compressed lines.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::time::Duration;

use arena_model::{Channel, ChatMessage, ContentHash, Record, Timestamp, read_record};
use arena_store::{ArchivedFile, ArchivedMessage};
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::folder::ArchiveFolder;
use crate::request::EngineError;

/// The maximum number of files that are read at the same time, because decompression takes a whole core.
const READERS: usize = 2;

/// The longest wait for the end of another read.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

pub(crate) struct Archive {
    pub(super) folder: ArchiveFolder,
    readers: Semaphore,
    /// A lock that a pass holds, so that a node runs one at a time.
    pub(super) archiving: tokio::sync::Mutex<()>,
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

pub(super) fn unavailable(file: &str, reason: impl Display) -> EngineError {
    EngineError::Archive { reason: format!("{file}: {reason}") }
}

impl Archive {
    pub(super) fn new(folder: ArchiveFolder) -> Archive {
        Archive { folder, readers: Semaphore::new(READERS), archiving: tokio::sync::Mutex::new(()) }
    }

    /// Survives a power failure. Returns the hash, or `None` if the file can't hold one of the messages.
    pub(super) async fn write(
        &self,
        file: &str,
        messages: Vec<ArchivedMessage>,
    ) -> Result<Option<ContentHash>, EngineError> {
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

    pub(super) async fn read_all(&self, file: &ArchivedFile) -> Result<Vec<ArchivedMessage>, EngineError> {
        self.read(file, |lines| lines.map(|line| read_line(&line?)).collect()).await
    }

    /// Returns messages of a channel as [`Store::list_messages_within`] does.
    pub(super) async fn read_channel(
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
