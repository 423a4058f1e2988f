//! Arguments of `arena serve` and `arena demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::matches::games;

/// Options of `arena serve`.
#[derive(Debug, Args)]
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
    /// Offer tournaments between bots, configured in the section [tournaments] of the settings file.
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

/// Options of `arena demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Data folder, kept after the demo [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Number of games to play first.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = games::<u32>)]
    pub games: u32,
    /// Time between later games, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub pace: u64,
    /// Exit after the first games.
    #[arg(long)]
    pub once: bool,
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
