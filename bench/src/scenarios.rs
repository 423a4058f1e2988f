//! The scenarios, one file each, and their list.

pub mod attacks;
pub mod auth;
pub mod ceiling;
pub mod coverage;
pub mod fanout;
pub mod flood;
pub mod games;
pub mod gate;
pub mod lists;
pub mod matches;
pub mod mcp;
pub mod memory;
pub mod nodes;
pub mod options;
pub mod paced;
pub mod plies;
pub mod records;
pub mod scoring;
pub mod script;
pub mod tail;
pub mod turns;

use crate::arguments::Arguments;
use crate::report::Report;

pub struct Scenario {
    /// The name on the command line and in the report.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// True if `all` runs the scenario.
    pub in_all: bool,
    /// True if the scenario starts the arena's binary.
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
        name: "paced",
        about: "whole PSI games at a fixed rate, latencies from the intended start",
        in_all: true,
        needs_arena: true,
        run: paced::run,
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
        name: "scoring",
        about: "whole games with and without scoring, and leaderboards",
        in_all: true,
        needs_arena: true,
        run: scoring::run,
    },
    Scenario {
        name: "script",
        about: "whole PSI games by a script, compared with the built-in rules",
        in_all: true,
        needs_arena: true,
        run: script::run,
    },
    Scenario { name: "mcp", about: "the same calls over MCP and REST", in_all: true, needs_arena: true, run: mcp::run },
    Scenario {
        name: "auth",
        about: "whole PSI games with and without authentication",
        in_all: true,
        needs_arena: true,
        run: auth::run,
    },
    Scenario {
        name: "flood",
        about: "players' requests during a flood of invalid joins",
        in_all: true,
        needs_arena: true,
        run: flood::run,
    },
    Scenario {
        name: "attacks",
        about: "whole games during an attack on memory, connections or CPU from another address",
        in_all: true,
        needs_arena: true,
        run: attacks::run,
    },
    Scenario {
        name: "options",
        about: "CPU time of sessions with extreme options",
        in_all: true,
        needs_arena: true,
        run: options::run,
    },
    Scenario {
        name: "turns",
        about: "moves in many concurrent games of chess at a fixed rate, each with a deadline",
        in_all: true,
        needs_arena: true,
        run: turns::run,
    },
    Scenario {
        name: "plies",
        about: "chess between two bots in a session with `arena play`, compared with a match",
        in_all: true,
        needs_arena: true,
        run: plies::run,
    },
    Scenario {
        name: "memory",
        about: "memory when idle, after many games, and per open session",
        in_all: true,
        needs_arena: true,
        run: memory::run,
    },
    Scenario {
        name: "records",
        about: "whole PSI games with and without the log, and the verification and forks of their records",
        in_all: true,
        needs_arena: true,
        run: records::run,
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
        name: "coverage",
        about: "the coverage of rating intervals in simulated leagues, and the time to compute ratings",
        in_all: false,
        needs_arena: false,
        run: coverage::run,
    },
    Scenario {
        name: "gate",
        about: "CPU time per operation of two binaries (`--against`), in turn",
        in_all: false,
        needs_arena: true,
        run: gate::run,
    },
    Scenario {
        name: "ceiling",
        about: "the ceiling alone: the maximum for this client and this machine",
        in_all: false,
        needs_arena: false,
        run: ceiling::run,
    },
];
