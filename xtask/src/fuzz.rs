//! `cargo xtask fuzz`: requests of all sorts against a real server, made from its own description. The tests do the same
//! with few cases (`crates/arena-server/tests/it/services/fuzz.rs`); here are more of them, and what was checked is shown.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use crate::cargo::{cargo, run, say};
use crate::python;

/// Cases per route and sort of data in the long form: about half an hour on two cores.
const LONG_EXAMPLES: &str = "5000";

/// Fuzzes in both modes. The long form takes other cases each time, and says how to have them again.
///
/// # Errors
/// If an answer isn't as described, or the server fails.
pub fn fuzz(root: &Path, long: bool) -> anyhow::Result<()> {
    python::prepare(root)?;
    let filter = "fuzz::every_answer";
    let mut test =
        cargo(root, &["test", "--locked", "-p", "arena-server", "--test", "it", filter, "--", "--nocapture"]);
    if long {
        let seed = std::env::var("ARENA_FUZZ_SEED").unwrap_or_else(|_| any_seed());
        say(&format!("these cases again: ARENA_FUZZ_SEED={seed} cargo xtask fuzz --long"));
        test.env("ARENA_FUZZ_SEED", seed).env("ARENA_FUZZ_EXAMPLES", LONG_EXAMPLES);
    }
    run(test)
}

/// A number that nobody has chosen: the standard library seeds its hash maps with such.
fn any_seed() -> String {
    (RandomState::new().hash_one(0) % 1_000_000).to_string()
}
