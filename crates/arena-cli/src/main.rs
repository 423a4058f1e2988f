//! The binary `arena`.

use std::process::ExitCode;

/// The global allocator. It is fast for a server's many small, short-lived allocations on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    arena_cli::main()
}
