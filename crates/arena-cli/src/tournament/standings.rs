//! `arena tournament standings`: the standings in the requested form.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use arena_match::ReplayError;
use arena_report::{
    EXPORTERS, Exporter, PgnGame, Picture, cross_table_picture, pgn, progress_picture, ratings_picture,
};
use arena_runner::{Journal, REPLAYS, format_of, read_pgn};
use arena_tournament::{GameLine, Record};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};

use super::failures::refused;
use super::play::note_surplus;
use super::{league, tables};
use crate::exit::{Exit, Failure};
use crate::output::{self, Style, counted, print, printable};

/// Options of `arena tournament standings`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena tournament standings snakes
  arena tournament standings snakes --markdown > STANDINGS.md
  arena tournament standings snakes --html > snakes.html          one file, with charts
  arena tournament standings snakes --svg ratings > ratings.svg
  arena tournament standings chess-50 --pgn > chess-50.pgn
  arena tournament standings ladder --season 1 --csv    a closed season of a league")]
pub struct StandingsArgs {
    /// Folder of the tournament.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Season of a league, from 1 [default: the current one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub season: Option<u32>,
    #[command(flatten)]
    pub export: ExportArg,
    /// Print one chart as SVG; it follows the reader's light or dark theme.
    #[arg(long, group = "form", conflicts_with = "json", value_enum, value_name = "PICTURE")]
    pub svg: Option<PictureArg>,
    /// Print the games as PGN: chess games with moves if replays were kept, others as results only.
    #[arg(long, group = "form", conflicts_with = "json")]
    pub pgn: bool,
}

/// The chosen exporter: one flag for each entry of [`EXPORTERS`].
#[derive(Debug, Clone, Copy)]
pub struct ExportArg(pub Option<&'static Exporter>);

impl Args for ExportArg {
    fn augment_args(command: Command) -> Command {
        command.args(EXPORTERS.iter().map(|exporter| {
            let flag = Arg::new(exporter.name).long(exporter.name).help(exporter.help).action(ArgAction::SetTrue);
            flag.group("form").conflicts_with("json")
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ExportArg::augment_args(command)
    }
}

impl FromArgMatches for ExportArg {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ExportArg, clap::Error> {
        Ok(ExportArg(EXPORTERS.iter().find(|exporter| matches.get_flag(exporter.name))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ExportArg::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The content of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PictureArg {
    /// Elo ratings with intervals.
    Ratings,
    /// Head-to-head scores.
    CrossTable,
    /// Points over time.
    Points,
}

pub fn show(args: &StandingsArgs, style: Style) -> Result<(), Failure> {
    if format_of(&args.folder).map_err(refused)?.is_open_ended() {
        return league::show(args, style);
    }
    if args.season.is_some() {
        return Err(Failure::usage("--season is for leagues; this tournament has no seasons"));
    }
    let record = Journal::load_record(&args.folder).map_err(refused)?;
    if record.cut_off > 0 {
        output::note(&format!("ignored the incomplete last line ({} bytes)", record.cut_off));
    }
    note_surplus(&record);
    if let Some(exporter) = args.export.0 {
        return print((exporter.write)(&record).trim_end());
    }
    if let Some(which) = args.svg {
        return print(picture(&record, which)?.to_file().trim_end());
    }
    if args.pgn {
        return print_pgn(&record, &args.folder.join(REPLAYS));
    }
    if style == Style::Json {
        return print(&arena_report::json(&record).to_string());
    }
    print(&printable(&arena_report::title(&record)))?;
    print(tables::describe(&record).trim_end())
}

/// Draws the requested chart, or fails with the reason why it can't be drawn.
fn picture(record: &Record, which: PictureArg) -> Result<Picture, Failure> {
    let (picture, needs) = match which {
        PictureArg::Ratings => (ratings_picture(record), "games, and at most 2000 agents"),
        PictureArg::CrossTable => (cross_table_picture(record), "games, and 3 to 40 agents"),
        PictureArg::Points => (
            progress_picture(record),
            "at least two games, an agent more than half a point from level, and at most 60 agents",
        ),
    };
    picture.ok_or_else(|| {
        let agents = counted(record.plan.agents.len(), "agent");
        let games = counted(record.schedule.games_played(), "game");
        Failure::usage(format_args!("this chart needs {needs}; the tournament has {agents} and {games}"))
    })
}

/// Prints all games as PGN. The moves come from the replays, if the tournament kept them. A damaged replay affects only
/// its own game; a note on stderr names it.
fn print_pgn(record: &Record, replays: &Path) -> Result<(), Failure> {
    // Most tournaments keep no replays.
    let replay = |game: &GameLine| {
        let path = replays.join(format!("{}.jsonl", game.number));
        Ok::<_, ReplayError>(read_pgn(&path)?.map(|text| dated(&text, &path)))
    };
    let (mut written, mut incomplete) = (0, 0);
    for PgnGame { text, missing } in pgn(record, replay).map_err(Failure::usage)? {
        print(&text)?;
        written += 1;
        if let Some(missing) = missing {
            incomplete += 1;
            output::note(Failure::caused(Exit::BadReplay, &missing).sentence());
        }
    }
    match incomplete {
        0 => Ok(()),
        _ => Err(Failure::new(
            Exit::BadReplay,
            format_args!(
                "wrote {}, {incomplete} of them without moves because their replays are unreadable",
                counted(written, "game")
            ),
        )),
    }
}

/// Adds the date of a replay's file to its PGN. A replay contains no times of day.
fn dated(pgn: &str, replay: &Path) -> String {
    let written = fs::metadata(replay).and_then(|data| data.modified()).ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_millis());
    match since.and_then(|ms| i64::try_from(ms).ok()).map(output::utc) {
        Some(time) if time.len() >= 10 => {
            pgn.replacen("[Date \"????.??.??\"]", &format!("[Date \"{}\"]", time[..10].replace('-', ".")), 1)
        }
        _ => pgn.to_owned(),
    }
}
