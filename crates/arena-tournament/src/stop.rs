//! What ends a tournament before all of its games are played.

use arena_ratings::Sprt;
use serde::{Deserialize, Serialize};

/// What ends a tournament before all of its games are played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// A sequential test of how much stronger the first of two agents is. It is judged meeting by meeting, in the order of their
    /// numbers; whatever was played beyond the meeting that decides it doesn't count.
    Sprt(Sprt),
    /// In an adaptive tournament: the ratings of all agents are known to so many Elo in either direction, with 95 % confidence.
    Margin(f64),
}
