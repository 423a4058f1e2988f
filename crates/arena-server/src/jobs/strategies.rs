//! Scripted scoring strategies: the loading of their folders, and a task for each that counts games.
//!
//! A task reads ended games in the order of their endings, and stores the script's changes with its place in that order.
//! Play never waits for it. On several nodes, the one that leads counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arena_engine::{Engine, EngineError};
use arena_model::{ScriptedStrategy, StrategyRows};
use arena_script::{Folder, GameToCount, PlayedBatch, Problem, ScriptKind, ScriptStrategy, StrategyFault};
use arena_store::{CommitError, EndingNo, RunStep};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::scripts::{LOOK_EVERY, WatchedFolders, log_problems, problem, sandbox};
use crate::arena::Arena;
use crate::blocking::blocking;
use crate::settings::{Settings, SettingsError};

/// The pause between two reads of the endings.
const PERIOD: Duration = Duration::from_millis(500);

/// The longest pause after failures in a row.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The maximum number of endings in one transaction.
const BATCH: usize = 200;

/// The strategies of the folders in the settings.
pub(crate) struct Strategies(Mutex<LoadedStrategies>);

struct LoadedStrategies {
    folders: WatchedFolders,
    settings: Settings,
    loaded: BTreeMap<PathBuf, Arc<ScriptStrategy>>,
}

#[derive(Debug, thiserror::Error)]
enum CountError {
    #[error("{0}")]
    Script(StrategyFault),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Strategies {
    /// Loads the folders of the settings. Faulty folders are logged and skipped.
    ///
    /// # Errors
    /// If the settings name folders, but no program to run scripts.
    pub(crate) async fn start(settings: &Settings, engine: &Engine) -> Result<Option<Arc<Strategies>>, SettingsError> {
        let folders = settings.scoring.folders.clone();
        if folders.is_empty() {
            return Ok(None);
        }
        if settings.scripts.worker.is_none() {
            return Err(SettingsError::NoWorker);
        }
        let mut loaded = LoadedStrategies {
            folders: WatchedFolders::new(ScriptKind::Strategy, folders),
            settings: settings.clone(),
            loaded: BTreeMap::new(),
        };
        let engine = engine.clone();
        let loaded = blocking(move || {
            loaded.refresh(&engine, true);
            loaded
        });
        Ok(Some(Arc::new(Strategies(Mutex::new(loaded.await)))))
    }

    /// Counts games by all strategies, and loads changed folders. Never returns.
    pub(crate) async fn keep_counting(self: &Arc<Strategies>, arena: &Arena) {
        let mut tasks: BTreeMap<PathBuf, (Arc<ScriptStrategy>, JoinSet<()>)> = BTreeMap::new();
        loop {
            let loaded = self.0.lock().loaded.clone();
            tasks.retain(|path, (strategy, task)| {
                let stays = loaded.get(path).is_some_and(|loaded| Arc::ptr_eq(loaded, strategy));
                if !stays {
                    arena.metrics.forget_strategy(strategy.scripted.strategy.name);
                }
                stays && task.try_join_next().is_none()
            });
            for (path, strategy) in loaded {
                tasks.entry(path).or_insert_with(|| {
                    let mut task = JoinSet::new();
                    task.spawn(count_games(arena.clone(), Arc::clone(&strategy)));
                    (strategy, task)
                });
            }
            tokio::time::sleep(LOOK_EVERY).await;
            let (strategies, engine) = (Arc::clone(self), arena.engine.clone());
            let looked = tokio::task::spawn_blocking(move || strategies.0.lock().refresh(&engine, false));
            if let Err(error) = looked.await {
                tracing::error!(%error, "a check of the strategies' folders failed: {error}");
            }
        }
    }
}

impl LoadedStrategies {
    fn refresh(&mut self, engine: &Engine, at_once: bool) {
        let (gone, changed) = self.folders.look(at_once);
        let before = self.scripted();
        for strategy in gone.iter().filter_map(|path| self.loaded.remove(path)) {
            let name = strategy.scripted.strategy.name;
            tracing::info!(strategy = name, "strategy {name} was removed; its numbers stay in the store");
        }
        for (path, read) in changed {
            match read.map_err(|problem| vec![problem]).and_then(|folder| self.load(&path, &folder)) {
                Ok(strategy) => {
                    let (name, version) = (strategy.scripted.strategy.name, strategy.version());
                    tracing::info!(strategy = name, %version, "scoring by strategy {name} from {}", path.display());
                    self.loaded.insert(path, Arc::new(strategy));
                }
                Err(problems) => {
                    let stays =
                        if self.loaded.contains_key(&path) { "; the previous version still counts" } else { "" };
                    log_problems(&path, &problems, stays);
                }
            }
        }
        let after = self.scripted();
        if after != before {
            engine.set_scripted(after);
        }
    }

