//! The server's life: open the store, listen, serve connections, stop without dropping what was accepted.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use arena_engine::{Engine, Environment, Limits};
use arena_model::ChallengeType;
use arena_script::{Sandbox, find_folders};
use arena_store::{FolderLock, Store, StoreError, Terms};
use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tower::{Layer, ServiceExt};
use tower_http::cors::{Any, Cors, CorsLayer};

use crate::admin_token::{AdminToken, AdminTokenFileError};
use crate::arena::Arena;
use crate::auth::{Auth, AuthError, secret};
use crate::connections::{Connection, Connections, Entered, Full, Line};
use crate::house::House;
use crate::memory;
use crate::metrics::Counted;
use crate::request::Peer;
use crate::routes;
use crate::scripts::{self, Scripts};
use crate::settings::{LimitSettings, Settings, SettingsError};
use crate::supervision::keep_running;
use crate::tournaments::{Runner, Tournaments, TournamentsError};

/// For how long a server that stops takes what waits at its door, and reads what was sent there.
const LAST_CALL: Duration = Duration::from_millis(20);

/// How long an idle connection is kept, and how long headers may take to arrive.
const HEADERS_WITHIN: Duration = Duration::from_secs(75);

/// The same for a connection of the reserve, until its caller is known.
const HURRIED_HEADERS_WITHIN: Duration = Duration::from_secs(5);

/// Bytes of an answer that a connection gathers before it takes no more; also the longest head of a request.
const CONNECTION_BUFFER: usize = 32 * 1024;

/// Bytes of an answer that the kernel holds for a client that doesn't read; it takes twice as much.
const SEND_BUFFER: usize = 128 * 1024;

/// Connections that do for an arena of which no number was asked for.
const ENOUGH_CONNECTIONS: usize = 2_000;

/// Open files besides those of connections: the store's, the log's, those of scripts and of tournaments.
const OTHER_FILES: usize = 512;

/// Why a server can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It would listen to others although it believes every name.
    #[error(
        "refusing to listen on {0}: without authentication whoever reaches the server can claim to be any player. \
         Listen on 127.0.0.1, or say --auth so that players have to prove who they are, or --trust-network if everybody \
         who can reach {0} is trusted"
    )]
    UntrustedNetwork(SocketAddr),
    /// The address is taken or not this machine's.
    #[error("can't listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings are no good.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// It could not tell who is who.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// Tournaments can't be kept or played.
    #[error(transparent)]
    Tournaments(#[from] TournamentsError),
    /// Nobody could administer it.
    #[error(transparent)]
    AdminToken(#[from] AdminTokenFileError),
}

/// Why a server ended that wasn't asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A task that it can't do without has ended.
    #[error("the task that {0} has died")]
    TaskDied(&'static str),
}

/// A server that listens, and serves once it is run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    arena: Arena,
    /// Plays tournaments, if there are any.
    runner: Option<Runner>,
    /// Watches the folders of challenges, if there are any.
    scripts: Option<Scripts>,
    new_admin_token: Option<AdminToken>,
    /// The data folder, where the store doesn't hold it.
    folder: Option<FolderLock>,
}

impl Server {
    /// Opens the store, and listens. Connections queue up until [`Server::run`].
    ///
    /// # Errors
    /// If the settings are no good, the address can't be listened on, or the store can't be used.
    pub async fn start(settings: Settings) -> Result<Server, StartError> {
        let challenges = settings.challenge_types()?;
        Server::start_with(settings, challenges, Environment::system()).await
    }

