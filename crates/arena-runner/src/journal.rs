//! The journal file of a tournament. Each appended line is durable, and a lock lets only one process append.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use arena_match::line_file::{LineFile, LineFileError, SyncPolicy, lock, to_line};
use arena_match::{Agent, ExposedOutput, JOURNAL as FILE, OutputPath, ReplayError, export_pgn, own_apart, private};
use arena_model::{GameType, MatchResult};
use arena_tournament::{
    ChangedLine, Entrant, Format, GameLine, InvalidLine, JournalLine, Pairing, PlanError, Record, SpreadLine,
    TournamentPlan, WorkerPart,
};

use crate::competition::{Competition, Next};
use crate::entrants::{EntrantError, FilesChanged, agent_of, fingerprint_of};
use crate::executor::RunError;

/// The largest number of a tournament's jobs for workers that are on the queue or being played.
const AHEAD: usize = 256;

/// The name of the folder for replays and logs within a tournament's folder.
pub const REPLAYS: &str = "replays";

/// The open journal of a tournament, which this process has locked.
#[derive(Debug)]
pub struct Journal {
    record: Record,
    file: JournalFile,
    /// The number of the last pairing that [`Competition::next`] has returned.
    begun: usize,
}

/// A journal file of any format, which this process has locked.
#[derive(Debug)]
pub(crate) struct JournalFile {
    folder: PathBuf,
    file: LineFile,
    /// The number of complete lines in the file.
    lines: usize,
    /// The lock is held until the journal is closed or the process ends. The file is locked and not the folder, because
    /// not all shared file systems can lock folders.
    _lock: File,
}

/// An error for a journal that can't be used. The text is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{} already contains a tournament", .0.display())]
    Exists(PathBuf),
    #[error("there is no tournament in {}", .0.display())]
    Absent(PathBuf),
    #[error("another process is running the tournament in {}", .0.display())]
    Locked(PathBuf),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    File(#[from] LineFileError),
}

impl Journal {
    /// Creates the journal of a tournament in a folder, and the folder if it doesn't exist.
    ///
    /// # Errors
    /// [`JournalError`] if the plan is invalid, the folder already has a journal, or the journal can't be written.
    pub fn create(folder: &Path, mut plan: TournamentPlan) -> Result<Journal, JournalError> {
        plan.note_texts();
        let record = Record::new(plan)?;
        let file = JournalFile::create(folder, &record.plan)?;
        Ok(Journal { record, file, begun: 0 })
    }

    /// Opens the journal in a folder to resume the tournament. Removes an incomplete last line; [`Record::cut_off`] is
    /// the number of removed bytes.
    ///
    /// # Errors
    /// [`JournalError`] if there is no journal, another process has locked it, or it is invalid. Also if games are left
    /// and the journal's version of the rules, or its texts, aren't this program's.
    pub fn open(folder: &Path) -> Result<Journal, JournalError> {
        let (file, record) = JournalFile::open(folder, |text| {
            let record = parse(folder, text, Record::read)?;
            if !record.schedule.is_complete() {
                record.plan.check_rules()?;
            }
            Ok(record)
        })?;
        Ok(Journal { record, file, begun: 0 })
    }

