//! The script worker as a separate program, for tests. The `arena` program is its own worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    arena_script::worker_main()
}