    /// Like [`Server::start`], with challenges, a clock and randomness of one's own instead of those of the settings and
    /// the system.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_with(
        settings: Settings,
        challenges: Vec<Arc<dyn ChallengeType>>,
        environment: Environment,
    ) -> Result<Server, StartError> {
        let trusts_every_name = !settings.auth.enabled && !settings.trust_network;
        if trusts_every_name && !settings.listen.ip().is_loopback() {
            return Err(StartError::UntrustedNetwork(settings.listen));
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
        let listener = TcpListener::bind(address).await.map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let scoring = settings.scoring()?;
        let is_shared = settings.is_shared()?;
        // With a database, the folder is still that of secrets and tournaments.
        let (opened, folder) = match &settings.database {
            Some(_) => (None, Some(FolderLock::take(&settings.data)?)),
            None => (Some(Store::open(&settings.data, scoring.clone())?), None),
        };
        // From here on the folder is there and no other server's.
        let auth = Auth::start(&settings)?;
        let (admin_token, is_new) = match &settings.admin_token {
            Some(token) => (token.clone(), false),
            None => AdminToken::load_or_make(&settings.data)?,
        };
        let store = match (opened, &settings.database) {
            (None, Some(database)) if is_shared => {
                Store::join(database.clone(), scoring, &terms(auth.as_ref(), &admin_token)).await?
            }
            (None, Some(database)) => Store::connect(database.clone(), scoring).await?,
            (Some(store), _) => store,
            (None, None) => unreachable!("what has no database has opened its folder"),
        };
        // All nodes live by one clock.
        let environment = match store.nodes().cloned() {
            Some(nodes) => environment.with_clock(move || nodes.now()),
            None => environment,
        };
        let new_admin_token = is_new.then(|| admin_token.clone());
        let limits = Limits {
            channel_messages: settings.limits.channel_messages,
            spectators_chat: settings.sessions.spectators_chat,
            self_play: settings.sessions.self_play,
            patience: settings.sessions.patience(),
        };
        let sandbox = scripts::sandbox(&settings.scripts);
        let engine =
            Engine::with_scripts(store, challenges, scripts::revive(sandbox.clone()), limits, environment).await?;
        let scripts = start_scripts(&settings, sandbox, &engine).await?;
        let (tournaments, runner) = start_tournaments(&settings, &engine)?.unzip();
        // Where port 0 was asked for, there is a real one now; and a token where none was given.
        let settings = Settings { listen: address, admin_token: Some(admin_token), ..settings };
        let settings = {
            let connections = room_for_connections(settings.limits.connections);
            Settings { limits: LimitSettings { connections, ..settings.limits }, ..settings }
        };
        let arena = Arena::new(engine, settings, auth, tournaments);
        Ok(Server { listener, address, arena, runner, scripts, new_admin_token, folder })
    }

    /// The administrator's token, if there was none in the data folder and this start has made it: to be told once.
    pub fn new_admin_token(&self) -> Option<&AdminToken> {
        self.new_admin_token.as_ref()
    }

    /// Offers opponents to those who ask for one. A house that is there stays.
    pub fn offer(&self, house: House) {
        // Only one is ever offered by those who start servers.
        let _ = self.arena.house.set(house);
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is over; then takes no new connections, finishes the requests that it has, and returns.
    ///
    /// # Errors
    /// If it has to stop without having been asked to.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        let Server { listener, address, arena, runner, scripts, folder: _folder, .. } = self;
        match &arena.settings.database {
            Some(database) => {
                tracing::info!(%address, %database, "listening on {address}, with the database {database}")
            }
            None => tracing::info!(%address, data = %arena.settings.data.display(), "listening on {address}"),
        }
        let (clock, house, derived) = (arena.clone(), arena.clone(), arena.clone());
        let engine = arena.engine.clone();
        let watching = scripts.map(|scripts| tokio::spawn(scripts.watch(engine)));
        let mut keep_time = tokio::spawn(async move {
            keep_running(&clock.fallen, "watches the clock", || clock.engine.keep_time()).await;
        });
        let mut keep_house = tokio::spawn(async move {
            let forget_addresses = || async {
                loop {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    house.rates.forget_idle();
                }
            };
            tokio::join!(
                keep_running(&house.fallen, "keeps house", || house.engine.keep_house()),
                keep_running(&house.fallen, "forgets addresses", forget_addresses),
            );
        });
        let mut keep_derived = tokio::spawn(async move {
            keep_running(&derived.fallen, "checks derived tables", || derived.engine.keep_derived()).await;
        });

        let mut follow_others = {
            let arena = arena.clone();
            tokio::spawn(async move {
                let follow = || arena.engine.follow_others(arena.settings.nodes.nats.as_ref());
                keep_running(&arena.fallen, "follows other nodes", follow).await;
            })
        };

        let door = Door::new(listener, arena.clone());
        let told_to_stop = async {
            shutdown.await;
            let drain_ms = arena.settings.limits.drain_ms;
            if drain_ms > 0 {
                arena.draining.store(true, Ordering::SeqCst);
                tracing::info!(drain_ms, "stopping in {drain_ms} ms; /ready says so from now on");
                tokio::time::sleep(Duration::from_millis(drain_ms)).await;
            }
        };
        let died = tokio::select! {
            () = door.keep_open() => None,
            () = told_to_stop => None,
            _ = &mut follow_others => Some("follows other nodes"),
            _ = &mut keep_time => Some("watches the clock"),
            _ = &mut keep_house => Some("keeps house"),
            _ = &mut keep_derived => Some("checks derived tables"),
        };
        let connections = door.close().await;
        keep_time.abort();
        keep_house.abort();
        keep_derived.abort();
        follow_others.abort();
        if let Some(watching) = watching {
            watching.abort();
        }
        let open = connections.count();
        tracing::info!(open, "stopping; {open} connections are open");
        let patience = Duration::from_millis(arena.settings.limits.shutdown_ms);
        let matches = tokio::task::spawn_blocking(|| runner.map(Runner::stop));
        // Connections are told first, so that the answers to those who wait, given next, say that they are the last.
        let finished = async {
            tokio::join!(biased; connections.shutdown(), async {
                arena.stopping.send_replace(true);
                // A panic there has been reported by its thread.
                let _ = matches.await;
            })
        };
        if tokio::time::timeout(patience, finished).await.is_err() {
            tracing::warn!("some requests took longer than {} ms to finish and were cut off", patience.as_millis());
        }
        match died {
            Some(task) => Err(ServeError::TaskDied(task)),
            None => Ok(()),
        }
    }
}

