//! The folder of a run: its journal, calls and transcripts, for the run itself and for readers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_llm::Spent;
use arena_match::line_file::{LineFile, LineFileError, SyncPolicy, lock, scan, to_line};
use parking_lot::Mutex;
use serde::Deserialize;

use crate::calls::{CALLS, CallIndex, CallStore};
use crate::journal::{self, JOURNAL, JournalContent, now};
use crate::plan::{EvalPlan, PlanError, SEED_KEY};
use crate::record::{CallLine, ChangeRecord, GameRecord, JournalLine, Transcript, VERSION, VoidRecord};
use crate::run_file::{ChallengeSpec, HarnessSpec, RunFile, RunFileError};

const RUN_FILE: &str = "run.toml";

const TRANSCRIPTS: &str = "transcripts.jsonl";

/// The entries that an interrupted creation leaves in a folder.
const BEFORE_JOURNAL: [&str; 6] = ["run.toml", "run.toml.new", "prompts", "scripts", "journal.jsonl.new", "lost+found"];

/// The error of a run's folder. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("there is no evaluation in {}; `arena eval run FILE --out DIR` starts one", .0.display())]
    Absent(PathBuf),
    #[error("{} contains other files than those of an evaluation; choose a new or empty folder", .0.display())]
    OtherFiles(PathBuf),
    #[error("another process is running the evaluation in {}", .0.display())]
    Locked(PathBuf),
    #[error("the evaluation in {} has version {version} of the files, but this program reads {}; use a newer program", dir.display(), VERSION)]
    Newer { dir: PathBuf, version: u32 },
    #[error("{} changed since the evaluation in {} began; use --accept-changed to play the affected games again, or a new folder", changes.join(", "), dir.display())]
    Changed {
        dir: PathBuf,
        /// The changed values, such as `params of model small`.
        changes: Vec<String>,
    },
    #[error(transparent)]
    RunFile(#[from] RunFileError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    File(#[from] LineFileError),
    /// An invalid record, which was not written.
    #[error("an invalid record for {}: {what}", path.display())]
    Record { path: PathBuf, what: String },
}

/// The folder of a run, which this process has locked.
#[derive(Debug)]
pub struct EvalFolder {
    dir: PathBuf,
    plan: EvalPlan,
    games: BTreeMap<String, GameRecord>,
    voids: Vec<VoidRecord>,
    earlier_ms: i64,
    journal: LineFile,
    transcripts: LineFile,
    calls: Arc<CallStore>,
    /// The lock is held until the folder is dropped or the process ends.
    _lock: File,
}

impl EvalFolder {
    /// Starts a run in a new or empty folder, or continues the run in the folder with this plan.
    ///
    /// # Errors
    /// If the folder contains other files, another process has locked it, or a file can't be read or written. Also if
    /// a prompt, parameter, option or version of the rules has changed and `accept_changed` is false; budgets, prices and
    /// concurrency may always change.
    pub fn create_or_open(dir: &Path, plan: EvalPlan, accept_changed: bool) -> Result<EvalFolder, FolderError> {
        fs::create_dir_all(dir).map_err(|source| cannot_write(dir, source))?;
        let lock = lock_folder(dir)?;
        if dir.join(JOURNAL).exists() {
            return EvalFolder::open(dir, plan, accept_changed, lock);
        }
        check_empty(dir)?;
        EvalFolder::create(dir, plan, lock)
    }

    pub fn exists(dir: &Path) -> bool {
        dir.join(JOURNAL).is_file()
    }

    /// Continues the run in a folder with the folder's run file, which may have been edited.
    ///
    /// # Errors
    /// If there is no run, and as for [`EvalFolder::create_or_open`].
    pub fn resume(dir: &Path, accept_changed: bool) -> Result<EvalFolder, FolderError> {
        check_journal(dir)?;
        let lock = lock_folder(dir)?;
        // The journal is checked first: a newer program may have written the run file.
        let content = journal::read(dir)?;
        let plan = EvalPlan::of(RunFile::read(&dir.join(RUN_FILE))?, dir)?;
        EvalFolder::open_content(dir, plan, accept_changed, lock, content)
    }

