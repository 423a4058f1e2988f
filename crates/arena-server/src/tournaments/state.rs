//! The agents and tournaments of a node in memory: the facts of all for lists, the queue, and cached results.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arena_runner::Journal;
use arena_tournament::Record;
use hashlink::LruCache;

use super::TournamentOutcome;
use super::address_turns::AddressTurns;
use super::facts::{AgentFacts, OnceFacts, TournamentFacts};
use super::folder;
use super::id::{AgentId, TournamentId};
use super::runner::Current;

/// Number of tournament records cached in memory, for repeated requests.
const RECORDS: usize = 4;

/// Number of tournament outcomes cached in memory. Outcomes are much smaller than records, and an agent's page needs
/// many.
const OUTCOMES: usize = 256;

pub(super) struct State {
    pub(super) agents: BTreeMap<AgentId, Arc<AgentFacts>>,
    pub(super) tournaments: BTreeMap<TournamentId, Entry>,
    /// Agents and tournaments created with an `Idempotency-Key`, by key.
    pub(super) created: HashMap<String, CreatedBy>,
    /// The networks that have created agents and tournaments since the server's start, without the administrator's.
    pub(super) makers: HashMap<CreatedId, IpAddr>,
    /// The unfinished tournaments, except for the running one. Other nodes may play some of them.
    pub(super) queue: VecDeque<TournamentId>,
    /// Those that other nodes play.
    pub(super) elsewhere: BTreeSet<TournamentId>,
    pub(super) current: Option<Current>,
    pub(super) turns: AddressTurns,
    /// The playing time of tournaments that were interrupted for others.
    pub(super) played: HashMap<TournamentId, Duration>,
    /// Cached records, each with the number of games at the time of reading.
    pub(super) records: LruCache<TournamentId, (usize, Arc<Record>)>,
    /// Cached outcomes, each with the number of games at the time of reading.
    pub(super) outcomes: LruCache<TournamentId, (usize, Arc<TournamentOutcome>)>,
    pub(super) is_stopping: bool,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) facts: Arc<TournamentFacts>,
    pub(crate) games_played: usize,
    /// Number of planned games. Tie-breaks may add more.
    pub(crate) games: usize,
    /// The size of the journal when its games were counted, if other nodes may play them.
    pub(super) journal_bytes: u64,
}

pub(crate) struct TournamentSnapshot {
    pub(crate) entry: Entry,
    /// True if the tournament is being played.
    pub(crate) is_running: bool,
    /// Games per second since the tournament's start or resumption.
    pub(crate) rate: Option<f64>,
}

