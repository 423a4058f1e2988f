//! The arguments of `arena agent`.

use clap::{Args, Subcommand};

use super::SandboxArgs;

/// What can be done with agents.
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// Tell what an agent gets wrong in the protocol, with the line that it sent and how to mend it.
    #[command(after_help = "\
Examples:
  arena agent check ./bot                     in each game: it has to play one of them
  arena agent check ./bot --game snake        it has to play this one
  arena agent check http://127.0.0.1:8000/ --game chess
  arena agent check --game food_catcher -- python3 bot.py --level 3
  arena agent check ./bot --json

The agent is started some times, in the same sandbox as in a match. Each time it is spoken to for some steps: as usual, with
keys that it can't know, with the state in each place where it may be, and then it is told to stop. `wrong` costs matches,
`advice` doesn't, and what is `fine` was tried. The exit code is 12 if something is wrong, else 0.")]
    Check(CheckArgs),
}

/// Options of `arena agent check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The agent: a file, a folder or an address.
    #[arg(value_name = "PATH", required_unless_present = "command", conflicts_with = "command")]
    pub agent: Option<String>,
    /// The game that it has to play [default: one of all]
    #[arg(long, value_name = "GAME")]
    pub game: Option<String>,
    /// The agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// How it is held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}
