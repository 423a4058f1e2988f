//! Scripted challenges in folders, for all commands that play them.

use std::path::Path;
use std::sync::Arc;

use arena_model::{ChallengeType, GameType};
use arena_script::{Folder, Limits, Problem, Sandbox, ScriptChallenge, WorkerProgram};

use crate::exit::{Exit, Failure};

/// Returns this program as the program of script workers.
pub fn worker() -> Result<WorkerProgram, Failure> {
    WorkerProgram::this_program()
        .map_err(|error| Failure::new(Exit::Internal, format_args!("cannot find this program's file: {error}")))
}

/// Loads the challenge in a folder, and tests its start.
pub fn load(path: &Path) -> Result<ScriptChallenge, Failure> {
    let challenge = read(path)?;
    challenge.test_start().map_err(|problems| unplayable(path, &problems))?;
    Ok(challenge)
}

/// Loads the challenge in a folder without a test of its start.
pub fn read(path: &Path) -> Result<ScriptChallenge, Failure> {
    let sandbox = Sandbox::new(worker()?, Limits::default());
    let loaded = Folder::read(path).map_err(|problem| vec![problem]);
    loaded.and_then(|folder| ScriptChallenge::read(&folder, &sandbox)).map_err(|problems| unplayable(path, &problems))
}

/// Returns a challenge as a game for matches: its current version, and those of older versions of the API for scripts,
/// which replays name.
pub fn games_of(challenge: &Arc<dyn ChallengeType>) -> Vec<&'static GameType> {
    let older = (1..challenge.rules_version()).rev().filter_map(|version| challenge.with_rules(version));
    std::iter::once(Arc::clone(challenge)).chain(older).map(GameType::of_challenge).collect()
}

pub fn unplayable(path: &Path, problems: &[Problem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Failure::new(Exit::Usage, format_args!("{} cannot be played:\n{}", path.display(), lines.join("\n")))
}

/// Returns true if `name` is the path of a challenge's folder rather than the name of a game.
pub fn is_folder(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir() && (name.contains('/') || path.join("challenge.json").is_file())
}

/// Loads the challenge in the folder `name`. Returns `None` if `name` isn't the path of a folder.
pub fn find(name: &str) -> Option<Result<ScriptChallenge, Failure>> {
    is_folder(name).then(|| load(Path::new(name)))
}

/// Loads the game in the folder `name`. Returns `None` if `name` isn't the path of a folder.
pub fn find_game(name: &str) -> Option<Result<&'static GameType, Failure>> {
    Some(find(name)?.map(|challenge| GameType::of_challenge(Arc::new(challenge))))
}