    fn create(dir: &Path, plan: EvalPlan, lock: File) -> Result<EvalFolder, FolderError> {
        write_files(dir, &plan)?;
        write_whole(&dir.join(RUN_FILE), plan.file.to_toml()?.as_bytes())?;
        let (time, identities) = (now(), plan.identities());
        let start = JournalLine::Start { arena_eval: VERSION, time, file: Box::new(plan.file.clone()), identities };
        let path = dir.join(JOURNAL);
        let line = to_line(&start, &path)?;
        // The journal appears with its first line, so a folder with a journal is always a run.
        write_whole(&path, &line)?;
        lock.sync_all().map_err(|source| cannot_write(dir, source))?;
        let content = journal::read(dir)?;
        EvalFolder::assemble(dir, plan, lock, content)
    }

    fn open(dir: &Path, plan: EvalPlan, accept_changed: bool, lock: File) -> Result<EvalFolder, FolderError> {
        let content = journal::read(dir)?;
        EvalFolder::open_content(dir, plan, accept_changed, lock, content)
    }

    fn open_content(
        dir: &Path,
        plan: EvalPlan,
        accept_changed: bool,
        lock: File,
        content: JournalContent,
    ) -> Result<EvalFolder, FolderError> {
        let time = now();
        let changes = changes(&content, &plan, time);
        if !changes.is_empty() && !accept_changed {
            let changes = changes.iter().map(|change| describe(change, &content.file, &plan)).collect();
            return Err(FolderError::Changed { dir: dir.to_owned(), changes });
        }
        write_files(dir, &plan)?;
        let file = (content.file != plan.file).then(|| Box::new(plan.file.clone()));
        let (is_changed, identities) = (file.is_some(), plan.identities());
        let path = dir.join(JOURNAL);
        let mut lines = Vec::new();
        for change in changes {
            lines.extend(to_line(&JournalLine::Change(change), &path)?);
        }
        lines.extend(to_line(&JournalLine::Resume { time, file, identities }, &path)?);
        let mut folder = EvalFolder::assemble(dir, plan, lock, content)?;
        if accept_changed {
            folder.calls.forget_refused();
        }
        folder.journal.append(&lines)?;
        let run_file = dir.join(RUN_FILE);
        if is_changed || !run_file.exists() {
            write_whole(&run_file, folder.plan.file.to_toml()?.as_bytes())?;
        }
        Ok(folder)
    }

    fn assemble(dir: &Path, plan: EvalPlan, lock: File, content: JournalContent) -> Result<EvalFolder, FolderError> {
        let JournalContent { games, voids, started, length, .. } = content;
        let calls = CallStore::open(dir)?;
        let earlier_ms = calls.elapsed_ms(&started);
        let journal = LineFile::open(&dir.join(JOURNAL), length, SyncPolicy::Always)?;
        let transcripts = dir.join(TRANSCRIPTS);
        let transcripts = LineFile::open(&transcripts, scan(&transcripts, |_, _| Ok(()))?, SyncPolicy::EachSecond)?;
        // The names of new files must survive a power cut too.
        lock.sync_all().map_err(|source| cannot_write(dir, source))?;
        Ok(EvalFolder {
            dir: dir.to_owned(),
            plan,
            games,
            voids,
            earlier_ms,
            journal,
            transcripts,
            calls: Arc::new(calls),
            _lock: lock,
        })
    }

    pub fn plan(&self) -> &EvalPlan {
        &self.plan
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn finished(&self, game: &str) -> Option<&GameRecord> {
        self.games.get(game)
    }

    /// Returns the games that were given up, in order, including games that were played later.
    pub fn voids(&self) -> &[VoidRecord] {
        &self.voids
    }

    /// Returns the time that earlier invocations took, in milliseconds: for each, the time from its start to the last
    /// answer to a player.
    pub fn earlier_ms(&self) -> i64 {
        self.earlier_ms
    }

    pub fn calls(&self) -> &Arc<CallStore> {
        &self.calls
    }

    /// Appends a line to the journal durably.
    ///
    /// # Errors
    /// If the line can't be written or read again. The journal is then unchanged.
    pub fn record(&mut self, line: JournalLine) -> Result<(), FolderError> {
        let path = self.dir.join(JOURNAL);
        let bytes = to_line(&line, &path)?;
        // A number that isn't finite would be written as `null`, which no reader accepts.
        serde_json::from_slice::<JournalLine>(&bytes)
            .map_err(|error| FolderError::Record { path, what: error.to_string() })?;
        self.journal.append(&bytes)?;
        match line {
            JournalLine::Game(game) => {
                self.games.insert(game.game.clone(), *game);
            }
            JournalLine::Void(void) => self.voids.push(void),
            JournalLine::Start { .. } | JournalLine::Resume { .. } | JournalLine::Change(_) => {}
        }
        Ok(())
    }

    /// Appends the transcript of a game. Write it before the game's result.
    ///
    /// # Errors
    /// If the file can't be written. The file is then unchanged.
    pub fn add_transcript(&mut self, transcript: &Transcript) -> Result<(), FolderError> {
        self.transcripts.append_value(transcript)?;
        Ok(())
    }

    /// Waits until the calls and transcripts are on the disk. Call it before a game's result is recorded: a game that
    /// survives a power cut then has its transcript and calls.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&mut self) -> Result<(), FolderError> {
        self.calls.sync()?;
        Ok(self.transcripts.sync()?)
    }
}

