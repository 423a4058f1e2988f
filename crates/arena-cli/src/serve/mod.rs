//! `arena serve`: builds settings from arguments, environment and settings file, and runs a server until a signal stops
//! it. The crate `arena-server` contains the server. The demo and `arena author play` start their servers with this
//! module too.

pub mod house;
mod notify;

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use arena_engine::NatsUrl;
use arena_identity::ServerSecret;
use arena_server::{AdminToken, Server, Settings, StartError};
use arena_store::DatabaseUrl;
use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::info;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::exit::{Exit, Failure};
use crate::matches::settings::launcher;
use crate::{output, scripts};

use self::house::HouseModel;

/// Options of `arena serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena serve                       http://127.0.0.1:3001, data in ./arena-data
  arena serve --port 0 --data here  a free port, another data folder
  arena serve --auth --listen 0.0.0.0:3001             open to the network; players sign their joins
  arena serve --trust-network --listen 0.0.0.0:3001    open to the network; user ids aren't checked
  arena serve --config arena.toml --log-format json
  arena serve --database-url URL --nats-url URL        one of several nodes on one Postgres database

The server stores its data in a folder or in Postgres. When it accepts connections, it prints its address on stdout:
arena listens on http://ADDRESS:PORT

On its first start, the server also prints the administrator's token and keeps it in admin.token in the data folder. To \
choose the token yourself, set ADMIN_TOKEN (at least 24 characters).

With --auth, the server derives session keys from the environment variable AUTH_SECRET (at least 16 bytes). If it isn't \
set, the server generates a secret once and keeps it in the data folder.

Ctrl-C or SIGTERM stops the server after it has finished the requests that it accepted. A second signal stops it at once.")]
pub struct ServeArgs {
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Data folder for the store, secrets and tournaments [default: arena-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Postgres database for the store: postgres://user:password@host:port/database?sslmode=require; commas separate the
    /// hosts of a primary and its standbys
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Share the database with other nodes started the same way; any node serves any request.
    #[arg(long)]
    pub shared: bool,
    /// Share the database, and notify other nodes at once through NATS: nats://user:password@host:port or tls://…
    #[arg(long, value_name = "URL", env = "NATS_URL", hide_env_values = true)]
    pub nats_url: Option<String>,
    /// Require signed joins; a session key authenticates all later requests.
    #[arg(long)]
    pub auth: bool,
    /// Offer tournaments between agents, configured in the section [tournaments] of the settings file.
    #[arg(long)]
    pub tournaments: bool,
    /// Folder of a challenge (challenge.json, and index.ts or index.js), or a folder of such folders; may be repeated.
    /// Challenges are reloaded when their files change.
    #[arg(long, value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
    /// Folder of a scoring strategy (scoring.json, and index.ts or index.js), or a folder of such folders; may be repeated.
    /// Strategies are reloaded when their files change.
    #[arg(long, value_name = "DIR")]
    pub scoring: Vec<PathBuf>,
    /// Settings file: TOML, or the reference server's JSON (*.json). Command line options override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The log on stderr.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The listening address of a server.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:3001]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Port to listen on; --listen overrides it.
    #[arg(long, env = "PORT", value_name = "PORT")]
    pub port: Option<u16>,
    /// Allow an address that other machines can reach. User ids aren't verified.
    #[arg(long)]
    pub trust_network: bool,
}

/// Options of a server's log.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Log format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Minimum log level, or a filter such as info,arena_engine=debug [default: info; demo: warn]
    #[arg(long = "log", env = "ARENA_LOG", value_name = "LEVEL")]
    pub level: Option<String>,
}

/// The log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text lines.
    Text,
    /// One JSON object a line.
    Json,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an IP address and a port, such as 127.0.0.1:3001 or [::1]:0".to_owned())
}

