//! Arguments of `arena replay`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Subcommands of `arena replay`.
#[derive(Debug, Subcommand)]
pub enum ReplayVerb {
    /// Show a replay's players, result, faults and board.
    #[command(after_help = "\
Examples:
  arena replay show game.jsonl                  the result and the last board
  arena replay show game.jsonl --epoch 12       the board and the actions of an epoch
  arena replay show game.jsonl --play           play it back on the terminal; Ctrl-C stops
  arena replay show game.jsonl --play --pace 500 --epoch 40
  arena replay show game.jsonl --json           print header and result as JSON")]
    Show(ShowArgs),
    /// Show replays in the browser.
    #[command(after_help = "\
Examples:
  arena replay serve game.jsonl                 one replay
  arena replay serve games                      all replays in a folder and its subfolders
  arena replay serve games --port 8080          on a fixed port

It prints one line on stdout: replays are at http://127.0.0.1:PORT/
Only this machine can connect. Ctrl-C stops it. Keys in the browser: Space plays and pauses, the arrow keys step (with Shift \
by ten), Home and End jump to the ends, N and P to the next and the previous fault. Long replays open at once, since the \
browser loads only the parts that it shows.")]
    Serve(ReplayServeArgs),
    /// Replay the recorded actions by the rules and compare everything.
    #[command(after_help = "\
Examples:
  arena replay verify game.jsonl
  arena replay verify games/*.jsonl --json
  arena replay verify talks.jsonl --challenge ./merger-talks

The game starts from the replay's seed and receives the recorded actions. All states, the actions as interpreted, and the \
result must match the replay. A replay can't prove that the agents sent the recorded actions. If a replay doesn't match, the \
exit code is 11, after all files are checked. The replay of a scripted challenge names the script's version, and only that \
version can verify it: give its folder with --challenge.")]
    Verify {
        /// Replay file.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Folder of a scripted challenge, for replays of it; may be repeated.
        #[arg(long = "challenge", value_name = "DIR")]
        challenges: Vec<PathBuf>,
    },
    /// Export a replay to another format.
    #[command(after_help = "\
Examples:
  arena replay export game.jsonl --format reference > replay.jsonl
  arena replay export game.jsonl --format pgn --out game.pgn
  arena replay export game.jsonl --format html --out game

--format html writes a folder for any static web host. The host should support range requests, as most do. Browsers can't open \
the folder from a local disk; use `arena replay serve` there.")]
    Export {
        /// Replay file.
        file: PathBuf,
        /// Output format.
        #[arg(long, value_enum)]
        format: Format,
        /// Output file; for html, a folder, created if missing [default: stdout]
        #[arg(long, value_name = "FILE|DIR", required_if_eq("format", "html"))]
        out: Option<PathBuf>,
    },
}

/// Options of `arena replay show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Replay file.
    pub file: PathBuf,
    /// Epoch to show; with --play, the first one.
    #[arg(long, value_name = "N")]
    pub epoch: Option<u64>,
    /// Play back the epochs on the terminal.
    #[arg(long)]
    pub play: bool,
    /// Time to show each epoch, in milliseconds.
    #[arg(long, value_name = "MS", requires = "play", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub pace: u64,
}

/// Options of `arena replay serve`.
#[derive(Debug, Args)]
pub struct ReplayServeArgs {
    /// Replay file, or a folder with replays.
    #[arg(value_name = "FILE|DIR")]
    pub path: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

/// Export formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The reference engine's format: one JSON line for each epoch.
    Reference,
    /// Portable Game Notation, chess only.
    Pgn,
    /// A folder for a web host: the replay with a viewer.
    Html,
}
