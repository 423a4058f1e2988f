//! `cargo xtask fuzz`: requests to a real server, generated from the server's OpenAPI description. A test does the
//! same with fewer cases (`crates/arena-server/tests/it/services/fuzz.rs`). This command uses more cases and prints
//! the report.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use crate::cargo::{cargo, run, say};
use crate::python;

/// The number of cases per route and kind of data in the long form, which takes about half an hour on two cores.
const LONG_EXAMPLES: &str = "5000";

/// Fuzzes the server in both modes. The long form uses a new seed each time, and prints it.
///
/// # Errors
/// If an answer doesn't match the description, or the server fails.
pub fn fuzz(root: &Path, long: bool) -> anyhow::Result<()> {
    python::prepare(root)?;
    let filter = "fuzz::every_answer";
    let mut test =
        cargo(root, &["test", "--locked", "-p", "arena-server", "--test", "it", filter, "--", "--nocapture"]);
    if long {
        let seed = std::env::var("ARENA_FUZZ_SEED").unwrap_or_else(|_| any_seed());
        say(&format!("to repeat these cases: ARENA_FUZZ_SEED={seed} cargo xtask fuzz --long"));
        test.env("ARENA_FUZZ_SEED", seed).env("ARENA_FUZZ_EXAMPLES", LONG_EXAMPLES);
    }
    run(test)
}

/// Returns a random number, taken from the random keys of the standard library's hash maps.
fn any_seed() -> String {
    (RandomState::new().hash_one(0) % 1_000_000).to_string()
}