/// What nodes that share a database have to agree in: a key that one of them gives out has to open something at the others.
fn terms(auth: Option<&Auth>, admin_token: &AdminToken) -> Terms {
    let secret = auth.map_or_else(|| "none".to_owned(), |auth| auth.secret.fingerprint());
    let mode = if auth.is_some() { "authentication" } else { "standalone" };
    let terms =
        [("mode (--auth)", mode.to_owned()), ("AUTH_SECRET", secret), ("ADMIN_TOKEN", admin_token.fingerprint())];
    terms.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Loads the folders of challenges, if there are any. A faulty one is told in the log, and the server starts without it.
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
        scripts.look(&engine, true);
        scripts
    });
    match loaded.await {
        Ok(scripts) => Ok(Some(scripts)),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Tournaments as the settings ask for them.
fn start_tournaments(settings: &Settings, engine: &Engine) -> Result<Option<(Tournaments, Runner)>, StartError> {
    if !settings.tournaments.enabled {
        return Ok(None);
    }
    let launcher = settings.tournaments.launcher.clone().ok_or(SettingsError::NoLauncher)?;
    let secret = secret(settings)?;
    let started = Tournaments::start(&settings.data, settings.tournaments.clone(), launcher, secret, engine.clone())?;
    Ok(Some(started))
}

/// Takes connections, and has them served.
struct Door {
    listener: TcpListener,
    arena: Arena,
    app: App,
    connections: Arc<Connections>,
    /// Becomes true when connections have to end. Each connection holds a receiver.
    ending: watch::Sender<bool>,
}

impl Door {
    fn new(listener: TcpListener, arena: Arena) -> Door {
        let app = cors().layer(routes::app(arena.clone()));
        let connections = Arc::clone(&arena.connections);
        Door { listener, arena, app, connections, ending: watch::Sender::new(false) }
    }

    /// Takes connections for ever.
    async fn keep_open(&self) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) => {
                    // Out of file descriptors, mostly. Closing ones free some; spinning would not.
                    tracing::warn!(%error, "a connection could not be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Takes no more connections but those that have come by now, as far as there is room. Gives them back to be told to end.
    async fn close(self) -> OpenConnections {
        let until = Instant::now() + LAST_CALL;
        while let Ok(Ok((stream, peer))) = tokio::time::timeout_at(until, self.listener.accept()).await {
            self.take(stream, peer);
        }
        drop(self.listener);
        // A connection of which nothing has been read is closed at once when it is told to end; what was sent on it is read by then.
        tokio::time::sleep(LAST_CALL).await;
        OpenConnections(self.ending)
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        match self.connections.enter(peer.ip()) {
            Ok(entered) => self.serve(stream, peer, entered),
            Err(full) => {
                self.arena.metrics.refused_connections.inc();
                tracing::debug!(%peer, "a connection from {peer} is refused: {full:?}");
                // Best effort: what doesn't fit into the socket's buffer isn't sent.
                let _ = stream.try_write(refusal_of(full).as_bytes());
            }
        }
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, entered: Entered) {
        let connection = connection(stream, peer, self.app.clone(), &self.arena, &entered);
        let arena = self.arena.clone();
        let mut ending = self.ending.subscribe();
        tokio::spawn(async move {
            let _open = Counted::by(&arena.metrics.connections);
            let mut connection = std::pin::pin!(connection);
            let told = async {
                tokio::select! {
                    () = entered.connection.told() => {}
                    // An error would mean that the door is gone, and with it the server.
                    _ = ending.wait_for(|ending| *ending) => {}
                }
            };
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = told => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%peer, %error, "connection from {peer} ended: {error}");
            }
            drop(entered);
        });
    }
}