/// Runs a server until Ctrl-C or SIGTERM.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    start_log(&args.log, "info")?;
    let settings = settings(&args)?;
    let data = settings.data.clone();
    let house = match settings.has_house() {
        true => Some((settings.auth.enabled, settings.house.clone(), HouseModel::of(&settings.house)?)),
        false => None,
    };
    let runtime = runtime()?;
    runtime.block_on(async {
        // The signal handler is installed before the server starts, so that an early signal isn't lost.
        let stop = stop_signal()?;
        let mut server = start(settings).await?;
        output::print(&format!("arena listens on {}://{}", server.scheme(), server.address()))?;
        if let Some(address) = server.private_address() {
            output::print(&format!("Administration and metrics are at http://{address}"))?;
        }
        if let Some((signs, settings, model)) = house {
            house::open(&mut server, signs, &settings, model).await?;
            output::print("Open this address in a browser to play. House bots are on.")?;
        }
        if let Some(token) = server.new_admin_token() {
            output::print(&new_token(token, &data))?;
        }
        notify::send(notify::READY);
        let stop = async {
            stop.await;
            house::ENDING.store(true, Ordering::Relaxed);
            notify::send(notify::STOPPING);
        };
        server.run(stop).await;
        Ok(())
    })
}

/// Returns the settings of `serve`: the settings file, overridden by the command line.
fn settings(args: &ServeArgs) -> Result<Settings, Failure> {
    let mut settings = match &args.config {
        Some(file) => Settings::from_file(file).map_err(|error| Failure::caused(Exit::Usage, &error))?,
        None => Settings::default(),
    };
    settings.listen = address(&args.listen, settings.listen);
    if let Some(data) = &args.data {
        settings.data.clone_from(data);
    }
    // An empty environment variable counts as unset.
    if let Some(url) = args.database_url.as_ref().filter(|url| !url.is_empty()) {
        // The URL is parsed here and not by clap, whose error messages would print the password.
        let database = url.parse::<DatabaseUrl>().map_err(|error| invalid("--database-url (DATABASE_URL)", error))?;
        settings.database = Some(database);
    }
    settings.nodes.shared |= args.shared;
    if let Some(url) = args.nats_url.as_ref().filter(|url| !url.is_empty()) {
        settings.nodes.nats = Some(url.parse::<NatsUrl>().map_err(|error| invalid("--nats-url (NATS_URL)", error))?);
    }
    settings.trust_network |= args.listen.trust_network;
    settings.auth.enabled |= args.auth;
    settings.tournaments.enabled |= args.tournaments;
    settings.scripts.folders.extend(args.challenges.iter().cloned());
    settings.scoring.folders.extend(args.scoring.iter().cloned());
    settings.scripts.worker = Some(scripts::worker()?);
    if settings.tournaments.enabled {
        settings.tournaments.launcher = Some(launcher());
    }
    if settings.auth.enabled || settings.tournaments.enabled {
        settings.auth.secret = secret_of_environment("AUTH_SECRET")?;
    }
    settings.records.secret = secret_of_environment("RECORD_SECRET")?;
    settings.admin_token = admin_token_of_environment()?;
    Ok(settings)
}

fn invalid(name: &str, error: impl Display) -> Failure {
    Failure::usage(format_args!("invalid {name}: {error}"))
}

/// There is no option for a secret, since all users of the machine can read command lines.
fn secret_of_environment(name: &str) -> Result<Option<ServerSecret>, Failure> {
    let Some(secret) = std::env::var_os(name) else { return Ok(None) };
    ServerSecret::new(secret.as_encoded_bytes()).map(Some).map_err(|error| invalid(name, error))
}

/// Reads the administrator's token from `ADMIN_TOKEN`. There is no option for the token, since all users of the machine
/// can read command lines.
fn admin_token_of_environment() -> Result<Option<AdminToken>, Failure> {
    let Some(token) = std::env::var_os("ADMIN_TOKEN") else { return Ok(None) };
    // A token must be ASCII, so the parser refuses a value that isn't UTF-8.
    token.to_string_lossy().parse::<AdminToken>().map(Some).map_err(|error| invalid("ADMIN_TOKEN", error))
}

/// Returns the message about a new token. The program prints this message only when it creates the token.
fn new_token(token: &AdminToken, data: &Path) -> String {
    let (token, data, file) = (token.reveal(), data.display(), data.join(AdminToken::FILE));
    format!(
        "administrator's token: {token}\n\
         (shown this once and kept in {}; try: arena admin api GET /admin/audit --data {data})",
        file.display()
    )
}

