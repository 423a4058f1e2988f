//! `arena replay`: shows replays here or in the browser, verifies them, and exports them to other formats.

mod export;
mod html;
mod last_line;
mod serve;
mod show;
mod verify;

use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use arena_match::{Replay, ReplayError};
use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::output::Style;

pub use last_line::last_line;

use export::Format;
use serve::ReplayServeArgs;
use show::ShowArgs;

/// Subcommands of `arena replay`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena match run snake --agent ./a --agent ./b --replay game.jsonl
  arena replay show game.jsonl --play
  arena replay serve game.jsonl                        in the browser
  arena replay verify game.jsonl
  arena replay export game.jsonl --format reference --out reference.jsonl")]
pub enum ReplayVerb {
    /// Show a replay's players, result, faults and board.
    Show(ShowArgs),
    /// Show replays in the browser.
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

pub fn run(verb: ReplayVerb, style: Style) -> Result<(), Failure> {
    match verb {
        ReplayVerb::Show(args) => show::run(&args, style),
        ReplayVerb::Serve(args) => serve::run(&args, style),
        ReplayVerb::Verify { files, challenges } => verify::run(&files, &challenges, style),
        ReplayVerb::Export { file, format, out } => export::run(&file, format, out.as_deref()),
    }
}

fn open_file(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    match file.metadata().is_ok_and(|data| data.is_dir()) {
        true => Err(unreadable(path, "it is a folder")),
        false => Ok(BufReader::new(file)),
    }
}

fn unreadable(path: &Path, why: impl Display) -> Failure {
    Failure::new(Exit::BadReplay, format_args!("{} cannot be read: {why}", path.display()))
}

fn open(path: &Path) -> Result<Replay<BufReader<File>>, Failure> {
    Replay::open(open_file(path)?).map_err(|error| explain(path, &error))
}

pub fn explain(path: &Path, error: &ReplayError) -> Failure {
    let exit = match error {
        ReplayError::Write(_) => Exit::CannotWrite,
        ReplayError::OtherRules { .. } | ReplayError::Future(_) => Exit::OtherRules,
        ReplayError::OtherGame(_) | ReplayError::NoScript { .. } | ReplayError::OtherScript { .. } => Exit::Usage,
        ReplayError::Read(_) | ReplayError::Foreign(_) | ReplayError::Line { .. } | ReplayError::CutOff { .. } => {
            Exit::BadReplay
        }
    };
    Failure::caused(exit, error).about(&path.display())
}
