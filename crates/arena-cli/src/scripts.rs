//! Challenges that are folders with a script, for all commands that play them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_model::GameType;
use arena_script::{Folder, Limits, Problem, Sandbox, ScriptChallenge};

use crate::exit::{Exit, Failure};

/// The verb, hidden from people, by which this program becomes a worker that runs scripts.
pub const RUN: &str = "run-scripts";

/// The program that runs scripts, which is this one, and its arguments.
pub fn worker() -> Result<(PathBuf, Vec<OsString>), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Internal, format_args!("can't find this program's file: {error}")))?;
    Ok((program, vec![RUN.into()]))
}

/// The challenge in a folder.
pub fn load(path: &Path) -> Result<ScriptChallenge, Failure> {
    let challenge = read(path)?;
    challenge.rehearse().map_err(|problems| unplayable(path, &problems))?;
    Ok(challenge)
}

/// The same, not yet played.
pub fn read(path: &Path) -> Result<ScriptChallenge, Failure> {
    let (program, args) = worker()?;
    let sandbox = Sandbox::new(program, args, Limits::default());
    let loaded = Folder::read(path).map_err(|problem| vec![problem]);
    loaded.and_then(|folder| ScriptChallenge::read(&folder, &sandbox)).map_err(|problems| unplayable(path, &problems))
}

/// All that is wrong with a folder.
pub fn unplayable(path: &Path, problems: &[Problem]) -> Failure {
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Failure::new(Exit::Usage, format_args!("{} can't be played:\n{}", path.display(), told.join("\n")))
}

/// Whether `name` is the path of a challenge's folder, rather than the name of a game.
pub fn is_folder(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir() && (name.contains('/') || path.join("challenge.json").is_file())
}

/// The challenge that `name` means, if it is the path of a challenge's folder.
pub fn find(name: &str) -> Option<Result<ScriptChallenge, Failure>> {
    is_folder(name).then(|| load(Path::new(name)))
}

/// The game that `name` means, if it is the path of a challenge's folder.
pub fn find_game(name: &str) -> Option<Result<&'static GameType, Failure>> {
    Some(find(name)?.map(|challenge| GameType::of_challenge(Arc::new(challenge))))
}
