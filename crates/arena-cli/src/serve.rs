//! `arena serve`: turns arguments, environment and settings file into settings, and runs a server until it is told to stop.
//! What a server does is `arena-server`'s; the demo starts its server through here as well.

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

use arena_engine::NatsUrl;
use arena_identity::ServerSecret;
use arena_server::{AdminToken, Server, Settings, StartError};
use arena_store::DatabaseUrl;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::info;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{ListenArgs, LogArgs, LogFormat, ServeArgs};
use crate::exit::{Exit, Failure};
use crate::matches::settings::launcher;
use crate::{notify, output, scripts};

/// Runs a server until Ctrl-C or SIGTERM.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    start_log(&args.log, "info")?;
    let settings = settings(&args)?;
    let data = settings.data.clone();
    let runtime = runtime()?;
    runtime.block_on(async {
        // Before the server starts, so that a signal that comes early is not lost.
        let stop = stop_signal()?;
        let server = start(settings).await?;
        output::print(&format!("arena listens on http://{}", server.address()))?;
        if let Some(token) = server.new_admin_token() {
            output::print(&introduce(token, &data))?;
        }
        notify::send(notify::READY);
        let stop = async {
            stop.await;
            notify::send(notify::STOPPING);
        };
        server.run(stop).await.map_err(|error| Failure::caused(Exit::Internal, &error))
    })
}

/// Settings of `serve`: the file first, then what the command line says.
fn settings(args: &ServeArgs) -> Result<Settings, Failure> {
    let mut settings = match &args.config {
        Some(file) => Settings::from_file(file).map_err(|error| Failure::caused(Exit::Usage, &error))?,
        None => Settings::default(),
    };
    settings.listen = address(&args.listen, settings.listen);
    if let Some(data) = &args.data {
        settings.data.clone_from(data);
    }
    // A variable that is set to nothing is as good as none.
    if let Some(url) = args.database_url.as_ref().filter(|url| !url.is_empty()) {
        // Read here and not with the arguments: what is wrong would be shown there with the password in it.
        let refuse =
            |error| Failure::new(Exit::Usage, format_args!("--database-url (DATABASE_URL) can't be used: {error}"));
        settings.database = Some(url.parse::<DatabaseUrl>().map_err(refuse)?);
    }
    settings.nodes.shared |= args.shared;
    if let Some(url) = args.nats_url.as_ref().filter(|url| !url.is_empty()) {
        let refuse = |error| Failure::new(Exit::Usage, format_args!("--nats-url (NATS_URL) can't be used: {error}"));
        settings.nodes.nats = Some(url.parse::<NatsUrl>().map_err(refuse)?);
    }
    settings.trust_network |= args.listen.trust_network;
    settings.auth.enabled |= args.auth;
    settings.tournaments.enabled |= args.tournaments;
    settings.scripts.folders.extend(args.challenges.iter().cloned());
    settings.scripts.worker = Some(scripts::worker()?);
    if settings.tournaments.enabled {
        settings.tournaments.launcher = Some(launcher()?);
    }
    if settings.auth.enabled || settings.tournaments.enabled {
        settings.auth.secret = secret_of_environment()?;
    }
    settings.admin_token = admin_token_of_environment()?;
    Ok(settings)
}

/// The secret in `AUTH_SECRET`. No option takes one: what stands on a command line is for every user to read.
fn secret_of_environment() -> Result<Option<ServerSecret>, Failure> {
    let Some(secret) = std::env::var_os("AUTH_SECRET") else { return Ok(None) };
    let refuse = |error| Failure::new(Exit::Usage, format_args!("AUTH_SECRET can't be used: {error}"));
    ServerSecret::new(secret.as_encoded_bytes()).map(Some).map_err(refuse)
}

