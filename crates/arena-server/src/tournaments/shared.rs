//! A folder of agents and tournaments that several nodes share. Each node keeps the facts of all in memory, and reads
//! the changes of the others before it answers a request.
//!
//! The lock of a tournament's journal belongs to the node that plays it. If that node ends, the system releases the lock,
//! and another node plays on. A node that creates or removes something holds the lock of the whole folder.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arena_runner::Journal;
use parking_lot::{Mutex, MutexGuard};

use super::facts::TournamentFacts;
use super::id::{AgentId, TournamentId};
use super::state::{CreatedId, Entry, load, load_agent};
use super::{Tournaments, folder};

/// Name of the file that nodes lock while they create or remove something. It contains the folder's path.
const LOCK: &str = "nodes.lock";

/// Name of the file that requests the end of a tournament from the node that plays it.
const STOP: &str = "stop";

/// Maximum wait for the lock of a journal. A node that only looks if another plays the tournament holds it for a moment.
const LOCK_WITHIN: Duration = Duration::from_millis(200);

/// Maximum wait for the lock of the folder. A node holds it while it creates or removes something.
const FOLDER_LOCK_WITHIN: Duration = Duration::from_secs(10);

pub(super) struct Shared {
    lock: PathBuf,
    /// The lock of a read of others' changes. A second read must not add what the first has found to be removed.
    reading: Mutex<()>,
}

/// The lock that is held while an agent or tournament is created or removed.
pub(super) struct CreationLock<'t> {
    _of_node: MutexGuard<'t, ()>,
    _of_nodes: Option<File>,
}

impl Shared {
    /// Opens a folder for sharing.
    ///
    /// # Errors
    /// If the folder can't be used, or other nodes see it at another path. Journals have paths of agents.
    pub(super) fn open(folder: &Path) -> io::Result<Shared> {
        let lock = folder.join(LOCK);
        let file = OpenOptions::new().read(true).append(true).create(true).open(&lock)?;
        file.lock()?;
        let own = folder.canonicalize()?.display().to_string();
        let theirs = fs::read_to_string(&lock)?;
        if theirs.is_empty() {
            fs::write(&lock, &own)?;
        } else if theirs != own {
            return Err(io::Error::other(format!(
                "the other nodes see this folder as {theirs}, and this node as {own}"
            )));
        }
        Ok(Shared { lock, reading: Mutex::default() })
    }

    fn lock(&self) -> io::Result<File> {
        let file = OpenOptions::new().append(true).open(&self.lock)?;
        let until = Instant::now() + FOLDER_LOCK_WITHIN;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(10)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Tournaments {
    /// Takes the lock for creating and removing, and reads the changes of other nodes.
    ///
    /// # Errors
    /// If the folder can't be locked or read.
    pub(super) fn lock_creation(&self) -> io::Result<CreationLock<'_>> {
        let of_node = self.0.making.lock();
        let of_nodes = self.0.shared.as_ref().map(Shared::lock).transpose()?;
        self.read_changes()?;
        Ok(CreationLock { _of_node: of_node, _of_nodes: of_nodes })
    }

    /// Reads the changes of other nodes in a shared folder. This call blocks.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub(crate) fn read_changes(&self) -> io::Result<()> {
        let Some(shared) = &self.0.shared else { return Ok(()) };
        let _reading = shared.reading.lock();
        let (known_agents, known, current) = {
            let state = self.state();
            let current = state.current.as_ref().map(|current| current.id);
            (keys(&state.agents), keys(&state.tournaments), current)
        };
        // An entry that this node adds from here on isn't among the known ones, so it can't be taken for removed.
        let agents: BTreeSet<AgentId> = ids(&self.0.agents)?;
        let tournaments: BTreeSet<TournamentId> = ids(&self.0.tournaments)?;
        // A folder that another node removes meanwhile can't be read, and isn't there at the next read.
        let new_agents: Vec<_> = agents
            .difference(&known_agents)
            .filter_map(|id| load_agent(&self.0.agents.join(id.to_string())).ok())
            .collect();
        let new: Vec<Entry> = tournaments.difference(&known).filter_map(|id| load(&self.folder_of(*id)).ok()).collect();
        let mut state = self.state();
        for id in known_agents.difference(&agents) {
            state.agents.remove(id);
            state.forget_created(CreatedId::Agent(*id));
        }
        for id in known.difference(&tournaments) {
            state.forget_tournament(*id);
        }
        for facts in new_agents.into_iter().filter(|facts| !known_agents.contains(&facts.id)) {
            state.add_agent(facts);
        }
        for entry in new {
            let id = entry.facts.id;
            if !state.tournaments.contains_key(&id) {
                if entry.facts.ended.is_none() {
                    state.queue.push_back(id);
                }
                state.add_tournament(entry);
            }
        }
        let unfinished: Vec<(TournamentId, Entry)> = state
            .tournaments
            .iter()
            .filter(|(id, entry)| entry.facts.ended.is_none() && Some(**id) != current)
            .map(|(id, entry)| (*id, entry.clone()))
            .collect();
        drop(state);
        for (id, entry) in unfinished {
            self.read_progress(id, entry);
        }
        Ok(())
    }