    /// Locks the journal in a folder without reading it, until the file is closed. Returns `None` if another process has
    /// locked it.
    ///
    /// # Errors
    /// If there is no journal, or it can't be opened.
    pub fn try_lock(folder: &Path) -> io::Result<Option<File>> {
        let file = OpenOptions::new().append(true).open(folder.join(FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns the size of the journal in a folder, in bytes. It grows with each line.
    ///
    /// # Errors
    /// If there is no journal.
    pub fn size(folder: &Path) -> io::Result<u64> {
        Ok(fs::metadata(folder.join(FILE))?.len())
    }

    /// Reads the journal in a folder without locking it. Another process may append at the same time.
    ///
    /// # Errors
    /// [`JournalError`] if there is no journal, or the journal is invalid.
    pub fn load_record(folder: &Path) -> Result<Record, JournalError> {
        read(folder, Record::read)
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Sets the number of concurrent matches for this run. Doesn't change the plan in the journal file.
    pub fn set_concurrency(&mut self, concurrency: usize) {
        self.record.plan.concurrency = concurrency;
    }

    /// Sets the loaded rules of a tournament whose rules are a script. `game` must have the version of the plan's
    /// script. Without a script, has no effect.
    ///
    /// # Errors
    /// [`PlanError::OtherRules`] if games are left, and this program executes scripts by another version of the rules
    /// than the plan's.
    pub fn set_rules(&mut self, game: &'static GameType) -> Result<(), JournalError> {
        if let Some(script) = self.record.plan.script.clone() {
            self.record.plan.set_rules(script, game);
            if !self.record.schedule.is_complete() {
                self.record.plan.check_rules()?;
            }
        }
        Ok(())
    }

    pub fn folder(&self) -> &Path {
        self.file.folder()
    }

    /// Returns the agents with changed files, and the new fingerprints.
    ///
    /// # Errors
    /// [`EntrantError`] if files can't be read.
    pub fn changed(&self) -> Result<Vec<ChangedLine>, EntrantError> {
        let mut changed = Vec::new();
        for agent in &self.record.plan.agents {
            let sha256 = fingerprint_of(agent, self.folder())?;
            if sha256 != agent.sha256 {
                changed.push(ChangedLine { agent: agent.name.clone(), sha256 });
            }
        }
        Ok(changed)
    }

    /// Appends a line durably.
    ///
    /// # Errors
    /// [`JournalError`] if the line contradicts the journal, or can't be written. After an error, the journal is
    /// unchanged.
    pub fn append(&mut self, line: JournalLine) -> Result<(), JournalError> {
        self.record.check_line(&line).map_err(|what| self.file.contradiction(what))?;
        self.file.write(&line)?;
        self.record.take(line).map_err(|what| self.file.contradiction(what))
    }
}

impl JournalFile {
    /// Creates the journal of a plan in a folder, and the folder if it doesn't exist.
    pub(crate) fn create(folder: &Path, plan: &TournamentPlan) -> Result<JournalFile, JournalError> {
        let path = folder.join(FILE);
        let cannot = |source: io::Error| cannot_write(&path, source);
        fs::create_dir_all(folder).map_err(|source| cannot_write(folder, source))?;
        // Some shared file systems can't lock a folder. There, two programs must not create the same journal at once.
        let creating = File::open(folder).map_err(cannot)?;
        if matches!(creating.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(JournalError::Locked(folder.to_owned()));
        }
        if path.exists() {
            let is_running = matches!(Journal::try_lock(folder), Ok(None));
            let refuse = if is_running { JournalError::Locked } else { JournalError::Exists };
            return Err(refuse(folder.to_owned()));
        }
        // A journal never has a partial plan.
        arena_match::write(&path, &to_line(plan, &path)?).map_err(cannot)?;
        Ok(JournalFile::open(folder, |_| Ok(()))?.0)
    }

    /// Opens, locks and reads the journal in a folder, and removes an incomplete last line if `read` accepts the text.
    pub(crate) fn open<R>(
        folder: &Path,
        read: impl FnOnce(&[u8]) -> Result<R, JournalError>,
    ) -> Result<(JournalFile, R), JournalError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Err(JournalError::Absent(folder.to_owned()));
        }
        let cannot = |source: io::Error| cannot_write(&path, source);
        let file = OpenOptions::new().append(true).open(&path).map_err(cannot)?;
        if !lock(&file).map_err(cannot)? {
            return Err(JournalError::Locked(folder.to_owned()));
        }
        let text = fs::read(&path).map_err(|source| LineFileError::Read { path: path.clone(), source })?;
        let content = read(&text)?;
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        let length = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
        let lock = file;
        let file = LineFile::open(&path, length, SyncPolicy::Always)?;
        Ok((JournalFile { folder: folder.to_owned(), file, lines, _lock: lock }, content))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the error for a line that contradicts the journal.
    pub(crate) fn contradiction(&self, what: String) -> JournalError {
        LineFileError::Line { path: self.folder.join(FILE), line: self.lines + 1, what }.into()
    }

    /// Appends a line durably. After an error, the file is unchanged.
    pub(crate) fn write(&mut self, line: &JournalLine) -> Result<(), JournalError> {
        self.file.append_value(line)?;
        self.lines += 1;
        Ok(())
    }
}

fn cannot_write(path: &Path, source: io::Error) -> JournalError {
    LineFileError::Write { path: path.to_owned(), source }.into()
}

/// Reads the journal in a folder.
pub(crate) fn read<R>(folder: &Path, reader: impl FnOnce(&[u8]) -> Result<R, InvalidLine>) -> Result<R, JournalError> {
    let path = folder.join(FILE);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(JournalError::Absent(folder.to_owned()));
        }
        Err(source) => return Err(LineFileError::Read { path, source }.into()),
    };
    parse(folder, &text, reader)
}

/// Parses the text of the journal in a folder.
pub(crate) fn parse<R>(
    folder: &Path,
    text: &[u8],
    reader: impl FnOnce(&[u8]) -> Result<R, InvalidLine>,
) -> Result<R, JournalError> {
    let line = |InvalidLine { line, what }| LineFileError::Line { path: folder.join(FILE), line, what };
    Ok(reader(text).map_err(line)?)
}

/// Returns the format of the tournament in a folder.
///
/// # Errors
/// [`JournalError`] if there is no journal, or its plan can't be read.
pub fn format_of(folder: &Path) -> Result<Format, JournalError> {
    read(folder, TournamentPlan::read).map(|plan| plan.format)
}

impl Competition for Journal {
    fn plan(&self) -> &TournamentPlan {
        &self.record.plan
    }

