//! The worker of scripts as a program of its own, for tests. An arena is its own worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    arena_script::worker_main()
}
