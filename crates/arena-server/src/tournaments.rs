//! Tournaments of agents, played by this server in the background: the agents, the queue, and the running tournament.
//!
//! The data is on disk: a folder per agent, and a folder with a journal per tournament. A summary of each is also in
//! memory, for lists. Nodes of one arena may share the folders ([`shared`]). Functions that read or write files block, so handlers call them on blocking threads.

mod agents;
mod facts;
mod folder;
mod id;
mod ladders;
mod outcome;
mod plan;
mod redact;
mod refusal;
mod runner;
mod settings;
mod shared;
mod shown;
mod turns;
mod unpack;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use arena_engine::{Engine, Once};
use arena_identity::ServerSecret;
use arena_match::process::try_sandbox;
use arena_match::{ChainRepair, Launcher, logs};
use arena_model::Timestamp;
use arena_record::RecordKey;
use arena_runner::{Journal, JournalError, REPLAYS};
use arena_tournament::Record;
use facts::OnceFacts;
use hashlink::LruCache;
use ladders::Ladders;
use parking_lot::{Condvar, Mutex, MutexGuard};
use redact::Redaction;
use runner::Current;
use shared::Shared;
use shown::ReplayCache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turns::Turns;

use crate::ledger::Ledger;

pub(crate) use agents::{AgentSource, is_text_control};
pub(crate) use facts::{AgentFacts, Ending, Home, LadderEntry, TournamentFacts};
pub(crate) use id::{AgentId, TournamentId};
pub(crate) use ladders::{Ladder, LadderMatch, LadderRow, find_game};
pub(crate) use outcome::TournamentOutcome;
pub(crate) use plan::NewTournament;
pub(crate) use refusal::TournamentRefusal;
pub(crate) use runner::Runner;
pub use settings::{Creators, TournamentSettings, Uploaders};
pub(crate) use shown::ShownReplay;

/// Names of folders in the data folder.
const AGENTS: &str = "agents";
const TOURNAMENTS: &str = "tournaments";
const LADDERS: &str = "ladders";
const SHOWN: &str = "replays-shown";

/// Number of tournament records cached in memory, for repeated requests.
const RECORDS: usize = 4;

/// Number of tournament outcomes cached in memory. Outcomes are much smaller than records, and an agent's page needs
/// many.
const OUTCOMES: usize = 256;

/// Maximum number of concurrent reads of journals and replays, and of concurrent uploads. More would slow down matches.
const AT_ONCE: usize = 2;

/// Size in bytes at which a piece of a replay is sent.
const READ_BYTES: usize = 64 * 1024;

/// The age of an unfinished folder at which no node is creating it anymore.
const UNFINISHED_FOR: Duration = Duration::from_secs(60 * 60);

/// Interval at which a node looks for changes of other nodes.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum wait for a canceled match to end.
const LET_GO_WITHIN: Duration = Duration::from_secs(10);

/// The agents and tournaments of a server. Clones share their state.
#[derive(Clone)]
pub(crate) struct Tournaments(Arc<TournamentsState>);

struct TournamentsState {
    settings: TournamentSettings,
    launcher: Launcher,
    secret: ServerSecret,
    engine: Engine,
    ledger: Arc<Ledger>,
    sign_key: RecordKey,
    /// Absolute path of the agents' folder.
    agents: PathBuf,
    /// Absolute path of the tournaments' folder.
    tournaments: PathBuf,
    /// Absolute path of the ladders' folder.
    ladders: PathBuf,
    /// The lock that is held while an agent or tournament is created or removed. Without it, concurrent requests could
    /// exceed a limit or create the same thing twice.
    making: Mutex<()>,
    /// The sharing of the folders with other nodes, if they are shared.
    shared: Option<Shared>,
    state: Mutex<State>,
    /// Notified when the queue or the running tournament changes, or the server stops.
    changed: Condvar,
    ladder_views: Ladders,
    /// True to end matches of ladders and checks of uploads, because the server stops.
    called_off: AtomicBool,
    /// The lock that is held while an upload is checked. More checks at once would slow down matches.
    checking: Mutex<()>,
    redaction: Redaction,
    /// Replays prepared for pages.
    replay_cache: ReplayCache,
    reading: Semaphore,
    uploading: Arc<Semaphore>,
}