    fn folder(&self) -> &Path {
        Journal::folder(self)
    }

    fn entrants(&self) -> Vec<&Entrant> {
        self.record.plan.agents.iter().collect()
    }

    fn begin(&mut self) {
        self.begun = 0;
    }

    fn next<E>(&mut self) -> Result<Next, RunError<E>> {
        let schedule = &self.record.schedule;
        if schedule.is_complete() {
            return Ok(Next::Nothing);
        }
        // Pairings are in the order of play. The schedule adds the next wave of pairings when all scheduled games have
        // been played.
        let mut rest = schedule.pairings().iter().skip(self.begun);
        let next = rest.find(|pairing| self.record.game(pairing.number).is_none()).cloned();
        self.begun = next.as_ref().map_or(schedule.pairings().len(), |pairing| pairing.number);
        Ok(next.map_or(Next::Wait, Next::Play))
    }

    fn record<A>(
        &mut self,
        pairing: &Pairing,
        result: MatchResult<A>,
        worker: Option<WorkerPart>,
    ) -> Result<(), JournalError> {
        let result = result.with_agents(|seat, _| self.record.name(pairing.agents[seat]).to_owned());
        let line = GameLine { number: pairing.number, round: pairing.round, result, generations: Vec::new(), worker };
        self.append(JournalLine::Game(Box::new(line)))
    }

