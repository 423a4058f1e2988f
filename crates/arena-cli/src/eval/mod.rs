//! `arena eval`: language models in many games against each other, from the run file to the report.

mod amounts;
mod calls;
mod game;
mod live;
mod matrix;
mod plan;
mod report;
mod run;
mod status;
mod verify;
mod watch;

use std::path::Path;

use arena_eval::{EvalPlan, EvalRun, FolderError, GameRecord, RunFile};
use arena_match::line_file::LineFileError;
use arena_wire::removed::{self, Kind};
use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::output::{Style, counted};

use self::calls::CallsArgs;
use self::game::{DiffArgs, GameEvalArgs};
use self::plan::PlanEvalArgs;
use self::report::ReportEvalArgs;
use self::run::{ResumeEvalArgs, RunEvalArgs};
use self::status::EvalFolderArgs;
use self::verify::VerifyEvalArgs;

/// Subcommands of `arena eval`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  arena eval plan autumn.toml                      the games
  arena eval plan autumn.toml --pilot 1 --pilot-dir autumn
                                                   an estimate of tokens, dollars and hours
  arena eval run autumn.toml --out autumn          play, or continue after Ctrl-C or a crash
  arena eval status autumn                         the progress, also while it plays
  arena eval report autumn                         tables, and pages for browsers in autumn/report
  arena eval verify autumn                         play the games again from the recorded answers

A run file names models, challenges, seeds and caps. Every model plays every challenge on every seat, against every other \
model and against baselines. docs/evaluations.md in the repository describes the file and the statistics.")]
pub enum EvalVerb {
    /// Show the games of a run file, and estimate tokens, dollars and hours.
    Plan(PlanEvalArgs),
    /// Play the games of a run file, or continue them.
    Run(RunEvalArgs),
    /// Continue a run in its folder.
    Resume(ResumeEvalArgs),
    /// Show the progress of a run, also while it plays.
    Status(EvalFolderArgs),
    /// Print the results of a run and write them as pages, also while it plays.
    Report(ReportEvalArgs),
    /// List and search the calls of a run, or show one.
    Calls(CallsArgs),
    /// Print the transcript of a game.
    Game(GameEvalArgs),
    /// Print two games side by side.
    Diff(DiffArgs),
    /// Play all finished games again from the recorded answers, and compare the results.
    Verify(VerifyEvalArgs),
}

pub fn run(verb: EvalVerb, style: Style) -> Result<(), Failure> {
    match verb {
        EvalVerb::Plan(args) => plan::run(&args, style),
        EvalVerb::Run(args) => run::begin(&args, style),
        EvalVerb::Resume(args) => run::resume(&args, style),
        EvalVerb::Status(args) => status::run(&args.dir, style),
        EvalVerb::Report(args) => report::run(&args, style),
        EvalVerb::Calls(args) => calls::run(&args, style),
        EvalVerb::Game(args) => game::run(&args, style),
        EvalVerb::Diff(args) => game::diff(&args, style),
        EvalVerb::Verify(args) => verify::run(&args.dir, style),
    }
}

/// Returns the name of a run and the sizes of its plan.
fn title(plan: &EvalPlan) -> String {
    format!(
        "{}: {}, {}, {}",
        plan.file.name,
        counted(plan.agents.len(), "agent"),
        counted(plan.challenges.len(), "challenge"),
        counted(plan.games.len(), "game")
    )
}

fn read_plan(file: &Path) -> Result<EvalPlan, Failure> {
    let read = RunFile::read(file).map_err(Failure::usage)?;
    // The folders of earlier runs may have judges, which are ignored there.
    refuse_removed("judges", !read.judges.is_empty(), file)?;
    refuse_removed("stand_in", read.has_stand_in(), file)?;
    EvalPlan::of(read, parent(file)).map_err(|error| Failure::caused(Exit::Usage, &error).about(&file.display()))
}

/// Refuses a key of the run files of earlier programs, if it is found. Their runs can be read.
fn refuse_removed(key: &str, is_found: bool, source: &Path) -> Result<(), Failure> {
    match removed::sentence(Kind::Setting, key).filter(|_| is_found) {
        Some(sentence) => Err(Failure::usage(format_args!("{}: {sentence}", source.display()))),
        None => Ok(()),
    }
}

fn parent(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Loads a run for reading, also while another process plays it.
fn load(dir: &Path) -> Result<EvalRun, Failure> {
    EvalRun::load(dir).map_err(refused)
}

/// Finds a finished game by its id or the first digits of its id.
fn find_game<'r>(run: &'r EvalRun, id: &str) -> Result<&'r GameRecord, Failure> {
    let mut found = run.games.iter().filter(|game| game.game.starts_with(id));
    match (found.next(), found.next()) {
        (Some(game), None) => Ok(game),
        (Some(game), Some(_)) if game.game == id => Ok(game),
        (Some(_), Some(_)) => {
            let count = found.count() + 2;
            Err(Failure::usage(format_args!("{count} games begin with {id}; give more digits")))
        }
        (None, _) => {
            let sentence = match run.plan.games.iter().find(|game| game.id.starts_with(id)) {
                Some(game) => format!("game {} isn't finished", game.id),
                None => format!("the run has no game {id}; `arena eval calls DIR` lists ids"),
            };
            Err(Failure::usage(sentence))
        }
    }
}

fn refused(error: FolderError) -> Failure {
    let exit = match &error {
        FolderError::RunFile(_) | FolderError::Plan(_) => Exit::Usage,
        FolderError::File(LineFileError::Write { .. }) => Exit::CannotWrite,
        _ => Exit::BadTournament,
    };
    Failure::caused(exit, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_plain_file_name_is_the_current_one() {
        assert_eq!(parent(Path::new("autumn.toml")), Path::new("."));
        assert_eq!(parent(Path::new("evals/autumn.toml")), Path::new("evals"));
    }
}