struct State {
    agents: BTreeMap<AgentId, Arc<AgentFacts>>,
    tournaments: BTreeMap<TournamentId, Entry>,
    /// Agents and tournaments created with an `Idempotency-Key`, by key.
    created: HashMap<String, CreatedBy>,
    /// The networks that have created agents and tournaments since the server's start, without the administrator's.
    makers: HashMap<CreatedId, IpAddr>,
    /// The unfinished tournaments, except for the running one. Other nodes may play some of them.
    queue: VecDeque<TournamentId>,
    /// Those that other nodes play.
    elsewhere: BTreeSet<TournamentId>,
    current: Option<Current>,
    turns: Turns,
    /// The playing time of tournaments that were interrupted for others.
    played: HashMap<TournamentId, Duration>,
    /// Cached records, each with the number of games at the time of reading.
    records: LruCache<TournamentId, (usize, Arc<Record>)>,
    /// Cached outcomes, each with the number of games at the time of reading.
    outcomes: LruCache<TournamentId, (usize, Arc<TournamentOutcome>)>,
    is_stopping: bool,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) facts: Arc<TournamentFacts>,
    pub(crate) games_played: usize,
    /// Number of planned games. Tie-breaks may add more.
    pub(crate) games: usize,
    /// The size of the journal when its games were counted, if other nodes may play them.
    journal_bytes: u64,
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
enum CreatedId {
    Agent(AgentId),
    Tournament(TournamentId),
}

struct CreatedBy {
    request: String,
    id: CreatedId,
}

#[derive(Debug, thiserror::Error)]
pub enum TournamentsError {
    #[error("cannot use the folder {folder}, which stores agents or tournaments")]
    Folder {
        folder: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot start the thread for tournaments")]
    Thread(#[source] io::Error),
}

impl Tournaments {
    /// Loads the agents and tournaments of a data folder, and starts the runner for unfinished tournaments.
    /// `sign_key` signs the replays.
    ///
    /// # Errors
    /// If a folder is unusable, or the thread can't be started. Damaged agents and tournaments are logged and skipped.
    pub(crate) fn start(
        data: &Path,
        settings: TournamentSettings,
        launcher: Launcher,
        secret: ServerSecret,
        engine: Engine,
        ledger: Arc<Ledger>,
        sign_key: RecordKey,
    ) -> Result<(Tournaments, Runner), TournamentsError> {
        let is_shared = engine.is_shared();
        let root = settings.folder.as_deref().unwrap_or(data);
        let open = |name: &str| {
            let folder = root.join(name);
            let refuse = |source| TournamentsError::Folder { folder: folder.display().to_string(), source };
            // Other nodes may be creating what looks unfinished.
            let age = if is_shared { UNFINISHED_FOR } else { Duration::ZERO };
            let prepared = folder::prepare(&folder, age).and_then(|()| {
                // Results contain canonical paths of agents' files, so redaction needs that of the folder.
                let folder = folder.canonicalize()?;
                Ok((folder.clone(), folder::list(&folder)?))
            });
            prepared.map_err(refuse)
        };
        let ((agents, kept_agents), (tournaments, kept)) = (open(AGENTS)?, open(TOURNAMENTS)?);
        let (ladders, _) = open(LADDERS)?;
        let unusable = |source| TournamentsError::Folder { folder: root.display().to_string(), source };
        let shared = is_shared.then(|| Shared::open(root)).transpose().map_err(unusable)?;
        let redaction = Redaction {
            folders: [agents.clone(), tournaments.clone(), ladders.clone()],
            private_urls: settings.private_urls,
        };
        let replay_cache = ReplayCache::open(data.join(SHOWN))
            .map_err(|source| TournamentsError::Folder { folder: data.join(SHOWN).display().to_string(), source })?;
        let mut state = State {
            agents: BTreeMap::new(),
            tournaments: BTreeMap::new(),
            created: HashMap::new(),
            makers: HashMap::new(),
            queue: VecDeque::new(),
            elsewhere: BTreeSet::new(),
            current: None,
            turns: Turns::default(),
            played: HashMap::new(),
            records: LruCache::new(RECORDS),
            outcomes: LruCache::new(OUTCOMES),
            is_stopping: false,
        };
        for folder in kept_agents {
            match load_agent(&folder) {
                Ok(facts) => drop(state.add_agent(facts)),
                Err(error) => tracing::warn!(%error, "skipped agent {}: {error}", folder.display()),
            }
        }
        let mut waiting = Vec::new();
        for folder in kept {
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
        let tournaments = Tournaments(Arc::new(TournamentsState {
            settings,
            launcher,
            secret,
            engine,
            ledger,
            sign_key,
            agents,
            tournaments,
            ladders,
            making: Mutex::new(()),
            shared,
            state: Mutex::new(state),
            changed: Condvar::new(),
            ladder_views: Ladders::default(),
            called_off: AtomicBool::new(false),
            checking: Mutex::new(()),
            redaction,
            replay_cache,
            reading: Semaphore::new(AT_ONCE),
            uploading: Arc::new(Semaphore::new(AT_ONCE)),
        }));
        let runner = Runner::start(tournaments.clone()).map_err(TournamentsError::Thread)?;
        Ok((tournaments, runner))
    }

    /// Returns the redaction of public texts.
    pub(crate) fn redaction(&self) -> &Redaction {
        &self.0.redaction
    }

    /// Returns the ledger that counts the computing time of matches.
    pub(crate) fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.0.ledger)
    }

    pub(crate) fn settings(&self) -> &TournamentSettings {
        &self.0.settings
    }

    /// Runs blocking reads on another thread. The number of concurrent reads is limited.
    pub(crate) async fn read<T: Send + 'static>(&self, work: impl FnOnce(&Tournaments) -> T + Send + 'static) -> T {
        let place = self.0.reading.acquire().await;
        let done = self.run_blocking(work).await;
        drop(place);
        done
    }

