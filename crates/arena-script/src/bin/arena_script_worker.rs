//! The script worker and its launcher as a separate program, for tests. The `arena` program is its own worker.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    match args.next_if(|arg| arg == arena_sandbox::process::LAUNCH) {
        Some(_) => arena_sandbox::launcher::main(args),
        None => arena_script::worker_main(),
    }
}
