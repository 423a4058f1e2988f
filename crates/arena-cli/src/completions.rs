//! `arena completions` and `arena man`: files for shells and for `man`, generated from the arguments.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};

use crate::command_line::Cli;
use crate::exit::Failure;
use crate::files::cannot_write;
use crate::output;

/// Options of `arena completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena completions bash > ~/.local/share/bash-completion/completions/arena
  arena completions zsh > ~/.zfunc/_arena
  arena completions fish > ~/.config/fish/completions/arena.fish")]
pub struct CompletionsArgs {
    /// Shell.
    pub shell: clap_complete::Shell,
}

/// Options of `arena man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  arena man ~/.local/share/man/man1
  arena man man && man -l man/arena-match-run.1")]
pub struct ManArgs {
    /// Folder for the pages: one file for each command; created if missing.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

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
