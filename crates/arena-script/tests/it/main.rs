//! Scripts from their folders to the players' messages, in the sandbox of an arena.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod confined;
mod game;
mod hostile;
mod killed;
mod loading;
mod reference;
mod services;
mod strategy;
mod table;
mod types;
