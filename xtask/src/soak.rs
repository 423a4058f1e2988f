//! `cargo xtask soak`: runs the long forms of tests that have a short form in `cargo xtask ci`.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;

use crate::cargo::{cargo, run, say};
use crate::{fuzz, python};

/// A long form of tests: its name, the environment variables that lengthen the tests, and the arguments of
/// `cargo test`.
struct Long {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    tests: &'static [&'static str],
}

const LONG: [Long; 6] = [
    Long {
        name: "rules",
        variables: &[("ARENA_RULES_STATES", "200000")],
        tests: &["-p", "arena-cli", "--test", "program", "rules::"],
    },
    Long {
        name: "crash",
        variables: &[("ARENA_CRASH_ROUNDS", "100")],
        tests: &["-p", "arena-cli", "--test", "program", "crash::"],
    },
    Long {
        name: "faults",
        variables: &[("ARENA_FAULT_SECONDS", "60")],
        tests: &["-p", "arena-cli", "--test", "cluster"],
    },
    Long {
        name: "eval",
        variables: &[("ARENA_EVAL_SEEDS", "20")],
        tests: &["-p", "arena-cli", "--test", "program", "eval::"],
    },
    // These tests run the commands in README.md and docs with the release build.
    Long { name: "docs", variables: &[], tests: &["--release", "-p", "arena-cli", "--test", "program", "docs::"] },
    Long { name: "properties", variables: &[("PROPTEST_CASES", "10000")], tests: &["--workspace", "--lib"] },
];

/// The long form that runs `cargo xtask fuzz --long`.
const FUZZ: &str = "fuzz";

/// Runs the named long forms, or all of them if no name is given. Stops at the first failure.
///
/// # Errors
/// If a name is unknown or a test fails.
pub fn soak(root: &Path, names: &[&str]) -> anyhow::Result<()> {
    let known = || LONG.iter().map(|long| long.name).chain([FUZZ]);
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == **name)) {
        bail!("unknown long form {unknown}; choose from: {}", known().collect::<Vec<_>>().join(", "));
    }
    python::prepare(root)?;
    for name in known().filter(|name| names.is_empty() || names.contains(name)) {
        say(&format!("\n== {name}"));
        let started = Instant::now();
        match LONG.iter().find(|long| long.name == name) {
            Some(long) => {
                let mut test = cargo(root, &["test", "--locked"]);
                test.args(long.tests).args(["--", "--nocapture"]).envs(long.variables.iter().copied());
                run(test)?;
            }
            None => fuzz::fuzz(root, true)?,
        }
        say(&format!("{name}: {:.0} s", started.elapsed().as_secs_f64()));
    }
    Ok(())
}
