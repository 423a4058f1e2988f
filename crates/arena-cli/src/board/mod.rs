//! `arena board`: leaderboards from records.

mod policy;
mod rebuild;
mod tables;

use clap::Subcommand;

use crate::command_line::Global;
use crate::exit::Failure;
use crate::output::Style;

use rebuild::RebuildArgs;

/// Subcommands of `arena board`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena board rebuild --records season
  arena board rebuild --records season --log https://arena.example --policy policy.toml")]
pub enum BoardVerb {
    /// Compute all leaderboards from records.
    Rebuild(RebuildArgs),
}

pub fn run(verb: BoardVerb, global: &Global, style: Style) -> Result<(), Failure> {
    match verb {
        BoardVerb::Rebuild(args) => rebuild::run(&args, global, style),
    }
}
