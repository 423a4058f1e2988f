//! Arenas of one and of several nodes, whose processes, database, network and clocks fail under load; and what their clients saw
//! of it, checked.
//!
//! Each test starts real nodes on a real Postgres, lets players play through them, does something bad, and compares what clients were
//! told with what is there in the end (`arena_testkit::history`). All tests share one Postgres, which some of them crash, so they
//! run one after the other. `ARENA_FAULT_SECONDS` says how long the load of each lasts; a few seconds otherwise.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod call;
mod faults;
mod games;
mod load;
mod nodes;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "the other tests of the binary use more of it")]
mod program;
mod proxy;
mod settle;
mod watch;
