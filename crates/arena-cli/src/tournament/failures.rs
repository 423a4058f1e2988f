//! The errors of tournaments as failures, with the command that continues.

use std::fmt::Display;
use std::path::Path;

use arena_match::MatchError;
use arena_match::line_file::LineFileError;
use arena_runner::{EntrantError, JournalError, RunError};
use arena_tournament::PlanError;

use crate::exit::{Exit, Failure};
use crate::files::{self, cannot_write};
use crate::matches::explain;

/// Converts the error of a tournament or league that can't be created in `folder` into a failure.
pub fn not_created(error: JournalError, folder: &Path) -> Failure {
    match error {
        JournalError::Exists(_) => Failure::new(
            Exit::BadTournament,
            format_args!("{error}; resume it with `{}`, or begin a new one with another --out", resume_line(folder)),
        ),
        error => refused(error),
    }
}

/// Converts the error that ended a run into a failure.
pub fn explain_end(error: RunError<Failure>, folder: &Path) -> Failure {
    let line = resume_line(folder);
    match error {
        RunError::Match { number, source: source @ MatchError::Outage(_) } => {
            let sentence = format!("game {number}: {source}; the game doesn't count; to resume: {line}");
            Failure::new(Exit::ModelFailed, sentence)
        }
        RunError::Match { number, source } => explain(source).about(&format_args!("game {number}")),
        RunError::ExposedOutput(error) => {
            let sentence = format!("{error}; you can move the tournament's folder and resume it there");
            Failure::usage(sentence)
        }
        RunError::Changed(changed) => {
            let sentence = format!("{changed}; restore them, or continue with `{line} --accept-changed`");
            Failure::new(Exit::BadTournament, sentence)
        }
        RunError::Caller(failure) => failure,
        RunError::Plan(error) => unplayable(error),
        RunError::Journal(error) => refused(error),
        RunError::Fit(error) => Failure::caused(Exit::BadTournament, &error),
        RunError::Write { path, source } => cannot_write(&path, &source),
        RunError::Unplayable { number, what } => {
            Failure::new(Exit::NoAgent, format_args!("no worker can play game {number}: {what}"))
        }
        RunError::Nats(error) => Failure::new(Exit::Unreachable, error),
        RunError::System(what) => Failure::new(Exit::Internal, what),
    }
}

/// Returns the failure of a run that was stopped after these games.
pub fn stopped(games: impl Display, folder: &Path) -> Failure {
    let line = resume_line(folder);
    Failure::new(Exit::Interrupted, format_args!("stopped after {games}; to resume: {line}"))
}

fn resume_line(folder: &Path) -> String {
    files::resume_line("tournament", folder, "")
}

/// Converts the error of an agent that can't take part into a failure.
pub fn no_entrant(error: EntrantError) -> Failure {
    let exit = match error {
        EntrantError::Files { .. } => Exit::NoAgent,
        EntrantError::NotUtf8(_) => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// Converts the error of a plan that can't be played into a failure.
pub fn unplayable(error: impl Into<PlanError>) -> Failure {
    let error = error.into();
    let exit = match error {
        PlanError::Version(_) | PlanError::Seed | PlanError::OtherRules { .. } | PlanError::OtherTexts { .. } => {
            Exit::BadTournament
        }
        _ => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// Converts the error of a tournament's files into a failure.
pub fn refused(error: JournalError) -> Failure {
    match error {
        JournalError::Plan(error) => unplayable(error),
        JournalError::File(LineFileError::Write { .. }) => Failure::new(Exit::CannotWrite, error),
        _ => Failure::new(Exit::BadTournament, error),
    }
}
