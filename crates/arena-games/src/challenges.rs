//! The built-in challenges, one file each. A new challenge is a file and two lines here.

mod dining_cryptographers;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod game;
mod millionaire;
mod numbers;
mod psi;
mod ultimatum;

use crate::Playable;

/// All challenges, in the order in which lists show them.
pub static CHALLENGES: &[Playable] =
    &[psi::PLAYABLE, ultimatum::PLAYABLE, millionaire::PLAYABLE, dining_cryptographers::PLAYABLE];
