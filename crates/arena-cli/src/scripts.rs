//! Scripted challenges in folders, for all commands that play them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arena_match::HeaderLine;
use arena_model::{ChallengeType, GameType};
use arena_script::{Folder, Limits, Problem, Sandbox, ScriptChallenge, WorkerProgram};

use crate::exit::Failure;

/// Returns this program as the program of script workers.
pub fn worker() -> Result<WorkerProgram, Failure> {
    WorkerProgram::this_program().map_err(|error| Failure::cannot("find this program's file", error))
}

/// Loads the challenge in a folder, and tests its start.
pub fn load(path: &Path) -> Result<ScriptChallenge, Failure> {
    let challenge = read(path)?;
    challenge.test_start().map_err(|problems| unplayable(path, &problems))?;
    Ok(challenge)
}

/// Loads the challenges in folders like [`load`].
pub fn load_all(folders: &[PathBuf]) -> Result<Vec<Arc<dyn ChallengeType>>, Failure> {
    folders.iter().map(|folder| Ok(Arc::new(load(folder)?) as Arc<dyn ChallengeType>)).collect()
}

/// Loads the challenge in a folder without a test of its start.
pub fn read(path: &Path) -> Result<ScriptChallenge, Failure> {
    let sandbox = Sandbox::new(worker()?, Limits::default());
    let loaded = Folder::read(path).map_err(|problem| vec![problem]);
    loaded.and_then(|folder| ScriptChallenge::read(&folder, &sandbox)).map_err(|problems| unplayable(path, &problems))
}

pub fn unplayable(path: &Path, problems: &[Problem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Failure::usage(format_args!("{} cannot be played:\n{}", path.display(), lines.join("\n")))
}

/// Loads the challenge in the folder `name`. Returns `None` if `name` is the name of a game rather than the path of a
/// challenge's folder.
pub fn find(name: &str) -> Result<Option<ScriptChallenge>, Failure> {
    let path = Path::new(name);
    let is_folder = path.is_dir() && (name.contains('/') || path.join("challenge.json").is_file());
    is_folder.then(|| load(path)).transpose()
}

/// Returns challenges as games for matches: of each, its current version and those of older versions of the API for
/// scripts, which replays name.
pub fn games_of(challenges: &[Arc<dyn ChallengeType>]) -> Vec<&'static GameType> {
    let older = |challenge: &Arc<dyn ChallengeType>| {
        let challenge = Arc::clone(challenge);
        (1..challenge.rules_version()).rev().filter_map(move |version| challenge.with_rules(version))
    };
    let versions =
        challenges.iter().flat_map(|challenge| std::iter::once(Arc::clone(challenge)).chain(older(challenge)));
    versions.map(GameType::of_challenge).collect()
}

/// Returns the game of a replay. Of several scripts with its name, the version that the replay names comes first.
pub fn game_of_replay(header: &HeaderLine, scripts: &[&'static GameType]) -> Option<&'static GameType> {
    let is_same = |game: &&GameType| game.script().is_some_and(|found| Some(found.to_string()) == header.script);
    let mut named = scripts.iter().copied().filter(|game| game.name == header.game);
    named.clone().find(is_same).or_else(|| named.next()).or_else(|| arena_games::game(&header.game))
}
