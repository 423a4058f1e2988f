//! `arena replay`: shows replays here or in the browser, verifies them, and exports them to other formats.

mod export;
mod html;
mod serve;
mod show;
mod verify;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use arena_match::{Replay, ReplayError};

use crate::args::ReplayVerb;
use crate::exit::{Exit, Failure};
use crate::output::Style;

pub fn run(verb: ReplayVerb, style: Style) -> Result<(), Failure> {
    match verb {
        ReplayVerb::Show(args) => show::run(&args, style),
        ReplayVerb::Serve(args) => serve::run(&args, style),
        ReplayVerb::Verify { files, challenges } => verify::run(&files, &challenges, style),
        ReplayVerb::Export { file, format, out } => export::run(&file, format, out.as_deref()),
    }
}

fn open_file(path: &Path) -> Result<BufReader<File>, Failure> {
    let cannot = |what: &str| Failure::new(Exit::BadReplay, format_args!("{} cannot be read: {what}", path.display()));
    let file = File::open(path).map_err(|error| cannot(&error.to_string()))?;
    match file.metadata().is_ok_and(|data| data.is_dir()) {
        true => Err(cannot("it is a folder")),
        false => Ok(BufReader::new(file)),
    }
}

fn open(path: &Path) -> Result<Replay<BufReader<File>>, Failure> {
    Replay::open(open_file(path)?).map_err(|error| bad(path, &error))
}

pub fn bad(path: &Path, error: &ReplayError) -> Failure {
    let exit = match error {
        ReplayError::Write(_) => Exit::CannotWrite,
        ReplayError::OtherRules { .. } | ReplayError::Future(_) => Exit::OtherRules,
        ReplayError::OtherGame(_) | ReplayError::NoScript { .. } | ReplayError::OtherScript { .. } => Exit::Usage,
        ReplayError::Read(_) | ReplayError::Foreign(_) | ReplayError::Line { .. } | ReplayError::CutOff { .. } => {
            Exit::BadReplay
        }
    };
    Failure::caused(exit, error).about(&path.display())
}
