//! An entry of the catalogue: a challenge or game, playable under both protocols, with all that comes with it.

use std::sync::Arc;

use arena_model::{Builtin, ChallengeType, GameOperator, GameType, Hosted, OperatorGame, OptionsError, Rules};
use serde_json::{Map, Value};

/// A built-in challenge or game.
pub struct Playable {
    /// The identifier of its challenge type on a server, such as `food-catcher`.
    pub id: &'static str,
    /// Its form in the match runner, with its name there, such as `food_catcher`.
    pub game: GameType,
    /// The parts beside its rules.
    pub kit: Kit,
    make: fn(&Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError>,
}

/// The parts of a challenge or game beside its rules. All are optional.
#[derive(Debug, Clone, Copy)]
pub struct Kit {
    /// The scoring strategies of its sessions, beside those that a server applies to every challenge.
    pub scoring: &'static [&'static str],
}

impl Kit {
    /// The defaults.
    pub const USUAL: Kit = Kit { scoring: &["win-rate", "consecutive"] };
}

impl Playable {
    /// The entry of a challenge, which the match runner plays through an adapter.
    pub(crate) const fn challenge<R: Rules>(kit: Kit) -> Playable {
        Playable { id: R::ID, game: GameType::of::<OperatorGame<R>>(), kit, make: make::<R> }
    }

    /// The entry of a game, which sessions play through an adapter.
    pub(crate) const fn game<G: Hosted>(kit: Kit) -> Playable {
        Playable { id: G::CHALLENGE, game: GameType::of::<G>(), kit, make: make::<GameOperator<G>> }
    }

    /// Its challenge type with an arena's options for it.
    ///
    /// # Errors
    /// If an option is unknown, mistyped, or makes the game impossible.
    pub fn challenge_type(&self, options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
        (self.make)(options)
    }
}

fn make<R: Rules>(options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
    Builtin::<R>::new(options).map(|challenge| Arc::new(challenge) as Arc<dyn ChallengeType>)
}
