//! The served replays: the paths of all of them, and the indexes of the replays that a browser has opened.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use arena_match::{HeaderLine, Replay, ReplayError, ResultLine, ResultPart, Summary};
use tempfile::TempDir;

use crate::exit::{Exit, Failure};
use crate::files::{numbered_files, temporary_folder};
use crate::replay::{explain, last_line, open_file, unreadable};

const DEPTH: usize = 8;

/// Number of replays on a page of the list.
pub const PAGE: usize = 100;

/// The first bytes of every replay.
const BEGINNING: &[u8] = b"{\"arena_replay\":";

/// A single replay, or the replays in a folder. The number of a replay never changes: new replays are appended.
pub struct Library {
    pub single: bool,
    root: PathBuf,
    replay_files: RwLock<Vec<Arc<ReplayFile>>>,
    /// The folder of the index files, which are served like replays.
    indexes: TempDir,
}

struct ReplayFile {
    path: PathBuf,
    /// The replay's index. The lock is held during indexing, so that concurrent requests index the replay once.
    indexed: Mutex<Option<(Stamp, Indexed)>>,
}

/// The size and the modification time of a file, by which changes are detected.
type Stamp = (u64, Option<SystemTime>);

#[derive(Clone)]
pub struct Indexed {
    pub summary: Arc<Summary>,
    pub index: PathBuf,
}

pub struct ReplayPage {
    pub root: String,
    pub all: usize,
    /// The number of the first replay on the page.
    pub from: usize,
    pub entries: Vec<ReplayEntry>,
}

pub struct ReplayEntry {
    pub number: usize,
    pub name: String,
    /// The replay's header and result, or the reason why they can't be read.
    pub ends: Result<(HeaderLine, Option<ResultPart>), String>,
}

impl Library {
    /// Opens the replay at `path`, or the replays in that folder and its subfolders.
    pub fn open(path: &Path) -> Result<Library, Failure> {
        let cannot = |error: io::Error| unreadable(path, error);
        let single = !fs::metadata(path).map_err(cannot)?.is_dir();
        let indexes = temporary_folder("arena-replays-", Exit::CannotWrite)?;
        // The path is made absolute, so that messages contain the full path.
        let root = path.canonicalize().map_err(cannot)?;
        let library = Library { single, root, replay_files: RwLock::default(), indexes };
        if single {
            library.add(vec![library.root.clone()]);
        } else {
            library.rescan().map_err(cannot)?;
            if library.replay_files.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
                let sentence =
                    format!("{} contains no replays; write them with `arena match run --replay`", path.display());
                return Err(Failure::new(Exit::BadReplay, sentence));
            }
        }
        Ok(library)
    }

    pub fn path(&self, number: usize) -> Result<PathBuf, Failure> {
        self.replay_file(number).map(|replay_file| replay_file.path.clone())
    }

    /// The index is created at the first request, and again after the file has changed.
    pub fn indexed(&self, number: usize) -> Result<Indexed, Failure> {
        let replay_file = self.replay_file(number)?;
        let path = &replay_file.path;
        let mut indexed = replay_file.indexed.lock().unwrap_or_else(PoisonError::into_inner);
        let from = open_file(path)?;
        let data = from.get_ref().metadata();
        let data = data.map_err(|error| explain(path, &ReplayError::Read(error)))?;
        let stamp = (data.len(), data.modified().ok());
        if let Some((_, known)) = indexed.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(known.clone());
        }
        let index = self.indexes.path().join(format!("{number}.index"));
        let cannot = |error: io::Error| Failure::new(Exit::CannotWrite, format_args!("cannot write an index: {error}"));
        let mut entries = BufWriter::new(File::create(&index).map_err(cannot)?);
        let summary = arena_match::index(from, &mut entries).map_err(|error| explain(path, &error))?;
        let known = Indexed { summary: Arc::new(summary), index };
        *indexed = Some((stamp, known.clone()));
        Ok(known)
    }

    /// Searches for new replays, and returns the page of the list that begins with replay number `from`.
    pub fn list(&self, from: usize) -> Result<ReplayPage, Failure> {
        self.rescan().map_err(|error| unreadable(&self.root, error))?;
        let replay_files = self.replay_files.read().unwrap_or_else(PoisonError::into_inner).clone();
        let entry = |(number, replay_file): (usize, &Arc<ReplayFile>)| ReplayEntry {
            number,
            name: replay_file.path.strip_prefix(&self.root).unwrap_or(&replay_file.path).display().to_string(),
            ends: ends(&replay_file.path),
        };
        let entries = replay_files.iter().enumerate().skip(from).take(PAGE).map(entry).collect();
        Ok(ReplayPage { root: self.root.display().to_string(), all: replay_files.len(), from, entries })
    }

    fn replay_file(&self, number: usize) -> Result<Arc<ReplayFile>, Failure> {
        let replay_files = self.replay_files.read().unwrap_or_else(PoisonError::into_inner);
        let none = || Failure::usage(format_args!("there is no replay {number}"));
        replay_files.get(number).cloned().ok_or_else(none)
    }

    fn rescan(&self) -> io::Result<()> {
        let mut found = Vec::new();
        find(&self.root, DEPTH, &mut found)?;
        self.add(found);
        Ok(())
    }

    fn add(&self, paths: Vec<PathBuf>) {
        let mut replay_files = self.replay_files.write().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<PathBuf> = replay_files.iter().map(|replay_file| replay_file.path.clone()).collect();
        let new = paths.into_iter().filter(|path| !known.contains(path));
        replay_files.extend(new.map(|path| Arc::new(ReplayFile { path, indexed: Mutex::default() })));
    }
}

/// Adds the replays of a folder and its subfolders, in the order of the matches' numbers. Links aren't followed, since
/// a link may lead back to this folder, or to files that the user doesn't want to show.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for (path, kind) in numbered_files(folder)? {
        if kind.is_dir() && depth > 0 {
            // Unreadable subfolders are skipped.
            let _ = find(&path, depth - 1, found);
        } else if kind.is_file() && is_replay(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn is_replay(path: &Path) -> bool {
    let mut start = [0; BEGINNING.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == BEGINNING
}

/// Reads the header and the result of a replay, without the lines between them.
fn ends(path: &Path) -> Result<(HeaderLine, Option<ResultPart>), String> {
    let sentence_of = |failure: Failure| failure.sentence().to_owned();
    let from = open_file(path).map_err(sentence_of)?;
    let header = Replay::open(from).map_err(|error| sentence_of(explain(path, &error)))?.header;
    let line = File::open(path).and_then(|mut file| last_line(&mut file)).map_err(|error| error.to_string())?;
    let result = serde_json::from_slice::<ResultLine>(&line).ok().map(|line| line.result);
    Ok((header, result))
}
