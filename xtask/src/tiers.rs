//! `cargo xtask test`: runs the tests of one tier. Tiers differ in their requirements and duration.
//!
//! The place and the name of a test determine its tier. A test is quick if it is in a library, or in a binary `it`
//! outside of modules `services` and `slow` and without `postgres` in its path. The same holds for the binary `http`,
//! the tests of the server's routes. Tests in the other binaries have the tier of their binary. Quick tests, those of
//! `http` and slow ones need Rust only; the other tiers need more programs (`cargo xtask setup`).

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cargo::{cargo, run, say};
use crate::times;

/// A tier of tests: its name, and the arguments of each call of `cargo test`.
struct Tier {
    name: &'static str,
    runs: &'static [&'static [&'static str]],
}

const TIERS: [Tier; 7] = [
    Tier {
        name: "quick",
        runs: &[&[
            "--lib",
            "--bins",
            "--test",
            "it",
            "--",
            "--skip",
            "services::",
            "--skip",
            "slow::",
            "--skip",
            "postgres",
        ]],
    },
    Tier {
        name: "http",
        runs: &[&["--test", "http", "--", "--skip", "services::", "--skip", "slow::", "--skip", "postgres"]],
    },
    Tier { name: "slow", runs: &[&["--lib", "--test", "it", "--test", "http", "--", "slow::"]] },
    Tier {
        name: "services",
        runs: &[
            &["--lib", "--test", "it", "--test", "http", "--", "services::", "postgres"],
            &["--test", "processes", "--test", "fleet"],
        ],
    },
    Tier { name: "program", runs: &[&["--test", "program"]] },
    Tier { name: "browser", runs: &[&["--test", "browser"]] },
    Tier { name: "cluster", runs: &[&["--test", "cluster"]] },
];

pub const NAMES: [&str; TIERS.len()] = {
    let (mut names, mut number) = ([""; TIERS.len()], 0);
    while number < TIERS.len() {
        names[number] = TIERS[number].name;
        number += 1;
    }
    names
};

/// The variable that makes the test kit refuse to start services in tests that need Rust only.
pub const QUICK_ONLY: &str = "ARENA_TESTS_WITHOUT_SERVICES";

/// Returns the arguments that exclude all but quick tests, from `--` on.
pub fn quick_filters() -> &'static [&'static str] {
    let quick = TIERS[0].runs[0];
    let end = quick.iter().position(|arg| *arg == "--").unwrap_or(quick.len());
    &quick[end..]
}

/// Runs the tests of a tier, or the quick tests if `name` is empty.
///
/// # Errors
/// If there is no such tier, or a test fails.
pub fn test(root: &Path, name: &str) -> anyhow::Result<()> {
    let name = if name.is_empty() { TIERS[0].name } else { name };
    let tier = TIERS
        .iter()
        .find(|tier| tier.name == name)
        .with_context(|| format!("unknown tier {name}; choose from: {}", NAMES.join(", ")))?;
    let begun = Instant::now();
    let mut passed = true;
    for args in tier.runs {
        let mut command = cargo(root, &["test", "--workspace", "--locked", "--no-fail-fast"]);
        command.args(*args);
        if ["quick", "http"].contains(&tier.name) {
            command.env(QUICK_ONLY, "1");
        }
        passed &= run(command).is_ok();
    }
    let time = begun.elapsed();
    say(&format!("{name} tests: {:.0} s", time.as_secs_f64()));
    times::store(root, &[(format!("test {name}"), time)])?;
    if !passed {
        bail!("{name} tests failed");
    }
    Ok(())
}
