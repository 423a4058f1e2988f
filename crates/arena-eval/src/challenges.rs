//! The challenges of a plan: built-in ones by name, and scripted ones from folders or from the folder of a run.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arena_model::{ChallengeType, Script};
use arena_script::{Folder, Limits, Problem, Sandbox, ScriptChallenge, WorkerProgram};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const SCRIPTS: &str = "scripts";

/// A file that the folder of a run keeps, so that the run doesn't depend on files elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The path in the folder.
    pub path: String,
    pub text: String,
}

pub(crate) struct LoadedChallenge {
    pub(crate) challenge: Arc<dyn ChallengeType>,
    /// All options, with the defaults.
    pub(crate) options: Value,
    /// The script as a file for the folder of a run.
    pub(crate) file: Option<StoredFile>,
}

#[derive(Serialize, Deserialize)]
struct StoredScript {
    id: String,
    source: String,
}

/// Loads challenges. All scripts share the same worker processes.
pub(crate) struct ChallengeLoader<'b> {
    /// The folder for relative paths.
    base: &'b Path,
    /// True if the starts of scripts are tested.
    is_testing: bool,
    sandbox: Option<Sandbox>,
}

impl<'b> ChallengeLoader<'b> {
    pub(crate) fn new(base: &'b Path, is_testing: bool) -> ChallengeLoader<'b> {
        ChallengeLoader { base, is_testing, sandbox: None }
    }

    /// Loads the challenge `name` with these options.
    ///
    /// # Errors
    /// If there is no such challenge or it can't be played with the options, as one sentence.
    pub(crate) fn load(&mut self, name: &str, options: &Map<String, Value>) -> Result<LoadedChallenge, String> {
        if let Some(found) = arena_games::challenge(name, options) {
            let challenge = found.map_err(|error| error.to_string())?;
            let options = challenge.resolve(&Map::new()).map_err(|error| error.to_string())?;
            return Ok(LoadedChallenge { challenge, options, file: None });
        }
        let path = self.base.join(name);
        let sandbox = self.sandbox()?;
        let script = if path.is_dir() {
            if !path.join("challenge.json").is_file() {
                return Err(format!("{} isn't a challenge: it has no challenge.json", path.display()));
            }
            let read = Folder::read(&path).map_err(|problem| vec![problem]);
            read.and_then(|folder| ScriptChallenge::read(&folder, &sandbox)).map_err(|found| list(&path, &found))?
        } else if path.is_file() && name.ends_with(".json") {
            let text =
                fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
            let stored: StoredScript = serde_json::from_str(&text)
                .map_err(|error| format!("{} isn't the script of a challenge: {error}", path.display()))?;
            ScriptChallenge::revive(&stored.id, Script::new(stored.source), &sandbox)
                .map_err(|found| list(&path, &found))?
        } else {
            let names: Vec<&str> = arena_games::challenges().collect();
            return Err(format!(
                "there is no built-in challenge and no folder of this name; the built-in challenges are {}",
                names.join(", ")
            ));
        };
        // Only `arrange` refuses options that the script doesn't know.
        script.arrange(options).map_err(|error| error.to_string())?;
        let script = script.with_options(options).map_err(|error| error.to_string())?;
        if self.is_testing {
            script.test_start().map_err(|found| list(&path, &found))?;
        }
        let options = script.resolve(&Map::new()).map_err(|error| error.to_string())?;
        let file = store(&script)?;
        Ok(LoadedChallenge { challenge: Arc::new(script), options, file })
    }

    fn sandbox(&mut self) -> Result<Sandbox, String> {
        if let Some(sandbox) = &self.sandbox {
            return Ok(sandbox.clone());
        }
        let program = WorkerProgram::this_program();
        let program = program.map_err(|error| format!("this program's file cannot be found: {error}"))?;
        let sandbox = Sandbox::new(program, Limits::default());
        self.sandbox = Some(sandbox.clone());
        Ok(sandbox)
    }
}

/// Returns the script as a file, so that a run doesn't depend on the folder from which it began.
fn store(challenge: &ScriptChallenge) -> Result<Option<StoredFile>, String> {
    let Some(script) = challenge.script() else { return Ok(None) };
    let stored = StoredScript { id: challenge.id().to_owned(), source: script.source().to_owned() };
    let text = serde_json::to_string(&stored).map_err(|error| format!("the script cannot be stored: {error}"))?;
    let version = script.version().to_string();
    let path = format!("{SCRIPTS}/{}-{}.json", stored.id, &version[..12]);
    Ok(Some(StoredFile { path, text }))
}

fn list(path: &Path, problems: &[Problem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    format!("{} cannot be played: {}", path.display(), problems.join("; "))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn load(name: &str, options: Value) -> Result<LoadedChallenge, String> {
        let folder = tempfile::tempdir().unwrap();
        let options = options.as_object().cloned().unwrap_or_default();
        ChallengeLoader::new(folder.path(), true).load(name, &options)
    }

    #[test]
    fn all_built_in_challenges_load() {
        for name in arena_games::challenges() {
            let loaded = load(name, json!({})).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(loaded.challenge.id(), name);
            assert!(loaded.challenge.seats(&loaded.options) > 0 && loaded.file.is_none(), "{name}");
        }
    }

    #[test]
    fn options_replace_defaults() {
        let loaded = load("psi", json!({"setSize": 7})).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.options["setSize"], json!(7));
    }

    #[test]
    fn errors_name_the_remedy() {
        let error = |name, options| load(name, options).err().unwrap_or_default();
        expect![[r#"there is no built-in challenge and no folder of this name; the built-in challenges are psi, ultimatum, millionaire, dining-cryptographers, snake, chess, food-catcher, cherry-picker"#]]
            .assert_eq(&error("pis", json!({})));
        assert!(error("psi", json!({"setsize": 7})).contains("setsize"));
        assert!(error("psi", json!({"setSize": "seven"})).contains("setSize"));
    }
}
