//! `arena rate`: results of any origin, rated by all systems side by side.

mod games;
mod lines;
mod pgn;
mod sources;
mod told;

use arena_ratings::bradley_terry::{Estimate, FitError, FitOptions};
use arena_ratings::{EloOptions, RatingOptions, standings};
use arena_report::listed;

use crate::args::RateArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Style, print, printable};
use crate::tournament::tables::drawn;

use sources::Sources;
use told::{LEGEND, Rated};

/// Does what `arena rate` was asked for.
pub fn run(args: &RateArgs, style: Style) -> Result<(), Failure> {
    let sources = Sources::of(&args.paths, args.rules_version)?;
    tell_passed_over(&sources);
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
        ..RatingOptions::default()
    };
    let standings = standings(&results, &options).map_err(unratable)?;
    let rated = Rated { sources, results, standings, wants_advantage: args.advantage };
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
    let told = format!("{versus}{remarks}");
    format!("{}:\n{}\n{}\n{LEGEND}", rated.title(), drawn(&rated.grid(), 2), printable(&told))
}

fn markdown(rated: &Rated) -> String {
    let versus = rated.versus().map_or_else(String::new, |versus| versus.describe().trim_end().replace('\n', "; "));
    let remarks = [versus].into_iter().filter(|text| !text.is_empty()).chain(rated.remarks());
    let remarks: String = remarks.map(|remark| format!("- {}\n", arena_report::plain(&remark))).collect();
    format!("{}.\n\n{}\n{remarks}\n{LEGEND}", rated.title(), rated.grid().markdown(2))
}

/// Says which files of the folders hold no results, since one that was meant to hold some would be missed.
fn tell_passed_over(sources: &Sources) {
    let names: Vec<String> = sources.passed_over.iter().map(|path| path.display().to_string()).collect();
    match names.len() {
        0 => {}
        1 => output::note(&format!("1 file holds no results and is passed over: {}", listed(&names))),
        many => output::note(&format!("{many} files hold no results and are passed over: {}", listed(&names))),
    }
}

/// Why there is nothing to rate.
fn nothing(sources: &Sources) -> String {
    let left_out = sources.unfinished
        + sources.nameless
        + sources.games.against_itself
        + sources.games.void
        + sources.broken_replays
        + sources.other_rules;
    match left_out {
        0 => "there are no results in what was named".to_owned(),
        1 if sources.games.against_itself == 1 => {
            "there is nothing to rate: the only game is one of an agent against itself".to_owned()
        }
        games if sources.games.against_itself == games => {
            format!("there is nothing to rate: all {games} games are of an agent against itself")
        }
        1 => "there is nothing to rate: the only game has no result, or no two agents".to_owned(),
        _ => format!("there is nothing to rate: of {left_out} games none has a result and two agents"),
    }
}

fn unratable(error: FitError) -> Failure {
    let sentence = match error {
        FitError::NoMaximum => format!("{error}; without --maximum-likelihood there are ratings"),
        FitError::SeatAdvantage => format!("{error}; without --advantage there are ratings"),
        FitError::TooManyAgents(_) => error.to_string(),
    };
    Failure::new(Exit::BadTournament, sentence)
}
