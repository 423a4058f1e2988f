//! `arena agent`: faults of an agent, reported to its author; new agents; and uploads.

mod check;
mod new;
mod upload;

use clap::Subcommand;

use crate::command_line::Global;
use crate::exit::Failure;
use crate::output::Style;

use check::CheckArgs;
use new::NewAgentArgs;
use upload::UploadArgs;

/// Subcommands of `arena agent`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena agent new snake bot
  arena agent check ./bot --game snake
  arena agent upload ./bot --game snake")]
pub enum AgentVerb {
    /// Check that an agent follows the protocol; print each fault with its line and a fix.
    Check(CheckArgs),
    /// Create a sample agent in a new folder.
    New(NewAgentArgs),
    /// Upload an agent to a server, for a ladder or for tournaments.
    Upload(UploadArgs),
}

pub fn run(verb: AgentVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        AgentVerb::Check(args) => check::run(&args, style),
        AgentVerb::New(args) => new::run(&args, style),
        AgentVerb::Upload(args) => upload::run(&args, global, style),
    }
}
