//! `arena author`: tools for authors of challenges and strategies. The checks of challenges are in `arena-check`.

mod check;
mod fairness;
mod find;
mod new;
mod play;
mod strategy;
mod types;

use std::path::PathBuf;

use clap::Subcommand;

use crate::exit::Failure;
use crate::output::Style;

use check::CheckChallengeArgs;
use fairness::FairnessArgs;
use new::NewArgs;
use play::PlayChallengeArgs;

/// Subcommands of `arena author`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena author new number-duel      create a challenge from a template
  arena author check number-duel    find faults by playing it
  arena author play number-duel     play all seats at this terminal
  arena serve --challenges .        start a server that offers it

docs/writing-challenges.md in the repository is a tutorial. To play the challenges of a server, use `arena challenges`.")]
pub enum AuthorVerb {
    /// Create a challenge: a folder with a script, a sample agent and types for your editor; or a scoring strategy.
    New(NewArgs),
    /// Find faults of a challenge by playing it, or of a scoring strategy by counting random games.
    Check(CheckChallengeArgs),
    /// Play a challenge at this terminal, alone on all seats or with agents.
    Play(PlayChallengeArgs),
    /// Measure seat fairness: agents play each deal on every seat.
    Fairness(FairnessArgs),
    /// Write TypeScript declarations of the script API, for editors.
    #[command(after_help = "\
Examples:
  arena author types                       write ./types and print the editor's setup
  arena author types --out ../types")]
    Types {
        /// Output folder; existing declarations are overwritten.
        #[arg(long, value_name = "DIR", default_value = "types")]
        out: PathBuf,
    },
}

pub fn run(verb: AuthorVerb, style: Style) -> Result<(), Failure> {
    match verb {
        AuthorVerb::New(args) if args.scoring => strategy::create(&args.folder, style),
        AuthorVerb::New(args) => new::run(&args, style),
        AuthorVerb::Check(args) if strategy::is_folder(&args.challenge) => strategy::check(&args, style),
        AuthorVerb::Check(args) => check::run(&args, style),
        AuthorVerb::Play(args) => play::run(&args, style),
        AuthorVerb::Fairness(args) => fairness::run(&args, style),
        AuthorVerb::Types { out } => types::run(&out, style),
    }
}
