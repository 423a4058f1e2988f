//! The runs on disk, and the parsed runs in memory. A run is parsed again when its files have changed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, UNIX_EPOCH};

use arena_eval::now;
use parking_lot::Mutex;

use super::loaded::{EvalSummary, LoadedEval, RunStatus};
use super::{EvalPageError, EvalPageResult};

/// The files of a run that its pages show.
const FILES: [&str; 5] = ["journal.jsonl", "run.toml", "calls.jsonl", "requests.jsonl", "transcripts.jsonl"];

/// The file that makes a folder a run.
const JOURNAL: &str = "journal.jsonl";

/// The maximum number of parsed runs in memory.
const MOST_LOADED: usize = 8;

/// A parsed run is reused for this multiple of the time that its parsing took, even if its files have changed.
/// Otherwise each page of a large run in progress would parse the run.
const REUSE: u32 = 10;

pub(super) enum RunSource {
    /// These runs, by name.
    Runs(BTreeMap<String, PathBuf>),
    /// All runs in a folder. The runs' folders are their names.
    Folder(PathBuf),
}

impl RunSource {
    /// Names the runs after their folders. Folders of the same name get numbers.
    pub(super) fn of_runs(dirs: Vec<PathBuf>) -> RunSource {
        let mut runs = BTreeMap::new();
        for dir in dirs {
            // A path such as `.` has no name of its own.
            let whole = dir.canonicalize().unwrap_or_else(|_| dir.clone());
            let own = whole.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
            let mut name = own.clone();
            let mut number = 1;
            while runs.contains_key(&name) {
                number += 1;
                name = format!("{own}-{number}");
            }
            runs.insert(name, dir);
        }
        RunSource::Runs(runs)
    }

    fn all(&self) -> BTreeMap<String, PathBuf> {
        let folder = match self {
            RunSource::Runs(runs) => return runs.clone(),
            RunSource::Folder(folder) => folder,
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "cannot read the folder of evaluations: {error}");
                return BTreeMap::new();
            }
        };
        let runs = entries.flatten().filter(|entry| entry.path().join(JOURNAL).is_file());
        runs.filter_map(|entry| Some((entry.file_name().to_str()?.to_owned(), entry.path()))).collect()
    }

    /// Returns the folder of a run. Only names in the list have one, so a name can't lead out of the folder.
    fn find(&self, name: &str) -> Option<PathBuf> {
        self.all().remove(name)
    }
}

/// The lengths and times of a run's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamps([Option<(u64, i64)>; FILES.len()]);

impl FileStamps {
    fn of(dir: &Path) -> FileStamps {
        FileStamps(FILES.map(|name| {
            let file = fs::metadata(dir.join(name)).ok()?;
            let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some((file.len(), i64::try_from(changed.as_millis()).unwrap_or(i64::MAX)))
        }))
    }

    /// Returns the time of the last change, in milliseconds since 1970.
    pub(super) fn changed(&self) -> i64 {
        self.0.iter().flatten().map(|(_, changed)| *changed).max().unwrap_or(0)
    }
}

/// A parsed run and its use.
#[derive(Default)]
struct RunSlot {
    /// The time of the last use in milliseconds since 1970.
    used: AtomicI64,
    kept: Mutex<KeptRun>,
}

#[derive(Default)]
struct KeptRun {
    run: Option<ParsedRun>,
    summary: Option<(FileStamps, EvalSummary)>,
}

struct ParsedRun {
    run: Arc<LoadedEval>,
    stamps: FileStamps,
    /// The end of the time in which the run is reused without a look at its files.
    reused_until: Instant,
}

pub(super) struct ListedRun {
    /// The name in paths.
    pub(super) name: String,
    pub(super) summary: EvalPageResult<EvalSummary>,
    pub(super) status: Option<RunStatus>,
}

/// The runs, parsed on demand.
pub(super) struct RunLibrary {
    source: RunSource,
    slots: Mutex<BTreeMap<PathBuf, Arc<RunSlot>>>,
}

impl RunLibrary {
    pub(super) fn new(source: RunSource) -> RunLibrary {
        RunLibrary { source, slots: Mutex::default() }
    }

    /// Returns a run.
    ///
    /// # Errors
    /// If there is no run of this name, or it can't be read.
    pub(super) fn load(&self, name: &str) -> EvalPageResult<Arc<LoadedEval>> {
        let dir = self.source.find(name).ok_or_else(|| EvalPageError::absent("the evaluation"))?;
        self.load_dir(name, &dir)
    }

    /// Returns all runs, the last changed first.
    pub(super) fn list(&self) -> Vec<ListedRun> {
        let listed = |(name, dir): (String, PathBuf)| {
            let summary = self.summary(&name, &dir);
            ListedRun { status: RunStatus::read(&dir), name, summary }
        };
        let mut all: Vec<ListedRun> = self.source.all().into_iter().map(listed).collect();
        all.sort_by_key(|run| Reverse(run.summary.as_ref().map_or(0, |summary| summary.changed)));
        all
    }

    fn summary(&self, name: &str, dir: &Path) -> EvalPageResult<EvalSummary> {
        let stamps = FileStamps::of(dir);
        let slot = self.slot(dir);
        if let Some((known, summary)) = &slot.kept.lock().summary
            && *known == stamps
        {
            return Ok(summary.clone());
        }
        let summary = self.load_dir(name, dir)?.summary();
        slot.kept.lock().summary = Some((stamps, summary.clone()));
        Ok(summary)
    }

    fn load_dir(&self, name: &str, dir: &Path) -> EvalPageResult<Arc<LoadedEval>> {
        let slot = self.slot(dir);
        slot.used.store(now(), Ordering::Relaxed);
        // Other requests for the run wait until it is parsed.
        let mut kept = slot.kept.lock();
        let stamps = FileStamps::of(dir);
        if let Some(parsed) = &kept.run
            && (parsed.stamps == stamps || Instant::now() < parsed.reused_until)
        {
            return Ok(Arc::clone(&parsed.run));
        }
        let began = Instant::now();
        let run = Arc::new(LoadedEval::read(name, dir, stamps.changed())?);
        let reused_until = Instant::now() + began.elapsed() * REUSE;
        kept.run = Some(ParsedRun { run: Arc::clone(&run), stamps, reused_until });
        drop(kept);
        self.evict();
        Ok(run)
    }

    fn slot(&self, dir: &Path) -> Arc<RunSlot> {
        Arc::clone(self.slots.lock().entry(dir.to_owned()).or_default())
    }

    /// Drops the parsed runs that were not used for the longest time.
    fn evict(&self) {
        let slots: Vec<Arc<RunSlot>> = self.slots.lock().values().cloned().collect();
        // Runs that are being parsed stay.
        let is_loaded = |slot: &&Arc<RunSlot>| slot.kept.try_lock().is_some_and(|kept| kept.run.is_some());
        let mut loaded: Vec<&Arc<RunSlot>> = slots.iter().filter(is_loaded).collect();
        loaded.sort_by_key(|slot| Reverse(slot.used.load(Ordering::Relaxed)));
        for slot in loaded.into_iter().skip(MOST_LOADED) {
            if let Some(mut kept) = slot.kept.try_lock() {
                kept.run = None;
            }
        }
    }
}