pub(crate) fn cannot_read(path: &Path, source: io::Error) -> FolderError {
    LineFileError::Read { path: path.to_owned(), source }.into()
}

pub(crate) fn cannot_write(path: &Path, source: io::Error) -> FolderError {
    LineFileError::Write { path: path.to_owned(), source }.into()
}

/// Locks the folder of a run for this process.
fn lock_folder(dir: &Path) -> Result<File, FolderError> {
    let file = File::open(dir).map_err(|source| cannot_read(dir, source))?;
    match lock(&file).map_err(|source| cannot_read(dir, source))? {
        true => Ok(file),
        false => Err(FolderError::Locked(dir.to_owned())),
    }
}

/// Writes a file that is never incomplete, and its folder.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    folder.and_then(|()| arena_match::write(path, bytes)).map_err(|source| cannot_write(path, source))
}

/// Checks that a folder without a journal may become the folder of a run.
fn check_empty(dir: &Path) -> Result<(), FolderError> {
    let cannot = |source| cannot_read(dir, source);
    for entry in fs::read_dir(dir).map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        if BEFORE_JOURNAL.iter().all(|known| name != *known) {
            return Err(FolderError::OtherFiles(dir.to_owned()));
        }
    }
    Ok(())
}

fn check_journal(dir: &Path) -> Result<(), FolderError> {
    if EvalFolder::exists(dir) { Ok(()) } else { Err(FolderError::Absent(dir.to_owned())) }
}

fn write_files(dir: &Path, plan: &EvalPlan) -> Result<(), FolderError> {
    for file in &plan.files {
        let path = dir.join(&file.path);
        if fs::read_to_string(&path).ok().as_ref() != Some(&file.text) {
            write_whole(&path, file.text.as_bytes())?;
        }
    }
    Ok(())
}

/// Returns the identities that differ from the recorded ones. New names are no changes, nor are agents and challenges
/// without a finished game, such as a model whose endpoint never worked.
fn changes(content: &JournalContent, plan: &EvalPlan, time: i64) -> Vec<ChangeRecord> {
    let mut played: BTreeSet<&str> = BTreeSet::new();
    for game in content.games.values() {
        played.insert(&game.challenge);
        played.extend(game.seats.iter().map(|seat| seat.agent.as_str()));
    }
    let is_played = |name: &str| match name.split_once(' ') {
        Some((_, of)) => played.contains(of),
        None => !played.is_empty(),
    };
    let mut changes = Vec::new();
    for (name, after) in plan.identities() {
        if let Some(before) = content.identities.get(&name).filter(|before| **before != after && is_played(&name)) {
            changes.push(ChangeRecord { name, before: before.clone(), after, time });
        }
    }
    changes
}

/// Describes a change, such as `params of model small`.
fn describe(change: &ChangeRecord, before: &RunFile, plan: &EvalPlan) -> String {
    let name = &change.name;
    if name == SEED_KEY {
        return format!("seed ({} instead of {})", change.after, change.before);
    }
    let changed = if let Some(model) = name.strip_prefix("model ") {
        changed_in_model(model, before, &plan.file)
    } else if let Some(label) = name.strip_prefix("challenge ") {
        changed_in_challenge(label, before, plan)
    } else {
        vec!["agent".to_owned()]
    };
    format!("{} of {name}", changed.join(" and "))
}

