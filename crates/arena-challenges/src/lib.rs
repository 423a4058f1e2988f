//! The built-in challenges, a file each. They see only `arena-model`; a new one is a file and a line in [`builtin`].

#[cfg(test)]
mod game;
mod numbers;
mod psi;

use std::sync::Arc;

use arena_model::{Builtin, ChallengeType, OptionsError, Rules};
use serde_json::{Map, Value};

pub use psi::Psi;

/// The built-in challenge called `id` with an arena's options for it; `None` if there is none of that name.
///
/// # Errors
/// If an option is unknown, mistyped, or makes the game impossible.
pub fn builtin(id: &str, options: &Map<String, Value>) -> Option<Result<Arc<dyn ChallengeType>, OptionsError>> {
    match id {
        Psi::ID => Some(make::<Psi>(options)),
        _ => None,
    }
}

/// The names of all built-in challenges.
pub const BUILTIN: &[&str] = &[Psi::ID];

fn make<R: Rules>(options: &Map<String, Value>) -> Result<Arc<dyn ChallengeType>, OptionsError> {
    Builtin::<R>::new(options).map(|challenge| Arc::new(challenge) as Arc<dyn ChallengeType>)
}
