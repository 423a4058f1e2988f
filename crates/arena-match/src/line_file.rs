//! Files of JSON lines that only grow: journals of tournaments and evaluations, and an evaluation's calls and transcripts.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The shortest time between two syncs of a file with [`SyncPolicy::EachSecond`].
const SECOND: Duration = Duration::from_secs(1);

/// A child process that is just starting inherits a lock, and may hold it for a moment after its owner has ended.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(1);

/// The error of a file of lines. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum LineFileError {
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        what: String,
    },
    #[error("{} was removed during the run", .0.display())]
    Removed(PathBuf),
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The time at which appended lines reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before the append returns.
    Always,
    /// At most once a second. A killed process loses nothing; a power cut loses the last second.
    EachSecond,
}

/// A file of lines that only grows.
#[derive(Debug)]
pub struct LineFile {
    path: PathBuf,
    file: File,
    /// The total length of the complete lines, in bytes.
    length: u64,
    sync: SyncPolicy,
    last_sync: Instant,
    is_dirty: bool,
    /// True if a partial line could not be removed after a failed write.
    is_torn: bool,
}

impl LineFile {
    /// Opens a file for appending, and creates it if it doesn't exist. Cuts off everything after `length` bytes.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn open(path: &Path, length: u64, sync: SyncPolicy) -> Result<LineFile, LineFileError> {
        let cannot = |source| LineFileError::Write { path: path.to_owned(), source };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.len() > length {
            file.set_len(length).and_then(|()| file.sync_all()).map_err(cannot)?;
        }
        Ok(LineFile {
            path: path.to_owned(),
            file,
            length,
            sync,
            last_sync: Instant::now(),
            is_dirty: false,
            is_torn: false,
        })
    }

    /// Returns a second handle of the file, for reading.
    ///
    /// # Errors
    /// If the process has too many open files.
    pub fn reader(&self) -> Result<File, LineFileError> {
        self.file.try_clone().map_err(|source| LineFileError::Read { path: self.path.clone(), source })
    }

    /// Appends complete lines, and returns the offset of the first one in bytes. After an error, the file is unchanged.
    ///
    /// # Errors
    /// If the file was removed, or can't be written.
    pub fn append(&mut self, lines: &[u8]) -> Result<u64, LineFileError> {
        let path = self.path.clone();
        let cannot = |source| LineFileError::Write { path: path.clone(), source };
        // A write to a deleted file succeeds, but is lost.
        if self.file.metadata().map_err(cannot)?.nlink() == 0 {
            return Err(LineFileError::Removed(self.path.clone()));
        }
        if self.is_torn {
            self.file.set_len(self.length).map_err(cannot)?;
            self.is_torn = false;
        }
        let is_due = self.sync == SyncPolicy::Always || self.last_sync.elapsed() >= SECOND;
        let written = self.file.write_all(lines).and_then(|()| if is_due { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // Removes the incomplete line. If that fails too, the next append or the next run removes it.
            self.is_torn = self.file.set_len(self.length).is_err();
            return Err(cannot(error));
        }
        let place = self.length;
        self.length += lines.len() as u64;
        self.is_dirty = !is_due;
        if is_due {
            self.last_sync = Instant::now();
        }
        Ok(place)
    }

    /// Waits until all lines are on the disk.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&mut self) -> Result<(), LineFileError> {
        if self.is_dirty {
            self.file.sync_data().map_err(|source| LineFileError::Write { path: self.path.clone(), source })?;
            self.is_dirty = false;
            self.last_sync = Instant::now();
        }
        Ok(())
    }

    /// Appends a value as a line. See [`LineFile::append`].
    ///
    /// # Errors
    /// As [`LineFile::append`].
    pub fn append_value(&mut self, value: &impl Serialize) -> Result<u64, LineFileError> {
        let line = to_line(value, &self.path)?;
        self.append(&line)
    }
}

impl Drop for LineFile {
    fn drop(&mut self) {
        if self.is_dirty {
            // The lines are complete in any case. This only protects them from a power cut.
            let _ = self.file.sync_data();
        }
    }
}

/// Returns a value as a line with its end. `path` is the file of an error.
///
/// # Errors
/// If the value can't be written as JSON.
pub fn to_line(value: &impl Serialize, path: &Path) -> Result<Vec<u8>, LineFileError> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| LineFileError::Write { path: path.to_owned(), source: io::Error::from(error) })?;
    line.push(b'\n');
    Ok(line)
}

/// Calls `each` with the offset and the text of each complete line. Returns the total length of the complete lines in
/// bytes, which is 0 if there is no file.
///
/// # Errors
/// If the file can't be read, or `each` refuses a line.
pub fn scan(path: &Path, mut each: impl FnMut(u64, &[u8]) -> Result<(), String>) -> Result<u64, LineFileError> {
    let cannot = |source| LineFileError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(cannot(error)),
    };
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let (mut place, mut number, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(cannot)?;
        let Some((b'\n', text)) = line.split_last() else { return Ok(place) };
        number += 1;
        each(place, text).map_err(|what| LineFileError::Line { path: path.to_owned(), line: number, what })?;
        place += length as u64;
    }
}

/// Locks a file or folder until it is closed or the process ends. Returns false if another process has locked it.
///
/// # Errors
/// If the file system can't lock it.
pub fn lock(file: &File) -> io::Result<bool> {
    let until = Instant::now() + WAIT_FOR_LOCK;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn lines(path: &Path) -> (Vec<(u64, String)>, u64) {
        let mut lines = Vec::new();
        let length = scan(path, |place, line| {
            lines.push((place, String::from_utf8_lossy(line).into_owned()));
            Ok(())
        });
        (lines, length.unwrap())
    }

    #[test]
    fn an_incomplete_last_line_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        assert_eq!(lines(&path), (Vec::new(), 0));
        for (text, length) in [("", 0), ("{\"a\"", 0), ("one\ntwo\n", 8), ("one\ntwo\nthr", 8), ("\n", 1)] {
            fs::write(&path, text).unwrap();
            assert_eq!(lines(&path).1, length, "{text:?}");
            let mut file = LineFile::open(&path, length, SyncPolicy::EachSecond).unwrap();
            assert_eq!(file.append(b"next\n").unwrap(), length, "{text:?}");
            let expected = format!("{}next\n", &text[..length as usize]);
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{text:?}");
        }
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(lines(&path).0, [(0, "one".to_owned()), (4, "two".to_owned())]);
    }

    #[test]
    fn a_removed_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut file = LineFile::open(&path, 0, SyncPolicy::Always).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(file.append(b"{}\n"), Err(LineFileError::Removed(_))));
    }

    #[test]
    fn a_sync_leaves_nothing_to_write() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = LineFile::open(&folder.path().join("lines"), 0, SyncPolicy::EachSecond).unwrap();
        file.last_sync = Instant::now();
        file.append(b"{}\n").unwrap();
        assert!(file.is_dirty);
        file.sync().unwrap();
        assert!(!file.is_dirty);
    }

    #[test]
    fn a_failed_write_leaves_whole_lines() {
        // The device accepts no bytes.
        let full = Path::new("/dev/full");
        let mut file = LineFile::open(full, 0, SyncPolicy::EachSecond).unwrap();
        for _ in 0..2 {
            assert!(matches!(file.append(b"{}\n"), Err(LineFileError::Write { .. })));
            assert_eq!(file.length, 0);
        }
    }

    #[test]
    fn a_folder_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::open(folder.path()).unwrap();
        let first = open();
        assert!(lock(&first).unwrap());
        assert!(!lock(&open()).unwrap());
        drop(first);
        assert!(lock(&open()).unwrap());
    }
}
