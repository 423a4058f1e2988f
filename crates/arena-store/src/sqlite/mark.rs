//! The mark: a small file beside the store with the length of the write-ahead log. SQLite's log ends before its first
//! damaged page, and SQLite reports no error. The mark shows that commits followed. It is empty while the log is.
//!
//! The mark is at most a second older than the last commit. It isn't flushed to the disk: it guards against damage, and
//! an older mark only shows less.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arena_model::hex;
use rusqlite::Connection;

const FILE: &str = "arena.mark";

/// The name of the file that reports a loss, until the administrator removes it.
const LOST: &str = "arena.lost";

/// The minimum time between two writes of the mark.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// The length of a log's header (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>).
const HEADER: usize = 32;

pub(super) struct Mark {
    file: File,
    log: PathBuf,
    /// The inode number of the database file, which a restored backup doesn't have.
    inode: u64,
    written_at: Option<Instant>,
    /// The number of pages in the log that the mark doesn't have yet.
    pages: Option<u32>,
}

impl Mark {
    /// Opens the mark of a store.
    ///
    /// # Errors
    /// If the file can't be written.
    pub(super) fn open(store: &Path) -> io::Result<Mark> {
        let file =
            File::options().create(true).truncate(false).write(true).mode(0o600).open(store.with_file_name(FILE))?;
        let inode = fs::metadata(store)?.ino();
        Ok(Mark { file, log: log_of(store), inode, written_at: None, pages: None })
    }

    /// Notes the number of pages in the log after a commit, and writes it if it is time.
    pub(super) fn note(&mut self, pages: u32) {
        self.pages = Some(pages);
        if self.written_at.is_none_or(|written_at| written_at.elapsed() >= EVERY) {
            self.write();
        }
    }

    /// True if the last commits aren't in the mark yet.
    pub(super) fn is_due(&self) -> bool {
        self.pages.is_some()
    }

    /// Writes the mark. A failure is logged: without the mark, nothing but the report of a loss is missing.
    pub(super) fn write(&mut self) {
        let Some(pages) = self.pages.take() else { return };
        self.written_at = Some(Instant::now());
        let written = read_header(&self.log).and_then(|header| match header {
            Some(header) => {
                let text = format!("{} {:020} {pages:010}\n", salts(&header), self.inode);
                self.file.write_all_at(text.as_bytes(), 0)
            }
            None => Ok(()),
        });
        if let Err(error) = written {
            tracing::warn!(%error, "cannot write the mark of the write-ahead log: {error}");
        }
    }

    /// Empties the mark after a checkpoint that has emptied the log.
    pub(super) fn reset(&mut self) {
        self.pages = None;
        if let Err(error) = self.file.set_len(0) {
            tracing::warn!(%error, "cannot empty the mark of the write-ahead log: {error}");
        }
    }
}

/// Compares the log that SQLite has opened with the mark. If the log ends earlier, reports the loss in the log file and in
/// `arena.lost`.
///
/// # Errors
/// If the log can't be read, or the report can't be written.
pub(super) fn check(store: &Path, connection: &Connection) -> io::Result<()> {
    let file = store.with_file_name(FILE);
    let mark = fs::read_to_string(&file).unwrap_or_default();
    let mut words = mark.split_whitespace();
    let (Some(marked), Some(Ok(expected))) = (words.next(), words.next_back().map(str::parse::<i64>)) else {
        return Ok(());
    };
    let found = match read_header(&log_of(store))? {
        Some(header) if !has_valid_checksum(&header) => 0,
        // The log has begun anew after the mark.
        Some(header) if salts(&header) != marked => return Ok(()),
        Some(_) => connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(1))
            .map_err(io::Error::other)?,
        None => {
            let (data, mark) = (fs::metadata(store)?, fs::metadata(&file)?);
            let is_same = words.next().is_some_and(|inode| inode.parse() == Ok(data.ino()));
            // The store is a restored backup, or another program has copied the log to the database.
            if !is_same || data.modified()? > mark.modified()? {
                return Ok(());
            }
            0
        }
    };
    if found >= expected {
        return Ok(());
    }
    let text = format!(
        "The store's write-ahead log is damaged or missing. It has {found} valid pages, and acknowledged commits had \
         {expected}. The later commits are lost. Look for the cause, such as a failing disk, and compare with a backup. \
         The arena serves what is left, but isn't ready (/ready) until this file is removed."
    );
    tracing::error!("{text} ({})", lost_file(store).display());
    fs::write(lost_file(store), text + "\n")?;
    fs::write(file, "")
}

pub(super) fn lost_file(store: &Path) -> PathBuf {
    store.with_file_name(LOST)
}

fn log_of(store: &Path) -> PathBuf {
    store.with_extension("sqlite3-wal")
}

/// Reads the header of a log; `None` if there is no log, or an empty one.
fn read_header(log: &Path) -> io::Result<Option<[u8; HEADER]>> {
    let mut header = [0; HEADER];
    match File::open(log).and_then(|log| log.read_exact_at(&mut header, 0)) {
        Ok(()) => Ok(Some(header)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the numbers that distinguish a log from the one before in the same file.
fn salts(header: &[u8; HEADER]) -> String {
    hex::encode(&header[16..24])
}

/// True if the checksum of a header is right. The first four bytes have the order of the bytes in checksums.
fn has_valid_checksum(header: &[u8; HEADER]) -> bool {
    let number = |bytes: &[u8], is_big: bool| {
        let bytes = bytes.try_into().expect("four bytes");
        if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    let is_big = header[3] & 1 == 1;
    let (mut first, mut second) = (0_u32, 0_u32);
    for pair in header[..24].chunks(8) {
        first = first.wrapping_add(number(&pair[..4], is_big)).wrapping_add(second);
        second = second.wrapping_add(number(&pair[4..], is_big)).wrapping_add(first);
    }
    (first, second) == (number(&header[24..28], true), number(&header[28..], true))
}