/// Connections that no more are added to.
struct OpenConnections(watch::Sender<bool>);

impl OpenConnections {
    fn count(&self) -> usize {
        self.0.receiver_count()
    }

    /// Tells all to end with the answers that they are giving, and waits for them.
    async fn shutdown(self) {
        self.0.send_replace(true);
        self.0.closed().await;
    }
}

/// The answer to a connection for which there is no room, before anything has been read of it.
fn refusal_of(full: Full) -> String {
    let (status, code, error) = match full {
        Full::Address => (
            "429 Too Many Requests",
            "TOO_MANY_CONNECTIONS",
            "more connections from one address than it may have (limits.connections_per_address)",
        ),
        Full::Server => {
            ("503 Service Unavailable", "SERVER_BUSY", "more connections than the server takes (limits.connections)")
        }
    };
    let body = format!(r#"{{"error":"{error}","code":"{code}","retryAfterMs":1000}}"#);
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Has the system allow as many open files as it ever does. Returns the number of connections that there is room for.
fn room_for_connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let Some(allowed) = allowed.and_then(|allowed| usize::try_from(allowed).ok()) else { return wanted };
    // Small limits leave half to connections.
    let room = allowed.saturating_sub(OTHER_FILES).max(allowed / 2).max(1);
    if room < wanted {
        let sentence = format!(
            "limits.connections is {wanted}, but the system allows {allowed} open files: {room} connections are taken; raise `ulimit -Hn` \
             (systemd: LimitNOFILE) above {}",
            wanted + OTHER_FILES
        );
        // Many systems allow fewer than the default, and enough.
        let is_enough = wanted == LimitSettings::default().connections && room >= ENOUGH_CONNECTIONS;
        match is_enough {
            true => tracing::info!(allowed, "{sentence}"),
            false => tracing::warn!(allowed, "{sentence}"),
        }
    }
    room.min(wanted)
}

type App = Cors<Router>;

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: App,
    arena: &Arena,
    entered: &Entered,
) -> http1::Connection<
    TokioIo<Unstalled>,
    TowerToHyperService<
        impl tower::Service<
            Request<Incoming>,
            Response = axum::response::Response,
            Error = std::convert::Infallible,
            Future: Send,
        > + Clone
        + use<>,
    >,
