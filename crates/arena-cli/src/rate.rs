//! `arena rate`: rates results from any source by Bradley–Terry and Elo.

mod games;
mod lines;
mod pgn;
mod report;
mod sources;

use arena_ratings::bradley_terry::{Estimate, FitError, FitOptions};
use arena_ratings::{EloOptions, RatingOptions, rate_all};
use arena_report::listed;

use crate::args::RateArgs;
use crate::exit::{Exit, Failure};
use crate::output::{self, Style, counted, print, printable};
use crate::tournament::tables::drawn;

use report::{LEGEND, Rated};
use sources::Sources;

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
    match names.len() {
        0 => {}
        1 => output::note(&format!("1 file without results is skipped: {}", listed(&names))),
        many => output::note(&format!("{many} files without results are skipped: {}", listed(&names))),
    }
}

/// Returns the reason why there is nothing to rate.
fn nothing(sources: &Sources) -> String {
    let left_out = [
        (sources.unfinished, "game has no result", "games have no result"),
        (sources.nameless, "game has no names of players", "games have no names of players"),
        (sources.games.against_itself, "game is of an agent against itself", "games are of an agent against itself"),
        (sources.games.void, "game is void", "games are void"),
        (sources.other_rules, "game is by another version of the rules", "games are by other versions of the rules"),
        (sources.forks, "game is a fork", "games are forks"),
        (sources.broken_replays, "replay ends before its result", "replays end before their results"),
    ];
    let left_out = left_out.into_iter().filter(|(count, ..)| *count > 0);
    let left_out: Vec<String> = left_out.map(|(count, one, many)| counted(count, one, many)).collect();
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
