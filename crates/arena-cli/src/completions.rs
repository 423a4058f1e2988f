//! `arena completions` and `arena man`: files for shells and for `man`, generated from the arguments.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Failure;
use crate::matches::cannot_write;
use crate::output;

pub fn print(shell: clap_complete::Shell) -> Result<(), Failure> {
    // The generator panics if its writer fails, for example a pipe to `head`. So it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "arena", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())
}

pub fn write_man_pages(folder: &Path) -> Result<(), Failure> {
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| cannot_write(folder, &error))?;
    output::print(&format!("man pages are in {}", folder.display()))
}
