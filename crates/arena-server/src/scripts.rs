//! Challenges that are folders: loaded at the start, and again when they have changed, while sessions go on.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Engine, Revive};
use arena_model::{ChallengeType, Script};
use arena_script::{Folder, Problem, Sandbox, ScriptChallenge, find_folders};
use serde_json::{Map, Value};

use crate::settings::{ScriptSettings, Settings};

/// How often folders are looked at. A change counts when it is the same twice, so that nobody's half-written file is loaded.
const LOOK_EVERY: Duration = Duration::from_millis(1000);

/// The folders of an arena, and what has become of them.
pub(crate) struct Scripts {
    folders: Vec<PathBuf>,
    sandbox: Sandbox,
    /// The arena's options for challenges, by their names.
    options: BTreeMap<String, Map<String, Value>>,
    /// What was seen at the last look and what was last loaded, by folder.
    known: BTreeMap<PathBuf, Known>,
    /// What was told of the list of folders itself, so that it is told once.
    told: BTreeSet<String>,
}

#[derive(Default)]
struct Known {
    seen: Option<Result<Folder, Problem>>,
    loaded: Option<Result<Folder, Problem>>,
    /// What is hosted of it.
    hosted: Option<String>,
}

/// The sandbox of an arena's scripts; nothing if there is no program to run them with.
pub(crate) fn sandbox(settings: &ScriptSettings) -> Option<Sandbox> {
    let (program, args) = settings.worker.clone()?;
    Some(Sandbox::new(program, args, settings.limits))
}

/// The engine's source of rules for sessions that began with other rules than those hosted now.
pub(crate) fn revive(sandbox: Option<Sandbox>) -> Box<Revive> {
    Box::new(move |id: &str, script: Option<Script>| {
        let Some(script) = script else {
            let built_in = arena_games::challenge(id, &Map::new()).ok_or("it isn't built in")?;
            return built_in.map_err(|error| error.to_string());
        };
        let sandbox = sandbox.as_ref().ok_or("no scripts are run by this server")?;
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
    pub(crate) fn new(settings: &Settings, sandbox: Sandbox) -> Scripts {
        let options = settings.challenges.iter().map(|challenge| (challenge.name.clone(), challenge.options.clone()));
        Scripts {
            folders: settings.scripts.folders.clone(),
            sandbox,
            options: options.collect(),
            known: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// Looks again and again, until it is dropped.
    pub(crate) async fn watch(mut self, engine: Engine) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let handle = engine.clone();
            let looked = tokio::task::spawn_blocking(move || {
                let looked = catch_unwind(AssertUnwindSafe(|| self.look(&handle, false)));
                let panicked = "a look at the folders of challenges panicked; the next ones go on".to_owned();
                if looked.is_err() && self.told.insert(panicked.clone()) {
                    tracing::error!("{panicked}");
                }
                self
            });
            match looked.await {
                Ok(scripts) => self = scripts,
                // Only when the runtime is shutting down.
                Err(error) => {
                    tracing::error!(%error, "the folders of challenges are watched no longer: {error}");
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Looks at all folders and loads what has changed; `at_once` also what was never seen before.
    pub(crate) fn look(&mut self, engine: &Engine, at_once: bool) {
        let mut paths = BTreeSet::new();
        for folder in &self.folders {
            let told = match find_folders(folder) {
                Ok(found) if found.is_empty() && at_once => {
                    format!("{} has no challenges: no folder in it has a challenge.json", folder.display())
                }
                Ok(found) => {
                    paths.extend(found);
                    continue;
                }
                Err(error) => format!("the challenges in {} can't be read: {error}", folder.display()),
            };
            if self.told.insert(told.clone()) {
                tracing::error!("{told}");
            }
        }
        let gone: Vec<PathBuf> = self.known.keys().filter(|path| !paths.contains(*path)).cloned().collect();
        for path in gone {
            if let Some(id) = self.known.remove(&path).and_then(|known| known.hosted) {
                engine.drop_challenge(&id);
                tracing::info!(challenge = %id, "challenge {id} is gone: no new sessions of it; those that are there go on");
            }
        }
        for path in paths {
            let seen = Folder::read(&path);
            let known = self.known.entry(path.clone()).or_default();
            let is_settled = at_once || known.seen.as_ref() == Some(&seen);
            known.seen = Some(seen.clone());
            if is_settled && known.loaded.as_ref() != Some(&seen) {
                known.loaded = Some(seen.clone());
                self.load(engine, &path, seen);
            }
        }
    }

    fn load(&mut self, engine: &Engine, path: &Path, seen: Result<Folder, Problem>) {
        let hosted = self.known.get(path).and_then(|known| known.hosted.clone());
        let loaded = seen.map_err(|problem| vec![problem]).and_then(|folder| {
            self.check_name(engine, &folder.id, path)?;
            let challenge = ScriptChallenge::read(&folder, &self.sandbox)?;
            let none = Map::new();
            let options = self.options.get(&folder.id).unwrap_or(&none);
            if let Some(stray) = challenge.find_stray(options) {
                tracing::warn!(challenge = %folder.id, "challenges: {}: {stray}; the script is given it as it is", folder.id);
            }
            let challenge = challenge
                .with_options(options)
                .map_err(|error| vec![problem(format!("challenges: {}: {error}", folder.id))])?;
            challenge.rehearse()?;
            Ok(challenge)
        });
        match loaded {
            Ok(challenge) => {
                let id = challenge.id().to_owned();
                let version = challenge.script().map(|script| script.version().to_string()).unwrap_or_default();
                engine.host(Arc::new(challenge));
                let instead = match arena_games::challenges().any(|built_in| built_in == id) {
                    true => ", instead of the built-in challenge",
                    false => "",
                };
                tracing::info!(challenge = %id, %version, "challenge {id} is hosted, from {}{instead}", path.display());
                if let Some(known) = self.known.get_mut(path) {
                    known.hosted = Some(id);
                }
            }
            Err(problems) => {
                let stays = hosted.map(|id| format!("; {id} stays as it was")).unwrap_or_default();
                for problem in &problems {
                    let place = path.join(&problem.file);
                    let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
                    tracing::error!("{}{line}: {}{stays}", place.display(), problem.message);
                }
            }
        }
    }

    /// Refuses names that something else has. What is built in isn't hosted where a folder of its name was there at the start.
    fn check_name(&self, engine: &Engine, id: &str, path: &Path) -> Result<(), Vec<Problem>> {
        let plain = |name: &str| name.replace('_', "-");
        let built_in =
            engine.challenges().values().any(|other| other.script().is_none() && plain(other.id()) == plain(id));
        if built_in {
            return Err(vec![problem(format!(
                "`{id}` is the name of a built-in challenge that is hosted; call the folder otherwise, or start the server again to host \
                 the folder instead"
            ))]);
        }
        let other = self.known.iter().find(|(other, known)| *other != path && known.hosted.as_deref() == Some(id));
        match other {
            Some((other, _)) => Err(vec![problem(format!("`{id}` is hosted already, from {}", other.display()))]),
            None => Ok(()),
        }
    }
}

fn problem(message: String) -> Problem {
    Problem { file: String::new(), line: None, message }
}
