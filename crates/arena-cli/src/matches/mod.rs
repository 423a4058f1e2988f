//! `arena match`: matches between agents on this machine, without a server. Tournaments and other commands that play
//! matches use its options and settings.

mod games;
mod live;
pub mod open_files;
pub mod options;
mod run;
mod score;
pub mod seal;
pub mod settings;

use arena_match::{MatchError, StartError};
use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::output::Style;

pub use settings::LAUNCH;

use run::RunArgs;

/// Subcommands of `arena match`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena match games                 list the games
  arena match run snake --agent ./a --agent ./b
  arena match run chess --agent ./a --agent ./b --games 100 --concurrency 2

Matches need no server. Agents can be written in any language.")]
pub enum MatchVerb {
    /// Play one or more matches between agents.
    Run(Box<RunArgs>),
    /// List the games, or print the options of one.
    #[command(after_help = "\
Examples:
  arena match games
  arena match games snake")]
    Games {
        /// Game whose options are printed [default: list all games]
        game: Option<String>,
    },
}

pub fn run(verb: MatchVerb, style: Style) -> Result<(), Failure> {
    match verb {
        MatchVerb::Run(args) => run::run(&args, style),
        MatchVerb::Games { game: None } => games::list(style),
        MatchVerb::Games { game: Some(game) } => games::print_one(&game, style),
    }
}

pub fn explain(error: MatchError) -> Failure {
    let exit = match error {
        MatchError::Options(_) => Exit::Usage,
        MatchError::Start(StartError::NoSandbox { .. } | StartError::Setup { .. }) => Exit::NoSandbox,
        MatchError::Start(_) => Exit::Internal,
        MatchError::Replay(_) => Exit::CannotWrite,
        MatchError::System(_) => Exit::Internal,
        MatchError::Outage(_) => Exit::ModelFailed,
        MatchError::CalledOff => Exit::Interrupted,
    };
    match error {
        MatchError::Start(StartError::NoSandbox { .. }) => {
            Failure::new(exit, format_args!("{error} (--sandbox off runs agents without a sandbox)"))
        }
        error => Failure::caused(exit, &error),
    }
}
