//! `cargo xtask ci`: runs the checks that every change must pass, the quick ones first, and prints their durations.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::cargo::{self, cargo, say};
use crate::{python, rules, setup, suite, times};

/// A step's name and its action in the workspace at the given path.
type Step = (&'static str, fn(&Path) -> anyhow::Result<()>);

/// The steps in order. The first failure ends the run.
const STEPS: [Step; 7] = [
    // First, so that a machine without network or root permissions fails at once.
    ("setup of requirements", |root| setup::setup(root, &[])),
    ("format", |root| cargo::run(cargo(root, &["fmt", "--all", "--check"]))),
    ("house rules", rules::check),
    ("licenses, bans and sources of dependencies", |root| {
        say("advisories are not checked: their database needs the network (see deny.toml)");
        let mut deny = cargo::deny(root)?;
        deny.args(["--locked", "check", "licenses", "bans", "sources"]);
        cargo::run(deny)
    }),
    ("spelling", python::check_spelling),
    ("lints and build of the tests", suite::build),
    ("tests", suite::run_all),
];

/// Runs all steps, and prints and stores the duration of each.
pub fn run(root: &Path) -> anyhow::Result<()> {
    cargo::need_components(root)?;
    let mut times = Vec::new();
    let mut result = Ok(());
    for (number, (name, step)) in (1..).zip(STEPS) {
        say(&format!("\n== {number} of {}: {name}", STEPS.len()));
        let started = Instant::now();
        result = step(root);
        times.push((name, started.elapsed()));
        if result.is_err() {
            break;
        }
    }
    say(&table(&times, result.is_ok()));
    let named = times.iter().map(|(name, time)| (format!("ci: {name}"), *time));
    let total = result.is_ok().then(|| (times::CI.to_owned(), times.iter().map(|(_, time)| *time).sum()));
    times::store(root, &named.chain(total).collect::<Vec<_>>())?;
    result
}

fn table(times: &[(&str, Duration)], passed: bool) -> String {
    let mut table = String::from("\n== times\n");
    for (name, time) in times {
        table += &format!("{:>7.1} s  {name}\n", time.as_secs_f64());
    }
    let total: Duration = times.iter().map(|(_, time)| *time).sum();
    table + &format!("{:>7.1} s  total: {}", total.as_secs_f64(), if passed { "passed" } else { "FAILED" })
}
