//! Loading of scripts. The server loads their folders at the start, and reloads changed folders while sessions
//! continue.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Engine, Revive};
use arena_model::{ChallengeType, Script};
use arena_script::{Folder, Problem, Sandbox, ScriptChallenge, ScriptKind, find_folders_of};
use serde_json::{Map, Value};

use crate::blocking::blocking;
use crate::settings::{ScriptSettings, Settings, SettingsError};

/// Interval between checks of the folders. A changed folder is loaded when two consecutive checks find the same files,
/// so that half-written files are not loaded.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(1000);

pub(crate) struct Scripts {
    folders: WatchedFolders,
    sandbox: Sandbox,
    /// The arena's options by challenge type.
    options: BTreeMap<String, Map<String, Value>>,
    /// The ids of the challenge types that are hosted, by folder.
    hosted: BTreeMap<PathBuf, String>,
}

/// The folders of scripts of one kind.
pub(crate) struct WatchedFolders {
    kind: ScriptKind,
    folders: Vec<PathBuf>,
    /// The last version that was read and the last that was loaded, by folder.
    known: BTreeMap<PathBuf, Known>,
    /// Logged errors that are not logged again.
    logged: BTreeSet<String>,
}

type ReadFolder = Result<Folder, Problem>;

#[derive(Default)]
struct Known {
    last_read: Option<ReadFolder>,
    loaded: Option<ReadFolder>,
}

impl WatchedFolders {
    pub(crate) fn new(kind: ScriptKind, folders: Vec<PathBuf>) -> WatchedFolders {
        WatchedFolders { kind, folders, known: BTreeMap::new(), logged: BTreeSet::new() }
    }

    /// Returns the folders that are gone, and those to load. If `at_once` is true, a change needs no second check.
    pub(crate) fn look(&mut self, at_once: bool) -> (Vec<PathBuf>, Vec<(PathBuf, ReadFolder)>) {
        let (mut paths, what, file) = (BTreeSet::new(), self.kind.plural(), self.kind.file());
        for folder in &self.folders {
            let log_text = match find_folders_of(self.kind, folder) {
                Ok(found) if found.is_empty() && at_once => {
                    format!("no {what} in {}: no folder contains a {file}", folder.display())
                }
                Ok(found) => {
                    paths.extend(found);
                    continue;
                }
                Err(error) => format!("cannot read the {what} in {}: {error}", folder.display()),
            };
            if self.logged.insert(log_text.clone()) {
                tracing::error!("{log_text}");
            }
        }
        let gone: Vec<PathBuf> = self.known.keys().filter(|path| !paths.contains(*path)).cloned().collect();
        self.known.retain(|path, _| paths.contains(path));
        let mut changed = Vec::new();
        for path in paths {
            let read = Folder::read_of(self.kind, &path);
            let known = self.known.entry(path.clone()).or_default();
            let is_settled = at_once || known.last_read.as_ref() == Some(&read);
            known.last_read = Some(read.clone());
            if is_settled && known.loaded.as_ref() != Some(&read) {
                known.loaded = Some(read.clone());
                changed.push((path, read));
            }
        }
        (gone, changed)
    }
}

/// Logs the problems of a folder. `stays` says what the server uses instead.
pub(crate) fn log_problems(path: &Path, problems: &[Problem], stays: &str) {
    for problem in problems {
        let place = path.join(&problem.file);
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        tracing::error!("{}{line}: {}{stays}", place.display(), problem.message);
    }
}

/// Creates the sandbox of the arena's scripts; `None` without a worker program.
pub(crate) fn sandbox(settings: &ScriptSettings) -> Option<Sandbox> {
    Some(Sandbox::new(settings.worker.clone()?, settings.limits))
}

