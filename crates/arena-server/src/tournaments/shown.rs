//! Replays as pages show them: of the file that was kept, or of a copy of it that says nothing of this machine where that differs, with an
//! index beside it, so that the viewer asks for those bytes that it shows. Both are made when somebody looks, and kept for a few.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_match::{HeaderLine, Replay, Summary, index};
use hashlink::LruCache;
use parking_lot::Mutex;

use super::{Refusal, TournamentId, Tournaments};

/// Replays that are ready to be shown. Each has an index of eight bytes for an epoch, and some a copy.
const READY: usize = 32;

/// What is ready, in a folder of its own that is emptied at each start.
pub(super) struct Shelf {
    folder: PathBuf,
    /// Held while a replay is made ready, so that it happens once.
    ready: Mutex<LruCache<(TournamentId, usize), Arc<ShownReplay>>>,
}

/// A replay that is ready to be shown.
pub(crate) struct ShownReplay {
    /// The line of the game and its agents.
    pub(crate) header: HeaderLine,
    /// What the viewer wants to know before it reads anything.
    pub(crate) summary: Summary,
    /// The replay as it may be told.
    pub(crate) replay: PathBuf,
    /// Its index.
    pub(crate) index: PathBuf,
    /// What goes when nobody looks any more.
    files: Vec<PathBuf>,
}

impl Drop for ShownReplay {
    fn drop(&mut self) {
        for file in &self.files {
            // What stays is gone after the next start.
            let _ = fs::remove_file(file);
        }
    }
}

impl Shelf {
    /// An empty one.
    ///
    /// # Errors
    /// When the folder can't be emptied or made.
    pub(super) fn open(folder: PathBuf) -> io::Result<Shelf> {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => super::folder::prepare(&folder)?,
        }
        Ok(Shelf { folder, ready: Mutex::new(LruCache::new(READY)) })
    }

    /// Lets go of the replays of a tournament.
    pub(super) fn forget(&self, id: TournamentId) {
        self.ready.lock().retain(|(tournament, _), _| *tournament != id);
    }
}

impl Tournaments {
    /// The replay of a match, ready to be shown, if it was kept. Reads it from one end to the other the first time.
    ///
    /// # Errors
    /// When the tournament isn't over, as for [`Tournaments::open_replay`]; or the replay can't be read, or no index be written.
    pub(crate) fn shown_replay(&self, id: TournamentId, number: usize) -> Result<Option<Arc<ShownReplay>>, Refusal> {
        // Asked each time: what was removed isn't shown any more.
        if self.open_replay(id, number)?.is_none() {
            return Ok(None);
        }
        let shelf = &self.0.shelf;
        let mut ready = shelf.ready.lock();
        if let Some(shown) = ready.get(&(id, number)) {
            return Ok(Some(Arc::clone(shown)));
        }
        let shown =
            Arc::new(self.make_ready(&self.replay_path(id, number), &shelf.folder.join(format!("{id}-{number}")))?);
        ready.insert((id, number), Arc::clone(&shown));
        Ok(Some(shown))
    }

    fn make_ready(&self, kept: &Path, place: &Path) -> Result<ShownReplay, Refusal> {
        let damaged = |error: &dyn std::fmt::Display| Refusal::Damaged(error.to_string());
        let (copy, index_path) = (place.with_extension("jsonl"), place.with_extension("index"));
        let (replay, files) = match self.copy_redacted(kept, &copy)? {
            true => (copy.clone(), vec![copy, index_path.clone()]),
            false => (kept.to_owned(), vec![index_path.clone()]),
        };
        let open = || File::open(&replay).map(BufReader::new);
        let header = Replay::open(open().map_err(|error| damaged(&error))?).map_err(|error| damaged(&error))?.header;
        let mut entries = BufWriter::new(File::create(&index_path)?);
        let summary = index(open().map_err(|error| damaged(&error))?, &mut entries).map_err(|error| damaged(&error))?;
        Ok(ShownReplay { header, summary, replay, index: index_path, files })
    }

    /// Writes a replay as it may be told to `copy`, if that isn't as it was kept; says whether.
    fn copy_redacted(&self, kept: &Path, copy: &Path) -> Result<bool, Refusal> {
        let mut lines = BufReader::new(File::open(kept)?);
        let (mut line, mut passed) = (String::new(), 0_u64);
        let first = loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Ok(false);
            }
            let told = self.redacted(&line);
            if told != line {
                break told.into_owned();
            }
            passed += line.len() as u64;
        };
        let mut to = BufWriter::new(File::create(copy)?);
        io::copy(&mut io::Read::take(File::open(kept)?, passed), &mut to)?;
        to.write_all(first.as_bytes())?;
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                break;
            }
            to.write_all(self.redacted(&line).as_bytes())?;
        }
        to.flush()?;
        Ok(true)
    }
}
