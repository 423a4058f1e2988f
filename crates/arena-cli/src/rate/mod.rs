//! `arena rate`: rates results from any source by Bradley–Terry and Elo.

mod games;
mod lines;
mod pgn;
mod report;
mod sources;

use std::path::PathBuf;

use arena_ratings::bradley_terry::{Estimate, FitError, FitOptions};
use arena_ratings::{EloOptions, RatingOptions, rate_all};
use arena_report::listed;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output::{Style, counted_as, note, print, printable};
use crate::tournament::tables::drawn;

use report::{LEGEND, Rated};
use sources::{Sources, counted_each};

/// Options of `arena rate`.
#[derive(Debug, Args)]
#[command(after_help = "\
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
there are two agents, their match follows the table: difference, nElo, LOS, pairs.")]
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

pub fn run(args: &RateArgs, style: Style) -> Result<(), Failure> {
    let sources = Sources::of(&args.paths, args.rules_version)?;
    note_skipped(&sources);
    let results = sources.games.results();
    if results.is_empty() {
        return Err(Failure::new(Exit::BadTournament, nothing(&sources)));
    }
    let options = RatingOptions {
        elo: EloOptions { start: args.elo_start, k: args.elo_k, ..EloOptions::default() },
        bradley_terry: FitOptions {
            estimate: if args.maximum_likelihood { Estimate::MaximumLikelihood } else { Estimate::BiasReduced },
            seat_advantage: args.advantage,
            mean: args.mean,
            ..FitOptions::default()
        },
    };
    let table = rate_all(&results, &options).map_err(unratable)?;
    let rated = Rated { sources, results, table, wants_advantage: args.advantage };
    match (args.csv, args.markdown, style) {
        (true, ..) => print(rated.numbers().csv().trim_end()),
        (_, true, _) => print(markdown(&rated).trim_end()),
        (.., Style::Json) => print(&rated.json().to_string()),
        (.., Style::Pretty | Style::Compact) => print(describe(&rated).trim_end()),
    }
}

fn describe(rated: &Rated) -> String {
    let versus = rated.versus().map_or_else(String::new, |versus| versus.describe() + "\n");
    let remarks: String = rated.remarks().iter().map(|remark| format!("{remark}\n")).collect();
    let text = format!("{versus}{remarks}");
    format!("{}:\n{}\n{}\n{LEGEND}", rated.title(), drawn(&rated.grid(), 2), printable(&text))
}

fn markdown(rated: &Rated) -> String {
    let versus = rated.versus().map_or_else(String::new, |versus| versus.describe().trim_end().replace('\n', "; "));
    let remarks = [versus].into_iter().filter(|text| !text.is_empty()).chain(rated.remarks());
    let remarks: String = remarks.map(|remark| format!("- {}\n", arena_report::plain(&remark))).collect();
    format!("{}.\n\n{}\n{remarks}\n{LEGEND}", rated.title(), rated.grid().markdown(2))
}

/// Prints a note about files without results in folders, since the user may expect results from them.
fn note_skipped(sources: &Sources) {
    let names: Vec<String> = sources.passed_over.iter().map(|path| path.display().to_string()).collect();
    if !names.is_empty() {
        let skipped = counted_as(names.len(), "file without results is", "files without results are");
        note(&format!("{skipped} skipped: {}", listed(&names)));
    }
}

/// Returns the reason why there is nothing to rate.
fn nothing(sources: &Sources) -> String {
    let left_out = counted_each(&[
        (sources.unfinished, "game has no result", "games have no result"),
        (sources.nameless, "game has no names of players", "games have no names of players"),
        (sources.games.against_itself, "game is of an agent against itself", "games are of an agent against itself"),
        (sources.games.void, "game is void", "games are void"),
        (sources.other_rules, "game is by another version of the rules", "games are by other versions of the rules"),
        (sources.forks, "game is a fork", "games are forks"),
        (sources.broken_replays, "replay ends before its result", "replays end before their results"),
    ]);
    match left_out.is_empty() {
        true => "the given files contain no results".to_owned(),
        false => format!("there is nothing to rate: {}", left_out.join(", ")),
    }
}

fn unratable(error: FitError) -> Failure {
    let sentence = match error {
        FitError::NoMaximum => format!("{error}; omit --maximum-likelihood to get ratings"),
        FitError::SeatAdvantage => format!("{error}; omit --advantage to get ratings"),
        FitError::TooManyAgents(_) => error.to_string(),
    };
    Failure::new(Exit::BadTournament, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_for_nothing_to_rate_are_those_of_the_games() {
        let mut sources = Sources::default();
        assert_eq!(nothing(&sources), "the given files contain no results");
        sources.other_rules = 1;
        assert_eq!(nothing(&sources), "there is nothing to rate: 1 game is by another version of the rules");
        (sources.other_rules, sources.unfinished, sources.nameless) = (0, 1, 2);
        assert_eq!(
            nothing(&sources),
            "there is nothing to rate: 1 game has no result, 2 games have no names of players"
        );
    }
}
