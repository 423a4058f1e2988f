//! Conditions that end a tournament before all of its games are played.

use arena_ratings::Sprt;
use serde::{Deserialize, Serialize};

/// A condition that ends a tournament before all of its games are played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// A sequential test of the rating difference between two agents. The test judges meetings (the games of the same
    /// agents with one seed) in the order of their numbers; games after the deciding meeting don't count.
    Sprt(Sprt),
    /// The largest permitted half-width, in Elo, of every rating's 95 % interval. For adaptive tournaments only.
    Margin(f64),
}
