//! The pages in a real browser: people play and watch, and texts from strangers are shown as text.
//!
//! A test fails on any error or warning in a page's console, any violation of the page's content security policy, and
//! any dialog.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod controls;
mod demo;
mod driver;
mod everyone;
mod hostile;
mod look;
mod pages;
mod play;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "the other tests of the binary use more of it")]
mod program;
mod queue;
mod records;
mod tables;
mod transcript;
mod trouble;
mod world;