impl TournamentSnapshot {
    /// True if no more games will be played.
    pub(crate) fn is_over(&self) -> bool {
        self.entry.facts.ended.is_some()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CreatedId {
    Agent(AgentId),
    Tournament(TournamentId),
}

pub(super) struct CreatedBy {
    pub(super) request: String,
    pub(super) id: CreatedId,
}

impl State {
    /// Loads the agents and tournaments in these folders. Damaged ones are logged and skipped.
    pub(super) fn load(agents: Vec<PathBuf>, tournaments: Vec<PathBuf>) -> State {
        let mut state = State {
            agents: BTreeMap::new(),
            tournaments: BTreeMap::new(),
            created: HashMap::new(),
            makers: HashMap::new(),
            queue: VecDeque::new(),
            elsewhere: BTreeSet::new(),
            current: None,
            turns: AddressTurns::default(),
            played: HashMap::new(),
            records: LruCache::new(RECORDS),
            outcomes: LruCache::new(OUTCOMES),
            is_stopping: false,
        };
        for folder in agents {
            match load_agent(&folder) {
                Ok(facts) => drop(state.add_agent(facts)),
                Err(error) => tracing::warn!(%error, "skipped agent {}: {error}", folder.display()),
            }
        }
        let mut waiting = Vec::new();
        for folder in tournaments {
            match load(&folder) {
                Ok(entry) => {
                    if entry.facts.ended.is_none() {
                        waiting.push((entry.facts.created_at, entry.facts.id));
                    }
                    state.add_tournament(entry);
                }
                Err(error) => tracing::warn!(%error, "skipped tournament {}: {error}", folder.display()),
            }
        }
        waiting.sort_unstable();
        state.queue.extend(waiting.into_iter().map(|(_, id)| id));
        state
    }

    pub(super) fn add_agent(&mut self, facts: AgentFacts) -> Arc<AgentFacts> {
        let (facts, id) = (Arc::new(facts.clone()), facts.id);
        self.note(facts.once.as_ref(), CreatedId::Agent(id));
        self.agents.insert(id, Arc::clone(&facts));
        facts
    }

    pub(super) fn add_tournament(&mut self, entry: Entry) {
        let id = entry.facts.id;
        self.note(entry.facts.once.as_ref(), CreatedId::Tournament(id));
        self.tournaments.insert(id, entry);
    }

    /// Returns the number of agents or unfinished tournaments that a network has created.
    pub(super) fn count_made(&self, maker: IpAddr, counts: impl Fn(CreatedId) -> bool) -> usize {
        self.makers.iter().filter(|(id, by)| **by == maker && counts(**id)).count()
    }

    /// Returns the network that has created a tournament; `None` for the administrator, or if it is unknown.
    pub(super) fn maker_of(&self, id: TournamentId) -> Option<IpAddr> {
        self.makers.get(&CreatedId::Tournament(id)).copied()
    }

    /// Returns the tournaments that this node may play now, in the order of the queue.
    fn list_waiting(&self) -> Vec<TournamentId> {
        self.queue.iter().filter(|id| !self.elsewhere.contains(id)).copied().collect()
    }

    /// True if a tournament of another network waits.
    pub(super) fn others_wait(&self, maker: Option<IpAddr>) -> bool {
        self.list_waiting().into_iter().any(|id| self.maker_of(id) != maker)
    }

    pub(super) fn take_next(&mut self) -> Option<TournamentId> {
        let waiting = self.list_waiting();
        let makers: Vec<_> = waiting.iter().map(|id| self.maker_of(*id)).collect();
        let id = waiting[self.turns.give(&makers)?];
        self.queue.retain(|queued| *queued != id);
        Some(id)
    }

    pub(super) fn forget_tournament(&mut self, id: TournamentId) {
        self.played.remove(&id);
        self.tournaments.remove(&id);
        self.queue.retain(|queued| *queued != id);
        self.elsewhere.remove(&id);
        self.records.remove(&id);
        self.outcomes.remove(&id);
        self.forget_created(CreatedId::Tournament(id));
    }

    pub(super) fn forget_created(&mut self, id: CreatedId) {
        self.makers.remove(&id);
        self.created.retain(|_, created| created.id != id);
    }

    fn note(&mut self, once: Option<&OnceFacts>, id: CreatedId) {
        if let Some(OnceFacts { key, request }) = once {
            self.created.insert(key.clone(), CreatedBy { request: request.clone(), id });
        }
    }

    pub(super) fn snapshot(&self, entry: &Entry) -> TournamentSnapshot {
        let current = self.current.as_ref().filter(|current| current.id == entry.facts.id);
        let rate = current.and_then(|current| current.rate(entry.games_played));
        let is_played = current.is_some() || self.elsewhere.contains(&entry.facts.id);
        TournamentSnapshot { entry: entry.clone(), is_running: is_played && entry.facts.ended.is_none(), rate }
    }
}

pub(super) fn load_agent(folder: &Path) -> io::Result<AgentFacts> {
    let facts: AgentFacts = folder::read_facts(folder)?;
    check_place(folder, &facts.id)?;
    Ok(facts)
}

/// Checks that the folder's name is the id in its facts.
fn check_place(folder: &Path, id: &impl ToString) -> io::Result<()> {
    let is_there = folder.file_name().is_some_and(|name| *name == *id.to_string());
    if is_there { Ok(()) } else { Err(io::Error::other("the id in facts.json differs from the folder's name")) }
}

/// Loads a tournament at the start. Journals of finished tournaments aren't read.
pub(super) fn load(folder: &Path) -> io::Result<Entry> {
    let facts: TournamentFacts = folder::read_facts(folder)?;
    check_place(folder, &facts.id)?;
    let (games_played, games) = match &facts.ended {
        Some(ended) => (ended.games_played, ended.games),
        None => {
            let record = Journal::load_record(folder).map_err(io::Error::other)?;
            (record.schedule.games_played(), record.schedule.games())
        }
    };
    // The journal of a tournament that failed may be missing.
    let journal_bytes = Journal::size(folder).unwrap_or(0);
    Ok(Entry { facts: Arc::new(facts), games_played, games, journal_bytes })
}
