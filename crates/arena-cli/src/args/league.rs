//! The arguments of `arena league`.

use std::path::PathBuf;
use std::time::Duration;

use arena_match::Dialect;
use arena_model::Seed;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::matches::{Affinity, SandboxArgs, dialect, game_help, option, seed};

/// Where leagues are kept.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// Folder of the store [default: arena-data]
    #[arg(long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
}

/// What can be done with leagues.
#[derive(Debug, Subcommand)]
pub enum LeagueVerb {
    /// Found a league, and say what is played in it. That doesn't change any more.
    #[command(after_help = "\
Examples:
  arena league create snakes --game snake
  arena league create crowded --game snake --seats 4 --set n_epochs=200
  arena league create blitz --game chess --step-ms 50 --bank-ms 1000

A meeting of agents is as many games as seats: with the same seed, and each agent on each seat once, so that neither luck nor
a better seat decides. --no-pairs makes it one game.")]
    Create(CreateArgs),
    /// Take agents into a league.
    #[command(after_help = "\
Examples:
  arena league add snakes ./a ./b new=./c
  arena league add snakes far=http://127.0.0.1:8000/
  arena league add snakes third= -- python3 bot.py --level 3    an agent that is a command line
  arena league add snakes a=./a-2 --version 2    the next version of a

An agent is its files. If they have changed at the next `run`, or with --version, its next version begins: without games, and
what the last one has played stays that one's. One that comes back as it was goes on with what it has played.")]
    Add(AddArgs),
    /// Take agents out of a league; what they have played stays.
    #[command(after_help = "\
Examples:
  arena league rm snakes b")]
    Rm {
        /// The league.
        name: String,
        /// What the agents are called in it.
        #[arg(required = true)]
        agents: Vec<String>,
    },
    /// Play games, until Ctrl-C or whatever is said here.
    #[command(after_help = "\
Examples:
  arena league run snakes           until Ctrl-C
  arena league run snakes --for 10m --concurrency 2
  arena league run snakes --games 100
  arena league run snakes --until-margin 50 --for 2h    whichever comes first

Whoever's rating is least sure plays next, against those of whom a game tells most about it. A meeting that has begun is played
to its end, and so is one that was broken off before.

Every result is on the disk as soon as it is there. Ctrl-C once finishes the games that run, twice stops at once; the next run
goes on after either, and after the machine went down.")]
    Run(RunLeagueArgs),
    /// Print the standings of a season, also while it is played.
    #[command(after_help = "\
Examples:
  arena league show snakes
  arena league show snakes --season 1 --markdown > SEASON-1.md
  arena league show --json          of the only league there is")]
    Show(ShowLeagueArgs),
    /// Close the present season of a league and begin the next one, in which nobody has played. The agents stay.
    #[command(after_help = "\
Examples:
  arena league season snakes
  arena league show snakes --season 1    the one that was closed")]
    Season {
        /// The league.
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
    /// What it is called.
    pub name: String,
    /// The game.
    #[arg(long, help = game_help(""))]
    pub game: String,
    /// How many agents a game has [default: 2]
    #[arg(long, value_name = "N")]
    pub seats: Option<u32>,
    /// One game a meeting, rather than one for each seat.
    #[arg(long)]
    pub no_pairs: bool,
    /// What the seeds of all games come of: a number, or 64 hexadecimal digits [default: drawn]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub seed: Option<Seed>,
    /// Set a constant of the game: KEY=VALUE (`arena match games GAME` lists them).
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option)]
    pub options: Vec<(String, Value)>,
    /// Milliseconds for a step [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub step_ms: Option<u64>,
    /// Milliseconds that all steps of an agent in a game together may take beyond that [default: the game's]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=86_400_000))]
    pub bank_ms: Option<u64>,
    /// How agents are held in.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

/// Options of `arena league add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The league.
    pub name: String,
    /// An agent: a file, a folder or an address; a name before it is what it is called. A name alone goes to the command line.
    #[arg(value_name = "[AGENT=]PATH")]
    pub agents: Vec<String>,
    /// An agent as a command line.
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// What this version of the agent is called [default: as its manifest says]
    #[arg(long, value_name = "V")]
    pub version: Option<String>,
    /// How the agents are given the state, whatever their manifests say.
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    pub dialect: Option<Dialect>,
}

/// Options of `arena league run`.
#[derive(Debug, Args)]
pub struct RunLeagueArgs {
    /// The league.
    pub name: String,
    /// Begin no meeting once so many games have been played.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub games: Option<u64>,
    /// Begin no meeting once so much time has passed: 90s, 10m, 1h30m.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Begin no meeting once the Elo of every agent is known to ± so much.
    #[arg(long, value_name = "ELO", value_parser = margin)]
    pub until_margin: Option<f64>,
    /// Play so many games beside each other.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub concurrency: u32,
    /// Whether a game and its agents share a core, which is far quicker unless agents think long.
    #[arg(long, value_enum, default_value_t = Affinity::Share)]
    pub affinity: Affinity,
    /// Print the standings after so many games, 0: at the end only.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub table_every: usize,
}

/// Options of `arena league show`.
#[derive(Debug, Args)]
pub struct ShowLeagueArgs {
    /// The league [default: the only one]
    pub name: Option<String>,
    /// Which season, from 1 [default: the present one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub season: Option<u32>,
    /// As comma-separated values, for spreadsheets.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// As a table in Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// A time as numbers with units: `90s`, `10m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is numbers with units, such as 90s, 10m, 1h30m or 2d".to_owned();
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
    // A hundred years; clocks can't be asked for much more.
    match rest.is_empty() && (1..=3_155_760_000).contains(&seconds) {
        true => Ok(Duration::from_secs(seconds)),
        false => Err(wrong()),
    }
}

/// A number of Elo above 0.
fn margin(text: &str) -> Result<f64, String> {
    let margin = text.parse().ok().filter(|margin: &f64| margin.is_finite() && *margin > 0.0);
    margin.ok_or_else(|| "a margin is a number of Elo above 0, such as 50".to_owned())
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
