//! Tests of agents as real processes, in each sandbox mode.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod agent;
mod check;
mod cli;
mod http;
mod memory;
mod remains;
mod sandbox;
mod services;
mod start;
