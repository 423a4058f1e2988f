//! Arenas of one and of several nodes under load, with faults of processes, database, network and clocks.
//!
//! Each test starts real nodes on a real Postgres, runs players, injects a fault, and compares the clients' history
//! with the final state (`arena_testkit::history`). All tests share one Postgres, which some tests crash, so the tests
//! run one after the other. `ARENA_FAULT_SECONDS` sets the duration of each test's load; the default is a few seconds.
#![allow(clippy::unwrap_used, reason = "in tests a failed unwrap is a failed test")]

mod balancers;
mod call;
mod faults;
mod games;
mod load;
mod nodes;
#[path = "../program/program.rs"]
#[allow(dead_code, reason = "the other tests of the binary use more of it")]
mod program;
mod proxy;
mod sample;
mod settle;
mod siege;
mod watch;