/// Returns the function that the engine calls to recreate the rules of a session if they differ from the hosted rules.
pub(crate) fn revive(sandbox: Option<Sandbox>) -> Box<Revive> {
    Box::new(move |id: &str, script: Option<Script>| {
        let Some(script) = script else {
            let built_in =
                arena_games::challenge(id, &Map::new()).ok_or("this server has no built-in challenge of this name")?;
            return built_in.map_err(|error| error.to_string());
        };
        let sandbox = sandbox.as_ref().ok_or("this server is not set up to run scripts")?;
        match ScriptChallenge::revive(id, script, sandbox) {
            Ok(challenge) => Ok(Arc::new(challenge) as Arc<dyn ChallengeType>),
            Err(problems) => Err(listed(&problems)),
        }
    })
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Scripts {
    /// Loads the folders of the settings. Faulty folders are logged and skipped.
    ///
    /// # Errors
    /// If the settings name folders, but no program to run scripts.
    pub(crate) async fn start(
        settings: &Settings,
        sandbox: Option<Sandbox>,
        engine: &Engine,
    ) -> Result<Option<Scripts>, SettingsError> {
        let folders = settings.scripts.folders.clone();
        if folders.is_empty() {
            return Ok(None);
        }
        let options = settings.challenges.iter().map(|challenge| (challenge.name.clone(), challenge.options.clone()));
        let mut scripts = Scripts {
            folders: WatchedFolders::new(ScriptKind::Challenge, folders),
            sandbox: sandbox.ok_or(SettingsError::NoWorker)?,
            options: options.collect(),
            hosted: BTreeMap::new(),
        };
        let engine = engine.clone();
        let loaded = blocking(move || {
            scripts.refresh(&engine, true);
            scripts
        });
        Ok(Some(loaded.await))
    }

    pub(crate) async fn watch(mut self, engine: Engine) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let handle = engine.clone();
            let looked = tokio::task::spawn_blocking(move || {
                let looked = catch_unwind(AssertUnwindSafe(|| self.refresh(&handle, false)));
                let panicked = "a check of the challenge folders panicked; later checks continue".to_owned();
                if looked.is_err() && self.folders.logged.insert(panicked.clone()) {
                    tracing::error!("{panicked}");
                }
                self
            });
            match looked.await {
                Ok(scripts) => self = scripts,
                // This error is possible only while the runtime shuts down.
                Err(error) => {
                    tracing::error!(%error, "the challenge folders are no longer watched: {error}");
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Loads changed folders. If `at_once` is true, a change is loaded without waiting for a second check.
    fn refresh(&mut self, engine: &Engine, at_once: bool) {
        let (gone, changed) = self.folders.look(at_once);
        for id in gone.iter().filter_map(|path| self.hosted.remove(path)) {
            engine.drop_challenge(&id);
            tracing::info!(challenge = %id, "challenge {id} was removed: existing sessions continue, new ones are not possible");
        }
        for (path, read) in changed {
            self.load(engine, &path, read);
        }
    }

    fn load(&mut self, engine: &Engine, path: &Path, read: ReadFolder) {
        let loaded = read.map_err(|problem| vec![problem]).and_then(|folder| {
            self.check_name(engine, &folder.id, path)?;
            let challenge = ScriptChallenge::read(&folder, &self.sandbox)?;
            let none = Map::new();
            let options = self.options.get(&folder.id).unwrap_or(&none);
            if let Some(stray) = challenge.find_stray(options) {
                tracing::warn!(challenge = %folder.id, "challenges: {}: {stray}; the option is passed to the script unchanged", folder.id);
            }
            let challenge = challenge
                .with_options(options)
                .map_err(|error| vec![problem(format!("challenges: {}: {error}", folder.id))])?;
            challenge.test_start()?;
            Ok(challenge)
        });
        match loaded {
            Ok(challenge) => {
                let id = challenge.id().to_owned();
                let version = challenge.script().map(|script| script.version().to_string()).unwrap_or_default();
                engine.host(Arc::new(challenge));
                let instead = match arena_games::challenges().any(|built_in| built_in == id) {
                    true => ", replacing the built-in challenge",
                    false => "",
                };
                tracing::info!(challenge = %id, %version, "hosting challenge {id} from {}{instead}", path.display());
                self.hosted.insert(path.to_owned(), id);
            }
            Err(problems) => {
                let hosted = self.hosted.get(path);
                let stays =
                    hosted.map(|id| format!("; the previous version of {id} is still hosted")).unwrap_or_default();
                log_problems(path, &problems, &stays);
            }
        }
    }

    /// Refuses a folder with the name of another hosted challenge. At the start of the server, however, a folder
    /// replaces the built-in challenge of its name.
    fn check_name(&self, engine: &Engine, id: &str, path: &Path) -> Result<(), Vec<Problem>> {
        let plain = |name: &str| name.replace('_', "-");
        let built_in =
            engine.challenges().values().any(|other| other.script().is_none() && plain(other.id()) == plain(id));
        if built_in {
            return Err(vec![problem(format!(
                "`{id}` is the name of a hosted built-in challenge; rename the folder, or restart the server to host the folder \
                 instead"
            ))]);
        }
        let other = self.hosted.iter().find(|(other, hosted)| *other != path && *hosted == id);
        match other {
            Some((other, _)) => Err(vec![problem(format!("`{id}` is already hosted from {}", other.display()))]),
            None => Ok(()),
        }
    }
}

pub(super) fn problem(message: String) -> Problem {
    Problem { file: String::new(), line: None, message }
}
