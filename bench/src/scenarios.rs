//! The scenarios, one file each, and their list.

pub mod attacks;
pub mod fanout;
pub mod games;
pub mod gate;
pub mod lists;
pub mod matches;
pub mod nodes;
pub mod tail;

use crate::arguments::Arguments;
use crate::report::Report;

pub struct Scenario {
    /// The name on the command line and in the report.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    pub in_all: bool,
    pub needs_arena: bool,
    /// Runs the measurement and adds rows to the report.
    pub run: fn(&Arguments, &mut Report) -> anyhow::Result<()>,
}

/// Returns a scenario of `all` that needs an arena.
const fn scenario(
    name: &'static str,
    about: &'static str,
    run: fn(&Arguments, &mut Report) -> anyhow::Result<()>,
) -> Scenario {
    Scenario { name, about, in_all: true, needs_arena: true, run }
}

/// All scenarios, in the order in which `all` runs them.
pub const LIST: &[Scenario] = &[
    scenario("games", "whole PSI games at full speed, on the arena and the ceiling", games::run),
    scenario("tail", "the last messages of a long channel, compared with a short one", tail::run),
    scenario("fanout", "one session's chat for thousands of subscribers", fanout::run),
    scenario("lists", "list pages of a store with many sessions, and its start time", lists::run),
    scenario(
        "attacks",
        "whole games during an attack on memory, connections or CPU from another address",
        attacks::run,
    ),
    Scenario {
        needs_arena: false,
        ..scenario("matches", "matches between fast agents, compared with a plain pipe", matches::run)
    },
    Scenario {
        in_all: false,
        ..scenario(
            "nodes",
            "whole PSI games on one to four nodes with Postgres and NATS, and messages between nodes",
            nodes::run,
        )
    },
    Scenario {
        in_all: false,
        ..scenario("gate", "CPU time per operation of two binaries (`--against`), in turn", gate::run)
    },
];
