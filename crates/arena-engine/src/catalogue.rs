//! The challenge types of an arena, and the versions of scripts that running sessions still need.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arena_model::{BoardId, BoardTerms, ChallengeType, Script, ScriptVersion, SessionFacts};
use arena_store::{BoardFacts, CommitError, Store};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::request::EngineError;

pub type Hosted = BTreeMap<String, Arc<dyn ChallengeType>>;

/// A function that restores a challenge type: from a name and a stored script, or from the name of a built-in
/// challenge. The error is the reason for the failure.
pub type Revive = dyn Fn(&str, Option<Script>) -> Result<Arc<dyn ChallengeType>, String> + Send + Sync;

/// Challenge types by name and script version; the version is `None` for a built-in challenge.
type Past = HashMap<(String, Option<ScriptVersion>), Arc<dyn ChallengeType>>;

/// The maximum number of removed or replaced challenge types in memory.
const KEPT_VERSIONS: usize = 256;

pub(crate) struct Catalogue {
    hosted: RwLock<Arc<Hosted>>,
    boards: RwLock<Arc<BTreeMap<String, MainBoard>>>,
    revive: Box<Revive>,
    /// Removed or replaced challenge types that sessions still use.
    past: Mutex<Past>,
    /// The script versions that are known to be in the store.
    kept: Mutex<BTreeSet<ScriptVersion>>,
}

/// The main board of a challenge type, which counts games with the challenge's default options.
pub(crate) struct MainBoard {
    pub(crate) id: BoardId,
    terms: BoardTerms,
    options: Value,
}

impl MainBoard {
    pub(crate) fn facts(&self) -> BoardFacts {
        BoardFacts { id: self.id.clone(), options: self.options.clone(), terms: self.terms.clone() }
    }

    /// Returns the main board of a challenge type, or `None` if the challenge rejects its default options.
    fn of(challenge: &dyn ChallengeType) -> Option<MainBoard> {
        let options = challenge.resolve(&Map::new()).ok()?;
        let terms = BoardTerms::of(challenge);
        Some(MainBoard { id: BoardId::of(challenge.id(), &options, &terms), terms, options })
    }

    fn of_all(hosted: &Hosted) -> BTreeMap<String, MainBoard> {
        let board =
            |(name, challenge): (&String, &Arc<dyn ChallengeType>)| Some((name.clone(), MainBoard::of(&**challenge)?));
        hosted.iter().filter_map(board).collect()
    }
}

impl Catalogue {
    pub(crate) fn new(challenges: impl IntoIterator<Item = Arc<dyn ChallengeType>>, revive: Box<Revive>) -> Catalogue {
        let hosted = challenges.into_iter().map(|challenge| (challenge.id().to_owned(), challenge)).collect();
        let boards = RwLock::new(Arc::new(MainBoard::of_all(&hosted)));
        let hosted = RwLock::new(Arc::new(hosted));
        Catalogue { hosted, boards, revive, past: Mutex::default(), kept: Mutex::default() }
    }

    pub(crate) fn boards(&self) -> Arc<BTreeMap<String, MainBoard>> {
        Arc::clone(&self.boards.read())
    }

    /// Returns the version of the rules and the prompt of a challenge type. Their hash is computed once.
    pub(crate) fn all_terms_of(&self, challenge: &dyn ChallengeType) -> BoardTerms {
        let known = self.boards.read().get(challenge.id()).map(|board| board.terms.clone());
        // A script may have been replaced since the caller found it.
        let rules = challenge.script().map(|script| script.version().to_string());
        let is_same = |terms: &BoardTerms| rules.as_ref().is_none_or(|rules| *rules == terms.rules);
        known.filter(is_same).unwrap_or_else(|| BoardTerms::of(challenge))
    }

    /// Returns the board terms of a new session: those of the main board, or `None` if the session's options differ
    /// from the main board's.
    pub(crate) fn terms_of(&self, challenge: &str, options: &Value) -> Option<BoardTerms> {
        let boards = self.boards.read();
        boards.get(challenge).filter(|board| board.options == *options).map(|board| board.terms.clone())
    }

    /// Clears the list of stored scripts. Callers use this if the store may have lost commits.
    pub(crate) fn forget_kept(&self) {
        self.kept.lock().clear();
    }

    pub(crate) fn hosted(&self) -> Arc<Hosted> {
        Arc::clone(&self.hosted.read())
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Hosted)) {
        let mut hosted = self.hosted.write();
        change(Arc::make_mut(&mut hosted));
        *self.boards.write() = Arc::new(MainBoard::of_all(&hosted));
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<dyn ChallengeType>, EngineError> {
        self.hosted().get(id).cloned().ok_or_else(|| EngineError::UnknownChallenge(id.to_owned()))
    }

    /// Returns the challenge type of a session. A session of a script keeps the script version of its start. A session
    /// of a built-in challenge keeps that challenge, even if a script has replaced it under the same name.
    pub(crate) async fn of(&self, facts: &SessionFacts, store: &Store) -> Result<Arc<dyn ChallengeType>, EngineError> {
        let id = &facts.challenge;
        let version = facts.script;
        let hosted = self.hosted().get(id).cloned();
        if let Some(hosted) = hosted.filter(|hosted| hosted.script().map(Script::version) == version) {
            return Ok(hosted);
        }
        let key = (id.clone(), version);
        let known = self.past.lock().get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let revived = match version {
            None => (self.revive)(id, None).map_err(|_| EngineError::UnknownChallenge(id.clone()))?,
            Some(version) => {
                let missing = |reason: String| EngineError::NoScript { challenge: id.clone(), version, reason };
                let script = store
                    .find_script(version)
                    .await?
                    .ok_or_else(|| missing("the store has no such version".to_owned()))?;
                (self.revive)(id, Some(script)).map_err(missing)?
            }
        };
        let mut past = self.past.lock();
        if past.len() >= KEPT_VERSIONS {
            past.clear();
        }
        past.insert(key, Arc::clone(&revived));
        Ok(revived)
    }

    /// Stores the script of a new session, so that the session can be continued after a restart.
    pub(crate) async fn keep(&self, challenge: &dyn ChallengeType, store: &Store) -> Result<(), EngineError> {
        let Some(script) = challenge.script() else { return Ok(()) };
        if self.kept.lock().contains(&script.version()) {
            return Ok(());
        }
        match store.keep_script(script).await {
            Ok(()) => {
                self.kept.lock().insert(script.version());
                Ok(())
            }
            Err(CommitError::Unavailable(error)) => Err(error.into()),
            Err(CommitError::Conflict | CommitError::Answered(_)) => Err(EngineError::Contended),
        }
    }
}

/// Runs a decision of a challenge's rules. If the rules are slow, Tokio moves the thread's other tasks to another
/// thread first.
pub(crate) fn decide_by<T>(challenge: &dyn ChallengeType, decide: impl FnOnce() -> T) -> T {
    if challenge.is_slow() && workers().is_some() { tokio::task::block_in_place(decide) } else { decide() }
}

/// Returns the current runtime if it has several threads, so that one can wait while the others work.
pub(crate) fn workers() -> Option<Handle> {
    Handle::try_current().ok().filter(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}