/// Returns the listening address: `--listen`, or the default address with `--port` or `PORT`.
pub fn address(args: &ListenArgs, otherwise: SocketAddr) -> SocketAddr {
    match (args.listen, args.port) {
        (Some(listen), _) => listen,
        (None, Some(port)) => SocketAddr::new(otherwise.ip(), port),
        (None, None) => otherwise,
    }
}

/// Starts a server. Error messages contain advice where possible.
pub async fn start(settings: Settings) -> Result<Server, Failure> {
    Server::start(settings).await.map_err(|error| explain(&error))
}

/// Runs a server on `runtime`. The returned function stops the server and waits for its end.
pub fn run_in_background(server: Server, runtime: &Runtime) -> impl FnOnce() -> Result<(), Failure> {
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = runtime.spawn(server.run(async {
        // An error means that the sender was dropped, which stops the server too.
        let _ = stopped.await;
    }));
    move || {
        drop(stop);
        let served = runtime.block_on(serving);
        served.map_err(|panic| Failure::new(Exit::Internal, format_args!("the server ended in a panic: {panic}")))
    }
}

fn explain(error: &StartError) -> Failure {
    let exit = match error {
        StartError::UntrustedNetwork(_) | StartError::Settings(_) | StartError::Tls(_) => Exit::Usage,
        StartError::Listen { .. } | StartError::ListenPrivately { .. } => Exit::CannotListen,
        StartError::Threads(_) => Exit::Internal,
        StartError::Store(_)
        | StartError::Auth(_)
        | StartError::AdminToken(_)
        | StartError::Tournaments(_)
        | StartError::Records(_) => Exit::StoreUnavailable,
    };
    Failure::caused(exit, error)
}

/// Starts a runtime of several threads.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::cannot("start the runtime", error))?;
    // A write beyond the limit on file sizes raises SIGXFSZ, which by default ends the process. With a handler, the
    // write fails with an error instead, as on a full disk. The handler stays installed after `_handled` is dropped.
    let entered = runtime.enter();
    let _handled = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
        .map_err(|error| Failure::cannot("handle signals", error))?;
    drop(entered);
    Ok(runtime)
}

/// Starts the log on stderr.
pub fn start_log(args: &LogArgs, default_level: &str) -> Result<(), Failure> {
    let level = args.level.as_deref().unwrap_or(default_level);
    let filter = EnvFilter::try_new(level).map_err(|error| invalid(&format!("--log (ARENA_LOG) {level:?}"), error))?;
    // The MCP SDK logs whole requests, and the NATS client logs addresses. Both may contain secrets, so the log drops
    // all events of these crates.
    const WITH_SECRETS: [&str; 2] = ["rmcp", "async_nats"];
    let without_secrets = filter_fn(|event| !WITH_SECRETS.iter().any(|target| event.target().starts_with(target)));
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match args.log_format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
        LogFormat::Json => log.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(log.with_filter(filter.and(without_secrets))).init();
    Ok(())
}

/// Returns a future that resolves at the first Ctrl-C or SIGTERM. The second signal ends the process.
///
/// Must be called on a runtime. The listening task belongs to that runtime and ends with it.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let install = |kind| signal(kind).map_err(|error| Failure::cannot("listen for signals", error));
    let mut interrupt = install(SignalKind::interrupt())?;
    let mut terminate = install(SignalKind::terminate())?;
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        next_of(&mut interrupt, &mut terminate).await;
        info!("stopping: finishing accepted requests; a second signal stops at once");
        // The server may have ended already.
        let _ = stop.send(());
        let exit = next_of(&mut interrupt, &mut terminate).await;
        std::process::exit(exit as i32);
    });
    Ok(async {
        // An error means that the task and its runtime have ended.
        let _ = stopped.await;
    })
}

async fn next_of(interrupt: &mut Signal, terminate: &mut Signal) -> Exit {
    tokio::select! {
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_wins_over_port_and_port_over_the_settings() {
        let settings: SocketAddr = "10.0.0.7:80".parse().unwrap();
        let listen: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let choose = |listen, port| address(&ListenArgs { listen, port, trust_network: false }, settings).to_string();
        assert_eq!(choose(None, None), "10.0.0.7:80");
        assert_eq!(choose(None, Some(5000)), "10.0.0.7:5000");
        assert_eq!(choose(Some(listen), Some(5000)), "127.0.0.1:1");
    }
}
