//! The replays that are served: where they are, and the indexes of those that were looked at.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use arena_match::{HeaderLine, Replay, ReplayError, ResultLine, ResultPart, Summary};
use tempfile::TempDir;

use crate::exit::{Exit, Failure};
use crate::last_line::last_line;
use crate::replay::{bad, open_file};

/// Folders are looked into so deep.
const DEPTH: usize = 8;

/// Replays on one page of the list.
pub const PAGE: usize = 100;

/// Every replay of arena's begins with this.
const BEGINNING: &[u8] = b"{\"arena_replay\":";

/// A replay, or those of a folder. They are known by their numbers, which never change: new ones are added behind.
pub struct Library {
    /// Whether it is one replay rather than a folder.
    pub single: bool,
    root: PathBuf,
    shelves: RwLock<Vec<Arc<Shelf>>>,
    /// Indexes are files, so that they are served as replays are.
    indexes: TempDir,
}

struct Shelf {
    path: PathBuf,
    /// Held while it is indexed, so that it is done once.
    indexed: Mutex<Option<(Stamp, Indexed)>>,
}

/// By what it is seen that a file has changed.
type Stamp = (u64, Option<SystemTime>);

/// A replay whose index is there.
#[derive(Clone)]
pub struct Indexed {
    pub summary: Arc<Summary>,
    pub index: PathBuf,
}

/// A page of the list.
pub struct Page {
    pub root: String,
    /// How many replays there are.
    pub all: usize,
    /// The number of the first of these.
    pub from: usize,
    pub entries: Vec<Entry>,
}

/// A line of the list.
pub struct Entry {
    pub number: usize,
    pub name: String,
    /// What stands at both ends, or why they can't be read.
    pub ends: Result<(HeaderLine, Option<ResultPart>), String>,
}

impl Library {
    /// The replays at `path`: that file, or whatever replays are in that folder and below it.
    pub fn open(path: &Path) -> Result<Library, Failure> {
        let cannot =
            |error: io::Error| Failure::new(Exit::BadReplay, format_args!("{} can't be read: {error}", path.display()));
        let single = !fs::metadata(path).map_err(cannot)?.is_dir();
        let indexes = tempfile::Builder::new().prefix("arena-replays-").tempdir().map_err(|error| {
            Failure::new(Exit::CannotWrite, format_args!("a temporary folder can't be made: {error}"))
        })?;
        // Absolute, since what serves files may be moved to another folder, and messages shall lead to them.
        let root = path.canonicalize().map_err(cannot)?;
        let library = Library { single, root, shelves: RwLock::default(), indexes };
        if single {
            library.add(vec![library.root.clone()]);
        } else {
            library.look_again().map_err(cannot)?;
            if library.shelves.read().unwrap_or_else(PoisonError::into_inner).is_empty() {
                let sentence = format!("{} has no replays; matches write them with --replay", path.display());
                return Err(Failure::new(Exit::BadReplay, sentence));
            }
        }
        Ok(library)
    }

    /// The path of a replay.
    pub fn path(&self, number: usize) -> Result<PathBuf, Failure> {
        self.shelf(number).map(|shelf| shelf.path.clone())
    }

    /// A replay with its index, which is made the first time, and again when the file has changed.
    pub fn indexed(&self, number: usize) -> Result<Indexed, Failure> {
        let shelf = self.shelf(number)?;
        let path = &shelf.path;
        let mut indexed = shelf.indexed.lock().unwrap_or_else(PoisonError::into_inner);
        let from = open_file(path)?;
        let data = from.get_ref().metadata();
        let data = data.map_err(|error| bad(path, &ReplayError::Read(error)))?;
        let stamp = (data.len(), data.modified().ok());
        if let Some((_, known)) = indexed.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(known.clone());
        }
        let index = self.indexes.path().join(format!("{number}.index"));
        let cannot =
            |error: io::Error| Failure::new(Exit::CannotWrite, format_args!("an index can't be written: {error}"));
        let mut entries = BufWriter::new(File::create(&index).map_err(cannot)?);
        let summary = arena_match::index(from, &mut entries).map_err(|error| bad(path, &error))?;
        let known = Indexed { summary: Arc::new(summary), index };
        *indexed = Some((stamp, known.clone()));
        Ok(known)
    }

    /// A page of the list, beginning with the replay of number `from`. Replays that have come in the meantime are there.
    pub fn list(&self, from: usize) -> Result<Page, Failure> {
        self.look_again().map_err(|error| {
            Failure::new(Exit::BadReplay, format_args!("{} can't be read: {error}", self.root.display()))
        })?;
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner).clone();
        let entry = |(number, shelf): (usize, &Arc<Shelf>)| Entry {
            number,
            name: shelf.path.strip_prefix(&self.root).unwrap_or(&shelf.path).display().to_string(),
            ends: ends(&shelf.path),
        };
        let entries = shelves.iter().enumerate().skip(from).take(PAGE).map(entry).collect();
        Ok(Page { root: self.root.display().to_string(), all: shelves.len(), from, entries })
    }

    fn shelf(&self, number: usize) -> Result<Arc<Shelf>, Failure> {
        let shelves = self.shelves.read().unwrap_or_else(PoisonError::into_inner);
        let none = || Failure::new(Exit::Usage, format_args!("there is no replay {number}"));
        shelves.get(number).cloned().ok_or_else(none)
    }

    fn look_again(&self) -> io::Result<()> {
        let mut found = Vec::new();
        find(&self.root, DEPTH, &mut found)?;
        self.add(found);
        Ok(())
    }

    fn add(&self, paths: Vec<PathBuf>) {
        let mut shelves = self.shelves.write().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<PathBuf> = shelves.iter().map(|shelf| shelf.path.clone()).collect();
        let new = paths.into_iter().filter(|path| !known.contains(path));
        shelves.extend(new.map(|path| Arc::new(Shelf { path, indexed: Mutex::default() })));
    }
}

/// Adds the replays of a folder and of those in it, in the order in which matches are numbered. Links aren't followed: they may lead
/// back here, or to files that nobody meant to show.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let number = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    entries.sort_by_cached_key(|entry| (number(&entry.path()), entry.path()));
    for entry in entries {
        // Hidden files are drafts, and the affairs of other programs.
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            // A folder within that can't be read has nothing to show.
            let _ = find(&entry.path(), depth - 1, found);
        } else if kind.is_file() && is_replay(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_replay(path: &Path) -> bool {
    let mut start = [0; BEGINNING.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == BEGINNING
}

/// Header and result, and nothing of the match between them.
fn ends(path: &Path) -> Result<(HeaderLine, Option<ResultPart>), String> {
    let told = |failure: Failure| failure.sentence().to_owned();
    let from = open_file(path).map_err(told)?;
    let header = Replay::open(from).map_err(|error| told(bad(path, &error)))?.header;
    let line = File::open(path).and_then(|mut file| last_line(&mut file)).map_err(|error| error.to_string())?;
    let result = serde_json::from_slice::<ResultLine>(&line).ok().map(|line| line.result);
    Ok((header, result))
}
