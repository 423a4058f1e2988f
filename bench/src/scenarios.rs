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

/// All scenarios, in the order in which `all` runs them.
pub const LIST: &[Scenario] = &[
    Scenario {
        name: "games",
        about: "whole PSI games at full speed, on the arena and the ceiling",
        in_all: true,
        needs_arena: true,
        run: games::run,
    },
    Scenario {
        name: "tail",
        about: "the last messages of a long channel, compared with a short one",
        in_all: true,
        needs_arena: true,
        run: tail::run,
    },
    Scenario {
        name: "fanout",
        about: "one session's chat for thousands of subscribers",
        in_all: true,
        needs_arena: true,
        run: fanout::run,
    },
    Scenario {
        name: "lists",
        about: "list pages of a store with many sessions, and its start time",
        in_all: true,
        needs_arena: true,
        run: lists::run,
    },
    Scenario {
        name: "attacks",
        about: "whole games during an attack on memory, connections or CPU from another address",
        in_all: true,
        needs_arena: true,
        run: attacks::run,
    },
    Scenario {
        name: "matches",
        about: "matches between fast agents, compared with a plain pipe",
        in_all: true,
        needs_arena: false,
        run: matches::run,
    },
    Scenario {
        name: "nodes",
        about: "whole PSI games on one to four nodes with Postgres and NATS, and messages between nodes",
        in_all: false,
        needs_arena: true,
        run: nodes::run,
    },
    Scenario {
        name: "gate",
        about: "CPU time per operation of two binaries (`--against`), in turn",
        in_all: false,
        needs_arena: true,
        run: gate::run,
    },
];
