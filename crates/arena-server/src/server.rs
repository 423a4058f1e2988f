//! The life cycle of a server: opens the store, listens, serves connections, and stops without dropping accepted
//! requests.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use arena_engine::{Engine, Environment, Limits};
use arena_identity::ServerSecret;
use arena_model::ChallengeType;
use arena_script::{Sandbox, find_folders};
use arena_store::{FolderLock, NodeTerms, Store, StoreError};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tower::{Layer, ServiceExt};
use tower_http::cors::{Any, Cors, CorsLayer};

use crate::admin_token::{AdminToken, AdminTokenFileError};
use crate::arena::Arena;
use crate::auth::{Auth, AuthError, secret};
use crate::connections::{Connection, ConnectionGuard, ConnectionRefusal, Connections, RequestConnection};
use crate::house::House;
use crate::lanes::Lanes;
use crate::memory;
use crate::metrics::GaugeGuard;
use crate::passing::{self, NODE, Passing};
use crate::proxies::ClientHeader;
use crate::proxies::client_of;
use crate::proxy_protocol::read_client;
use crate::records::{Records, RecordsError, Signer};
use crate::request::ClientAddress;
use crate::request_id::{REQUEST_ID, RequestId};
use crate::routes::{self, DirectRoute};
use crate::scripts::{self, Scripts};
use crate::settings::{LimitSettings, RecordSettings, Settings, SettingsError};
use crate::supervision::keep_running;
use crate::tournaments::{Runner, Tournaments, TournamentsError};

/// Time for which a stopping server still accepts pending connections and reads their requests.
const LAST_CALL: Duration = Duration::from_millis(20);

/// Time limit for telling the other nodes that this one stops.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// Timeout of an idle connection, and time limit for receiving the headers of a request.
const HEADERS_WITHIN: Duration = Duration::from_secs(75);

/// Idle timeout and header timeout of a connection from the reserve, until its caller is known.
const HURRIED_HEADERS_WITHIN: Duration = Duration::from_secs(5);

/// Maximum bytes of a response that a connection buffers; also the maximum size of a request's head.
const CONNECTION_BUFFER: usize = 32 * 1024;

/// Requested size of the kernel's send buffer per connection, in bytes. Linux doubles it.
const SEND_BUFFER: usize = 128 * 1024;

/// Number of connections that suffices without a warning if `limits.connections` has its default.
const ENOUGH_CONNECTIONS: usize = 2_000;

/// Number of open files that are not connections: store, log, scripts and tournaments.
const OTHER_FILES: usize = 512;

