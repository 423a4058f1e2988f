//! Bots at run time: their processes, sandbox and clocks, the loop that plays a match, and its replay.
//!
//! The rules of the games are `arena-games`', what a game is, is `arena-model`'s. Nothing here knows of sessions or of HTTP servers.

pub mod launcher;
pub mod process;
