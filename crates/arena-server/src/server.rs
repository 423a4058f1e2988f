//! The life cycle of a server: opens the store, listens, serves connections, and stops without dropping accepted
//! requests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arena_engine::{Engine, Environment};
use arena_identity::ServerSecret;
use arena_model::{ChallengeType, Scoring};
use arena_record::RecordKey;
use arena_script::{ScriptKind, find_folders_of};
use arena_store::{FolderLock, NodeTerms, Store, StoreError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;

use crate::arena::Arena;
use crate::auth::{AdminToken, AdminTokenFileError, Auth, AuthError, secret};
use crate::connection::tls::{Tls, TlsError};
use crate::connection::{Acceptor, ConnectionThreads, Listeners, OpenConnections};
use crate::house_bots::House;
use crate::jobs;
use crate::jobs::scripts::{self, Scripts};
use crate::jobs::strategies::Strategies;
use crate::limits::LimitSettings;
use crate::records::{Records, RecordsError};
use crate::settings::{RecordSettings, Settings, SettingsError};
use crate::tournaments::{Runner, Tournaments, TournamentsError};

/// Number of connections that suffices without a warning if `limits.connections` has its default.
const ENOUGH_CONNECTIONS: usize = 2_000;

/// Number of open files that are not connections: store, log, scripts and tournaments.
const OTHER_FILES: usize = 512;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address isn't loopback, but the server has no authentication.
    #[error(
        "refusing to listen on {0}: without authentication, every client can claim to be any player. Listen on 127.0.0.1, \
         use --auth to authenticate players, or use --trust-network if all clients that can reach {0} are trusted"
    )]
    UntrustedNetwork(SocketAddr),
    /// The address is in use or doesn't belong to this machine.
    #[error("cannot listen on {address} (choose another address with --listen; port 0 takes a free one)")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on {address} (network.private_listen)")]
    ListenPrivately {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot start the threads that serve connections")]
    Threads(#[source] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Tournaments(#[from] TournamentsError),
    #[error(transparent)]
    AdminToken(#[from] AdminTokenFileError),
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A listening server. It serves requests from [`Server::run`] on.
pub struct Server {
    listeners: Listeners,
    address: SocketAddr,
    private_address: Option<SocketAddr>,
    arena: Arena,
    runner: Option<Runner>,
    /// The watcher of the challenge folders, if the settings name any.
    scripts: Option<Scripts>,
    /// The scripted strategies, if the settings name any folders.
    strategies: Option<Arc<Strategies>>,
    new_admin_token: Option<AdminToken>,
    /// The lock of the data folder, if the store doesn't hold it.
    folder: Option<FolderLock>,
    threads: ConnectionThreads,
}

impl Server {
    /// Opens the store and listens. Connections wait until [`Server::run`].
    ///
    /// # Errors
    /// If the settings are invalid, the address is unavailable, or the store is unusable.
    pub async fn start(settings: Settings) -> Result<Server, StartError> {
        let challenges = settings.challenge_types()?;
        Server::start_with(settings, challenges, Environment::system()).await
    }

    /// Starts a server like [`Server::start`], but with the given challenges, clock and randomness.
    ///
    /// # Errors
    /// The same as those of [`Server::start`].
    pub async fn start_with(
        settings: Settings,
        challenges: Vec<Arc<dyn ChallengeType>>,
        environment: Environment,
    ) -> Result<Server, StartError> {
        check(&settings)?;
        let tls = settings.network.tls.clone().map(Tls::start).transpose()?.map(Arc::new);
        let address = settings.listen;
        let (public, address) = listen(address).await.map_err(|source| StartError::Listen { address, source })?;
        let (private, private_address) = match settings.network.private_listen {
            Some(address) => {
                let refuse = |source| StartError::ListenPrivately { address, source };
                Some(listen(address).await.map_err(refuse)?)
            }
            None => None,
        }
        .unzip();
        let listeners = Listeners { public, private, house: None, tls };
        let (scoring, archive, is_shared) = (settings.scoring()?, settings.archive()?, settings.is_shared()?);
        let OpenedStore { store, folder, auth, admin_token, has_new_token } =
            OpenedStore::open(&settings, scoring, is_shared).await?;
        // All nodes use the database's clock.
        let environment = match store.nodes().cloned() {
            Some(nodes) => environment.with_clock(move || nodes.now()),
            None => environment,
        };
        let new_admin_token = has_new_token.then(|| admin_token.clone());
        let sandbox = scripts::sandbox(&settings.scripts);
        let revive = scripts::revive(sandbox.clone());
        let engine = Engine::with_scripts(store, challenges, revive, settings.engine_limits(), environment).await?;
        if let Some(place) = archive {
            engine.set_archive(place);
        }
        let scripts = Scripts::start(&settings, sandbox, &engine).await?;
        let strategies = Strategies::start(&settings, &engine).await?;
        // Nodes must sign with equal keys. They have equal tokens, and their data folders differ.
        let shared = is_shared.then(|| ServerSecret::new(admin_token.reveal().as_bytes()).ok()).flatten();
        let records = Records::start(&settings.records, &settings.data, shared.as_ref())?;
        let (tournaments, runner) = start_tournaments(&settings, &engine, records.replay_key(), shared)?.unzip();
        // These settings have the real port instead of port 0, and the loaded token instead of an unset one.
        let settings = Settings { listen: address, admin_token: Some(admin_token), ..settings };
        let connections = room_for_connections(settings.limits.connections);
        let settings = Settings { limits: LimitSettings { connections, ..settings.limits }, ..settings };
        let certificates = listeners.tls.as_ref().map(|tls| tls.certificates());
        let arena = Arena::new(engine, settings, auth, tournaments, records, certificates);
        let threads = ConnectionThreads::start().map_err(StartError::Threads)?;
        Ok(Server {
            listeners,
            address,
            private_address,
            arena,
            runner,
            scripts,
            strategies,
            new_admin_token,
            folder,
            threads,
        })
    }

    /// Returns the administrator's token, if this start has generated it.
    pub fn new_admin_token(&self) -> Option<&AdminToken> {
        self.new_admin_token.as_ref()
    }

    /// Offers house bots as opponents, also in scripted challenges that declare forms. Returns an address at which the
    /// bots reach the server without TLS and proxies. A second call offers the bots of the first.
    ///
    /// # Errors
    /// If the server can't listen on a free port of loopback.
    pub async fn offer(&mut self, house: House) -> io::Result<SocketAddr> {
        let (listener, address) = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        self.listeners.house = Some(listener);
        // An error means that house bots are set already.
        let _ = self.arena.house.set(house.with_scripts(self.arena.engine.clone()));
        Ok(address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the scheme of the server's URL: `https` or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.listeners.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the address at which administration and metrics are served, if it is a separate one.
    pub fn private_address(&self) -> Option<SocketAddr> {
        self.private_address
    }

    /// After `shutdown`, the server accepts no new connections, finishes running requests and returns.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) {
        let Server { listeners, address, arena, runner, scripts, strategies, folder: _folder, threads, .. } = self;
        match &arena.settings.database {
            Some(database) => {
                tracing::info!(%address, %database, "listening on {address}, with the database {database}")
            }
            None => tracing::info!(%address, data = %arena.settings.data.display(), "listening on {address}"),
        }
        let certificates = listeners.tls.as_ref().map(|tls| tls.certificates());
        let jobs = jobs::start(&arena, scripts, strategies, certificates);
        let acceptor = Acceptor::new(listeners, arena.clone(), threads);
        let stop_requested = async {
            shutdown.await;
            let drain_ms = arena.settings.limits.drain_ms;
            if drain_ms > 0 {
                arena.draining.store(true, Ordering::SeqCst);
                tracing::info!(drain_ms, "stopping in {drain_ms} ms; /ready reports it from now on");
                tokio::time::sleep(Duration::from_millis(drain_ms)).await;
            }
        };
        tokio::select! {
            () = acceptor.accept_all() => {}
            () = stop_requested => {}
        }
        let (connections, _threads) = acceptor.close().await;
        drop(jobs);
        finish(&arena, connections, runner).await;
    }
}

/// Ends the open connections and the running matches, within the time limit of the settings.
async fn finish(arena: &Arena, connections: OpenConnections, runner: Option<Runner>) {
    let open = connections.count();
    tracing::info!(open, "stopping with {open} open connections");
    let patience = Duration::from_millis(arena.settings.limits.shutdown_ms);
    let matches = tokio::task::spawn_blocking(|| runner.map(Runner::stop));
    // Connections are notified before long polls end, so that the responses of long polls have `connection: close`.
    let finished = async {
        tokio::join!(biased; connections.shutdown(), async {
            arena.stopping.send_replace(true);
            // An error means a panic, which is already logged.
            let _ = matches.await;
        })
    };
    if tokio::time::timeout(patience, finished).await.is_err() {
        tracing::warn!(
            "requests that did not finish within {} ms of the stop were cut off (limits.shutdown_ms)",
            patience.as_millis()
        );
    }
}

/// Checks that the server may listen at its addresses, and that the folders of scripts can be read.
///
/// # Errors
/// If the settings are unsafe, or name an unreadable folder.
fn check(settings: &Settings) -> Result<(), StartError> {
    let trusts_every_name = !settings.auth.enabled && !settings.trust_network;
    let addresses = [Some(settings.listen), settings.network.private_listen];
    if let Some(address) = addresses.into_iter().flatten().find(|address| !address.ip().is_loopback())
        && trusts_every_name
    {
        return Err(StartError::UntrustedNetwork(address));
    }
    if !settings.sessions.self_play && !settings.auth.enabled {
        return Err(SettingsError::SelfPlayUnknowable.into());
    }
    if settings.auth.enabled && !settings.listen.ip().is_loopback() && settings.site.contact.is_none() {
        tracing::warn!("the pages name no contact; set `contact` in [site] of the settings");
    }
    let kinds = [(ScriptKind::Challenge, &settings.scripts.folders), (ScriptKind::Strategy, &settings.scoring.folders)];
    for (kind, folder) in kinds.iter().flat_map(|(kind, folders)| folders.iter().map(|folder| (*kind, folder))) {
        let unreadable = |source| SettingsError::Folder { kind, folder: folder.clone(), source };
        find_folders_of(kind, folder).map_err(unreadable)?;
    }
    Ok(())
}

/// The store with the secrets, which nodes of a shared database compare.
struct OpenedStore {
    store: Store,
    /// The lock of the data folder, if the store doesn't hold it.
    folder: Option<FolderLock>,
    auth: Option<Auth>,
    admin_token: AdminToken,
    /// True if this start has generated the administrator's token.
    has_new_token: bool,
}

impl OpenedStore {
    async fn open(settings: &Settings, scoring: Scoring, is_shared: bool) -> Result<OpenedStore, StartError> {
        // With a database, the data folder is locked as well, since it holds secrets and tournaments.
        let (opened, folder) = match &settings.database {
            Some(_) => (None, Some(FolderLock::take(&settings.data)?)),
            None => (Some(Store::open(&settings.data, scoring.clone())?), None),
        };
        // From here on the data folder exists and is locked.
        let auth = Auth::start(settings)?;
        let (admin_token, has_new_token) = match &settings.admin_token {
            Some(token) => (token.clone(), false),
            None => AdminToken::load_or_make(&settings.data)?,
        };
        let store = match (opened, &settings.database) {
            (None, Some(database)) if is_shared => {
                Store::join(database.clone(), scoring, &terms(auth.as_ref(), &admin_token, settings)).await?
            }
            (None, Some(database)) => Store::connect(database.clone(), scoring).await?,
            (Some(store), _) => store,
            (None, None) => unreachable!("without a database, the store of the data folder was opened above"),
        };
        Ok(OpenedStore { store, folder, auth, admin_token, has_new_token })
    }
}

/// Returns the settings that must be equal on all nodes of a shared database. Secrets are represented by digests.
fn terms(auth: Option<&Auth>, admin_token: &AdminToken, settings: &Settings) -> NodeTerms {
    let secret = auth.map_or_else(|| "none".to_owned(), |auth| auth.secret.fingerprint());
    let mode = if auth.is_some() { "authentication" } else { "standalone" };
    // Nodes without a secret for records compute the keys of records from the token.
    let RecordSettings { log, origin, secret: record_secret } = &settings.records;
    let record_secret = record_secret.as_ref().map_or_else(|| "none".to_owned(), ServerSecret::fingerprint);
    let default = || "default".to_owned();
    // Nodes that differ in these would sign checkpoints of one log with two names or keys.
    let terms = [
        ("mode (--auth)", mode.to_owned()),
        ("AUTH_SECRET", secret),
        ("ADMIN_TOKEN", admin_token.fingerprint()),
        ("RECORD_SECRET", record_secret),
        ("records.log", log.to_string()),
        ("records.origin", origin.clone().unwrap_or_else(default)),
        // The node that leads plays for all.
        ("tournaments.enabled", settings.tournaments.enabled.to_string()),
    ];
    terms.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn start_tournaments(
    settings: &Settings,
    engine: &Engine,
    sign_key: RecordKey,
    shared: Option<ServerSecret>,
) -> Result<Option<(Tournaments, Runner)>, StartError> {
    if !settings.tournaments.enabled {
        return Ok(None);
    }
    let launcher = settings.tournaments.launcher.clone().ok_or(SettingsError::NoLauncher)?;
    // All nodes must know the owners' keys.
    let secret = match (&settings.auth.secret, shared) {
        (None, Some(shared)) => shared,
        _ => secret(settings)?,
    };
    Ok(Some(Tournaments::start(settings, launcher, secret, engine.clone(), sign_key)?))
}

async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Raises the process's limit of open files. Returns the number of connections that the limit allows, at most `wanted`.
fn room_for_connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let Some(allowed) = allowed.and_then(|allowed| usize::try_from(allowed).ok()) else { return wanted };
    // Under a small limit, half of the open files are for connections.
    let room = allowed.saturating_sub(OTHER_FILES).max(allowed / 2).max(1);
    if room < wanted {
        let sentence = format!(
            "limits.connections is {wanted}, but the system allows {allowed} open files, which suffice for {room} connections; raise \
             `ulimit -Hn` (systemd: LimitNOFILE) above {}",
            wanted + OTHER_FILES
        );
        // Many systems allow fewer connections than the default limit but still enough: no reason for a warning.
        let is_enough = wanted == LimitSettings::default().connections && room >= ENOUGH_CONNECTIONS;
        match is_enough {
            true => tracing::info!(allowed, "{sentence}"),
            false => tracing::warn!(allowed, "{sentence}"),
        }
    }
    room.min(wanted)
}
