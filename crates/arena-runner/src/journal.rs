//! The journal of a tournament on the disk. What was appended is durable, and only one process appends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use arena_match::{
    Agent, Confinement, JOURNAL as FILE, Launcher, OpenPlace, Place, ReplayError, SeatedAgent, export_pgn, own_apart,
    private,
};
use arena_model::{GameType, MatchResult};
use arena_tournament::{ChangedLine, GameLine, Line, Pairing, Plan, PlanError, Record, Wrong};

use crate::competition::{Competition, Next, Terms};
use crate::entrants::{EntrantError, FilesChanged, agent_of, fingerprint_of};
use crate::executor::RunError;

/// The folder of replays and logs in a tournament's, if they are kept.
pub const REPLAYS: &str = "replays";

/// A journal that this process, and no other, may append to.
#[derive(Debug)]
pub struct Journal {
    /// What it says.
    record: Record,
    folder: PathBuf,
    file: File,
    /// How long it is, in bytes.
    length: u64,
    /// The number of the last pairing that an executor was given.
    begun: usize,
    /// The folder, locked until this is dropped or the process ends, however it ends.
    _lock: File,
}

/// A journal can't be used. A sentence about it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The folder isn't free.
    #[error("{} holds a tournament already", .0.display())]
    Exists(PathBuf),
    /// The folder holds none.
    #[error("there is no tournament in {}", .0.display())]
    Absent(PathBuf),
    /// Another process has it.
    #[error("the tournament in {} is being run by another process", .0.display())]
    Locked(PathBuf),
    /// It can't be played so.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A line is wrong.
    #[error("{}, line {line}: {what}", path.display())]
    Line {
        /// The journal.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// In a sentence.
        what: String,
    },
    /// Reading failed.
    #[error("{} can't be read: {source}", path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its folder is gone, or the journal in it.
    #[error("the tournament's folder {} was removed while it was played", .0.display())]
    Removed(PathBuf),
    /// Writing failed.
    #[error("{} can't be written: {source}", path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Journal {
    /// Begins the journal of a tournament in a folder, which is made if need be.
    ///
    /// # Errors
    /// When the plan can't be played, the folder holds a tournament, or can't be written to.
    pub fn create(folder: &Path, plan: Plan) -> Result<Journal, JournalError> {
        let record = Record::new(plan)?;
        let path = folder.join(FILE);
        let cannot = |source: io::Error| JournalError::Write { path: path.clone(), source };
        fs::create_dir_all(folder).map_err(|source| JournalError::Write { path: folder.to_owned(), source })?;
        let lock = lock(folder)?;
        if path.exists() {
            return Err(JournalError::Exists(folder.to_owned()));
        }
        let mut first = serde_json::to_vec(&record.plan).map_err(|error| cannot(error.into()))?;
        first.push(b'\n');
        // A plan is there as a whole or not at all.
        let draft = folder.join(format!("{FILE}.new"));
        // What a journal holds grows at its end only, also after a line that failed was cut off.
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().append(true).create_new(true).open(&draft).map_err(cannot)?;
        file.write_all(&first).and_then(|()| file.sync_all()).map_err(cannot)?;
        fs::rename(&draft, &path).and_then(|()| lock.sync_all()).map_err(cannot)?;
        Ok(Journal { record, folder: folder.to_owned(), file, length: first.len() as u64, begun: 0, _lock: lock })
    }

    /// Opens the journal in a folder, to go on with it. Half a line at its end is dropped; [`Record::cut_off`] says so.
    ///
    /// # Errors
    /// When there is none, another process has it, or it isn't what it should be; or when games are left that would be played by other
    /// rules than those before them.
    pub fn open(folder: &Path) -> Result<Journal, JournalError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Err(JournalError::Absent(folder.to_owned()));
        }
        let lock = lock(folder)?;
        let (record, length) = read(&path)?;
        if !record.schedule.is_complete() {
            record.plan.check_rules()?;
        }
        let cannot = |source: io::Error| JournalError::Write { path: path.clone(), source };
        let file = OpenOptions::new().append(true).open(&path).map_err(cannot)?;
        if record.cut_off > 0 {
            file.set_len(length).and_then(|()| file.sync_all()).map_err(cannot)?;
        }
        Ok(Journal { record, folder: folder.to_owned(), file, length, begun: 0, _lock: lock })
    }

    /// What the journal in a folder says at this moment, also while another process appends to it.
    ///
    /// # Errors
    /// When there is none, or it isn't what it should be.
    pub fn look(folder: &Path) -> Result<Record, JournalError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Err(JournalError::Absent(folder.to_owned()));
        }
        read(&path).map(|(record, _)| record)
    }

    /// What it says.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Plays so many matches beside each other from now on; the plan on the disk says what it said.
    pub fn set_concurrency(&mut self, concurrency: usize) {
        self.record.plan.concurrency = concurrency;
    }

    /// Goes on by rules that were loaded again, where they are a script: by the same version as before.
    ///
    /// # Errors
    /// When what this program adds to a script's rules has changed, and games are left.
    pub fn set_rules(&mut self, game: &'static GameType) -> Result<(), JournalError> {
        if let Some(script) = self.record.plan.script.clone() {
            self.record.plan.set_rules(script, game);
            if !self.record.schedule.is_complete() {
                self.record.plan.check_rules()?;
            }
        }
        Ok(())
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The agents whose files aren't what they were, each with its fingerprint now.
    ///
    /// # Errors
    /// When files can't be read.
    pub fn changed(&self) -> Result<Vec<ChangedLine>, EntrantError> {
        let mut changed = Vec::new();
        for agent in &self.record.plan.agents {
            let sha256 = fingerprint_of(agent, &self.folder)?;
            if sha256 != agent.sha256 {
                changed.push(ChangedLine { agent: agent.name.clone(), sha256 });
            }
        }
        Ok(changed)
    }

    /// Appends a line. It is on the disk when this returns.
    ///
    /// # Errors
    /// When it can't be written; then the journal is what it was. Or when it doesn't belong here.
    pub fn append(&mut self, line: Line) -> Result<(), JournalError> {
        self.write(&line)?;
        let wrong = |what: String| JournalError::Line { path: self.folder.join(FILE), line: 0, what };
        self.record.take(line).map_err(wrong)
    }

    fn write(&mut self, line: &Line) -> Result<(), JournalError> {
        let path = self.folder.join(FILE);
        let cannot = |source: io::Error| JournalError::Write { path: path.clone(), source };
        let mut bytes = serde_json::to_vec(line).map_err(|error| cannot(error.into()))?;
        bytes.push(b'\n');
        // What is written to a file that nobody can open any more is lost, and no error says so.
        if self.file.metadata().map_err(cannot)?.nlink() == 0 {
            return Err(JournalError::Removed(self.folder.clone()));
        }
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            // A line that isn't there as a whole mustn't be there at all. If that fails too, the next one to open it sees to it.
            let _ = self.file.set_len(self.length);
            return Err(cannot(error));
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// What a journal says, and how many bytes of it count.
fn read(path: &Path) -> Result<(Record, u64), JournalError> {
    let text = fs::read(path).map_err(|source| JournalError::Read { path: path.to_owned(), source })?;
    let record =
        Record::read(&text).map_err(|Wrong { line, what }| JournalError::Line { path: path.to_owned(), line, what })?;
    let length = (text.len() - record.cut_off) as u64;
    Ok((record, length))
}

impl Competition for Journal {
    fn terms<E>(&mut self, launcher: Launcher) -> Result<Terms, RunError<E>> {
        self.begun = 0;
        let plan = &self.record.plan;
        Ok(Terms {
            game: plan.game()?,
            options: plan.options.clone(),
            limits: plan.limits,
            entrants: plan.agents.clone(),
            confinement: Confinement {
                launcher,
                mode: plan.sandbox,
                limits: plan.sandbox_limits,
                expose: plan.expose.clone(),
                private: places(plan, &self.folder)?,
                public_only: plan.public_only,
            },
            folder: self.folder.clone(),
            replays: plan.replays.then(|| self.folder.join(REPLAYS)),
        })
    }

    fn next<E>(&mut self) -> Result<Next, RunError<E>> {
        let schedule = &self.record.schedule;
        if schedule.is_complete() {
            return Ok(Next::Nothing);
        }
        // In the order of play. The next wave is known when this one has been played.
        let mut rest = schedule.pairings().iter().skip(self.begun);
        let next = rest.find(|pairing| self.record.game(pairing.number).is_none()).cloned();
        self.begun = next.as_ref().map_or(schedule.pairings().len(), |pairing| pairing.number);
        Ok(next.map_or(Next::Wait, Next::Play))
    }

    fn record<E>(&mut self, pairing: &Pairing, result: MatchResult<SeatedAgent>) -> Result<usize, RunError<E>> {
        let result = result.with_agents(|seat, _| self.record.name(pairing.agents[seat]).to_owned());
        let line = GameLine { number: pairing.number, round: pairing.round, result, worker: None };
        self.append(Line::Game(Box::new(line)))?;
        Ok(pairing.number)
    }

    fn exclude(&mut self, _pairing: &Pairing, agents: Vec<usize>) -> Result<Vec<usize>, FilesChanged> {
        Err(FilesChanged(agents.into_iter().map(|agent| self.record.name(agent).to_owned()).collect()))
    }

    fn is_complete(&self) -> bool {
        self.record.schedule.is_complete()
    }
}

/// The places that are hidden from the agents of a tournament: its folder, and files of the arena in theirs.
///
/// # Errors
/// When the folder can't be kept from one of them.
pub fn places(plan: &Plan, folder: &Path) -> Result<Vec<PathBuf>, OpenPlace> {
    let agents: Vec<Agent> = plan.agents.iter().map(agent_of).collect();
    let replays = folder.join(REPLAYS);
    private(&agents, &plan.expose, plan.sandbox, &[Place::Folder(folder), Place::Folder(&replays)])
}

/// Refuses a tournament's folder that is the folder, or a file, of one of its agents, wherever they are played.
///
/// # Errors
/// When it is.
pub fn check_folder(plan: &Plan, folder: &Path) -> Result<(), OpenPlace> {
    let agents: Vec<Agent> = plan.agents.iter().map(agent_of).collect();
    own_apart(&agents, &[Place::Folder(folder)])
}

/// Reads the replay of a game of chess, and returns it in PGN; `None` if there is no such file.
///
/// # Errors
/// When it can't be read.
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

/// How long a folder is waited for that another process has. An agent that was just being started when its runner ended holds the
/// runner's lock until it has begun.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(1);

/// Makes a folder this process' own.
fn lock(folder: &Path) -> Result<File, JournalError> {
    let cannot = |source: io::Error| JournalError::Read { path: folder.to_owned(), source };
    let lock = File::open(folder).map_err(cannot)?;
    let until = Instant::now() + WAIT_FOR_LOCK;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use arena_model::{Dialect, Seed};
    use arena_tournament::{Entrant, Format, Reach, Shape};

    use super::*;

    fn plan() -> Plan {
        let entrant = |name: &str| Entrant {
            name: name.to_owned(),
            version: None,
            path: name.to_owned(),
            dialect: Dialect::default(),
            reach: Reach::Url(format!("http://127.0.0.1/{name}")),
            files: Vec::new(),
            sha256: None,
        };
        let seed = Seed::from_number(5);
        let shape =
            Shape { format: Format::RoundRobin, agents: 2, rounds: 1, seats: 2, paired: true, stop: None, seed };
        let game = arena_games::game("snake").unwrap();
        Plan::new(game, vec![entrant("a"), entrant("b")], &shape)
    }

    #[test]
    fn games_by_other_rules_are_not_added_to_those_that_were_played() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = plan();
        let found = old.rules_version;
        old.rules_version = found - 1;
        drop(Journal::create(folder.path(), old).unwrap());
        assert_eq!(Journal::look(folder.path()).unwrap().plan.rules_version, found - 1);
        let refused = Journal::open(folder.path()).unwrap_err();
        assert!(matches!(refused, JournalError::Plan(PlanError::OtherRules { version, .. }) if version == found - 1));
        // Journals of programs that knew of no versions.
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&format!("\"rules_version\":{},", found - 1), "")).unwrap();
        assert_eq!(Journal::look(folder.path()).unwrap().plan.rules_version, 1);
    }

    fn changed(agent: &str) -> Line {
        Line::Changed(ChangedLine { agent: agent.to_owned(), sha256: None })
    }

    #[test]
    fn what_follows_a_line_that_was_cut_off_stands_right_behind_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), plan()).unwrap();
        // As a disk that is full leaves it, and as it is cleared up.
        journal.file.write_all(b"{\"half").unwrap();
        journal.file.set_len(journal.length).unwrap();
        journal.append(changed("b")).unwrap();
        drop(journal);
        let record = Journal::look(folder.path()).unwrap();
        assert_eq!((record.changes, record.cut_off), (vec![ChangedLine { agent: "b".to_owned(), sha256: None }], 0));
    }

    #[test]
    fn a_folder_that_was_removed_takes_no_more_results() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(folder.path(), plan()).unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        let error = journal.append(changed("b")).unwrap_err();
        assert!(matches!(error, JournalError::Removed(removed) if removed == folder.path()));
    }
}