    /// Reads the progress of a tournament that another node may play.
    fn read_progress(&self, id: TournamentId, entry: Entry) {
        let folder = self.folder_of(id);
        let Ok(facts) = folder::read_facts::<TournamentFacts>(&folder) else { return };
        let is_elsewhere = matches!(Journal::try_lock(&folder), Ok(None));
        let size = Journal::size(&folder).unwrap_or(entry.journal_bytes);
        let mut entry = Entry { facts: Arc::new(facts), journal_bytes: size, ..entry };
        if let Some(ended) = &entry.facts.ended {
            (entry.games_played, entry.games) = (ended.games_played, ended.games);
        } else if self.state().tournaments.get(&id).is_some_and(|known| known.journal_bytes != size)
            && let Ok(record) = Journal::load_record(&folder)
        {
            (entry.games_played, entry.games) = (record.schedule.games_played(), record.schedule.games());
        }
        let mut state = self.state();
        // This node may have begun to play it.
        if state.current.as_ref().is_some_and(|current| current.id == id) {
            return;
        }
        let has_ended = entry.facts.ended.is_some();
        if has_ended {
            state.queue.retain(|queued| *queued != id);
            state.makers.remove(&CreatedId::Tournament(id));
        }
        match is_elsewhere && !has_ended {
            true => state.elsewhere.insert(id),
            false => state.elsewhere.remove(&id),
        };
        if let Some(known) = state.tournaments.get_mut(&id) {
            *known = entry;
        }
    }

    /// True if other nodes may play the tournaments too.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.shared.is_some()
    }

    /// Reads the changes of other nodes for the runner, which goes on without them if it can't. Returns true if they
    /// were read.
    pub(super) fn try_read_changes(&self) -> bool {
        let read = self.read_changes();
        if let Err(error) = &read {
            tracing::warn!(%error, "cannot read the folder of tournaments: {error}");
        }
        read.is_ok()
    }

    /// Locks the journal of a tournament. Returns `None` if another node plays the tournament.
    pub(super) fn lock_journal(&self, id: TournamentId) -> io::Result<Option<File>> {
        let until = Instant::now() + LOCK_WITHIN;
        loop {
            let lock = Journal::try_lock(&self.folder_of(id))?;
            if lock.is_some() || Instant::now() > until {
                return Ok(lock);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Requests the end of a tournament from the node that plays it.
    pub(super) fn request_stop(&self, id: TournamentId) -> io::Result<()> {
        File::create(self.folder_of(id).join(STOP)).map(drop)
    }

    /// True if another node has requested the end of a tournament.
    pub(super) fn is_stop_requested(&self, id: TournamentId) -> bool {
        self.is_shared() && self.folder_of(id).join(STOP).exists()
    }

    /// True if another node has ended or removed a tournament.
    pub(super) fn has_ended_elsewhere(&self, id: TournamentId) -> bool {
        self.is_shared()
            && folder::read_facts::<TournamentFacts>(&self.folder_of(id)).map_or(true, |facts| facts.ended.is_some())
    }
}

fn keys<K: Copy + Ord, V>(map: &std::collections::BTreeMap<K, V>) -> BTreeSet<K> {
    map.keys().copied().collect()
}

/// Returns the ids of the folders in `folder`. The names of unfinished folders aren't ids.
fn ids<I: std::str::FromStr + Ord>(folder: &Path) -> io::Result<BTreeSet<I>> {
    let names = folder::list(folder)?;
    Ok(names.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect())
}
