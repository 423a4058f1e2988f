//! Files of JSON lines that only grow, and the journal of a run.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::folder::FolderError;
use crate::record::{ChangeRecord, GameRecord, JournalLine, VERSION, VoidRecord};
use crate::run_file::RunFile;

pub(crate) const JOURNAL: &str = "journal.jsonl";

/// The shortest time between two syncs of a file with [`SyncPolicy::EachSecond`].
const SECOND: Duration = Duration::from_secs(1);

/// A child process that is just starting inherits the lock, and may hold it for a moment after the run has ended.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(1);

/// Returns the time in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the records of a run have the time of day; no rule depends on it")]
pub fn now() -> i64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

/// The time at which appended lines reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncPolicy {
    /// Before the append returns.
    Always,
    /// At most once a second. A killed process loses nothing; a power cut loses the last second.
    EachSecond,
}

/// A file of lines that only grows.
#[derive(Debug)]
pub(crate) struct LineFile {
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
    pub(crate) fn open(path: &Path, length: u64, sync: SyncPolicy) -> Result<LineFile, FolderError> {
        let cannot = |source| FolderError::Write { path: path.to_owned(), source };
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
    pub(crate) fn reader(&self) -> Result<File, FolderError> {
        self.file.try_clone().map_err(|source| FolderError::Read { path: self.path.clone(), source })
    }

    /// Appends complete lines, and returns the place of the first one. After an error, the file is unchanged.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<u64, FolderError> {
        let path = self.path.clone();
        let cannot = |source| FolderError::Write { path: path.clone(), source };
        // A write to a deleted file succeeds, but is lost.
        if self.file.metadata().map_err(cannot)?.nlink() == 0 {
            return Err(FolderError::Removed(self.path.clone()));
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
    pub(crate) fn sync(&mut self) -> Result<(), FolderError> {
        if self.is_dirty {
            self.file.sync_data().map_err(|source| FolderError::Write { path: self.path.clone(), source })?;
            self.is_dirty = false;
            self.last_sync = Instant::now();
        }
        Ok(())
    }

    pub(crate) fn append_value(&mut self, value: &impl Serialize) -> Result<u64, FolderError> {
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

pub(crate) fn to_line(value: &impl Serialize, path: &Path) -> Result<Vec<u8>, FolderError> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| FolderError::Write { path: path.to_owned(), source: io::Error::from(error) })?;
    line.push(b'\n');
    Ok(line)
}

/// Calls `each` with the place and the text of each complete line. Returns the total length of the complete lines,
/// which is 0 if there is no file.
pub(crate) fn scan(path: &Path, mut each: impl FnMut(u64, &[u8]) -> Result<(), String>) -> Result<u64, FolderError> {
    let cannot = |source| FolderError::Read { path: path.to_owned(), source };
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
        each(place, text).map_err(|what| FolderError::Line { path: path.to_owned(), line: number, what })?;
        place += length as u64;
    }
}

/// Writes a file through a draft, so that it is never incomplete.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), FolderError> {
    let cannot = |source| FolderError::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(cannot)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = path.with_file_name(name);
    let mut file = File::create(&draft).map_err(cannot)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&draft, path)) {
        let _ = fs::remove_file(&draft);
        return Err(cannot(error));
    }
    Ok(())
}

/// Locks a folder for this process. The lock is held until the file is dropped or the process ends.
pub(crate) fn lock(folder: &Path) -> Result<File, FolderError> {
    let cannot = |source| FolderError::Read { path: folder.to_owned(), source };
    let lock = File::open(folder).map_err(cannot)?;
    let until = Instant::now() + WAIT_FOR_LOCK;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Err(FolderError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct JournalContent {
    /// The run file as accepted last.
    pub(crate) file: RunFile,
    /// The last known identities by kind and name. Names stay after they have left the run file.
    pub(crate) identities: BTreeMap<String, String>,
    pub(crate) games: BTreeMap<String, GameRecord>,
    pub(crate) voids: Vec<VoidRecord>,
    pub(crate) changes: Vec<ChangeRecord>,
    /// The times of the start and of each continuation, in milliseconds since 1970.
    pub(crate) started: Vec<i64>,
    /// The total length of the complete lines, in bytes.
    pub(crate) length: u64,
}

/// The beginning of a journal, which all versions have in common.
#[derive(Deserialize)]
struct First {
    #[serde(rename = "type")]
    kind: String,
    arena_eval: u32,
}

/// Reads the journal in a folder. Ignores an incomplete last line.
pub(crate) fn read(dir: &Path) -> Result<JournalContent, FolderError> {
    let path = dir.join(JOURNAL);
    let mut content: Option<JournalContent> = None;
    let (mut newer, mut is_journal) = (None, true);
    let length = scan(&path, |_, line| {
        let Some(content) = &mut content else {
            if newer.is_some() || !is_journal {
                return Ok(());
            }
            match serde_json::from_slice::<First>(line) {
                Ok(First { kind, arena_eval }) if kind == "start" && arena_eval <= VERSION => {}
                Ok(First { kind, arena_eval }) if kind == "start" => {
                    newer = Some(arena_eval);
                    return Ok(());
                }
                Ok(_) | Err(_) => {
                    is_journal = false;
                    return Ok(());
                }
            }
            if let JournalLine::Start { time, file, identities, .. } = parse(line)? {
                content = Some(JournalContent {
                    file: *file,
                    identities: identities.into_iter().collect(),
                    games: BTreeMap::new(),
                    voids: Vec::new(),
                    changes: Vec::new(),
                    started: vec![time],
                    length: 0,
                });
            }
            return Ok(());
        };
        match parse(line)? {
            JournalLine::Start { .. } => return Err("a journal has only one start".to_owned()),
            JournalLine::Resume { time, file, identities } => {
                content.started.push(time);
                content.identities.extend(identities);
                if let Some(file) = file {
                    content.file = *file;
                }
            }
            JournalLine::Change(change) => content.changes.push(change),
            JournalLine::Game(game) => {
                content.games.insert(game.game.clone(), *game);
            }
            JournalLine::Void(void) => content.voids.push(void),
        }
        Ok(())
    })?;
    if let Some(version) = newer {
        return Err(FolderError::Newer { dir: dir.to_owned(), version });
    }
    match content {
        Some(content) => Ok(JournalContent { length, ..content }),
        None if is_journal => Err(FolderError::Absent(dir.to_owned())),
        None => Err(FolderError::OtherFiles(dir.to_owned())),
    }
}

fn parse(line: &[u8]) -> Result<JournalLine, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
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
        assert!(matches!(file.append(b"{}\n"), Err(FolderError::Removed(_))));
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
            assert!(matches!(file.append(b"{}\n"), Err(FolderError::Write { .. })));
            assert_eq!(file.length, 0);
        }
    }

    #[test]
    fn a_file_is_written_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("run.toml");
        for text in ["one", "two"] {
            write_whole(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1, "the draft is gone");
        }
    }

    #[test]
    fn a_folder_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock(folder.path()).unwrap();
        assert!(matches!(lock(folder.path()), Err(FolderError::Locked(_))));
        drop(first);
        lock(folder.path()).unwrap();
    }
}