    fn exclude(&mut self, _pairing: &Pairing, agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged> {
        Err(FilesChanged(agents.into_iter().map(|agent| self.record.name(agent).to_owned()).collect()))
    }

    fn is_complete(&self) -> bool {
        self.record.schedule.is_complete()
    }

    fn pairing(&self, number: usize) -> Option<Pairing> {
        self.record.schedule.pairing(number).cloned()
    }

    fn has_result(&self, number: usize) -> bool {
        self.record.game(number).is_some()
    }

    fn most_open(&self, _slots: usize) -> usize {
        AHEAD
    }

    fn spread(&self) -> Option<&SpreadLine> {
        self.record.spread.as_ref()
    }

    fn append(&mut self, line: JournalLine) -> Result<(), JournalError> {
        Journal::append(self, line)
    }
}

/// Returns the paths that the sandbox hides from the agents of a tournament: the tournament's folder, and files of the
/// arena in the agents' folders.
///
/// # Errors
/// [`ExposedOutput`] if the folder can't be hidden from an agent.
pub fn private_paths(plan: &TournamentPlan, folder: &Path) -> Result<Vec<PathBuf>, ExposedOutput> {
    private_from(&plan.agents, plan, folder)
}

/// Returns [`private_paths`] for these agents instead of the plan's.
pub(crate) fn private_from(
    entrants: &[Entrant],
    plan: &TournamentPlan,
    folder: &Path,
) -> Result<Vec<PathBuf>, ExposedOutput> {
    let agents: Vec<Agent> = entrants.iter().map(agent_of).collect();
    let replays = folder.join(REPLAYS);
    private(&agents, &plan.expose, plan.sandbox, &[OutputPath::Folder(folder), OutputPath::Folder(&replays)])
}

/// Checks that a tournament's folder isn't part of one of its agents.
///
/// # Errors
/// [`ExposedOutput`] if the folder is part of an agent.
pub fn check_folder(plan: &TournamentPlan, folder: &Path) -> Result<(), ExposedOutput> {
    let agents: Vec<Agent> = plan.agents.iter().map(agent_of).collect();
    own_apart(&agents, &[OutputPath::Folder(folder)])
}

/// Reads the replay of a chess game and returns it as PGN; `None` if the replay file doesn't exist.
///
/// # Errors
/// [`ReplayError`] if the replay can't be read.
pub fn read_pgn(replay: &Path) -> Result<Option<String>, ReplayError> {
    let bytes = match fs::read(replay) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ReplayError::Read(error)),
    };
    let mut text = Vec::new();
    export_pgn(&bytes[..], &mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use arena_model::Seed;
    use arena_tournament::{AgentAddress, Shape};

    use super::*;

    fn plan(game: &str) -> TournamentPlan {
        let entrant = |name: &str| Entrant::new(name, name, AgentAddress::Url(format!("http://127.0.0.1/{name}")));
        let seed = Seed::from_number(5);
        let shape =
            Shape { format: Format::RoundRobin, agents: 2, rounds: 1, seats: 2, paired: true, stop: None, seed };
        TournamentPlan::new(arena_games::game(game).unwrap(), vec![entrant("a"), entrant("b")], &shape)
    }

    #[test]
    fn tournaments_of_other_rules_cannot_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = plan("snake");
        let found = old.rules_version;
        old.rules_version = found - 1;
        drop(Journal::create(folder.path(), old).unwrap());
        assert_eq!(Journal::load_record(folder.path()).unwrap().plan.rules_version, found - 1);
        let refused = Journal::open(folder.path()).unwrap_err();
        assert!(matches!(refused, JournalError::Plan(PlanError::OtherRules { version, .. }) if version == found - 1));
        // A journal from before the introduction of rule versions lacks this field.
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&format!("\"rules_version\":{},", found - 1), "")).unwrap();
        assert_eq!(Journal::load_record(folder.path()).unwrap().plan.rules_version, 1);
    }

    #[test]
    fn tournaments_with_other_texts_cannot_be_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        drop(Journal::create(folder.path(), plan("psi")).unwrap());
        let texts = Journal::open(folder.path()).unwrap().record().plan.texts.clone().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&texts, &"0".repeat(64))).unwrap();
        let refused = Journal::open(folder.path()).unwrap_err();
        assert!(
            matches!(&refused, JournalError::Plan(PlanError::OtherTexts { game, .. }) if game == "psi"),
            "{refused}"
        );
        assert_eq!(Journal::load_record(folder.path()).unwrap().plan.texts, Some("0".repeat(64)));
        // A journal from before the introduction of this field lacks it.
        fs::write(&path, text.replace(&format!("\"texts\":\"{texts}\","), "")).unwrap();
        assert_eq!(Journal::open(folder.path()).unwrap().record().plan.texts, None);
    }

    #[test]
    fn games_have_no_texts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Journal::create(folder.path(), plan("snake")).unwrap().record().plan.texts, None);
    }

    fn changed(agent: &str) -> JournalLine {
        JournalLine::Changed(ChangedLine { agent: agent.to_owned(), sha256: None })
    }

    #[test]
    fn a_contradicting_line_is_reported_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), plan("snake")).unwrap();
        journal.append(changed("b")).unwrap();
        drop(journal);
        let mut journal = Journal::open(folder.path()).unwrap();
        journal.append(changed("a")).unwrap();
        let error = journal.append(changed("nobody")).unwrap_err();
        assert!(matches!(error, JournalError::File(LineFileError::Line { line: 4, .. })), "{error}");
    }

    #[test]
    fn a_contradicting_line_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), plan("snake")).unwrap();
        let path = folder.path().join(FILE);
        let before = fs::read(&path).unwrap();
        journal.append(changed("nobody")).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
        journal.append(changed("b")).unwrap();
        drop(journal);
        assert_eq!(Journal::open(folder.path()).unwrap().record().changes.len(), 1);
    }

    #[test]
    fn results_in_a_removed_folder_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), plan("snake")).unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        let error = journal.append(changed("b")).unwrap_err();
        assert!(
            matches!(error, JournalError::File(LineFileError::Removed(removed)) if removed == folder.path().join(FILE))
        );
    }
}
