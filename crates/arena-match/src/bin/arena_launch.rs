//! The launcher of agents as a program of its own, for the tests of this crate. An arena is its own launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    arena_match::launcher::main(std::env::args_os().skip(1))
}
