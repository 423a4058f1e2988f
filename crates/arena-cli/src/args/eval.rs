//! Arguments of `arena eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Subcommands of `arena eval`.
#[derive(Debug, Subcommand)]
pub enum EvalVerb {
    /// Show the games of a run file, and estimate tokens, dollars and hours.
    #[command(after_help = "\
Examples:
  arena eval plan autumn.toml
  arena eval plan autumn.toml --earlier summer               estimate from an earlier run
  arena eval plan autumn.toml --pilot 2                      play 2 games of each cell first, and estimate from them
  arena eval plan autumn.toml --pilot 2 --pilot-dir autumn   keep these games; `run --out autumn` continues with them
  arena eval plan autumn.toml --json

An estimate needs finished games of the same challenges. Without --earlier and --pilot, the command calls no model. A pilot obeys \
the caps of the run file.")]
    Plan(PlanEvalArgs),
    /// Play the games of a run file, or continue them.
    #[command(after_help = "\
Examples:
  arena eval run autumn.toml
  arena eval run autumn.toml --out autumn                    create the folder, or continue it
  arena eval run autumn.toml --out autumn --accept-changed   even if a prompt or an option has changed
  arena eval run autumn.toml --json > progress.jsonl

Each call is stored before its answer is used. Ctrl-C lets the calls in progress finish and stops; a second Ctrl-C stops at \
once. After either, and after a crash, the same command continues, and no stored call is paid again.

A failing endpoint never counts as a loss. Calls are repeated for --patience seconds; then the model is paused, and the other \
games go on. An endpoint that rejects the key or the payment pauses its model at once. The exit code is 17 if models are paused, \
and 19 if a cap of the whole run stopped it. A model that reaches its own cap is paused. After the repair, or with a higher cap, \
the same command plays the remaining games.

You may add models, seeds and challenges to the run file, and change caps and concurrency, at any time. Only new games are \
played. With another prompt or other options, the earlier games would not be comparable, so --accept-changed is needed, and the \
report names the change.

docs/evaluations.md in the repository describes the run file.")]
    Run(RunEvalArgs),
    /// Continue a run in its folder.
    #[command(after_help = "\
Examples:
  arena eval resume autumn
  arena eval resume autumn --file autumn.toml      with a changed run file
  arena eval resume autumn --patience 3600         wait longer for failing endpoints

Without --file, the run continues with the run file that it accepted last.")]
    Resume(ResumeEvalArgs),
    /// Show the progress of a run, also while it plays.
    #[command(after_help = "\
Examples:
  arena eval status autumn
  arena eval status autumn --json
  watch arena eval status autumn

It shows the finished games of each agent and challenge, the spend against the caps, paused models with the reason, and the \
time left.")]
    Status(EvalFolderArgs),
    /// Print the results of a run and write them as pages, also while it plays.
    #[command(after_help = "\
Examples:
  arena eval report autumn                         tables, and pages for browsers in autumn/report
  arena eval report autumn --html autumn.html      one file, with charts
  arena eval report autumn --csv > autumn.csv      one row for each challenge and agent
  arena eval report autumn --json > autumn.json
  arena eval report autumn --json --without-measurements

The pages show standings with intervals, breaches, costs, and each game with its messages and calls. They need no server and no \
scripts: open report/index.html, or send the folder. The other forms write no pages.

Scores have 95 % intervals over seeds. Reliability, tokens, dollars and seconds are in tables of their own. \
--without-measurements leaves out all numbers that depend on the endpoint and the clock, so that two runs with equal answers print \
equal bytes.")]
    Report(ReportEvalArgs),
    /// List and search the calls of a run, or show one.
    #[command(after_help = "\
Examples:
  arena eval calls autumn --game 3f2a                        the calls of a game
  arena eval calls autumn --game 3f2a --seat 1
  arena eval calls autumn --agent small --search 'as an AI'
  arena eval calls autumn --call 90c1d2                      one call: prompt, turns and answer
  arena eval calls autumn --search guess --json

Ids of games and keys of calls may be shortened to their first digits. Seats count from 1.")]
    Calls(CallsArgs),
    /// Print the transcript of a game.
    #[command(after_help = "\
Examples:
  arena eval game autumn 3f2a
  arena eval game autumn 3f2a --json

Each message has the number of the call that caused it; `arena eval calls DIR --game ID` lists the calls.")]
    Game(GameEvalArgs),
    /// Print two games side by side.
    #[command(after_help = "\
Examples:
  arena eval diff autumn 3f2a 81bb
  arena eval diff autumn 3f2a 81bb --width 200

The games of one seed have the same deal, so the differences come from the players.")]
    Diff(DiffArgs),
}

