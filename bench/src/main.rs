//! `arena-bench`: the load generator. Starts the real arena as a child, plays against it over HTTP, and prints the
//! results beside the goals of the design; see `bench/README.md`.
//!
//! Each file in `scenarios` is a scenario. The modules `connection` and `stream` contain the client, `client_pool` and
//! `player_pool` many concurrent clients, `server` and `usage` the process under load, and `ceiling` the server for
//! comparison.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing the results is what this binary is for")]

mod agenda;
mod arguments;
mod ceiling;
mod chess;
mod client_pool;
mod connection;
mod cpu_quota;
mod faults;
mod latency;
mod limits;
mod machine;
mod player_pool;
mod psi;
mod quick_agent;
mod report;
mod scenarios;
mod server;
mod stream;
mod usage;

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use clap::Parser as _;
use serde_json::json;

use crate::arguments::{ALL, Arguments, CEILING_SERVER};
use crate::machine::Machine;
use crate::report::Report;
use crate::scenarios::{Scenario, matches};

/// The allocator of the arena, so that the ceiling has no disadvantage.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(role) if role == matches::LAUNCH => return arena_match::launch(args),
        Some(role) if role == quick_agent::QUICK_AGENT => return quick_agent::run(args),
        _ => {}
    }
    let arguments = Arguments::parse();
    let done = if arguments.scenarios.iter().any(|name| name == CEILING_SERVER) {
        ceiling::serve()
    } else {
        measure(&arguments)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("arena-bench: {err:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let wanted = |scenario: &&Scenario| {
        arguments.scenarios.iter().any(|name| name == scenario.name || (name == ALL && scenario.in_all))
    };
    if !arguments.ceiling && scenarios::LIST.iter().filter(wanted).any(|scenario| scenario.needs_arena) {
        server::check_binary(&arguments.arena())?;
    }
    server::sweep(&arguments.work())?;
    let machine = Machine::detect(&arguments.work())?;
    let settings = json!({
        "quick": arguments.quick,
        "scenarios": arguments.scenarios,
        "rounds": arguments.rounds(),
        "seconds_per_round": arguments.round()?.as_secs_f64(),
        "client_threads": arguments.threads(),
        "binary_bytes": fs::metadata(arguments.arena()).map_or(0, |binary| binary.len()),
    });
    let path = arguments.json();
    let start = Instant::now();
    let mut report = Report::default();
    for scenario in scenarios::LIST.iter().filter(wanted) {
        eprintln!("{}: {}", scenario.name, scenario.about);
        // A failed scenario doesn't prevent the other measurements.
        if let Err(err) = (scenario.run)(arguments, &mut report) {
            eprintln!("{}: {err:#}", scenario.name);
            report.failure(scenario.name, &err);
        }
        // A run that is stopped leaves the results of the finished scenarios.
        report.write_json(&path, &machine, &settings)?;
    }
    // If stdout is not a terminal, the table has its natural width.
    println!("{}", report.table());
    println!(
        "{} cores ({}), fdatasync {:.0} µs, load before {:.2}; client and server share the cores.{}",
        machine.cores,
        machine.processor,
        machine.fdatasync_us,
        machine.load_before,
        if arguments.quick { " Quick: sizes are smaller than those of the goals." } else { "" },
    );
    eprintln!("total {:.0} s; the complete report is in {}", start.elapsed().as_secs_f64(), path.display());
    match report.trouble() {
        None => Ok(()),
        Some(trouble) => Err(anyhow::anyhow!(trouble)).context("the run had errors"),
    }
}