> {
    // Answers are written whole; waiting for more to send along would only delay them.
    let _ = stream.set_nodelay(true);
    // The kernel's buffer for a client that doesn't read isn't counted here, so it is kept small.
    let _ = set_socket_send_buffer_size(&stream, SEND_BUFFER);
    let connections = Arc::clone(&arena.connections);
    let line = Line { connection: Arc::clone(&entered.connection), is_direct: true };
    // Requests of one connection are answered one after the other, so the latest is the one that is answered.
    let reads = Arc::new(AtomicBool::new(true));
    let service = app
        .map_request({
            let (connections, line, reads) = (Arc::clone(&connections), line.clone(), Arc::clone(&reads));
            move |mut request: Request<Incoming>| {
                // A tool call over MCP is a POST, and its answer is large only where it reads.
                let is_read =
                    matches!(*request.method(), Method::GET | Method::HEAD) || request.uri().path().ends_with("/mcp");
                reads.store(is_read, Ordering::Relaxed);
                connections.begin(&line.connection);
                request.extensions_mut().insert(Peer(peer));
                request.extensions_mut().insert(line.clone());
                request.map(axum::body::Body::new)
            }
        })
        .map_response(move |response: axum::response::Response| {
            let response = memory::count(response, line.connection.share(), reads.load(Ordering::Relaxed));
            answered(response, &connections, &line.connection)
        });
    let heads_within = if entered.connection.is_reserve() { HURRIED_HEADERS_WITHIN } else { HEADERS_WITHIN };
    let stalled = Duration::from_millis(arena.settings.limits.stalled_ms);
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(heads_within)
        .max_buf_size(CONNECTION_BUFFER)
        .serve_connection(TokioIo::new(Unstalled::new(stream, stalled)), TowerToHyperService::new(service))
}

/// An answer as it leaves: the connection is idle once it is over.
fn answered(
    mut response: axum::response::Response,
    connections: &Arc<Connections>,
    connection: &Arc<Connection>,
) -> axum::response::Response {
    if connection.is_brief() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // An answer whose length is known is written to its end, also if the connection is told to end meanwhile.
    if response.body().size_hint().exact().is_some() {
        connections.end(connection);
        return response;
    }
    let rest = Rest { connections: Arc::clone(connections), connection: Arc::clone(connection) };
    response.map(|body| {
        axum::body::Body::new(body.map_frame(move |frame| {
            let _ = &rest;
            frame
        }))
    })
}

/// Notes that a connection is idle, when the body is dropped that holds this.
struct Rest {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.connections.end(&self.connection);
    }
}

/// A socket on which writing fails if the client doesn't read for too long.
struct Unstalled {
    stream: TcpStream,
    patience: Duration,
    /// Set while the socket takes nothing.
    until: Option<Pin<Box<Sleep>>>,
}

impl Unstalled {
    fn new(stream: TcpStream, patience: Duration) -> Unstalled {
        Unstalled { stream, patience, until: None }
    }

    fn watch<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let patience = self.patience;
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        until.as_mut().poll(context).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client doesn't read")))
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Unstalled {
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

/// What pages of other origins may do: everything that a command line may, since there are no cookies to abuse.
fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::AUTHORIZATION,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            // Clients of MCP send these.
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
        ])
        .expose_headers([header::RETRY_AFTER, header::LINK, routes::TOTAL])
        .max_age(Duration::from_secs(24 * 60 * 60))
}
