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

use arena_model::Seat;

use crate::Playable;

/// All challenges, in the order in which lists show them.
pub static CHALLENGES: &[Playable] =
    &[psi::PLAYABLE, ultimatum::PLAYABLE, millionaire::PLAYABLE, dining_cryptographers::PLAYABLE];

/// Returns the seats without a guess, for challenges in which each player guesses once.
fn without_guess<G>(guesses: &[Option<G>]) -> Vec<Seat> {
    guesses.iter().enumerate().filter(|(_, guess)| guess.is_none()).map(|(seat, _)| Seat(seat)).collect()
}
