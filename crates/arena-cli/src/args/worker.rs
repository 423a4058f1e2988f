//! Arguments of `arena worker`.

use arena_nats::NatsUrl;
use clap::Args;

use super::url::UrlParser;
use super::{Affinity, SandboxArgs};

/// Options of `arena worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// URL of the NATS server with the jobs: nats://host or tls://user:password@host; commas separate servers of a
    /// cluster.
    #[arg(long, value_name = "URL", env = "ARENA_NATS_URL", hide_env_values = true, value_parser = UrlParser)]
    pub nats_url: NatsUrl,
    /// Number of games in parallel.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Name of the worker. Workers of one name count as one when results are checked [default: machine name and a
    /// number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// CPU placement of a game and its agents.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// Program in PATH that jobs may start, besides python3 and node; may be repeated.
    #[arg(long = "program", value_name = "NAME")]
    pub programs: Vec<String>,
    /// Run as root too.
    #[arg(long)]
    pub allow_root: bool,
    /// Sandbox of the agents; a tournament can't change it.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
