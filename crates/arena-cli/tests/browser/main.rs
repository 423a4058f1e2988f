//! The pages in a real browser: people play, watch and look around, and whatever strangers write, nothing but text comes of it.
//!
//! Any error or warning in a page's console fails its test, so does a breach of the page's policy, and a dialog.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod demo;
mod driver;
mod hostile;
mod look;
mod pages;
mod play;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "the other tests of the binary use more of it")]
mod program;
mod world;