fn changed_in_model(name: &str, before: &RunFile, after: &RunFile) -> Vec<String> {
    let find = |file: &RunFile| file.models.iter().find(|model| model.name == name).cloned();
    let (Some(old), Some(new)) = (find(before), find(after)) else { return vec!["definition".to_owned()] };
    let mut changed = Vec::new();
    let mut add = |key: &str, is_changed: bool| {
        if is_changed {
            changed.push(key.to_owned());
        }
    };
    add("model", old.model != new.model);
    add("endpoint", old.endpoint != new.endpoint);
    add("api", old.api != new.api);
    add("params", old.params != new.params);
    add("tools", old.tools != new.tools);
    let harness = |file: &RunFile, name: &str| file.harness.get(name).cloned().unwrap_or_default();
    let (old_harness, new_harness) = (harness(before, &old.harness), harness(after, &new.harness));
    add("prompt", old_harness.prompt != new_harness.prompt);
    let without_prompt = |harness: HarnessSpec| HarnessSpec { prompt: None, ..harness };
    add("harness", without_prompt(old_harness) != without_prompt(new_harness));
    if changed.is_empty() { vec!["built-in prompt".to_owned()] } else { changed }
}

fn changed_in_challenge(label: &str, before: &RunFile, plan: &EvalPlan) -> Vec<String> {
    let is_named = |spec: &&ChallengeSpec| match &spec.label {
        Some(own) => own == label,
        None => spec.name == label || spec.name.starts_with(&format!("scripts/{label}-")),
    };
    let old = before.challenges.iter().find(is_named);
    let at = plan.challenges.iter().position(|challenge| challenge.label == label);
    let new = at.and_then(|at| plan.file.challenges.get(at));
    let (Some(old), Some(new)) = (old, new) else { return vec!["definition".to_owned()] };
    let mut changed = Vec::new();
    if old.name != new.name {
        changed.push(if new.name.starts_with("scripts/") { "script" } else { "name" }.to_owned());
    }
    if old.options != new.options {
        changed.push("options".to_owned());
    }
    if changed.is_empty() { vec!["rules".to_owned()] } else { changed }
}

/// A recorded run, for reports and pages. Another process may be continuing the run.
#[derive(Debug)]
pub struct EvalRun {
    pub dir: PathBuf,
    /// The recorded plan.
    pub plan: EvalPlan,
    /// The finished games of the plan, in the plan's order.
    pub games: Vec<GameRecord>,
    /// The games that were given up, in order, including games that were played later.
    pub voids: Vec<VoidRecord>,
    /// The accepted changes, in order.
    pub changes: Vec<ChangeRecord>,
    /// The times of the start and of each continuation, in milliseconds since 1970.
    pub started: Vec<i64>,
    /// The calls, once they have been asked for.
    call_file: Mutex<Option<Arc<CallFile>>>,
    /// The transcripts, once they have been asked for.
    transcript_file: Mutex<Option<Arc<TranscriptFile>>>,
}

#[derive(Debug)]
pub(crate) struct CallFile {
    path: PathBuf,
    /// `None` if the run has no calls.
    file: Option<File>,
    pub(crate) index: CallIndex,
}

impl CallFile {
    /// Finds the answered call with this key.
    pub(crate) fn find(&self, key: &str) -> Result<Option<CallLine>, FolderError> {
        self.file.as_ref().map_or(Ok(None), |file| self.index.find(key, file, &self.path))
    }
}

#[derive(Debug)]
struct TranscriptFile {
    path: PathBuf,
    /// `None` if the run has no transcripts.
    file: Option<File>,
    /// The offsets and lengths of the lines by game, in bytes.
    places: BTreeMap<String, (u64, usize)>,
}

/// The part of a transcript that its index needs.
#[derive(Deserialize)]
struct GameOf<'l> {
    game: &'l str,
}

impl EvalRun {
    /// Reads the run in a folder without locking it.
    ///
    /// # Errors
    /// If there is no run, or its journal or run file is invalid.
    pub fn load(dir: &Path) -> Result<EvalRun, FolderError> {
        check_journal(dir)?;
        let JournalContent { file, identities, mut games, voids, changes, started, .. } = journal::read(dir)?;
        let plan = EvalPlan::recorded(file, dir, &identities)?;
        let in_order = plan.games.iter().filter_map(|game| games.remove(&game.id)).collect();
        Ok(EvalRun { voids, changes, started, ..EvalRun::new(dir, plan, in_order) })
    }

