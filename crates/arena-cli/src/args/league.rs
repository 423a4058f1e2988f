//! Arguments of `arena league`.

use std::path::PathBuf;
use std::time::Duration;

use arena_match::Dialect;
use arena_model::Seed;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::matches::{Affinity, SandboxArgs, dialect, game_help, games, option, seed};
use super::tournament::WorkerPoolArgs;

/// The place of the leagues.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Data folder [default: arena-data]
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
    /// Postgres database for the leagues, instead of the data folder.
    #[arg(long, value_name = "URL", env = "LEAGUE_DATABASE_URL", hide_env_values = true, global = true)]
    pub database_url: Option<String>,
}

/// Subcommands of `arena league`.
#[derive(Debug, Subcommand)]
pub enum LeagueVerb {
    /// Create a league. Its game and options can't be changed later.
    #[command(after_help = "\
Examples:
  arena league create snakes --game snake
  arena league create crowded --game snake --seats 4 --set n_epochs=200
  arena league create blitz --game chess --step-ms 50 --bank-ms 1000

A pairing is one game for each seat: all with the same seed, and each agent on each seat once, so that neither luck nor a \
better seat decides. With --no-pairs it is one game.")]
    Create(CreateArgs),
    /// Add agents to a league.
    #[command(after_help = "\
Examples:
  arena league add snakes ./a ./b new=./c
  arena league add snakes far=http://127.0.0.1:8000/
  arena league add snakes third= -- python3 bot.py --level 3    an agent given as a command line
  arena league add snakes a=./a-2 --version 2    the next version of a

An agent is identified by its files. If they changed before the next `run`, or with --version, a new version begins without \
games; the old version keeps its results. An agent that returns unchanged continues with its results.")]
    Add(AddArgs),
    /// Remove agents from a league; their results stay.
    #[command(after_help = "\
Examples:
  arena league rm snakes b")]
    Rm {
        /// League.
        name: String,
        /// Names of the agents in the league.
        #[arg(required = true)]
        agents: Vec<String>,
    },
    /// Play games until Ctrl-C or a limit.
    #[command(after_help = "\
Examples:
  arena league run snakes           until Ctrl-C
  arena league run snakes --for 10m --concurrency 2
  arena league run snakes --games 100
  arena league run snakes --until-margin 50 --for 2h    stop at the first limit reached
  arena league run snakes --nats-url nats://127.0.0.1   on every `arena worker` of that NATS server

The agent with the most uncertain rating plays next, against the opponents that reduce this uncertainty most. A pairing that \
has begun, or was interrupted earlier, is always played to its end.

Each result is durable as soon as its game ends. Ctrl-C finishes the games in progress; a second Ctrl-C stops at once. The \
next run resumes after either, and after a crash.")]
    Run(RunLeagueArgs),
    /// Print the standings of a season, also while it is played.
    #[command(after_help = "\
Examples:
  arena league show snakes
  arena league show snakes --season 1 --markdown > SEASON-1.md
  arena league show --json          if there is only one league")]
    Show(ShowLeagueArgs),
    /// Close the current season and begin the next, without games; the agents stay.
    #[command(after_help = "\
Examples:
  arena league season snakes
  arena league show snakes --season 1    show the closed season")]
    Season {
        /// League.
        name: String,
    },
    /// List all leagues.
    #[command(after_help = "\
Examples:
  arena league list
  arena league list --data there --json")]
    List,
}

/// Options of `arena league create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name of the league.
    pub name: String,
    /// Game.
    #[arg(long, help = game_help(""))]
    pub game: String,
    /// Number of agents in a game [default: 2]
    #[arg(long, value_name = "N")]
    pub seats: Option<u32>,
    /// Play one game for each pairing, instead of one for each seat.
    #[arg(long)]
    pub no_pairs: bool,
    /// Seed of all games: an integer, or 64 hexadecimal digits [default: chosen at random]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Set a game option; may be repeated (`arena match games GAME` lists them).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// Time limit of a step, in milliseconds [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub step_ms: Option<u64>,
    /// Time bank of an agent in a game, in milliseconds, used beyond the step limit [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub bank_ms: Option<u64>,
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Options of `arena league add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// League.
    pub name: String,
    /// Agent: a file, a folder, a URL or `py:FILE.py:FUNCTION`, optionally with a name. A last `AGENT=` without a path
    /// names the command line.
    #[arg(value_name = "[AGENT=]PATH")]
    pub agents: Vec<String>,
    /// Agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// Version of the agent [default: from its manifest]
    #[arg(long, value_name = "V")]
    pub version: Option<String>,
    /// Format of the states sent to the agents: both, spec or flat [default: from their manifests]
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
}

/// Options of `arena league run`.
#[derive(Debug, Args)]
pub struct RunLeagueArgs {
    /// League.
    pub name: String,
    /// Stop after this number of games.
    #[arg(long, value_name = "N", value_parser = games::<u64>)]
    pub games: Option<u64>,
    /// Stop after this time: 90s, 10m, 1h30m.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Stop when every rating's 95 % interval is within ±ELO.
    #[arg(long, value_name = "ELO", value_parser = margin)]
    pub until_margin: Option<f64>,
    /// Number of games in parallel.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// CPU placement of a game and its agents.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// Print the standings after every N games; 0: only at the end.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub table_every: usize,
    /// The workers.
    #[command(flatten)]
    pub pool: WorkerPoolArgs,
}

/// Options of `arena league show`.
#[derive(Debug, Args)]
pub struct ShowLeagueArgs {
    /// League [default: the only one]
    pub name: Option<String>,
    /// Season number, from 1 [default: the current one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub season: Option<u32>,
    /// Print comma-separated values.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// Parses a time as numbers with units: `90s`, `10m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a time with units, such as 90s, 10m, 1h30m or 2d".to_owned();
    let mut seconds: u64 = 0;
    let mut rest = text;
    while let Some(end) = rest.find(|char: char| !char.is_ascii_digit()) {
        let unit = match rest.as_bytes()[end] {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86_400,
            _ => return Err(wrong()),
        };
        let count: u64 = rest[..end].parse().map_err(|_| wrong())?;
        seconds = count.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
        rest = &rest[end + 1..];
    }
    // The maximum is a hundred years, so that adding the time to the clock can't overflow.
    match rest.is_empty() && (1..=3_155_760_000).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(wrong()),
    }
}

/// Parses a number of Elo above 0.
fn margin(text: &str) -> Result<f64, String> {
    let margin = text.parse().ok().filter(|margin: &f64| margin.is_finite() && *margin > 0.0);
    margin.ok_or_else(|| "expected a number of Elo above 0, such as 50".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let seconds = |text: &str| duration(text).ok().map(|time| time.as_secs());
        let known = [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("1m1m", 120)];
        for (text, expected) in known {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "10", "m", "0s", "1.5h", "-1s", "1h30", "5 m", "5é", "99999999999999999999s", "999999999999d"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn margins_are_numbers_above_zero() {
        assert_eq!(margin("50"), Ok(50.0));
        for text in ["0", "-1", "inf", "NaN", "x"] {
            assert!(margin(text).is_err(), "{text}");
        }
    }
}
