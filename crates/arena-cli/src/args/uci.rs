//! Arguments of `arena uci`.

use clap::Args;

use super::SandboxArgs;

/// Options of `arena uci`.
#[derive(Debug, Args)]
pub struct UciArgs {
    /// Agent.
    #[arg(long, help = super::matches::agent_help("Agent", ""), value_name = "PATH", required_unless_present = "command")]
    pub agent: Option<String>,
    /// The agent as a command line, after `--`.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true, conflicts_with = "agent")]
    pub command: Vec<String>,
    /// The sandbox of the agent's process.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
