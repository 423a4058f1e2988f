//! The built-in challenges, a file each. They see only `arena-model`; a new one is a file and a line in [`builtin`].

mod dining_cryptographers;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod game;
mod millionaire;
mod numbers;
mod psi;
mod ultimatum;

use std::sync::Arc;

use arena_model::{Builtin, ChallengeType, GameType, OperatorGame, OptionsError, Rules};
use serde_json::{Map, Value};

pub use dining_cryptographers::DiningCryptographers;
pub use millionaire::Millionaire;
pub use psi::Psi;
pub use ultimatum::Ultimatum;

/// The built-in challenge called `id` with an arena's options for it; `None` if there is none of that name.
///
/// # Errors
/// If an option is unknown, mistyped, or makes the game impossible.
pub fn builtin(id: &str, options: &Map<String, Value>) -> Option<Result<Arc<dyn ChallengeType>, OptionsError>> {
    match id {
        Psi::ID => Some(make::<Psi>(options)),
        Ultimatum::ID => Some(make::<Ultimatum>(options)),
        Millionaire::ID => Some(make::<Millionaire>(options)),
        DiningCryptographers::ID => Some(make::<DiningCryptographers>(options)),
        _ => None,
    }
}

/// The names of all built-in challenges.
pub const BUILTIN: &[&str] = &[Psi::ID, Ultimatum::ID, Millionaire::ID, DiningCryptographers::ID];

/// All of them as games of the match runner, in the same order.
pub static GAMES: [GameType; 4] = [
    GameType::of::<OperatorGame<Psi>>(),
    GameType::of::<OperatorGame<Ultimatum>>(),
    GameType::of::<OperatorGame<Millionaire>>(),
    GameType::of::<OperatorGame<DiningCryptographers>>(),
];

fn make<R: Rules>(options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
    Builtin::<R>::new(options).map(|challenge| Arc::new(challenge) as Arc<dyn ChallengeType>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_challenge_can_be_played_as_it_comes_and_explains_its_methods() {
        for id in BUILTIN {
            let challenge = builtin(id, &Map::new()).expect("it is built in").expect("its defaults are good");
            let metadata = challenge.metadata();
            assert_eq!(challenge.id(), *id);
            assert!(metadata.players >= 2 && !metadata.methods.is_empty(), "{id}");
            for method in &metadata.methods {
                assert!(
                    metadata.prompt.contains(&format!("`{}`", method.name)),
                    "{id} says nothing of {}",
                    method.name
                );
            }
        }
        assert!(builtin("chess", &Map::new()).is_none());
    }
}
