//! Untrusted processes: agents of matches, and workers of scripts. Their start through the launcher, their sandbox, and
//! their end. Nothing here depends on games.

pub mod launcher;
pub mod process;
