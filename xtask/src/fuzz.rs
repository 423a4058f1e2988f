//! `cargo xtask fuzz`: runs the test `crates/arena-server/tests/http/services/fuzz.rs` and prints its report. The test
//! sends a real server requests that are generated from the server's OpenAPI description. `--long` uses more cases.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use crate::cargo::{cargo, run, say};
use crate::setup;

/// The number of cases per route and kind of data in the long form, which takes about half an hour on two cores.
const LONG_EXAMPLES: &str = "5000";

/// Fuzzes the server with and without authentication mode. If `long` is true, the function runs
/// [`LONG_EXAMPLES`] cases, with a seed from `ARENA_FUZZ_SEED` or a random one, and prints the seed.
///
/// # Errors
/// If an answer doesn't match the description, or the server fails.
pub fn fuzz(root: &Path, long: bool) -> anyhow::Result<()> {
    setup::setup(root, &["python"])?;
    let filter = "fuzz::every_answer";
    let mut test =
        cargo(root, &["test", "--locked", "-p", "arena-server", "--test", "http", filter, "--", "--nocapture"]);
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
