//! The built-in games: a file or folder each, and the list of them.
//!
//! Everything here is pure: a game is its config, the seed and what its agents did, and nothing else. Who runs the agents and
//! keeps their clocks is `arena-match`; what a game is, is `arena-model`'s.
