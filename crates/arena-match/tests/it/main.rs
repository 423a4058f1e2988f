//! Agents as real processes, in each kind of sandbox.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod agent;
mod remains;
mod sandbox;
mod start;
