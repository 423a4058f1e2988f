//! The arguments of `arena rate`, which is `arena tournament rate` too.

use std::path::PathBuf;

use clap::Args;

/// What the help says below the options.
pub const RATE_EXAMPLES: &str = "\
Examples:
  arena rate snakes                          a tournament, rated by all systems
  arena rate games.pgn                       games of any program that writes PGN
  arena rate snakes chess-50 old/*.pgn       all of it together
  arena rate results --markdown > RATINGS.md
  arena rate results --maximum-likelihood --mean 2000    Bradley-Terry as other programs compute it
  arena match run snake --agent ./a --agent ./b --games 100 --json > ab.jsonl; arena rate ab.jsonl

What holds results: journals of tournaments, what `match run --json` and `tournament run --json` print, replays, and PGN, of which only the
tags White, Black and Result count, and moves for finding games that repeat each other. Files are told apart by what stands in them;
folders are searched, but for hidden files, links to folders, and the replays of a tournament, since its journal has them. Agents are told
apart by name. A game that stands in several files, with the same seed, agents and result, counts once.

Bradley-Terry takes all games together, with ties (Davidson's model) and with games that share a seed as one observation; its intervals
hold the true rating in 95 of 100 cases, and \"rank may be\" says which ranks the intervals allow. By default it is corrected for the bias
of few games, which keeps it finite for agents that win everything. Agents that share no games are rated apart, in groups. A game that repeats
an earlier one move by move counts in points and Elo alone. Elo, Glicko-2 and OpenSkill go game by game, so the order matters: files as they
are named, in folders by number and name. Of two agents the table is followed by their match: difference, nElo, LOS, pairs.";

/// Options of `arena rate`.
#[derive(Debug, Args)]
pub struct RateArgs {
    /// Files and folders with results.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Leave out results by other versions of a game's rules than this one. Results that don't name a version count.
    #[arg(long, value_name = "N")]
    pub rules_version: Option<u32>,
    /// As comma-separated values, for spreadsheets: every number by itself, with up to six decimals.
    #[arg(long, conflicts_with_all = ["markdown", "json"])]
    pub csv: bool,
    /// As a table in Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Bradley-Terry: the mean of the ratings, but for those of agents that won or lost everything.
    #[arg(long, value_name = "ELO", default_value_t = 0.0, allow_negative_numbers = true, value_parser = rating)]
    pub mean: f64,
    /// Bradley-Terry: estimate what the first of two seats is worth, White's in chess.
    #[arg(long)]
    pub advantage: bool,
    /// Bradley-Terry: the likeliest ratings, without a correction for few games. There are none if somebody won or lost everything.
    #[arg(long)]
    pub maximum_likelihood: bool,
    /// Elo: points at stake in a game. Changes are rounded to whole points.
    #[arg(long, value_name = "K", default_value_t = 24.0, value_parser = stake)]
    pub elo_k: f64,
    /// Elo: the rating before the first game.
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
    let wrong = || format!("it isn't a number from {} to {}", range.start(), range.end());
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
}
