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
    /// Show replays in the browser.
    #[command(after_help = "\
Examples:
  arena replay serve game.jsonl                 one replay
  arena replay serve games                      all replays in a folder and below it, with a list
  arena replay serve games --port 8080          not on just any free port

It prints one line on stdout: replays are at http://127.0.0.1:PORT/
Only this machine can ask for it. Ctrl-C ends it. Keys in the browser: Space plays and pauses, arrows step (with Shift by ten), Home
and End go to the ends, N and P to what went wrong next and before. Replays are never loaded as a whole, so long ones open at once.")]
    Serve(ServeArgs),
    /// Play replays again by the rules, and say whether everything comes out the same.
    #[command(after_help = "\
Examples:
  arena replay verify game.jsonl
  arena replay verify games/*.jsonl --json
  arena replay verify talks.jsonl --challenge ./merger-talks

The game is started from the replay's seed and given the recorded actions; every state, what was taken of the actions, and
the result have to be those of the replay. What no replay can prove is that the agents sent what it says. If one doesn't hold,
the exit code is 11, after all have been looked at. A replay of a challenge that is a script names the script's version; it holds by
that version only, whose folder is given by --challenge.")]
    Verify {
        /// The replays.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The folder of a challenge that is a script, for replays of it. May be given again.
        #[arg(long = "challenge", value_name = "DIR")]
        challenges: Vec<PathBuf>,
    },
    /// Write a replay in another format.
    #[command(after_help = "\
Examples:
  arena replay export game.jsonl --format reference > replay.jsonl
  arena replay export game.jsonl --format pgn --out game.pgn
  arena replay export game.jsonl --format html --out game

What --format html writes is a folder that any web host can serve as it is; the host should answer requests for ranges of
bytes, as most do. Files opened without a host can't load each other: arena replay serve shows replays here.")]
    Export {
        /// The replay.
        file: PathBuf,
        /// Which format.
        #[arg(long, value_enum)]
        format: Format,
        /// Where to write it; for html a folder, which is made [default: stdout]
        #[arg(long, value_name = "FILE|DIR", required_if_eq("format", "html"))]
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

/// Options of `arena replay serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// A replay, or a folder with replays.
    #[arg(value_name = "FILE|DIR")]
    pub path: PathBuf,
    /// Port on 127.0.0.1 to listen on; 0 is any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

/// Formats of replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The reference engine's records: a JSON line for each epoch.
    Reference,
    /// Portable Game Notation, of chess only.
    Pgn,
    /// A folder for a web host: the replay with a viewer.
    Html,
}
