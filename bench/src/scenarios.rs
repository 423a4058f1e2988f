//! What is measured: a file per scenario, and the list of them.

pub mod attacks;
pub mod ceiling;
pub mod coverage;
pub mod fanout;
pub mod flood;
pub mod games;
pub mod lists;
pub mod matches;
pub mod mcp;
pub mod memory;
pub mod nodes;
pub mod options;
pub mod paced;
pub mod plies;
pub mod scaling;
pub mod scoring;
pub mod script;
pub mod tail;
pub mod turns;

use crate::arguments::Arguments;
use crate::report::Report;

/// One thing that is measured.
pub struct Scenario {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Whether `all` includes it.
    pub in_all: bool,
    /// Measures and adds rows to the report.
    pub run: fn(&Arguments, &mut Report) -> anyhow::Result<()>,
}

/// All scenarios, in the order in which `all` runs them.
pub const LIST: &[Scenario] = &[
    Scenario {
        name: "games",
        about: "whole PSI games, flat out, against the arena and the ceiling",
        in_all: true,
        run: games::run,
    },
    Scenario {
        name: "paced",
        about: "whole PSI games at a given rate, latencies from the intended start",
        in_all: true,
        run: paced::run,
    },
    Scenario {
        name: "tail",
        about: "the last messages of a long channel against those of a short one",
        in_all: true,
        run: tail::run,
    },
    Scenario {
        name: "fanout",
        about: "one session's chat to thousands of subscribers",
        in_all: true,
        run: fanout::run,
    },
    Scenario {
        name: "lists",
        about: "list pages of a store full of sessions, and how fast it starts",
        in_all: true,
        run: lists::run,
    },
    Scenario {
        name: "scoring",
        about: "whole games whose players are scored against games that count for nothing, and leaderboards",
        in_all: true,
        run: scoring::run,
    },
    Scenario {
        name: "script",
        about: "whole PSI games by a script, in turn with the built-in ones",
        in_all: true,
        run: script::run,
    },
    Scenario { name: "mcp", about: "the same calls over MCP and over REST", in_all: true, run: mcp::run },
    Scenario {
        name: "flood",
        about: "players' requests while others send bad joins as fast as they can",
        in_all: true,
        run: flood::run,
    },
    Scenario {
        name: "attacks",
        about: "whole games while another address tries to take memory, connections or CPU",
        in_all: true,
        run: attacks::run,
    },
    Scenario {
        name: "options",
        about: "CPU of sessions with options at their extremes",
        in_all: true,
        run: options::run,
    },
    Scenario {
        name: "turns",
        about: "moves in many games of chess at once, at a given rate, each with a deadline",
        in_all: true,
        run: turns::run,
    },
    Scenario {
        name: "plies",
        about: "chess between two bots in a session, seated by `arena play`, against the same in a match",
        in_all: true,
        run: plies::run,
    },
    Scenario {
        name: "memory",
        about: "memory when idle, after many games, and per open session",
        in_all: true,
        run: memory::run,
    },
    Scenario {
        name: "matches",
        about: "matches between agents that answer at once, against a bare pipe",
        in_all: true,
        run: matches::run,
    },
    Scenario {
        name: "nodes",
        about: "whole PSI games on one and two nodes with Postgres and NATS, and messages from node to node",
        in_all: false,
        run: nodes::run,
    },
    Scenario {
        name: "scaling",
        about: "what requests cost a node and a database, and a simulation of clusters with these costs",
        in_all: false,
        run: scaling::run,
    },
    Scenario {
        name: "coverage",
        about: "how often the intervals of ratings hold the truth, in simulated leagues, and how long ratings take",
        in_all: false,
        run: coverage::run,
    },
    Scenario {
        name: "ceiling",
        about: "the ceiling alone: what this client and this machine can do",
        in_all: false,
        run: ceiling::run,
    },
];