    /// Creates a run from its parts. `games` are finished games of the plan, in the plan's order.
    pub fn new(dir: &Path, plan: EvalPlan, mut games: Vec<GameRecord>) -> EvalRun {
        // The run file may give a challenge another label at any time.
        let challenges: BTreeMap<&str, usize> =
            plan.games.iter().map(|game| (game.id.as_str(), game.challenge)).collect();
        for game in &mut games {
            if let Some(challenge) = challenges.get(game.game.as_str()) {
                game.challenge.clone_from(&plan.challenges[*challenge].label);
            }
        }
        EvalRun {
            dir: dir.to_owned(),
            plan,
            games,
            voids: Vec::new(),
            changes: Vec::new(),
            started: Vec::new(),
            call_file: Mutex::new(None),
            transcript_file: Mutex::new(None),
        }
    }

    /// Returns the transcript of a game.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn transcript(&self, game: &str) -> Result<Option<Transcript>, FolderError> {
        let transcripts = self.transcript_file()?;
        let (Some((offset, length)), Some(file)) = (transcripts.places.get(game), &transcripts.file) else {
            return Ok(None);
        };
        let mut line = vec![0; *length];
        let read = file.read_exact_at(&mut line, *offset);
        let transcript = read.and_then(|()| serde_json::from_slice(&line).map_err(io::Error::from));
        transcript.map(Some).map_err(|source| cannot_read(&transcripts.path, source))
    }

    /// Returns the ids of all games with a transcript.
    pub(crate) fn transcript_ids(&self) -> Result<Vec<String>, FolderError> {
        Ok(self.transcript_file()?.places.keys().cloned().collect())
    }

    /// Returns the calls of a game in the order of their answers.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn calls(&self, game: &str) -> Result<Vec<CallLine>, FolderError> {
        let calls = self.call_file()?;
        calls.file.as_ref().map_or(Ok(Vec::new()), |file| calls.index.calls_of(game, file, &calls.path))
    }

    /// Returns at most `most` calls that contain this text in a message, an answer or another value.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn search_calls(&self, text: &str, most: usize) -> Result<Vec<CallLine>, FolderError> {
        // The text is searched in its JSON form.
        let quoted = serde_json::Value::from(text).to_string();
        let quoted = &quoted[1..quoted.len() - 1];
        let mut found = Vec::new();
        scan(&self.dir.join(CALLS), |_, line| {
            let is_found = || std::str::from_utf8(line).is_ok_and(|line| line.contains(quoted));
            if found.len() < most && is_found() {
                let line: CallLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
                if matches!(line, CallLine::Call(_)) {
                    found.push(line);
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the text with this SHA-256, to which calls refer.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn texts(&self, sha256: &str) -> Result<Option<String>, FolderError> {
        let calls = self.call_file()?;
        calls.file.as_ref().map_or(Ok(None), |file| calls.index.text(sha256, file, &calls.path))
    }

    /// Returns the totals of all calls, including those of void games and earlier plans.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn spent(&self) -> Result<Spent, FolderError> {
        Ok(self.call_file()?.index.total())
    }

    pub(crate) fn call_file(&self) -> Result<Arc<CallFile>, FolderError> {
        read_once(&self.call_file, || {
            let path = self.dir.join(CALLS);
            let index = CallIndex::read(&self.dir)?;
            Ok(CallFile { file: open_if_there(&path)?, path, index })
        })
    }

    fn transcript_file(&self) -> Result<Arc<TranscriptFile>, FolderError> {
        read_once(&self.transcript_file, || {
            let path = self.dir.join(TRANSCRIPTS);
            let mut places = BTreeMap::new();
            scan(&path, |offset, line| {
                let GameOf { game } = serde_json::from_slice(line).map_err(|error| error.to_string())?;
                // A game that was interrupted after its transcript has two equal ones.
                places.insert(game.to_owned(), (offset, line.len()));
                Ok(())
            })?;
            Ok(TranscriptFile { file: open_if_there(&path)?, path, places })
        })
    }
}

/// Returns the value of a slot, which `read` fills at the first call.
fn read_once<T>(
    slot: &Mutex<Option<Arc<T>>>,
    read: impl FnOnce() -> Result<T, FolderError>,
) -> Result<Arc<T>, FolderError> {
    let mut slot = slot.lock();
    if slot.is_none() {
        *slot = Some(Arc::new(read()?));
    }
    Ok(slot.clone().expect("it was just filled"))
}

fn open_if_there(path: &Path) -> Result<Option<File>, FolderError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(cannot_read(path, source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, GameEnd, Measured, SeatRecord, TranscriptMessage};

    const FILE: &str = r#"
        name = "test"
        seeds = 2
        self_play = false
        [budget]
        wall_hours = 1000
        [harness.default]
        prompt = "prompt.md"
        [[models]]
        name = "small"
        model = "careful"
        endpoint = "ollama"
        [[baselines]]
        agent = "house"
        [[challenges]]
        name = "psi"
    "#;

    /// A run in a temporary folder, beside the folder with its run file.
    struct Fixture {
        root: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Fixture {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join("prompt.md"), "{rules}\n{state}\n{methods}").unwrap();
            Fixture { root }
        }

        fn dir(&self) -> PathBuf {
            self.root.path().join("run")
        }

        fn open(&self, text: &str, accept_changed: bool) -> Result<EvalFolder, FolderError> {
            let plan = EvalPlan::of(RunFile::parse(text, "test.toml").unwrap(), self.root.path()).unwrap();
            EvalFolder::create_or_open(&self.dir(), plan, accept_changed)
        }

        fn error(&self, text: &str) -> String {
            let error = self.open(text, false).err().map(|error| error.to_string()).unwrap_or_default();
            error.replace(&self.dir().display().to_string(), "DIR")
        }
    }

    fn game(folder: &EvalFolder, at: usize) -> Box<GameRecord> {
        let planned = &folder.plan().games[at];
        let seat = |agent: &usize| SeatRecord {
            agent: folder.plan().agents[*agent].name.clone(),
            cause: Cause::Completed,
            detail: None,
            security: -0.1,
            utility: 1.0 / 3.0,
            measured: Measured::default(),
        };
        Box::new(GameRecord {
            game: planned.id.clone(),
            challenge: folder.plan().challenges[planned.challenge].label.clone(),
            seed: planned.seed_number,
            seats: planned.seats.iter().map(seat).collect(),
            end: GameEnd::Completed,
            attributions: vec![(0, 1, "leak".to_owned())],
            told: "A draw.".to_owned(),
            rounds: 3,
        })
    }

    fn transcript(game: &str, state: &str) -> Transcript {
        let message = TranscriptMessage {
            round: 1,
            chat: true,
            from: Some(0),
            to: None,
            content: "hello\nthere".to_owned(),
            method: None,
            call: Some(1),
        };
        Transcript {
            game: game.to_owned(),
            players: vec!["a".to_owned()],
            messages: vec![message],
            state: state.into(),
        }
    }

    #[test]
    fn a_run_is_continued_and_read() {
        let fixture = Fixture::new();
        let mut folder = fixture.open(FILE, false).unwrap();
        assert_eq!(folder.plan().games.len(), 4);
        // The last game finishes first.
        let games = [game(&folder, 3), game(&folder, 1)];
        for game in &games {
            folder.add_transcript(&transcript(&game.game, "first")).unwrap();
            folder.add_transcript(&transcript(&game.game, "second")).unwrap();
            folder.record(JournalLine::Game(game.clone())).unwrap();
        }
        let id = folder.plan().games[0].id.clone();
        let why = "no money is left".to_owned();
        let void = VoidRecord { game: id, agent: Some("small".to_owned()), class: "unpaid".to_owned(), why, time: 5 };
        folder.record(JournalLine::Void(void.clone())).unwrap();
        assert!(matches!(fixture.open(FILE, false), Err(FolderError::Locked(_))), "the folder is locked");
        let run = EvalRun::load(&fixture.dir()).unwrap();
        assert_eq!(run.games, [*games[1].clone(), *games[0].clone()], "games are in the plan's order");
        drop(folder);

        // The rest of a line from a killed process is ignored.
        let path = fixture.dir().join(JOURNAL);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"type\":\"game\",\"ga")).unwrap();
        assert_eq!(EvalRun::load(&fixture.dir()).unwrap().games.len(), 2);
        let folder = EvalFolder::resume(&fixture.dir(), false).unwrap();
        assert_eq!(folder.finished(&games[0].game), Some(&*games[0]));
        assert_eq!(folder.finished(&folder.plan().games[0].id), None);
        assert_eq!(folder.voids(), std::slice::from_ref(&void));
        assert!(fs::read_to_string(&path).unwrap().starts_with(&whole));
        drop(folder);
        let run = EvalRun::load(&fixture.dir()).unwrap();
        assert_eq!((run.games.len(), run.voids.len(), run.started.len()), (2, 1, 2));
        assert_eq!(run.transcript(&games[0].game).unwrap(), Some(transcript(&games[0].game, "second")));
        assert_eq!(run.transcript("000000000000").unwrap(), None);
        assert!(run.calls(&games[0].game).unwrap().is_empty());
        assert_eq!(run.spent().unwrap(), Spent::default());
    }

    #[test]
    fn changes_need_acceptance() {
        let fixture = Fixture::new();
        let mut folder = fixture.open(FILE, false).unwrap();
        // Nothing is changed before the first game.
        let other = FILE.replace("\"careful\"", "\"greedy\"");
        drop(folder);
        assert_eq!(fixture.error(&other), "");
        assert_eq!(fixture.error(FILE), "");
        folder = fixture.open(FILE, false).unwrap();
        for at in 0..folder.plan().games.len() {
            let game = game(&folder, at);
            folder.record(JournalLine::Game(game)).unwrap();
        }
        drop(folder);
        let free = [
            FILE.replace("wall_hours = 1000", "wall_hours = 5000"),
            FILE.replace("endpoint = \"ollama\"", "endpoint = \"ollama\"\nconcurrency = 3"),
            FILE.replace("endpoint = \"ollama\"", "endpoint = \"ollama\"\nusd_per_million = { input = 1, output = 2 }"),
            FILE.replace("seeds = 2", "seeds = 3"),
            format!("{FILE}\n[[models]]\nname = \"large\"\nmodel = \"leaky\"\nendpoint = \"ollama\""),
            FILE.to_owned(),
        ];
        for text in &free {
            assert_eq!(fixture.error(text), "", "{text}");
        }
        let changed = [
            (FILE.replace("\"careful\"", "\"greedy\""), "model of model small"),
            (FILE.replace("\"careful\"", "\"careful\"\nparams = { temperature = 0 }"), "params of model small"),
            (FILE.replace("prompt =", "max_turns = 3\nprompt ="), "harness of model small"),
            (FILE.replace("prompt = \"prompt.md\"", ""), "prompt of model small"),
            (format!("{FILE}\noptions = {{ setSize = 4 }}"), "options of challenge psi"),
            (FILE.replace("agent = \"house\"", "agent = \"random\"\nname = \"house\""), "agent of baseline house"),
            (format!("seed = 9\n{FILE}"), "seed (9 instead of 0)"),
        ];
        for (text, what) in &changed {
            let expected = format!(
                "{what} changed since the evaluation in DIR began; use --accept-changed to play the affected games \
                 again, or a new folder"
            );
            assert_eq!(fixture.error(text), expected);
        }
        fs::write(fixture.root.path().join("prompt.md"), "{rules}").unwrap();
        assert!(fixture.error(FILE).starts_with("prompt of model small changed"), "{}", fixture.error(FILE));
        let accepted = fixture.open(FILE, true).unwrap();
        let prompt = accepted.plan().harnesses["default"].prompt.clone();
        assert_eq!(prompt, "{rules}");
        drop(accepted);
        let run = EvalRun::load(&fixture.dir()).unwrap();
        let [change] = &run.changes[..] else { panic!("{:?}", run.changes) };
        assert_eq!(change.name, "model small");
        assert!(change.before != change.after && change.after == run.plan.agents[0].identity);
        assert_eq!(fixture.error(FILE), "", "an accepted change is no change");
        // The folder's run file doesn't need the original prompt.
        fs::remove_file(fixture.root.path().join("prompt.md")).unwrap();
        let resumed = EvalFolder::resume(&fixture.dir(), false).unwrap();
        assert_eq!(resumed.plan().harnesses["default"].prompt, prompt);
    }

    #[test]
    fn games_of_earlier_rules_stay_in_reports() {
        let fixture = Fixture::new();
        let mut folder = fixture.open(FILE, false).unwrap();
        folder.record(JournalLine::Game(game(&folder, 0))).unwrap();
        drop(folder);
        // A newer program would compute another identity, and other ids of games.
        let path = fixture.dir().join(JOURNAL);
        let journal = fs::read_to_string(&path).unwrap();
        let run = EvalRun::load(&fixture.dir()).unwrap();
        let identity = &run.plan.challenges[0].identity;
        let older = EvalPlan::recorded(
            run.plan.file.clone(),
            &fixture.dir(),
            &[("challenge psi".to_owned(), "older".to_owned())].into(),
        )
        .unwrap();
        assert!(older.games[0].id != run.plan.games[0].id);
        let journal = journal.replace(identity, "older").replace(&run.plan.games[0].id, &older.games[0].id);
        fs::write(&path, journal).unwrap();
        assert_eq!(EvalRun::load(&fixture.dir()).unwrap().games.len(), 1);
        assert!(fixture.error(FILE).starts_with("rules of challenge psi changed"));
    }

    #[test]
    fn a_renamed_challenge_keeps_its_games() {
        let fixture = Fixture::new();
        let mut folder = fixture.open(FILE, false).unwrap();
        folder.record(JournalLine::Game(game(&folder, 0))).unwrap();
        drop(folder);
        drop(fixture.open(&format!("{FILE}\nlabel = \"sets\""), false).unwrap());
        let run = EvalRun::load(&fixture.dir()).unwrap();
        assert_eq!(run.games.iter().map(|game| game.challenge.as_str()).collect::<Vec<_>>(), ["sets"]);
    }

    #[test]
    fn other_folders_are_refused() {
        let fixture = Fixture::new();
        let dir = fixture.dir();
        assert!(matches!(EvalFolder::resume(&dir, false), Err(FolderError::Absent(_))));
        assert!(matches!(EvalRun::load(&dir), Err(FolderError::Absent(_))));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("thesis.tex"), "").unwrap();
        assert!(matches!(fixture.open(FILE, false), Err(FolderError::OtherFiles(_))));
        fs::remove_file(dir.join("thesis.tex")).unwrap();
        for (journal, error) in [
            (
                "{\"name\":\"a tournament\"}\n",
                "DIR contains other files than those of an evaluation; choose a new or empty folder",
            ),
            ("words\n", "DIR contains other files than those of an evaluation; choose a new or empty folder"),
            (
                "{\"type\":\"start\",\"arena_eval\":2,\"more\":1}\n{\"type\":\"other\"}\n",
                "the evaluation in DIR has version 2 of the files, but this program reads 1; use a newer program",
            ),
        ] {
            fs::write(dir.join(JOURNAL), journal).unwrap();
            assert_eq!(fixture.error(FILE), error, "{journal}");
            assert_eq!(fs::read_to_string(dir.join(JOURNAL)).unwrap(), journal, "the file is unchanged");
        }
    }

    #[test]
    fn an_invalid_line_is_named() {
        let fixture = Fixture::new();
        drop(fixture.open(FILE, false).unwrap());
        let path = fixture.dir().join(JOURNAL);
        let whole = fs::read_to_string(&path).unwrap();
        for line in ["{\"type\":\"other\"}", "{", whole.lines().next().unwrap()] {
            fs::write(&path, format!("{whole}{line}\n")).unwrap();
            let error = EvalRun::load(&fixture.dir()).err().unwrap().to_string();
            assert!(error.contains("journal.jsonl, line 2: "), "{error}");
        }
    }

    #[test]
    fn numbers_that_no_reader_accepts_are_refused() {
        let fixture = Fixture::new();
        let mut folder = fixture.open(FILE, false).unwrap();
        let mut invalid = game(&folder, 0);
        invalid.seats[0].utility = f64::NAN;
        assert!(matches!(folder.record(JournalLine::Game(invalid)), Err(FolderError::Record { .. })));
        let valid = game(&folder, 0);
        folder.record(JournalLine::Game(valid)).unwrap();
        drop(folder);
        assert_eq!(EvalRun::load(&fixture.dir()).unwrap().games.len(), 1);
    }
}
