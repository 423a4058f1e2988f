//! The launcher as a separate program, for the tests of this crate. The `arena` program is its own launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    arena_match::launch(std::env::args_os().skip(1))
}
