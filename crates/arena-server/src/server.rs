//! The server's life: open the store, listen, serve connections, stop without dropping what was accepted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arena_engine::{Engine, Environment, Limits};
use arena_model::ChallengeType;
use arena_script::{Sandbox, find_folders};
use arena_store::{FolderLock, Store, StoreError, Terms};
use axum::Router;
use axum::http::{HeaderName, Method, Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};
use tower_http::cors::{Any, Cors, CorsLayer};

use crate::admin_token::{AdminToken, AdminTokenFileError};
use crate::arena::Arena;
use crate::auth::{Auth, AuthError, secret};
use crate::house::House;
use crate::metrics::Counted;
use crate::request::Peer;
use crate::routes;
use crate::scripts::{self, Scripts};
use crate::settings::{Settings, SettingsError};
use crate::tournaments::{Runner, Tournaments, TournamentsError};

/// For how long a server that stops takes what waits at its door, and reads what was sent there.
const LAST_CALL: Duration = Duration::from_millis(20);

/// How long an idle connection is kept, and how long headers may take to arrive.
const HEADERS_WITHIN: Duration = Duration::from_secs(75);

/// Most bytes of answer that wait in memory for a slow reader; also the longest head of a request.
const CONNECTION_BUFFER: usize = 32 * 1024;

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
        source: std::io::Error,
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
        let (clock, house) = (arena.engine.clone(), arena.clone());
        let engine = arena.engine.clone();
        let watching = scripts.map(|scripts| tokio::spawn(scripts.watch(engine)));
        let mut keep_time = tokio::spawn(async move { clock.keep_time().await });
        let mut keep_house = tokio::spawn(async move {
            let forget_addresses = async {
                loop {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    house.rates.forget_idle();
                }
            };
            tokio::join!(house.engine.keep_house(), forget_addresses);
        });

        let mut follow_others = {
            let arena = arena.clone();
            tokio::spawn(async move { arena.engine.follow_others(arena.settings.nodes.nats.as_ref()).await })
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
        };
        let connections = door.close().await;
        keep_time.abort();
        keep_house.abort();
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

/// Whoever takes connections, and has them served.
struct Door {
    listener: TcpListener,
    arena: Arena,
    app: App,
    places: Arc<Semaphore>,
    connections: GracefulShutdown,
}

impl Door {
    fn new(listener: TcpListener, arena: Arena) -> Door {
        let app = cors().layer(routes::app(arena.clone()));
        let places = Arc::new(Semaphore::new(arena.settings.limits.connections));
        Door { listener, arena, app, places, connections: GracefulShutdown::new() }
    }

    /// Takes connections for ever.
    async fn keep_open(&self) {
        loop {
            // With all places taken, newcomers wait in the system's queue.
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, peer)) => self.serve(stream, peer, place),
                Err(error) => {
                    // Out of file descriptors, mostly. Closing ones free some; spinning would not.
                    tracing::warn!(%error, "a connection could not be taken: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Takes no more connections but those of whoever has come by now, for whom there are places. Gives them back to be told to end.
    async fn close(self) -> GracefulShutdown {
        let until = Instant::now() + LAST_CALL;
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            match tokio::time::timeout_at(until, self.listener.accept()).await {
                Ok(Ok((stream, peer))) => self.serve(stream, peer, place),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        drop(self.listener);
        // A connection of which nothing has been read is closed at once when it is told to end; what was sent on it is read by then.
        tokio::time::sleep(LAST_CALL).await;
        self.connections
    }

    fn serve(&self, stream: TcpStream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        let connection = self.connections.watch(connection(stream, peer, self.app.clone()));
        let arena = self.arena.clone();
        tokio::spawn(async move {
            let _open = Counted::by(&arena.metrics.connections);
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "connection from {peer} ended: {error}");
            }
            drop(place);
        });
    }
}

type App = Cors<Router>;

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: App,
) -> http1::Connection<
    TokioIo<TcpStream>,
    TowerToHyperService<
        impl tower::Service<
            Request<Incoming>,
            Response = axum::response::Response,
            Error = std::convert::Infallible,
            Future: Send,
        > + Clone,
    >,
> {
    // Answers are written whole; waiting for more to send along would only delay them.
    let _ = stream.set_nodelay(true);
    let service = app.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(peer));
        request.map(axum::body::Body::new)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(CONNECTION_BUFFER)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
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
