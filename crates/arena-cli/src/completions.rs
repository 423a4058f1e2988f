//! Completion scripts for shells.

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Failure;
use crate::output;

/// Prints the script for `shell`.
pub fn print(shell: clap_complete::Shell) -> Result<(), Failure> {
    // Into memory first: the generator panics when its writer fails, as a pipe to `head` does.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "arena", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())
}
