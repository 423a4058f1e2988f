//! The command line. Sizes for a single scenario are declared in the scenario's file.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::player_pool::PlayerPool;
use crate::psi::Players;
use crate::scenarios::{self, fanout, games, gate, lists, matches, nodes, tail};

/// The name that selects all scenarios.
pub const ALL: &str = "all";

/// The argument that makes this binary the ceiling server.
pub const CEILING_SERVER: &str = "ceiling-server";

const EXAMPLES: &str = "\
Examples:
  cargo build --profile dist && cargo run --release -p arena-bench -- all
  cargo run --release -p arena-bench -- all --quick
  arena-bench games --connections 64 --rounds 5 --seconds 10
  arena-bench games --with auth,script
  arena-bench tail fanout --arena /usr/local/bin/arena --json /tmp/result.json
  arena-bench lists --sessions 100000
  arena-bench gate --against /tmp/arena-of-the-last-release

The table shows each value beside the goal of design §10. The exit code is 0 if everything was measured and every answer was right, also when a goal is missed; 1 otherwise; 2 for a wrong command line.";

/// Load generator of the arena: starts the real `arena`, plays against it over HTTP, and measures client and server.
/// For comparison, the same requests go to a server without any logic, the ceiling.
#[derive(Debug, Parser)]
#[command(name = "arena-bench", version, after_help = EXAMPLES, max_term_width = 120)]
pub struct Arguments {
    /// Scenarios to measure; `all` runs every scenario of a full run, `ceiling-server` is for internal use
    #[arg(required = true, value_name = "SCENARIO", value_parser = PossibleValuesParser::new(names()), hide_possible_values = false)]
    pub scenarios: Vec<String>,

    /// Binary of the arena under test [default: target/dist/arena of this workspace]
    #[arg(long, value_name = "PATH")]
    arena: Option<PathBuf>,

    /// File for the JSON report [default: bench/results/latest.json of this workspace]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Folder for temporary data, on a real disk [default: bench/.work of this workspace]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,

    /// Use small sizes, so that `all` takes less than two minutes
    #[arg(long)]
    pub quick: bool,

    /// Number of client threads [default: one per processor]
    #[arg(long)]
    threads: Option<usize>,

    /// Number of rounds, alternating between arena and ceiling [default: 3; 1 if quick]
    #[arg(long)]
    rounds: Option<usize>,

    /// Duration of a round in seconds [default: 5; 1 if quick]
    #[arg(long)]
    seconds: Option<f64>,

    /// Measure the ceiling alone, without an arena (games and fanout)
    #[arg(long)]
    pub ceiling: bool,

    /// Options of the scenario `games`.
    #[command(flatten)]
    pub games: games::GamesOptions,
    /// Options of the scenario `tail`.
    #[command(flatten)]
    pub tail: tail::TailOptions,
    /// Options of the scenario `fanout`.
    #[command(flatten)]
    pub fanout: fanout::FanoutOptions,
    /// Options of the scenario `lists`.
    #[command(flatten)]
    pub lists: lists::ListsOptions,
    /// Options of the scenario `nodes`.
    #[command(flatten)]
    pub nodes: nodes::NodesOptions,
    /// Options of the scenario `gate`.
    #[command(flatten)]
    pub gate: gate::GateOptions,
    /// Options of the scenario `matches`.
    #[command(flatten)]
    pub matches: matches::MatchesOptions,
}

fn names() -> Vec<&'static str> {
    let scenarios = scenarios::LIST.iter().map(|scenario| scenario.name);
    scenarios.chain([ALL, CEILING_SERVER]).collect()
}

impl Arguments {
    /// Returns the path of the binary under test.
    pub fn arena(&self) -> PathBuf {
        self.arena.clone().unwrap_or_else(|| workspace().join("target/dist/arena"))
    }

    pub fn json(&self) -> PathBuf {
        self.json.clone().unwrap_or_else(|| workspace().join("bench/results/latest.json"))
    }

    /// Returns the folder for temporary data.
    pub fn work(&self) -> PathBuf {
        self.work.clone().unwrap_or_else(|| workspace().join("bench/.work"))
    }

    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1)
    }

    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 }).max(1)
    }

    /// Returns the duration of a round.
    ///
    /// # Errors
    /// If the argument isn't a valid duration.
    pub fn round(&self) -> anyhow::Result<Duration> {
        let seconds = self.seconds.unwrap_or(if self.quick { 1.0 } else { 5.0 });
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| anyhow::anyhow!("--seconds {seconds} is not a valid duration; give a positive number"))
    }

    pub fn player_pool(&self, connections: usize) -> PlayerPool {
        PlayerPool { threads: self.threads(), connections, players: Players::Unknown }
    }

    /// Returns the size `given` on the command line, or else the default for a full or a quick run.
    pub fn size(&self, given: Option<u64>, full: u64, quick: u64) -> u64 {
        given.unwrap_or(if self.quick { quick } else { full })
    }
}

/// Returns the workspace in which this binary was built.
fn workspace() -> &'static Path {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.parent().unwrap_or(bench)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
