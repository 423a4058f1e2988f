//! The arguments of `arena worker`.

use arena_nats::NatsUrl;
use clap::Args;

use super::url::UrlParser;
use super::{Affinity, SandboxArgs};

/// Options of `arena worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// The NATS server that has the games: nats://host or tls://user:password@host; several of one cluster with commas.
    #[arg(long, value_name = "URL", env = "ARENA_NATS_URL", hide_env_values = true, value_parser = UrlParser)]
    pub nats_url: NatsUrl,
    /// Play so many games beside each other [default: 1]
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// What it is called in tournaments; two of one name count as one where games are checked [default: after the machine, another one with each start]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Whether a game and its agents share a core, which is far quicker unless agents think long.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// How agents are held in. No tournament has a say in that.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