    fn load(&self, path: &Path, folder: &Folder) -> Result<ScriptStrategy, Vec<Problem>> {
        // Each strategy has workers of its own, so a slow one doesn't delay others, or challenges.
        let sandbox = sandbox(&self.settings.scripts);
        let sandbox = sandbox.ok_or_else(|| vec![problem("this server is not set up to run scripts".to_owned())])?;
        let mut strategy = ScriptStrategy::load(folder, &sandbox)?;
        let name = strategy.scripted.strategy.name;
        let twin =
            self.loaded.iter().find(|(other, loaded)| other.as_path() != path && loaded.scripted.strategy.name == name);
        if let Some((other, _)) = twin {
            return Err(vec![problem(format!("`{name}` is already loaded from {}", other.display()))]);
        }
        self.settings.add_challenges(&mut strategy.scripted);
        Ok(strategy)
    }

    fn scripted(&self) -> Vec<ScriptedStrategy> {
        let mut scripted: Vec<ScriptedStrategy> =
            self.loaded.values().map(|strategy| strategy.scripted.clone()).collect();
        scripted.sort_by_key(|scripted| scripted.strategy.name);
        scripted
    }
}

/// Counts games by a strategy. Never returns.
async fn count_games(arena: Arena, strategy: Arc<ScriptStrategy>) {
    let name = strategy.scripted.strategy.name;
    let mut failing: Option<(String, Duration)> = None;
    loop {
        let pause = match advance(&arena, &strategy).await {
            Ok(may_have_more) => {
                if failing.take().is_some() {
                    tracing::info!(strategy = name, "strategy {name} counts games again");
                }
                if may_have_more { Duration::ZERO } else { PERIOD }
            }
            // Another node counts, or a game was removed: the next turn reads the new place.
            Err(CountError::Commit(CommitError::Conflict)) => PERIOD,
            Err(error) => {
                let error = error.to_string();
                let last = failing.take().filter(|(last, _)| *last == error).map(|(_, pause)| pause);
                if last.is_none() {
                    tracing::error!(strategy = name, %error, "strategy {name} cannot count games: {error}");
                }
                let pause = last.map_or(PERIOD, |pause| (pause * 2).min(LONGEST_PAUSE));
                failing = Some((error, pause));
                pause
            }
        };
        match pause.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(pause).await,
        }
    }
}

/// Counts the next games. Returns true if there may be more.
async fn advance(arena: &Arena, strategy: &Arc<ScriptStrategy>) -> Result<bool, CountError> {
    let (engine, name) = (&arena.engine, strategy.scripted.strategy.name);
    if !engine.leads() {
        arena.metrics.forget_strategy(name);
        return Ok(false);
    }
    let state = engine.find_strategy(name).await?;
    arena.metrics.show_strategy(name, state.behind(), state.error());
    let version = strategy.version().to_string();
    let newest = state.newest().filter(|run| run.version == version && !run.is_stale);
    let Some(run) = newest.cloned() else {
        engine.begin_run(name, &version).await?;
        return Ok(true);
    };
    if let Some(old) = state.runs.iter().find(|other| other.id != run.id && (!other.is_shown || run.is_shown)) {
        engine.remove_run(old.id).await?;
        return Ok(true);
    }
    let ended = engine.list_ended(run.place, BATCH).await?;
    let is_last = ended.len() < BATCH;
    let ends: Vec<EndingNo> = ended.iter().map(|(n, _)| *n).collect();
    let counts = |game: &GameToCount| strategy.scripted.scores(game.challenge());
    let games: Vec<(EndingNo, GameToCount)> =
        (ended.iter()).filter_map(|(n, session)| Some((*n, GameToCount::of(session).filter(counts)?))).collect();
    let keys: BTreeSet<(String, String)> = games.iter().flat_map(|(_, game)| game.keys()).collect();
    let rows = if keys.is_empty() { StrategyRows::new() } else { engine.find_rows(run.id, &keys).await? };
    let script = Arc::clone(strategy);
    // A panic is a fault of this strategy alone, which is tried again later.
    let counted = tokio::task::spawn_blocking(move || {
        let mut rows = rows;
        let all: Vec<&GameToCount> = games.iter().map(|(_, game)| game).collect();
        let batch = if all.is_empty() { PlayedBatch::default() } else { script.update(&all, &mut rows) };
        rows.retain(|key, _| batch.changed.contains(key));
        (rows, games.get(batch.counted).map(|(n, _)| *n), batch.fault)
    });
    let (rows, next, fault) = counted.await.map_err(|_| EngineError::Contended)?;
    let is_whole = is_last && next.is_none();
    let to = match next {
        // Endings of removed games aren't listed. The last ending was read before the list.
        None if is_last => ends.last().copied().max(Some(state.last)),
        // The place is before the game that fails, or that the script didn't reach.
        next => ends.iter().rfind(|n| next.is_none_or(|next| **n < next)).copied(),
    };
    let (place, error) = (to.unwrap_or(run.place), fault.as_ref().map(ToString::to_string));
    if place != run.place || error != run.error || (is_whole && !run.is_shown) {
        engine.advance_run(name, run, RunStep { rows, place, error, is_whole }).await?;
    }
    fault.map_or(Ok(!is_whole), |fault| Err(CountError::Script(fault)))
}