/// Options of `arena eval plan`.
#[derive(Debug, Args)]
pub struct PlanEvalArgs {
    /// Run file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder of an earlier run to estimate from; may be repeated.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub earlier: Vec<PathBuf>,
    /// Play the first K games of each cell with the models, and estimate from them.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pilot: Option<u32>,
    /// Folder for the games of the pilot; a later run continues with them [default: a temporary folder]
    #[arg(long, value_name = "DIR", requires = "pilot")]
    pub pilot_dir: Option<PathBuf>,
}

/// Options of `arena eval run`.
#[derive(Debug, Args)]
pub struct RunEvalArgs {
    /// Run file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder of the run, new or to be continued [default: a new one here, named after the run and the time]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub play: PlayEvalArgs,
}

/// Options of `arena eval resume`.
#[derive(Debug, Args)]
pub struct ResumeEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Run file [default: as accepted last]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub play: PlayEvalArgs,
}

/// Options of `arena eval run` and `arena eval resume`.
#[derive(Debug, Args)]
pub struct PlayEvalArgs {
    /// Maximum number of games in progress [default: sum of the models' `concurrency`, from 8 to 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub open_games: Option<u32>,
    /// Time to repeat a failing call before its model is paused, in seconds.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=604_800))]
    pub patience: u64,
    /// Continue even if prompts, options or rules have changed; the report names the changes.
    #[arg(long)]
    pub accept_changed: bool,
}

/// Options of commands that only read a run.
#[derive(Debug, Args)]
pub struct EvalFolderArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Options of `arena eval report`.
#[derive(Debug, Args)]
pub struct ReportEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write the report as one HTML file with charts [default file: stdout]
    #[arg(long, group = "form", conflicts_with = "json", value_name = "FILE", num_args = 0..=1)]
    pub html: Option<Option<PathBuf>>,
    /// Print a CSV row for each challenge and agent.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub csv: bool,
    /// Leave out all numbers that depend on the endpoint and the clock (with --json only).
    #[arg(long)]
    pub without_measurements: bool,
}

/// Options of `arena eval calls`.
#[derive(Debug, Args)]
pub struct CallsArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Show this call whole.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["game", "seat", "agent", "search", "limit"])]
    pub call: Option<String>,
    /// List the calls of this game only.
    #[arg(long, value_name = "ID")]
    pub game: Option<String>,
    /// List the calls of this seat only, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub seat: Option<u32>,
    /// List the calls of this agent only.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// List the calls that contain this text only.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Maximum number of calls to list.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// Options of `arena eval game`.
#[derive(Debug, Args)]
pub struct GameEvalArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Id of the game, or its first digits.
    #[arg(value_name = "ID")]
    pub game: String,
}

/// Options of `arena eval diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Folder of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Id of the game on the left, or its first digits.
    #[arg(value_name = "ID")]
    pub left: String,
    /// Id of the game on the right, or its first digits.
    #[arg(value_name = "ID")]
    pub right: String,
    /// Width of both columns together, in characters [default: that of the terminal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=1000))]
    pub width: Option<u32>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Verb};

    #[test]
    fn html_goes_to_a_file_or_to_stdout() {
        let parsed =
            |args: &str| match Cli::try_parse_from(["arena", "eval", "report"].into_iter().chain(args.split(' '))) {
                Ok(Cli { verb: Verb::Eval { verb: EvalVerb::Report(args) }, .. }) => {
                    format!("{} {:?} {}", args.dir.display(), args.html, args.csv)
                }
                other => format!("{:?}", other.map_err(|error| error.kind())),
            };
        for (args, expected) in [
            ("autumn", "autumn None false"),
            ("autumn --html", "autumn Some(None) false"),
            ("autumn --html a.html", "autumn Some(Some(\"a.html\")) false"),
            ("autumn --csv", "autumn None true"),
            ("autumn --csv --html", "Err(ArgumentConflict)"),
            ("autumn --csv --json", "Err(ArgumentConflict)"),
        ] {
            assert_eq!(parsed(args), expected, "{args}");
        }
    }

    #[test]
    fn a_call_is_shown_without_filters() {
        let kind = |args: &str| {
            let parsed = Cli::try_parse_from(["arena", "eval", "calls"].into_iter().chain(args.split(' ')));
            parsed.map(|_| ()).map_err(|error| error.kind().to_string())
        };
        assert_eq!(kind("autumn --call 90c1"), Ok(()));
        assert_eq!(kind("autumn --game 3f2a --seat 1 --agent small --search yes --limit 3"), Ok(()));
        assert!(kind("autumn --call 90c1 --game 3f2a").is_err());
        assert!(kind("autumn --seat 0").is_err());
    }
}
