//! The arguments of `arena replay`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What can be done with replays.
#[derive(Debug, Subcommand)]
pub enum ReplayVerb {
    /// Show what is in a replay: who played, how it ended, what went wrong, and the board.
    #[command(after_help = "\
Examples:
  arena replay show game.jsonl                  the result and the last board
  arena replay show game.jsonl --epoch 12       the board of an epoch, and what was done then
  arena replay show game.jsonl --play           all of it on the terminal; Ctrl-C ends it
  arena replay show game.jsonl --play --pace 500 --epoch 40
  arena replay show game.jsonl --json           header and result as JSON")]
    Show(ShowArgs),
    /// Play replays again by the rules, and say whether everything comes out the same.
    #[command(after_help = "\
Examples:
  arena replay verify game.jsonl
  arena replay verify games/*.jsonl --json

The game is started from the replay's seed and given the recorded actions; every state, what was taken of the actions, and
the result have to be those of the replay. What no replay can prove is that the agents sent what it says. If one doesn't hold,
the exit code is 11, after all have been looked at.")]
    Verify {
        /// The replays.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Write a replay in another format.
    #[command(after_help = "\
Examples:
  arena replay export game.jsonl --format reference > replay.jsonl
  arena replay export game.jsonl --format pgn --out game.pgn")]
    Export {
        /// The replay.
        file: PathBuf,
        /// Which format.
        #[arg(long, value_enum)]
        format: Format,
        /// Where to write it [default: stdout]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// Options of `arena replay show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The replay.
    pub file: PathBuf,
    /// Show this epoch; with --play, begin with it.
    #[arg(long, value_name = "N")]
    pub epoch: Option<u64>,
    /// Show one epoch after the other.
    #[arg(long)]
    pub play: bool,
    /// Milliseconds that each epoch is shown.
    #[arg(long, value_name = "MS", requires = "play", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub pace: u64,
}

/// Formats of replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The reference engine's records: a JSON line for each epoch.
    Reference,
    /// Portable Game Notation, of chess only.
    Pgn,
}
