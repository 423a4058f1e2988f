//! Finds the challenge that an author specifies, by the path of its folder or by the name of a built-in challenge.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arena_check::Fault;
use arena_model::{ChallengeType, GameType, OptionsError};
use arena_script::find_folders;
use serde_json::{Map, Value};

use crate::exit::{Exit, Failure};
use crate::scripts;

pub struct FoundChallenge {
    /// The challenge, configured with the requested options.
    pub challenge: Arc<dyn ChallengeType>,
    /// The folder of a scripted challenge.
    pub folder: Option<PathBuf>,
    /// The script's last failure, until [`FoundChallenge::last_fault`] takes it.
    last_fault: Arc<Mutex<Option<arena_script::Fault>>>,
}

/// Finds the challenge in the folder `text`, or the built-in challenge named `text`, and configures it with these
/// options.
///
/// # Errors
/// If there is no such challenge, or the challenge or an option is invalid. The error lists all problems.
pub fn find(text: &str, options: &Map<String, Value>) -> Result<FoundChallenge, Failure> {
    let last_fault = Arc::new(Mutex::new(None));
    let folder = Path::new(text);
    if !folder.is_dir() {
        let Some(found) = arena_games::challenge(text, options) else {
            let names: Vec<&str> = arena_games::challenges().collect();
            let sentence = format!(
                "there is no folder and no built-in challenge named {text}; the built-in challenges are {}",
                names.join(", ")
            );
            return Err(Failure::usage(sentence));
        };
        let challenge = found.map_err(Failure::usage)?;
        return Ok(FoundChallenge { challenge, folder: None, last_fault });
    }
    // The folder may be the parent folder of some challenges.
    if !folder.join("challenge.json").exists() {
        let names: Vec<String> =
            find_folders(folder).unwrap_or_default().iter().map(|path| path.display().to_string()).collect();
        let sentence = match names.is_empty() {
            true => {
                format!("{text} isn't a challenge: it has no challenge.json; `arena author new` creates a challenge")
            }
            false => format!("{text} contains challenges but isn't one; give the path of one: {}", names.join(", ")),
        };
        return Err(Failure::usage(sentence));
    }
    let faulty = |failure: Failure| Failure::new(Exit::FaultyChallenge, failure.sentence());
    let challenge = scripts::read(folder).map_err(faulty)?;
    let refused = |error: OptionsError| Failure::usage(error);
    challenge.arrange(options).map_err(refused)?;
    let challenge = challenge.with_options(options).map_err(refused)?;
    challenge.test_start().map_err(|problems| faulty(scripts::unplayable(folder, &problems)))?;
    let noted = Arc::clone(&last_fault);
    let challenge = challenge.with_listener(move |fault| {
        *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault.clone());
    });
    Ok(FoundChallenge { challenge: Arc::new(challenge), folder: Some(folder.to_owned()), last_fault })
}

impl FoundChallenge {
    /// Takes the description of the last failed call.
    pub fn last_fault(&self) -> Option<Fault> {
        let fault = self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let stack: Vec<String> = fault.stack.lines().map(|line| line.trim().to_owned()).collect();
        Some(Fault { what: fault.message, place: stack.iter().find_map(|line| place_in(line)), stack })
    }

    pub fn game(&self) -> &'static GameType {
        match (&self.folder, arena_games::game(self.challenge.id())) {
            (None, Some(game)) => game,
            _ => GameType::of_challenge(Arc::clone(&self.challenge)),
        }
    }
}

/// Extracts the file and line from a line of a stack trace: `index.ts:12` from `at bid (index.ts:12)`, with or without
/// a column.
fn place_in(line: &str) -> Option<String> {
    let place = line.rsplit([' ', '(']).next()?.trim_end_matches(')');
    let mut parts = place.split(':');
    let (file, line) = (parts.next()?, parts.next()?);
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && file.contains('.')).then(|| format!("{file}:{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_names_its_places() {
        assert_eq!(place_in("at bid (index.ts:12)").as_deref(), Some("index.ts:12"));
        assert_eq!(place_in("at lib/cards.ts:3:1").as_deref(), Some("lib/cards.ts:3"));
        assert_eq!(place_in("at native"), None);
    }
}
