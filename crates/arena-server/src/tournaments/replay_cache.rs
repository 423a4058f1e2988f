//! Replays for the viewer, with an index for range requests. The viewer reads the kept file, or a redacted copy if
//! redaction changes the file. Index and copy are created on demand and cached for a few replays.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arena_match::{ChainRepair, HeaderLine, Replay, Summary, index};
use hashlink::LruCache;
use parking_lot::Mutex;

use super::id::TournamentId;
use super::redact::Redaction;
use super::refusal::TournamentRefusal;

/// Maximum number of cached replays. Each has an index of eight bytes per epoch, and possibly a redacted copy.
const READY: usize = 32;

/// The cache of prepared replays. Its folder is emptied at each start.
pub(super) struct ReplayCache {
    folder: PathBuf,
    /// The prepared replays, by name. The lock is held while a replay is prepared, so that each is prepared only once.
    ready: Mutex<LruCache<String, Arc<ShownReplay>>>,
}

/// A replay prepared for the viewer.
pub(crate) struct ShownReplay {
    pub(crate) header: HeaderLine,
    pub(crate) summary: Summary,
    /// The path of the replay: the kept file or its redacted copy.
    pub(crate) replay: PathBuf,
    pub(crate) index: PathBuf,
    /// Files that are removed when the replay leaves the cache.
    files: Vec<PathBuf>,
}

impl Drop for ShownReplay {
    fn drop(&mut self) {
        for file in &self.files {
            // The next start removes a file that remains after an error.
            let _ = fs::remove_file(file);
        }
    }
}

impl ReplayCache {
    /// Opens the cache and empties its folder.
    ///
    /// # Errors
    /// If the folder can't be emptied or created.
    pub(super) fn open(folder: PathBuf) -> io::Result<ReplayCache> {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => super::folder::prepare(&folder, Duration::ZERO)?,
        }
        Ok(ReplayCache { folder, ready: Mutex::new(LruCache::new(READY)) })
    }

    pub(super) fn forget(&self, id: TournamentId) {
        let of_tournament = format!("{id}-");
        self.ready.lock().retain(|name, _| !name.starts_with(&of_tournament));
    }

    /// Prepares the replay in the file `kept`, unless the cache has it. `name` is the replay's unique name there.
    pub(super) fn prepare(
        &self,
        redaction: &Redaction,
        kept: &Path,
        name: String,
    ) -> Result<Arc<ShownReplay>, TournamentRefusal> {
        let mut ready = self.ready.lock();
        if let Some(shown) = ready.get(&name) {
            return Ok(Arc::clone(shown));
        }
        let shown = Arc::new(make_ready(redaction, kept, &self.folder.join(&name))?);
        ready.insert(name, Arc::clone(&shown));
        Ok(shown)
    }
}

fn make_ready(redaction: &Redaction, kept: &Path, place: &Path) -> Result<ShownReplay, TournamentRefusal> {
    let damaged = |error: &dyn std::fmt::Display| TournamentRefusal::Damaged(error.to_string());
    let (copy, index_path) = (place.with_extension("jsonl"), place.with_extension("index"));
    let (replay, files) = match copy_redacted(redaction, kept, &copy)? {
        true => (copy.clone(), vec![copy, index_path.clone()]),
        false => (kept.to_owned(), vec![index_path.clone()]),
    };
    let open = || File::open(&replay).map(BufReader::new);
    let header = Replay::open(open().map_err(|error| damaged(&error))?).map_err(|error| damaged(&error))?.header;
    let mut entries = BufWriter::new(File::create(&index_path)?);
    let summary = index(open().map_err(|error| damaged(&error))?, &mut entries).map_err(|error| damaged(&error))?;
    Ok(ShownReplay { header, summary, replay, index: index_path, files })
}

/// Writes a redacted copy of the replay `kept` if redaction changes the file. Returns true if there is a copy.
fn copy_redacted(redaction: &Redaction, kept: &Path, copy: &Path) -> Result<bool, TournamentRefusal> {
    let mut lines = BufReader::new(File::open(kept)?);
    let (mut line, mut passed, mut repair) = (String::new(), 0_u64, ChainRepair::default());
    let first = loop {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let redacted = redaction.redacted(&line);
        if redacted != line {
            break repair.repair(&line, redacted).map(Cow::into_owned).unwrap_or_default();
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
        if let Some(repaired) = repair.repair(&line, redaction.redacted(&line)) {
            to.write_all(repaired.as_bytes())?;
        }
    }
    to.flush()?;
    Ok(true)
}
