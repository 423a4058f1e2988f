//! `arena tournament`: many matches between many agents, from plan to standings.

mod args;
mod chess;
mod ending;
pub mod entrants;
mod failures;
mod league;
mod plan;
mod play;
mod run;
mod standings;
pub mod tables;
mod watch;
pub mod workers;

use std::path::PathBuf;

use clap::Subcommand;

use crate::exit::Failure;
use crate::output::Style;
use crate::rate::{self, RateArgs};

use self::args::{ResumeArgs, TournamentArgs};
use self::league::add::AddArgs;
use self::standings::StandingsArgs;

/// Subcommands of `arena tournament`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena tournament run snake --agent ./a --agent ./b --agent ./c --out snakes
  arena tournament resume snakes    continue after Ctrl-C or a crash
  arena tournament standings snakes
  arena tournament rate snakes games.pgn    rate all results by Bradley–Terry and Elo")]
pub enum TournamentVerb {
    /// Create a tournament and play it.
    Run(Box<TournamentArgs>),
    /// Resume a tournament.
    Resume(ResumeArgs),
    /// Add agents to a league.
    Add(AddArgs),
    /// Remove agents from a league; their results stay.
    #[command(after_help = "\
Examples:
  arena tournament remove ladder b")]
    Remove {
        /// Folder of the league.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Names of the agents in the league.
        #[arg(required = true)]
        agents: Vec<String>,
    },
    /// Close the current season of a league and begin the next, without games; the agents stay.
    #[command(after_help = "\
Examples:
  arena tournament season ladder
  arena tournament standings ladder --season 1    show the closed season")]
    Season {
        /// Folder of the league.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Print the standings of a tournament, also while it is played.
    Standings(StandingsArgs),
    /// Rate results by Bradley–Terry and Elo (same as `arena rate`).
    Rate(RateArgs),
}

pub fn run(verb: TournamentVerb, style: Style) -> Result<(), Failure> {
    match verb {
        TournamentVerb::Run(args) => run::begin(&args, style),
        TournamentVerb::Resume(args) => run::resume(&args, style),
        TournamentVerb::Add(args) => league::add::add(&args, style),
        TournamentVerb::Remove { folder, agents } => league::remove(&folder, &agents, style),
        TournamentVerb::Season { folder } => league::close_season(&folder, style),
        TournamentVerb::Standings(args) => standings::show(&args, style),
        TournamentVerb::Rate(args) => rate::run(&args, style),
    }
}
