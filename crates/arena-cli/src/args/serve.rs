//! The arguments of `arena serve` and `arena demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `arena serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Folder of the store, of secrets and of tournaments [default: arena-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Keep the store in this Postgres database instead: postgres://user:password@host:port/database?sslmode=require
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Share the database with other arenas that are started so: any of them serves any request.
    #[arg(long)]
    pub shared: bool,
    /// The same, and tell each other over this NATS server what is new, at once: nats://user:password@host:port, or tls://…
    #[arg(long, value_name = "URL", env = "NATS_URL", hide_env_values = true)]
    pub nats_url: Option<String>,
    /// Make players prove who they are: joins are signed, and answered with a key for everything after.
    #[arg(long)]
    pub auth: bool,
    /// Play tournaments between bots, as the section [tournaments] of the settings file allows it.
    #[arg(long)]
    pub tournaments: bool,
    /// A folder that is a challenge (challenge.json, and index.ts or index.js), or a folder of such folders; may be repeated. They are
    /// watched, and loaded again when they change.
    #[arg(long, value_name = "DIR")]
    pub challenges: Vec<PathBuf>,
    /// Settings file: TOML, or the reference server's JSON if it ends in .json. Options given here win over it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What is logged to stderr.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Options of `arena demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Folder of the store, kept afterwards [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Games of the first burst.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub games: u32,
    /// Seconds between the games that follow.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub pace: u64,
    /// Exit after the first burst.
    #[arg(long)]
    pub once: bool,
    /// What is logged to stderr.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Where a server listens.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Address to listen on; port 0 takes a free one [default: 127.0.0.1:3001]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// Port to listen on, if --listen doesn't say.
    #[arg(long, env = "PORT", value_name = "PORT")]
    pub port: Option<u16>,
    /// Allow an address that other machines can reach. They are believed to be whoever they say they are.
    #[arg(long)]
    pub trust_network: bool,
}

/// What a server logs.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Form of the log on stderr.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Least severe level to log, or a list such as info,arena_engine=debug [default: info; demo: warn]
    #[arg(long = "log", env = "ARENA_LOG", value_name = "LEVEL")]
    pub level: Option<String>,
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// A JSON object per line.
    Json,
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an IP address and a port, such as 127.0.0.1:3001 or [::1]:0".to_owned())
}