/// The administrator's token in `ADMIN_TOKEN`, likewise.
fn admin_token_of_environment() -> Result<Option<AdminToken>, Failure> {
    let Some(token) = std::env::var_os("ADMIN_TOKEN") else { return Ok(None) };
    let refuse = |error: &dyn Display| Failure::new(Exit::Usage, format_args!("ADMIN_TOKEN can't be used: {error}"));
    // What isn't UTF-8 isn't plain ASCII either.
    token.to_string_lossy().parse().map(Some).map_err(|error| refuse(&error))
}

/// Tells of a token that was made just now: the only time that it is shown.
fn introduce(token: &AdminToken, data: &Path) -> String {
    let (token, data, file) = (token.reveal(), data.display(), data.join(AdminToken::FILE));
    format!(
        "administrator's token: {token}\n\
         (shown this once and kept in {}; try: arena admin audit --data {data})",
        file.display()
    )
}

/// Where to listen: `--listen`, else `--port` or `PORT` on the address that would be used anyway, else that.
pub fn address(args: &ListenArgs, otherwise: SocketAddr) -> SocketAddr {
    match (args.listen, args.port) {
        (Some(listen), _) => listen,
        (None, Some(port)) => SocketAddr::new(otherwise.ip(), port),
        (None, None) => otherwise,
    }
}

/// Starts a server, with a sentence that tells what to do where that can be known.
pub async fn start(settings: Settings) -> Result<Server, Failure> {
    Server::start(settings).await.map_err(|error| explain(&error))
}

fn explain(error: &StartError) -> Failure {
    let exit = match error {
        StartError::UntrustedNetwork(_) | StartError::Settings(_) => Exit::Usage,
        StartError::Listen { .. } => Exit::CannotListen,
        StartError::Store(_) | StartError::Auth(_) | StartError::AdminToken(_) | StartError::Tournaments(_) => {
            Exit::StoreUnavailable
        }
    };
    Failure::caused(exit, error)
}

/// The runtime that servers run on.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format_args!("can't start the runtime: {error}")))?;
    // A write beyond a limit on file sizes shall fail as one on a full disk does, with an error to be answered; left
    // alone, the signal ends the process. A handler stays although the value goes.
    let entered = runtime.enter();
    let _handled = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
        .map_err(|error| Failure::new(Exit::Internal, format_args!("can't handle signals: {error}")))?;
    drop(entered);
    Ok(runtime)
}

/// Sends the log to stderr.
pub fn start_log(args: &LogArgs, default_level: &str) -> Result<(), Failure> {
    let level = args.level.as_deref().unwrap_or(default_level);
    let filter = EnvFilter::try_new(level)
        .map_err(|error| Failure::new(Exit::Usage, format_args!("--log (ARENA_LOG) can't be {level:?}: {error}")))?;
    // The SDK of MCP logs whole requests, and the client of NATS addresses, secrets and all, at levels that may be asked for here. They
    // are never heard.
    const INDISCREET: [&str; 2] = ["rmcp", "async_nats"];
    let discreet = filter_fn(|event| !INDISCREET.iter().any(|target| event.target().starts_with(target)));
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    match args.log_format {
        LogFormat::Text => {
            log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).finish().with(discreet).init();
        }
        LogFormat::Json => log.json().flatten_event(true).finish().with(discreet).init(),
    }
    Ok(())
}

/// A future that resolves at the first Ctrl-C or SIGTERM. The second ends the process at once.
///
/// Must be called on a runtime. The listening task belongs to that runtime and ends with it.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let install = |kind| {
        signal(kind).map_err(|error| Failure::new(Exit::Internal, format_args!("can't listen for signals: {error}")))
    };
    let mut interrupt = install(SignalKind::interrupt())?;
    let mut terminate = install(SignalKind::terminate())?;
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        next_of(&mut interrupt, &mut terminate).await;
        info!("stopping: finishing what was accepted; a second signal stops at once");
        // The server may already have ended by itself.
        let _ = stop.send(());
        let exit = next_of(&mut interrupt, &mut terminate).await;
        std::process::exit(exit as i32);
    });
    Ok(async {
        // An error means that the task is gone, and with it the runtime.
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
