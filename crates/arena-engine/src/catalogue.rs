//! What an arena hosts, and what it goes on playing although it is hosted no more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arena_model::{BoardId, BoardTerms, ChallengeType, Script, ScriptVersion, SessionFacts};
use arena_store::{BoardFacts, CommitError, Store};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};

use crate::request::EngineError;

/// Challenge types by id.
pub type Hosted = BTreeMap<String, Arc<dyn ChallengeType>>;

/// Makes the challenge type called by a name of a script that was kept, or without one the built-in of that name; or says why it can't.
pub type Revive = dyn Fn(&str, Option<Script>) -> Result<Arc<dyn ChallengeType>, String> + Send + Sync;

/// Challenge types by name and by the version of the script, if they are of one.
type Past = HashMap<(String, Option<ScriptVersion>), Arc<dyn ChallengeType>>;

/// Versions of scripts that stay in memory although they are hosted no more.
const PAST: usize = 256;

/// The challenge types of an engine.
pub(crate) struct Catalogue {
    hosted: RwLock<Arc<Hosted>>,
    /// The main boards of those, by challenge type.
    boards: RwLock<Arc<BTreeMap<String, MainBoard>>>,
    revive: Box<Revive>,
    /// The rules that sessions began with, where those of today are others.
    past: Mutex<Past>,
    /// The versions that the store surely has.
    kept: Mutex<BTreeSet<ScriptVersion>>,
}

/// The board for games that are played as the arena offers them.
pub(crate) struct MainBoard {
    pub(crate) id: BoardId,
    terms: BoardTerms,
    options: Value,
}

impl MainBoard {
    /// The board as the store describes those on which games have counted.
    pub(crate) fn facts(&self) -> BoardFacts {
        BoardFacts { id: self.id.clone(), options: self.options.clone(), terms: self.terms.clone() }
    }

    /// None if a challenge can't be played with its own options.
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

    /// The main boards of those that are hosted, by challenge type.
    pub(crate) fn boards(&self) -> Arc<BTreeMap<String, MainBoard>> {
        Arc::clone(&self.boards.read())
    }

    /// The terms of a new session: none if its options aren't the arena's own.
    pub(crate) fn terms_of(&self, challenge: &str, options: &Value) -> Option<BoardTerms> {
        let boards = self.boards.read();
        boards.get(challenge).filter(|board| board.options == *options).map(|board| board.terms.clone())
    }

    /// Forgets which scripts the store has: it may have lost some.
    pub(crate) fn forget_kept(&self) {
        self.kept.lock().clear();
    }

    /// Those that new sessions can be of, as they are now.
    pub(crate) fn hosted(&self) -> Arc<Hosted> {
        Arc::clone(&self.hosted.read())
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Hosted)) {
        let mut hosted = self.hosted.write();
        change(Arc::make_mut(&mut hosted));
        *self.boards.write() = Arc::new(MainBoard::of_all(&hosted));
    }

    /// The one that a new session is to be of.
    pub(crate) fn find(&self, id: &str) -> Result<Arc<dyn ChallengeType>, EngineError> {
        self.hosted().get(id).cloned().ok_or_else(|| EngineError::UnknownChallenge(id.to_owned()))
    }

    /// The one that a session is played by: of a script the version that it began with, and what is built in if it began with that, although a
    /// folder of the same name may be hosted now.
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
                    .ok_or_else(|| missing("this arena doesn't have it".to_owned()))?;
                (self.revive)(id, Some(script)).map_err(missing)?
            }
        };
        let mut past = self.past.lock();
        if past.len() >= PAST {
            past.clear();
        }
        past.insert(key, Arc::clone(&revived));
        Ok(revived)
    }

    /// Sees to it that a session which begins now can be continued after a restart.
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

/// Lets rules decide that may take a while, so that what else the thread has to do goes on elsewhere.
pub(crate) fn decide_by<T>(challenge: &dyn ChallengeType, decide: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let others_can = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if challenge.is_slow() && others_can { tokio::task::block_in_place(decide) } else { decide() }
}
