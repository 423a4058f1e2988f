//! Tournaments of agents, played by this server in the background: the agents, the queue, and the running tournament.
//!
//! The data is on disk: a folder per agent, and a folder with a journal per tournament. A summary of each is also in
//! memory, for lists ([`state`]). Nodes of one arena may share the folders ([`shared`]). Functions that read or write
//! files block, so handlers call them on blocking threads.

mod address_turns;
mod agents;
mod facts;
mod folder;
mod id;
mod ladders;
mod outcome;
mod plan;
mod queue;
mod redact;
mod refusal;
mod replay_cache;
mod replays;
mod runner;
mod settings;
mod shared;
mod source;
mod state;
mod unpack;

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arena_engine::Engine;
use arena_identity::ServerSecret;
use arena_match::Launcher;
use arena_record::RecordKey;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::blocking::blocking;
use crate::limits::Ledger;
use crate::settings::Settings;
pub(crate) use facts::{AgentFacts, Ending, Home, LadderEntry};
pub(crate) use id::{AgentId, TournamentId};
use ladders::Ladders;
pub(crate) use ladders::{Ladder, LadderMatch, LadderRow, find_game};
pub(crate) use outcome::TournamentOutcome;
pub(crate) use plan::NewTournament;
use redact::Redaction;
pub(crate) use refusal::TournamentRefusal;
use replay_cache::ReplayCache;
pub(crate) use replay_cache::ShownReplay;
pub(crate) use replays::{MatchSource, ReplayReader};
pub(crate) use runner::Runner;
pub use settings::{Creators, TournamentSettings, Uploaders};
use shared::Shared;
pub(crate) use source::{AgentSource, NewAgent, is_text_control};
pub(crate) use state::TournamentSnapshot;
use state::{CreatedId, State};

/// Names of folders in the data folder.
const AGENTS: &str = "agents";
const TOURNAMENTS: &str = "tournaments";
const LADDERS: &str = "ladders";
const SHOWN: &str = "replays-shown";

/// Maximum number of concurrent reads of journals and replays, and of concurrent uploads. More would slow down matches.
const AT_ONCE: usize = 2;

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
    /// Loads the agents and tournaments of the settings' folder, and starts the runner for unfinished tournaments.
    /// `sign_key` signs the replays.
    ///
    /// # Errors
    /// If a folder is unusable, or the thread can't be started. Damaged agents and tournaments are logged and skipped.
    pub(crate) fn start(
        settings: &Settings,
        launcher: Launcher,
        secret: ServerSecret,
        engine: Engine,
        sign_key: RecordKey,
    ) -> Result<(Tournaments, Runner), TournamentsError> {
        let Settings { data, tournaments: terms, limits, .. } = settings;
        let root = terms.folder.as_deref().unwrap_or(data);
        let is_shared = engine.is_shared();
        // Other nodes may be creating what looks unfinished.
        let age = if is_shared { UNFINISHED_FOR } else { Duration::ZERO };
        let open = |name: &str| {
            let folder = root.join(name);
            let opened = folder::prepare(&folder, age).and_then(|()| {
                // Results contain canonical paths of agents' files, so redaction needs that of the folder.
                let folder = folder.canonicalize()?;
                Ok((folder.clone(), folder::list(&folder)?))
            });
            opened.map_err(|source| unusable(&folder, source))
        };
        let ((agents, kept_agents), (tournaments, kept)) = (open(AGENTS)?, open(TOURNAMENTS)?);
        let (ladders, _) = open(LADDERS)?;
        let shared = is_shared.then(|| Shared::open(root)).transpose().map_err(|source| unusable(root, source))?;
        let shown = data.join(SHOWN);
        let replay_cache = ReplayCache::open(shown.clone()).map_err(|source| unusable(&shown, source))?;
        let folders = [agents.clone(), tournaments.clone(), ladders.clone()];
        let tournaments = Tournaments(Arc::new(TournamentsState {
            settings: terms.clone(),
            launcher,
            secret,
            engine,
            ledger: Arc::new(Ledger::new(limits)),
            sign_key,
            agents,
            tournaments,
            ladders,
            making: Mutex::new(()),
            shared,
            state: Mutex::new(State::load(kept_agents, kept)),
            changed: Condvar::new(),
            ladder_views: Ladders::default(),
            called_off: AtomicBool::new(false),
            checking: Mutex::new(()),
            redaction: Redaction { folders, private_urls: terms.private_urls },
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
        blocking(move || work(&tournaments)).await
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
}

fn unusable(folder: &Path, source: io::Error) -> TournamentsError {
    TournamentsError::Folder { folder: folder.display().to_string(), source }
}