    /// Runs blocking work on another thread, without a limit of concurrency.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tournaments) -> T + Send + 'static,
    ) -> T {
        let tournaments = self.clone();
        match tokio::task::spawn_blocking(move || work(&tournaments)).await {
            Ok(done) => done,
            // Requests end before the runtime does, so the error can only be a panic.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Acquires a permit for an upload. There are few permits, since an upload's body is in memory until it is
    /// unpacked.
    ///
    /// # Errors
    /// If all permits are taken.
    pub(crate) fn upload_place(&self) -> Result<OwnedSemaphorePermit, TournamentRefusal> {
        Arc::clone(&self.0.uploading).try_acquire_owned().map_err(|_| TournamentRefusal::Busy)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn folder_of(&self, id: TournamentId) -> PathBuf {
        self.0.tournaments.join(id.to_string())
    }

    /// Returns the numbers of agents and of unfinished tournaments that each network has created.
    pub(crate) fn count_by_maker(&self) -> [Vec<(IpAddr, u64)>; 2] {
        let state = self.state();
        let count = |counts: fn(CreatedId) -> bool| {
            let makers: BTreeSet<IpAddr> = state.makers.values().copied().collect();
            let counted = makers.into_iter().map(|maker| (maker, state.count_made(maker, counts) as u64));
            counted.filter(|(_, count)| *count > 0).collect()
        };
        [count(|id| matches!(id, CreatedId::Agent(_))), count(|id| matches!(id, CreatedId::Tournament(_)))]
    }

    /// Returns the numbers of agents and of unfinished tournaments.
    pub(crate) fn totals(&self) -> [u64; 2] {
        let state = self.state();
        [state.agents.len() as u64, state.queue.len() as u64 + u64::from(state.current.is_some())]
    }

    pub(crate) fn key_of_agent(&self, id: AgentId) -> String {
        self.0.secret.owner_key(&format!("agent/{id}"))
    }

    pub(crate) fn owns_agent(&self, key: &str, id: AgentId) -> bool {
        self.0.secret.owns(key, &format!("agent/{id}"))
    }

    pub(crate) fn key_of_tournament(&self, id: TournamentId) -> String {
        self.0.secret.owner_key(&format!("tournament/{id}"))
    }

    pub(crate) fn owns_tournament(&self, key: &str, id: TournamentId) -> bool {
        self.0.secret.owns(key, &format!("tournament/{id}"))
    }

    // Agents.

    /// Adds an agent. A repeated request returns the agent that the first request added. `maker` is the network whose
    /// limit the agent counts against. An agent that joins a ladder is checked first.
    ///
    /// # Errors
    /// If the source is invalid or not allowed, a limit is reached, or the files can't be written.
    pub(crate) fn add_agent(
        &self,
        source: &AgentSource<'_>,
        name: Option<&str>,
        ladder: Option<LadderEntry>,
        once: Option<Once>,
        maker: Option<IpAddr>,
    ) -> Result<Arc<AgentFacts>, TournamentRefusal> {
        let shared = &*self.0;
        let once = once.as_ref().map(OnceFacts::of);
        let replaces = ladder.as_ref().and_then(|entry| entry.replaces);
        if let Some(facts) = self.agent_before(once.as_ref(), replaces, maker)? {
            return Ok(facts);
        }
        match source {
            AgentSource::Url(_) if !shared.settings.urls => return Err(TournamentRefusal::UrlsOff),
            AgentSource::Url(url) => agents::check_url(url, shared.settings.private_urls)?,
            AgentSource::Files { .. } => self.check_sandbox()?,
        }
        let id = AgentId(shared.engine.draw_id());
        let made = (shared.engine.now(), once);
        // Unpacking is slow, so it happens before the lock is taken. The second lookup below finds the agent of a
        // concurrent request with the same key.
        let max_bytes = shared.settings.unpacked_bytes;
        let (draft, facts) = agents::draft(&shared.agents, id, source, name, ladder, made, max_bytes)?;
        if let Some(entry) = &facts.ladder {
            self.check_plays(&facts, draft.path(), &entry.game, maker)?;
        }
        let _lock = self.lock_creation()?;
        if let Some(facts) = self.agent_before(facts.once.as_ref(), replaces, maker)? {
            return Ok(facts);
        }
        draft.finish()?;
        tracing::info!(agent = %id, "added agent {id}");
        let mut state = self.state();
        state.makers.extend(maker.map(|maker| (CreatedId::Agent(id), maker)));
        let facts = state.add_agent(facts);
        drop(state);
        shared.changed.notify_all();
        Ok(facts)
    }

    /// Finds the agent that an earlier request with the same key added. If there is none, checks that a new agent is
    /// allowed. Agents that have a next version don't count: they are removed soon. `replaces` is the agent of which the
    /// new one is the next version.
    ///
    /// # Errors
    /// If the earlier request was different, its agent was removed, or a new agent would exceed the limit.
    fn agent_before(
        &self,
        once: Option<&OnceFacts>,
        replaces: Option<AgentId>,
        maker: Option<IpAddr>,
    ) -> Result<Option<Arc<AgentFacts>>, TournamentRefusal> {
        if let Some(CreatedId::Agent(id)) = self.created_before(once)? {
            return self.find_agent(id).map(Some).ok_or_else(|| TournamentRefusal::NoAgent(id.to_string()));
        }
        let settings = &self.0.settings;
        let state = self.state();
        let entries = state.agents.values().filter_map(|facts| facts.ladder.as_ref());
        let replaced: BTreeSet<AgentId> = entries.filter_map(|entry| entry.replaces).chain(replaces).collect();
        let counts = |id| matches!(id, CreatedId::Agent(id) if !replaced.contains(&id));
        let own = maker.map_or(0, |maker| state.count_made(maker, counts));
        let all = state.agents.keys().filter(|id| !replaced.contains(id)).count();
        if all >= settings.agents {
            return Err(TournamentRefusal::TooManyAgents(settings.agents));
        }
        if settings.agents_per_address > 0 && own >= settings.agents_per_address {
            return Err(TournamentRefusal::TooManyOwnAgents(own));
        }
        Ok(None)
    }

    /// Checks that the sandbox with namespaces works.
    fn check_sandbox(&self) -> Result<(), TournamentRefusal> {
        try_sandbox(&self.0.launcher).map(drop).map_err(|error| TournamentRefusal::NoSandbox(error.to_string()))
    }

    pub(crate) fn find_agent(&self, id: AgentId) -> Option<Arc<AgentFacts>> {
        self.state().agents.get(&id).cloned()
    }

    /// Returns a page of agents, newest first, and their total number.
    pub(crate) fn list_agents(&self, offset: u64, limit: usize) -> (Vec<Arc<AgentFacts>>, usize) {
        let state = self.state();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        (state.agents.values().rev().skip(offset).take(limit).cloned().collect(), state.agents.len())
    }

    /// Removes an agent with its files.
    ///
    /// # Errors
    /// If the agent is unknown, an unfinished tournament uses it, or its files can't be removed.
    pub(crate) fn remove_agent(&self, id: AgentId) -> Result<(), TournamentRefusal> {
        // Nothing begins to use the agent while this lock is held.
        let _lock = self.lock_creation()?;
        let state = self.state();
        if !state.agents.contains_key(&id) {
            return Err(TournamentRefusal::NoAgent(id.to_string()));
        }
        let needs =
            |entry: &Entry| entry.facts.ended.is_none() && entry.facts.agents.iter().any(|agent| agent.id == id);
        if state.tournaments.values().any(needs) {
            return Err(TournamentRefusal::InUse);
        }
        drop(state);
        folder::remove(&self.0.agents.join(id.to_string()))?;
        let mut state = self.state();
        state.agents.remove(&id);
        state.forget_created(CreatedId::Agent(id));
        drop(state);
        // The agent's ladder goes on without it.
        self.0.changed.notify_all();
        Ok(())
    }

    // Tournaments.

    /// Queues a tournament. A repeated request returns the tournament that the first request queued. `maker` is the
    /// network whose limits the tournament counts against.
    ///
    /// # Errors
    /// If the settings are invalid or a limit is reached.
    pub(crate) fn create(
        &self,
        request: NewTournament,
        once: Option<Once>,
        maker: Option<IpAddr>,
    ) -> Result<TournamentId, TournamentRefusal> {
        let shared = &*self.0;
        let _lock = self.lock_creation()?;
        let once = once.as_ref().map(OnceFacts::of);
        if let Some(CreatedId::Tournament(id)) = self.created_before(once.as_ref())? {
            return Ok(id);
        }
        let agents = {
            let state = self.state();
            let waiting = state.queue.len() + usize::from(state.current.is_some());
            if waiting >= shared.settings.max_tournaments {
                return Err(TournamentRefusal::QueueFull(waiting));
            }
            let own = maker.map_or(0, |maker| state.count_made(maker, |id| matches!(id, CreatedId::Tournament(_))));
            let most_own = shared.settings.max_tournaments_per_address;
            if most_own > 0 && own >= most_own {
                return Err(TournamentRefusal::TooManyOwnTournaments(own));
            }
            if state.tournaments.len() >= shared.settings.tournaments {
                return Err(TournamentRefusal::TooManyTournaments(state.tournaments.len()));
            }
            let find =
                |id: &AgentId| state.agents.get(id).cloned().ok_or_else(|| TournamentRefusal::NoAgent(id.to_string()));
            request.agents.iter().map(find).collect::<Result<Vec<_>, _>>()?
        };
        let id = TournamentId(shared.engine.draw_id());
        let seed = request.seed.clone().unwrap_or_else(|| shared.engine.draw_seed());
        let plan = plan::plan(&request, &agents, seed, &shared.settings, &shared.agents)?;
        if agents.iter().any(|agent| matches!(agent.home, Home::Files { .. })) {
            self.check_sandbox()?;
        }
        let nonce = shared.engine.draw_seed().reveal();
        let facts = plan::facts(id, request, &agents, &plan, nonce, shared.engine.now(), once);
        let draft = folder::Draft::begin(&shared.tournaments, &id.to_string())?;
        folder::write_facts(draft.path(), &facts)?;
        let journal = Journal::create(draft.path(), plan).map_err(|error| match error {
            JournalError::Plan(error) => TournamentRefusal::Plan(error.to_string()),
            error => TournamentRefusal::Write(io::Error::other(error)),
        })?;
        let games = journal.record().schedule.games();
        drop(journal);
        draft.finish()?;
        tracing::info!(tournament = %id, games, "queued tournament {id} of {games} games");
        let mut state = self.state();
        state.add_tournament(Entry { facts: Arc::new(facts), games_played: 0, games, journal_bytes: 0 });
        state.makers.extend(maker.map(|maker| (CreatedId::Tournament(id), maker)));
        // A read of the folder may have found it already.
        if !state.queue.contains(&id) && state.current.as_ref().is_none_or(|current| current.id != id) {
            state.queue.push_back(id);
        }
        drop(state);
        shared.changed.notify_all();
        Ok(id)
    }

    /// Finds the agent or tournament that an earlier request with the same key created.
    fn created_before(&self, once: Option<&OnceFacts>) -> Result<Option<CreatedId>, TournamentRefusal> {
        let Some(once) = once else { return Ok(None) };
        match self.state().created.get(&once.key) {
            None => Ok(None),
            Some(created) if created.request == once.request => Ok(Some(created.id)),
            Some(_) => Err(TournamentRefusal::KeyReused),
        }
    }

    pub(crate) fn find(&self, id: TournamentId) -> Option<TournamentSnapshot> {
        let state = self.state();
        state.tournaments.get(&id).map(|entry| state.snapshot(entry))
    }

    /// Returns a page of the tournaments for which `counts` is true, newest first, and their total number.
    pub(crate) fn list(
        &self,
        offset: u64,
        limit: usize,
        counts: impl Fn(&TournamentSnapshot) -> bool,
    ) -> (Vec<TournamentSnapshot>, usize) {
        let state = self.state();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let all = state.tournaments.values().rev().map(|entry| state.snapshot(entry));
        let (mut page, mut total) = (Vec::new(), 0);
        for snapshot in all.filter(counts) {
            if total >= offset && page.len() < limit {
                page.push(snapshot);
            }
            total += 1;
        }
        (page, total)
    }

    /// Stops an unfinished tournament permanently and waits until its matches have ended, for at most
    /// [`LET_GO_WITHIN`].
    ///
    /// # Errors
    /// If the tournament is unknown, or the end of a queued tournament can't be written.
    pub(crate) fn stop(&self, id: TournamentId) -> Result<(), TournamentRefusal> {
        let mut state = self.state();
        if !state.tournaments.contains_key(&id) {
            return Err(TournamentRefusal::NoTournament(id.to_string()));
        }
        if let Some(current) = state.current.as_ref().filter(|current| current.id == id) {
            current.stop_for_good();
            let until = Instant::now() + LET_GO_WITHIN;
            while state.current.as_ref().is_some_and(|current| current.id == id) {
                if self.0.changed.wait_until(&mut state, until).timed_out() {
                    return Ok(());
                }
            }
            // This node may only have tried to play what another one plays.
        }
        if !state.queue.contains(&id) {
            return Ok(());
        }
        drop(state);
        // Nobody begins to play a tournament whose journal is locked.
        let lock = if self.is_shared() { self.lock_journal(id)? } else { None };
        if self.is_shared() && lock.is_none() {
            return self.stop_elsewhere(id);
        }
        if self.has_ended_elsewhere(id) {
            return Ok(self.read_changes()?);
        }
        self.state().queue.retain(|queued| *queued != id);
        let (facts, written) = self.end(id, Ending::Stopped);
        match written {
            Ok(()) => self.note_end(id, facts),
            Err(error) => {
                // The end isn't on disk, so the tournament stays queued.
                self.state().queue.push_front(id);
                self.0.changed.notify_all();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Stops a tournament that another node plays, and waits for its end, for at most [`LET_GO_WITHIN`].
    fn stop_elsewhere(&self, id: TournamentId) -> Result<(), TournamentRefusal> {
        self.request_stop(id)?;
        let until = Instant::now() + LET_GO_WITHIN;
        while !self.has_ended_elsewhere(id) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        self.read_changes()?;
        Ok(())
    }

    /// Returns the changed facts, `None` for an unknown tournament, and the result of writing.
    fn end(&self, id: TournamentId, how: Ending) -> (Option<TournamentFacts>, io::Result<()>) {
        let Some(entry) = self.state().tournaments.get(&id).cloned() else { return (None, Ok(())) };
        let Entry { facts, games_played, games, .. } = entry;
        let ended = facts::Ended { how, at: self.0.engine.now().0, games_played, games };
        let facts = TournamentFacts { ended: Some(ended), ..(*facts).clone() };
        let written = folder::write_facts(&self.folder_of(id), &facts);
        (Some(facts), written)
    }

    /// Logs the end of a tournament and updates its facts in memory.
    fn note_end(&self, id: TournamentId, facts: Option<TournamentFacts>) {
        let mut state = self.state();
        state.makers.remove(&CreatedId::Tournament(id));
        state.played.remove(&id);
        state.elsewhere.remove(&id);
        if let (Some(entry), Some(facts)) = (state.tournaments.get_mut(&id), facts) {
            let how = facts.ended.as_ref().map(|ended| &ended.how);
            tracing::info!(tournament = %id, "tournament {id} ended: {how:?}");
            entry.facts = Arc::new(facts);
        }
    }

    /// Stops a tournament and deletes its data.
    ///
    /// # Errors
    /// If the tournament is unknown, doesn't stop, or can't be removed.
    pub(crate) fn remove(&self, id: TournamentId) -> Result<(), TournamentRefusal> {
        self.stop(id)?;
        let _lock = self.lock_creation()?;
        let state = self.state();
        let entry = state.tournaments.get(&id).ok_or_else(|| TournamentRefusal::NoTournament(id.to_string()))?;
        let is_elsewhere = entry.facts.ended.is_none() && state.elsewhere.contains(&id);
        if is_elsewhere || state.current.as_ref().is_some_and(|current| current.id == id) {
            return Err(TournamentRefusal::Running);
        }
        drop(state);
        folder::remove(&self.folder_of(id))?;
        self.0.replay_cache.forget(id);
        self.state().forget_tournament(id);
        Ok(())
    }

    /// Removes the tournaments that ended before this time. Returns their number.
    pub(crate) fn remove_ended(&self, before: Timestamp) -> usize {
        if self.is_shared() {
            self.try_read_changes();
        }
        let has_ended = |entry: &&Entry| entry.facts.ended.as_ref().is_some_and(|ended| ended.at < before.0);
        let old: Vec<TournamentId> =
            self.state().tournaments.values().filter(has_ended).map(|entry| entry.facts.id).collect();
        let remove = |id: &&TournamentId| match self.remove(**id) {
            Ok(()) => true,
            // Another node has removed it.
            Err(TournamentRefusal::NoTournament(_)) => false,
            Err(refusal) => {
                tracing::warn!(tournament = %id, "cannot remove the old tournament {id}: {refusal}");
                false
            }
        };
        old.iter().filter(remove).count()
    }

    /// Returns a tournament's snapshot and the record of its journal.
    ///
    /// # Errors
    /// If the tournament is unknown, or its journal can't be read.
    pub(crate) fn record(&self, id: TournamentId) -> Result<(TournamentSnapshot, Arc<Record>), TournamentRefusal> {
        let mut state = self.state();
        let entry = state.tournaments.get(&id).ok_or_else(|| TournamentRefusal::NoTournament(id.to_string()))?;
        let (snapshot, played) = (state.snapshot(entry), entry.games_played);
        if let Some((at, record)) = state.records.get(&id)
            && *at == played
        {
            return Ok((snapshot, Arc::clone(record)));
        }
        drop(state);
        let record =
            Journal::load_record(&self.folder_of(id)).map_err(|error| TournamentRefusal::Damaged(error.to_string()))?;
        let record = Arc::new(record);
        let at = record.schedule.games_played();
        self.state().records.insert(id, (at, Arc::clone(&record)));
        Ok((snapshot, record))
    }

    /// Returns the prepared replay of a match, if it was kept. The first call reads the whole file.
    ///
    /// # Errors
    /// If the tournament isn't over, as for [`Tournaments::open_replay`]; or if the replay can't be read or the index
    /// can't be written.
    pub(crate) fn shown_replay(
        &self,
        id: TournamentId,
        number: usize,
    ) -> Result<Option<Arc<ShownReplay>>, TournamentRefusal> {
        // The file is opened on every call, so that a removed replay isn't served from the cache.
        if self.open_replay(id, number)?.is_none() {
            return Ok(None);
        }
        self.prepare_replay(&self.replay_path(id, number), format!("{id}-{number}")).map(Some)
    }

    fn prepare_replay(&self, kept: &Path, name: String) -> Result<Arc<ShownReplay>, TournamentRefusal> {
        self.0.replay_cache.prepare(&self.0.redaction, kept, name)
    }

    /// Opens the replay of a tournament's match, if it was kept.
    ///
    /// # Errors
    /// If the tournament is unknown or not over, or the file can't be read. The games of a pairing share a seed, so
    /// before the end a replay would help an agent in the next game.
    pub(crate) fn open_replay(
        &self,
        id: TournamentId,
        number: usize,
    ) -> Result<Option<ReplayReader>, TournamentRefusal> {
        let snapshot = self.find(id).ok_or_else(|| TournamentRefusal::NoTournament(id.to_string()))?;
        if snapshot.entry.facts.ended.is_none() {
            return Err(TournamentRefusal::NotOver);
        }
        self.open_replay_at(&self.replay_path(id, number))
    }

    /// Opens a replay, if it was kept.
    fn open_replay_at(&self, path: &Path) -> Result<Option<ReplayReader>, TournamentRefusal> {
        match File::open(path) {
            Ok(file) => Ok(Some(ReplayReader {
                lines: BufReader::new(file),
                repair: ChainRepair::default(),
                tournaments: self.clone(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TournamentRefusal::Damaged(error.to_string())),
        }
    }

    pub(crate) fn replay_path(&self, id: TournamentId, number: usize) -> PathBuf {
        self.folder_of(id).join(REPLAYS).join(format!("{number}.jsonl"))
    }

    /// Reads the log of an agent's stderr and protocol violations in the match of a replay; `None` if there is no log.
    pub(crate) fn read_log(&self, replay: &Path, seat: usize) -> Option<String> {
        let bytes = std::fs::read(logs::path(replay, seat)).ok()?;
        Some(self.redaction().redacted(&String::from_utf8_lossy(&bytes)).into_owned())
    }
}

/// A reader of a replay that redacts its lines.
pub(crate) struct ReplayReader {
    lines: BufReader<File>,
    repair: ChainRepair,
    tournaments: Tournaments,
}

impl ReplayReader {
    /// Reads the next lines of the replay; `None` after the last. This call blocks.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(crate) fn next_lines(&mut self) -> io::Result<Option<String>> {
        let (mut text, mut line) = (String::new(), String::new());
        while text.len() < READ_BYTES && self.lines.read_line(&mut line)? > 0 {
            if let Some(repaired) = self.repair.repair(&line, self.tournaments.redaction().redacted(&line)) {
                text += &repaired;
            }
            line.clear();
        }
        Ok((!text.is_empty()).then_some(text))
    }
}

impl State {
    fn add_agent(&mut self, facts: AgentFacts) -> Arc<AgentFacts> {
        let (facts, id) = (Arc::new(facts.clone()), facts.id);
        self.note(facts.once.as_ref(), CreatedId::Agent(id));
        self.agents.insert(id, Arc::clone(&facts));
        facts
    }

    fn add_tournament(&mut self, entry: Entry) {
        let id = entry.facts.id;
        self.note(entry.facts.once.as_ref(), CreatedId::Tournament(id));
        self.tournaments.insert(id, entry);
    }

    /// Returns the number of agents or unfinished tournaments that a network has created.
    fn count_made(&self, maker: IpAddr, counts: impl Fn(CreatedId) -> bool) -> usize {
        self.makers.iter().filter(|(id, by)| **by == maker && counts(**id)).count()
    }

    /// Returns the network that has created a tournament; `None` for the administrator, or if it is unknown.
    fn maker_of(&self, id: TournamentId) -> Option<IpAddr> {
        self.makers.get(&CreatedId::Tournament(id)).copied()
    }

    /// Returns the tournaments that this node may play now, in the order of the queue.
    fn list_waiting(&self) -> Vec<TournamentId> {
        self.queue.iter().filter(|id| !self.elsewhere.contains(id)).copied().collect()
    }

    /// True if a tournament of another network waits.
    fn others_wait(&self, maker: Option<IpAddr>) -> bool {
        self.list_waiting().into_iter().any(|id| self.maker_of(id) != maker)
    }

    fn take_next(&mut self) -> Option<TournamentId> {
        let waiting = self.list_waiting();
        let makers: Vec<_> = waiting.iter().map(|id| self.maker_of(*id)).collect();
        let id = waiting[self.turns.give(&makers)?];
        self.queue.retain(|queued| *queued != id);
        Some(id)
    }

    fn forget_tournament(&mut self, id: TournamentId) {
        self.played.remove(&id);
        self.tournaments.remove(&id);
        self.queue.retain(|queued| *queued != id);
        self.elsewhere.remove(&id);
        self.records.remove(&id);
        self.outcomes.remove(&id);
        self.forget_created(CreatedId::Tournament(id));
    }

    fn forget_created(&mut self, id: CreatedId) {
        self.makers.remove(&id);
        self.created.retain(|_, created| created.id != id);
    }

    fn note(&mut self, once: Option<&OnceFacts>, id: CreatedId) {
        if let Some(OnceFacts { key, request }) = once {
            self.created.insert(key.clone(), CreatedBy { request: request.clone(), id });
        }
    }

    fn snapshot(&self, entry: &Entry) -> TournamentSnapshot {
        let current = self.current.as_ref().filter(|current| current.id == entry.facts.id);
        let rate = current.and_then(|current| current.rate(entry.games_played));
        let is_played = current.is_some() || self.elsewhere.contains(&entry.facts.id);
        TournamentSnapshot { entry: entry.clone(), is_running: is_played && entry.facts.ended.is_none(), rate }
    }
}

fn load_agent(folder: &Path) -> io::Result<AgentFacts> {
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
fn load(folder: &Path) -> io::Result<Entry> {
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