/// An error at the start of a server.
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
        /// The address from the settings.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The private address is in use or doesn't belong to this machine.
    #[error("cannot listen on {address} (network.private_listen)")]
    ListenPrivately {
        /// The address from the settings.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The address for requests from other nodes is in use or doesn't belong to this machine.
    #[error("cannot listen on {address} (--node-listen)")]
    ListenToNodes {
        /// The address from the settings.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The threads for connections can't be started.
    #[error("cannot start the threads that serve connections")]
    Threads(#[source] io::Error),
    /// The store is unusable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Authentication can't be prepared.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// Tournaments can't be prepared.
    #[error(transparent)]
    Tournaments(#[from] TournamentsError),
    /// The administrator's token is unusable.
    #[error(transparent)]
    AdminToken(#[from] AdminTokenFileError),
    /// The keys of records are unusable.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// A listening server. It serves requests from [`Server::run`] on.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    private: Option<(TcpListener, SocketAddr)>,
    /// The listener for requests from other nodes.
    nodes: Option<(TcpListener, SocketAddr)>,
    arena: Arena,
    /// The runner of tournaments, if enabled.
    runner: Option<Runner>,
    /// The watcher of the challenge folders, if the settings name any.
    scripts: Option<Scripts>,
    new_admin_token: Option<AdminToken>,
    /// The lock of the data folder, if the store doesn't hold it.
    folder: Option<FolderLock>,
    lanes: Lanes,
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
        for folder in &settings.scripts.folders {
            let unreadable = |source| SettingsError::Folder { folder: folder.clone(), source };
            find_folders(folder).map_err(unreadable)?;
        }
        let address = settings.listen;
        let refuse = |source| StartError::Listen { address, source };
        let (listener, address) = listen(address).await.map_err(refuse)?;
        let private = match settings.network.private_listen {
            Some(address) => {
                let refuse = |source| StartError::ListenPrivately { address, source };
                Some(listen(address).await.map_err(refuse)?)
            }
            None => None,
        };
        let nodes = match settings.node_listen()? {
            Some(address) => {
                let refuse = |source| StartError::ListenToNodes { address, source };
                Some(listen(address).await.map_err(refuse)?)
            }
            None => None,
        };
        let scoring = settings.scoring()?;
        let is_shared = settings.is_shared()?;
        // With a database, the data folder is locked as well, since it holds secrets and tournaments.
        let (opened, folder) = match &settings.database {
            Some(_) => (None, Some(FolderLock::take(&settings.data)?)),
            None => (Some(Store::open(&settings.data, scoring.clone())?), None),
        };
        // From here on the data folder exists and is locked.
        let auth = Auth::start(&settings)?;
        let (admin_token, is_new) = match &settings.admin_token {
            Some(token) => (token.clone(), false),
            None => AdminToken::load_or_make(&settings.data)?,
        };
        let store = match (opened, &settings.database) {
            (None, Some(database)) if is_shared => {
                let terms = terms(auth.as_ref(), &admin_token, &settings.records);
                Store::join(database.clone(), scoring, &terms).await?
            }
            (None, Some(database)) => Store::connect(database.clone(), scoring).await?,
            (Some(store), _) => store,
            (None, None) => unreachable!("without a database, the store of the data folder was opened above"),
        };
        // All nodes use the database's clock.
        let environment = match store.nodes().cloned() {
            Some(nodes) => environment.with_clock(move || nodes.now()),
            None => environment,
        };
        let new_admin_token = is_new.then(|| admin_token.clone());
        let limits = Limits {
            channel_messages: settings.limits.channel_messages,
            spectators_chat: settings.sessions.spectators_chat,
            self_play: settings.sessions.self_play,
            proven_players: settings.auth.enabled,
            inactivity: settings.sessions.inactivity(),
        };
        let sandbox = scripts::sandbox(&settings.scripts);
        let engine =
            Engine::with_scripts(store, challenges, scripts::revive(sandbox.clone()), limits, environment).await?;
        let scripts = start_scripts(&settings, sandbox, &engine).await?;
        // Nodes must sign with equal keys. They have equal tokens, and their data folders differ.
        let shared = is_shared.then(|| ServerSecret::new(admin_token.reveal().as_bytes()).ok()).flatten();
        let records = Records::start(&settings.records, &settings.data, shared.as_ref())?;
        let (tournaments, runner) = start_tournaments(&settings, &engine, records.replay_signer())?.unzip();
        // These settings have the real port instead of port 0, and the loaded token instead of an unset one.
        let passing = nodes.as_ref().and_then(|_| Passing::new(&admin_token, settings.nodes.name.as_ref()));
        let settings = Settings { listen: address, admin_token: Some(admin_token), ..settings };
        let settings = {
            let connections = room_for_connections(settings.limits.connections);
            Settings { limits: LimitSettings { connections, ..settings.limits }, ..settings }
        };
        let arena = Arena::new(engine, settings, auth, tournaments, records, passing);
        let lanes = Lanes::start().map_err(StartError::Threads)?;
        Ok(Server { listener, address, private, nodes, arena, runner, scripts, new_admin_token, folder, lanes })
    }

    /// Returns the administrator's token, if this start has generated it.
    pub fn new_admin_token(&self) -> Option<&AdminToken> {
        self.new_admin_token.as_ref()
    }

    /// Offers house bots as opponents, also in scripted challenges that declare forms. A second call has no effect.
    pub fn offer(&self, house: House) {
        let house = house.with_scripts(self.arena.engine.clone());
        // An error means that house bots are set already.
        let _ = self.arena.house.set(house);
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address at which administration and metrics are served, if it is a separate one.
    pub fn private_address(&self) -> Option<SocketAddr> {
        self.private.as_ref().map(|(_, address)| *address)
    }

    /// Returns the address for requests from other nodes, with the real port.
    pub fn node_address(&self) -> Option<SocketAddr> {
        self.nodes.as_ref().map(|(_, address)| *address)
    }

    /// Serves until `shutdown` completes. Then the server accepts no new connections, finishes running requests and
    /// returns.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) {
        let Server { listener, address, private, nodes, arena, runner, scripts, folder: _folder, lanes, .. } = self;
        match &arena.settings.database {
            Some(database) => {
                tracing::info!(%address, %database, "listening on {address}, with the database {database}")
            }
            None => tracing::info!(%address, data = %arena.settings.data.display(), "listening on {address}"),
        }
        let (clock, house, derived) = (arena.clone(), arena.clone(), arena.clone());
        let engine = arena.engine.clone();
        let watching = scripts.map(|scripts| tokio::spawn(scripts.watch(engine)));
        let run_deadlines = tokio::spawn(async move {
            keep_running(&clock.restarting, "watches the clock", || clock.engine.run_deadlines()).await;
        });
        let housekeeping = tokio::spawn(async move {
            let forget_addresses = || async {
                loop {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    house.rates.forget_idle();
                    house.connections.memory().forget_idle();
                }
            };
            tokio::join!(
                keep_running(&house.restarting, "runs housekeeping", || house.engine.run_eviction()),
                keep_running(&house.restarting, "forgets addresses", forget_addresses),
            );
        });
        let keep_derived = tokio::spawn(async move {
            keep_running(&derived.restarting, "checks derived tables", || derived.engine.keep_derived()).await;
        });

        let follow_others = {
            let arena = arena.clone();
            tokio::spawn(async move {
                let follow = || arena.engine.follow_others(arena.settings.nodes.nats.as_ref());
                keep_running(&arena.restarting, "follows other nodes", follow).await;
            })
        };

        let (nodes, own) = nodes.unzip();
        let keep_peers = own.map(|own| {
            let arena = arena.clone();
            tokio::spawn(async move {
                keep_running(&arena.restarting, "finds other nodes", || arena.engine.keep_peers(own)).await;
            })
        });

        let keep_log = arena.settings.records.log.then(|| {
            arena.engine.keep_ended();
            let arena = arena.clone();
            tokio::spawn(async move {
                let keep = || arena.records.keep_log(&arena);
                keep_running(&arena.restarting, "keeps the log", keep).await;
            })
        });

        let acceptor = Acceptor::new(listener, private.map(|(listener, _)| listener), nodes, arena.clone(), lanes);
        let told_to_stop = async {
            shutdown.await;
            if let Some(keep_peers) = keep_peers {
                keep_peers.abort();
                // The other nodes notice within a second. A database that doesn't answer must not delay the stop.
                let _ = tokio::time::timeout(LEAVE_WITHIN, arena.engine.leave_peers()).await;
            }
            let drain_ms = arena.settings.limits.drain_ms;
            if drain_ms > 0 {
                arena.draining.store(true, Ordering::SeqCst);
                tracing::info!(drain_ms, "stopping in {drain_ms} ms; /ready reports it from now on");
                tokio::time::sleep(Duration::from_millis(drain_ms)).await;
            }
        };
        tokio::select! {
            () = acceptor.accept_all() => {}
            () = told_to_stop => {}
        }
        let (connections, _lanes) = acceptor.close().await;
        run_deadlines.abort();
        housekeeping.abort();
        keep_derived.abort();
        follow_others.abort();
        if let Some(keep_log) = keep_log {
            keep_log.abort();
        }
        if let Some(watching) = watching {
            watching.abort();
        }
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
}

/// Returns the settings that must be equal on all nodes of a shared database, so that a key from one node is valid on
/// the others. Secrets are represented by digests.
fn terms(auth: Option<&Auth>, admin_token: &AdminToken, records: &RecordSettings) -> NodeTerms {
    let secret = auth.map_or_else(|| "none".to_owned(), |auth| auth.secret.fingerprint());
    let mode = if auth.is_some() { "authentication" } else { "standalone" };
    // Nodes without a secret for records compute the keys of records from the token.
    let RecordSettings { log, origin, sign_with, secret: record_secret } = records;
    let record_secret = record_secret.as_ref().map_or_else(|| "none".to_owned(), ServerSecret::fingerprint);
    let default = || "default".to_owned();
    // Nodes that differ in these would sign checkpoints of one log with two names or keys.
    let signer = if sign_with.is_some() { "a command" } else { "none" };
    let terms = [
        ("mode (--auth)", mode.to_owned()),
        ("AUTH_SECRET", secret),
        ("ADMIN_TOKEN", admin_token.fingerprint()),
        ("RECORD_SECRET", record_secret),
        ("records.log", log.to_string()),
        ("records.origin", origin.clone().unwrap_or_else(default)),
        ("records.sign_with", signer.to_owned()),
    ];
    terms.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Loads the challenge folders. Faulty folders are logged and skipped.
async fn start_scripts(
    settings: &Settings,
    sandbox: Option<Sandbox>,
    engine: &Engine,
) -> Result<Option<Scripts>, SettingsError> {
    if settings.scripts.folders.is_empty() {
        return Ok(None);
    }
    let mut scripts = Scripts::new(settings, sandbox.ok_or(SettingsError::NoWorker)?);
    let engine = engine.clone();
    let loaded = tokio::task::spawn_blocking(move || {
        scripts.refresh(&engine, true);
        scripts
    });
    match loaded.await {
        Ok(scripts) => Ok(Some(scripts)),
        Err(error) => resume_unwind(error.into_panic()),
    }
}

/// Starts the agents and tournaments, if the settings enable them.
fn start_tournaments(
    settings: &Settings,
    engine: &Engine,
    signer: Option<Signer>,
) -> Result<Option<(Tournaments, Runner)>, StartError> {
    if !settings.tournaments.enabled {
        return Ok(None);
    }
    let launcher = settings.tournaments.launcher.clone().ok_or(SettingsError::NoLauncher)?;
    let secret = secret(settings)?;
    let terms = settings.tournaments.clone();
    let started = Tournaments::start(&settings.data, terms, launcher, secret, engine.clone(), signer)?;
    Ok(Some(started))
}

/// The listener with its connections.
struct Acceptor {
    listener: TcpListener,
    /// The listener of the private address.
    private: Option<TcpListener>,
    /// The listener for requests from other nodes.
    nodes: Option<TcpListener>,
    arena: Arena,
    app: App,
    connections: Arc<Connections>,
    lanes: Lanes,
    /// Becomes true when connections must end. Each connection holds a receiver, so their number is that of open
    /// connections.
    ending: watch::Sender<bool>,
}

/// The maximum number of proxies' connections whose client isn't known yet.
const MAX_UNNAMED: usize = 1024;

/// The listeners of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenerKind {
    Public,
    Private,
    Nodes,
}

impl Acceptor {
    fn new(
        listener: TcpListener,
        private: Option<TcpListener>,
        nodes: Option<TcpListener>,
        arena: Arena,
        lanes: Lanes,
    ) -> Acceptor {
        let app = cors().layer(routes::app(arena.clone()));
        let connections = Arc::clone(&arena.connections);
        Acceptor { listener, private, nodes, arena, app, connections, lanes, ending: watch::Sender::new(false) }
    }

    /// Accepts connections forever.
    async fn accept_all(&self) {
        let mut unnamed = FuturesUnordered::new();
        loop {
            let (accepted, by) = tokio::select! {
                accepted = self.listener.accept() => (accepted, ListenerKind::Public),
                accepted = accept_if_any(self.private.as_ref()) => (accepted, ListenerKind::Private),
                accepted = accept_if_any(self.nodes.as_ref()) => (accepted, ListenerKind::Nodes),
                Some(named) = unnamed.next() => {
                    self.take_named(named);
                    continue;
                }
            };
            match accepted {
                Ok((stream, peer)) if by == ListenerKind::Public && self.names_client(peer) => {
                    match unnamed.len() < MAX_UNNAMED {
                        true => unnamed.push(read_client(stream, peer)),
                        false => drop(self.arena.metrics.refused_connections.inc()),
                    }
                }
                Ok((stream, peer)) => self.take(stream, peer, by),
                Err(error) => {
                    // The usual cause is a lack of file descriptors. The pause lets other connections close.
                    tracing::warn!(%error, "cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Accepts the pending connections of players, closes the listeners, and returns the open connections.
    async fn close(self) -> (OpenConnections, Lanes) {
        let until = Instant::now() + LAST_CALL;
        while let Ok(Ok((stream, peer))) = tokio::time::timeout_at(until, self.listener.accept()).await {
            match self.names_client(peer) {
                true => {
                    // A header that is slow to arrive doesn't delay the stop.
                    if let Ok(named) = tokio::time::timeout_at(until, read_client(stream, peer)).await {
                        self.take_named(named);
                    }
                }
                false => self.take(stream, peer, ListenerKind::Public),
            }
        }
        drop((self.listener, self.private, self.nodes));
        // A notified connection that has read nothing closes at once. The pause lets it read its request first.
        tokio::time::sleep(LAST_CALL).await;
        (OpenConnections(self.ending), self.lanes)
    }

    /// Returns true if connections from this address begin with a header that names the client.
    fn names_client(&self, peer: SocketAddr) -> bool {
        let network = &self.arena.settings.network;
        network.client_header == ClientHeader::Proxy && network.trusted_proxies.contain(peer.ip())
    }

    /// Takes a connection whose header was read.
    fn take_named(&self, named: io::Result<(TcpStream, SocketAddr)>) {
        match named {
            Ok((stream, client)) => self.take(stream, client, ListenerKind::Public),
            Err(error) => {
                self.arena.metrics.refused_connections.inc();
                tracing::debug!(%error, "refused a connection of a proxy: {error}");
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr, by: ListenerKind) {
        if by == ListenerKind::Nodes {
            return self.serve(stream, peer, None, Answering::Node(self.arena.clone()));
        }
        match self.connections.enter(peer.ip()) {
            Ok(guard) => {
                let has_administration = by == ListenerKind::Private || self.private.is_none();
                let request_connection = RequestConnection::new(&guard.connection, has_administration);
                let (app, arena, shared) = (self.app.clone(), self.arena.clone(), Handle::current());
                let answering = ClientAnswering { app, arena, peer: peer.ip(), request_connection, shared };
                self.serve(stream, peer, Some(guard), Answering::Client(Box::new(answering)));
            }
            Err(full) => {
                self.arena.metrics.refused_connections.inc();
                tracing::debug!(%peer, "refused a connection from {peer}: {full:?}");
                // The response is best effort: the server sends only as much of it as fits into the socket's buffer.
                let _ = stream.try_write(refusal_of(full).as_bytes());
            }
        }
    }

    /// Serves a connection on one of the threads. `guard` is `None` for connections of other nodes, which have no limits.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, guard: Option<ConnectionGuard>, answering: Answering) {
        let arena = self.arena.clone();
        let mut ending = self.ending.subscribe();
        // The socket belongs to the runtime that accepted it, and must be registered with the one that serves it.
        let stream = match stream.into_std() {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(%peer, %error, "cannot serve a connection: {error}"),
        };
        self.lanes.spawn(async move {
            let stream = match TcpStream::from_std(stream) {
                Ok(stream) => stream,
                Err(error) => return tracing::warn!(%peer, %error, "cannot serve a connection: {error}"),
            };
            let _open = guard.as_ref().map(|_| GaugeGuard::by(&arena.metrics.connections));
            let mut connection = std::pin::pin!(connection(stream, answering));
            let closing = async {
                tokio::select! {
                    () = async {
                        match &guard {
                            Some(guard) => guard.connection.closing().await,
                            None => std::future::pending().await,
                        }
                    } => {}
                    // An error means that the sender was dropped, so the server has ended.
                    _ = ending.wait_for(|ending| *ending) => {}
                }
            };
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = closing => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%peer, %error, "connection from {peer} ended: {error}");
            }
            drop(guard);
        });
    }
}

async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Accepts a connection; waits forever without a listener.
async fn accept_if_any(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// The connections that are open after the listeners were closed.
struct OpenConnections(watch::Sender<bool>);

impl OpenConnections {
    fn count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Requests that all connections close after their current response, and waits until all are closed.
    async fn shutdown(self) {
        self.0.send_replace(true);
        self.0.closed().await;
    }
}

/// Returns the response to a refused connection. The server sends it without reading a request.
fn refusal_of(full: ConnectionRefusal) -> String {
    let (status, code, error) = match full {
        ConnectionRefusal::Address => (
            "429 Too Many Requests",
            "TOO_MANY_CONNECTIONS",
            "too many connections from this address (limits.connections_per_address)",
        ),
        ConnectionRefusal::Server => {
            ("503 Service Unavailable", "SERVER_BUSY", "too many connections to this server (limits.connections)")
        }
    };
    let body = format!(r#"{{"error":"{error}","code":"{code}","retryAfterMs":1000}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
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
        // Many systems allow fewer connections than the default limit but still enough, so that is no reason for a
        // warning.
        let is_enough = wanted == LimitSettings::default().connections && room >= ENOUGH_CONNECTIONS;
        match is_enough {
            true => tracing::info!(allowed, "{sentence}"),
            false => tracing::warn!(allowed, "{sentence}"),
        }
    }
    room.min(wanted)
}

type App = Cors<Router>;

/// The part of a connection that answers requests.
enum Answering {
    Client(Box<ClientAnswering>),
    /// A connection of another node.
    Node(Arena),
}

impl Answering {
    async fn answer(&self, request: Request<Incoming>) -> Response {
        match self {
            Answering::Client(client) => client.answer(request).await,
            Answering::Node(arena) => passing::answer(arena.clone(), request).await,
        }
    }

    /// Returns the time limit for the head of a request and for an idle connection, and the time for which the other
    /// side may read nothing.
    fn limits(&self) -> (Duration, Duration) {
        let (heads_within, arena) = match self {
            Answering::Client(client) => {
                let is_reserve = client.request_connection.connection.is_reserve();
                (if is_reserve { HURRIED_HEADERS_WITHIN } else { HEADERS_WITHIN }, &client.arena)
            }
            Answering::Node(arena) => (HEADERS_WITHIN, arena),
        };
        (heads_within, Duration::from_millis(arena.settings.limits.stalled_ms))
    }
}

/// The part of a client's connection that answers requests.
struct ClientAnswering {
    app: App,
    arena: Arena,
    peer: IpAddr,
    request_connection: RequestConnection,
    /// The runtime for all but the routes of play.
    shared: Handle,
}

impl ClientAnswering {
    async fn answer(&self, request: Request<Incoming>) -> Response {
        let ClientAnswering { app, arena, peer, request_connection, shared } = self;
        let (connections, connection) = (&arena.connections, &request_connection.connection);
        // An MCP tool call is always a POST. It counts as a read, since only tools that read have large responses.
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD) || request.uri().path().ends_with("/mcp");
        connections.begin(connection);
        let client = match client_of(&arena.settings.network, *peer, request.headers()) {
            Ok(client) => client,
            Err(error) => return answered(error.into_response(), connections, connection),
        };
        let mut request_connection = request_connection.clone();
        if client != *peer {
            request_connection.budget = connections.budget_behind_proxy(client);
        }
        let budget = request_connection.budget.clone();
        let mut request = request.map(Body::new);
        // Only a proxy that may name its clients may also name requests.
        let id = match client != *peer {
            true => RequestId::given(request.headers()),
            false => RequestId::new(),
        };
        request.extensions_mut().insert(id);
        request.extensions_mut().insert(ClientAddress(client));
        request.extensions_mut().insert(request_connection);
        let response = match DirectRoute::of(&request) {
            Some(route) => route.answer(request, arena.clone()).await,
            None => {
                // The set aborts its task when it is dropped.
                let mut tasks = JoinSet::new();
                let app = app.clone();
                tasks
                    .spawn_on(async move { app.oneshot(request).await.unwrap_or_else(|never| match never {}) }, shared);
                match tasks.join_next().await {
                    Some(Ok(response)) => response,
                    Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                    // The runtime is shutting down.
                    Some(Err(_)) | None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                }
            }
        };
        answered(memory::count(response, &budget, is_read), connections, connection)
    }
}

fn connection(
    stream: TcpStream,
    answering: Answering,
) -> http1::Connection<
    TokioIo<TimedStream>,
    impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + use<>,
> {
    // Responses are written whole, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    // The kernel's send buffer isn't part of the memory budget, so it is kept small.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER);
    let (heads_within, stalled) = answering.limits();
    let answering = Arc::new(answering);
    let service = service_fn(move |request| {
        let answering = Arc::clone(&answering);
        async move { Ok(answering.answer(request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(heads_within)
        .max_buf_size(CONNECTION_BUFFER)
        .serve_connection(TokioIo::new(TimedStream::new(stream, stalled)), service)
}

/// Prepares a response for sending. The connection becomes idle when the response ends.
fn answered(mut response: Response, connections: &Arc<Connections>, connection: &Arc<Connection>) -> Response {
    if connection.is_brief() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // A response of known length is written completely even if the registry requests the close of an idle connection.
    if response.body().size_hint().exact().is_some() {
        connections.end(connection);
        return response;
    }
    let guard = IdleGuard { connections: Arc::clone(connections), connection: Arc::clone(connection) };
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &guard;
            frame
        }))
    })
}

/// A guard in a response body that marks the connection as idle on drop.
struct IdleGuard {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Drop for IdleGuard {
    fn drop(&mut self) {
        self.connections.end(&self.connection);
    }
}

/// A socket with a timeout for writes to clients that read nothing.
struct TimedStream {
    stream: TcpStream,
    patience: Duration,
    /// The timer of a blocked write; set while the socket accepts no data.
    until: Option<Pin<Box<Sleep>>>,
}

impl TimedStream {
    fn new(stream: TcpStream, patience: Duration) -> TimedStream {
        TimedStream { stream, patience, until: None }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let patience = self.patience;
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        until
            .as_mut()
            .poll(context)
            .map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client read nothing within limits.stalled_ms")))
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Returns the CORS policy: pages of all origins may send requests and read responses. There are no cookies to abuse,
/// and `origin.rs` checks writes.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::AUTHORIZATION,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            NODE,
            // Headers of MCP clients.
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
        ])
        .expose_headers([header::RETRY_AFTER, header::LINK, routes::TOTAL, NODE, REQUEST_ID])
        .max_age(Duration::from_secs(24 * 60 * 60))
}
