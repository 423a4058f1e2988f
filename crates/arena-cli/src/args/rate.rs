//! Arguments of `arena rate`, which is also `arena tournament rate`.

use std::path::PathBuf;

use clap::Args;

/// The text below the options in the help.
pub const RATE_EXAMPLES: &str = "\
Examples:
  arena rate snakes                          the results of a tournament
  arena rate games.pgn                       games of any program that writes PGN
  arena rate snakes chess-50 old/*.pgn       all of them together
  arena rate results --markdown > RATINGS.md
  arena rate results --maximum-likelihood --mean 2000    Bradley-Terry as other programs compute it
  arena match run snake --agent ./a --agent ./b --games 100 --json > ab.jsonl; arena rate ab.jsonl

Accepted files: journals of tournaments, output of `match run --json` and `tournament run --json`, replays, and PGN. From PGN, the \
tags White, Black and Result are read; moves are read only to find repeated games. The file type is detected from the content. \
Folders are searched, except hidden files, links to folders, and the replays of a tournament, whose journal is read instead. \
Agents are identified by name. A game found in several files, with the same seed, agents and result, counts once.

Bradley-Terry rates all games together, with ties (Davidson's model); games that share a seed are one observation. Its \
intervals contain the true rating with 95 % confidence, and \"rank range\" shows the ranks that the intervals allow. By default \
it corrects the bias of few games, so that agents that win or lose every game have finite ratings. Agents without common \
opponents are rated in separate groups. A game that repeats an earlier one move by move counts only in points and Elo. \
Elo rates game by game in the order of the files: as given, and within folders by number and name. If \
there are two agents, their match follows the table: difference, nElo, LOS, pairs.";

/// Options of `arena rate`.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// File or folder with results.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Use only results of this version of the game's rules, and results that name no version.
    #[arg(long, value_name = "N")]
    pub rules_version: Option<u32>,
    /// Print comma-separated values, with up to six decimals.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// Print a Markdown table.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Bradley-Terry: mean rating, without agents that won or lost every game.
    #[arg(long, value_name = "ELO", default_value_t = 0.0, allow_negative_numbers = true, value_parser = rating)]
    pub mean: f64,
    /// Bradley-Terry: estimate the first seat's advantage in games of two, such as White's in chess.
    #[arg(long)]
    pub advantage: bool,
    /// Bradley-Terry: maximum likelihood without bias correction; fails if an agent won or lost every game.
    #[arg(long)]
    pub maximum_likelihood: bool,
    /// Elo: K-factor; changes are rounded to integers.
    #[arg(long, value_name = "K", default_value_t = 24.0, value_parser = stake)]
    pub elo_k: f64,
    /// Elo: initial rating.
    #[arg(long, value_name = "ELO", default_value_t = 1200.0, allow_negative_numbers = true, value_parser = rating)]
    pub elo_start: f64,
}

fn rating(text: &str) -> Result<f64, String> {
    number(text, -1e6..=1e6)
}

fn stake(text: &str) -> Result<f64, String> {
    number(text, 1.0..=1000.0)
}

fn number(text: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let wrong = || format!("expected a number from {} to {}", range.start(), range.end());
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
}
