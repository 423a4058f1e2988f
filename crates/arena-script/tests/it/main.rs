//! Scripts from their folders to what players are told, in the sandbox that an arena runs them in.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod game;
mod hostile;
mod killed;
mod loading;
mod reference;
mod table;
