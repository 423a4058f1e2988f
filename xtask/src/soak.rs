//! `cargo xtask soak`: runs the long forms of tests that have a short form in `cargo xtask ci`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::cargo::{cargo, metadata, run, say, target_folder};
use crate::{fuzz, setup};

/// A long form of tests: its name, the environment variables that lengthen the tests, and the arguments of
/// `cargo test`.
struct Long {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    tests: &'static [&'static str],
}

const LONG: [Long; 10] = [
    Long {
        name: "rules",
        variables: &[("ARENA_RULES_STATES", "200000")],
        tests: &["-p", "arena-cli", "--test", "program", "rules::"],
    },
    Long {
        name: "matches",
        variables: &[("ARENA_SOAK_GAMES", "5000")],
        tests: &["-p", "arena-cli", "--test", "program", "matches::soak::"],
    },
    Long {
        name: "crash",
        variables: &[("ARENA_CRASH_ROUNDS", "100")],
        tests: &["-p", "arena-cli", "--test", "program", "crash::"],
    },
    Long {
        name: "faults",
        variables: &[("ARENA_FAULT_SECONDS", "60")],
        tests: &["-p", "arena-cli", "--test", "cluster", "--", "--skip", "siege::"],
    },
    // `ARENA_PREVIOUS_PROGRAM` names the release from which the nodes are upgraded; without it, they are replaced by
    // nodes of the same build.
    Long {
        name: "siege",
        variables: &[("ARENA_FAULT_SECONDS", "3600")],
        tests: &["-p", "arena-cli", "--test", "cluster", "siege::"],
    },
    Long {
        name: "eval",
        variables: &[("ARENA_EVAL_SEEDS", "20"), ("ARENA_EVAL_KILLS", "50")],
        tests: &["-p", "arena-cli", "--test", "program", "eval::"],
    },
    Long {
        name: "coverage",
        variables: &[("ARENA_COVERAGE_RUNS", "20000")],
        tests: &["-p", "arena-ratings", "-p", "arena-model", "--lib", "coverage::"],
    },
    Long {
        name: "records",
        // About 300 million changed records, for which the test uses all cores: an hour on two.
        variables: &[
            ("ARENA_RECORD_COUNT", "100"),
            ("ARENA_RECORD_STRIDE", "1"),
            ("ARENA_RECORD_VALUES", "255"),
            ("ARENA_RECORD_CHANGES", "2000"),
        ],
        tests: &["--release", "-p", "arena-record", "--lib", "mutations::"],
    },
    // These tests run the commands in README.md and docs with the release build.
    Long { name: "docs", variables: &[], tests: &["--release", "-p", "arena-cli", "--test", "program", "docs::"] },
    Long { name: "properties", variables: &[("PROPTEST_CASES", "10000")], tests: &["--workspace", "--lib"] },
];

/// The long form that runs `cargo xtask fuzz --long`.
const FUZZ: &str = "fuzz";

/// The long form in which the release build verifies the records that a debug build has written.
const SEASON: &str = "season";

/// The number of games of the season.
const SEASON_GAMES: &str = "10000";

/// Runs the named long forms, or all of them if no name is given. Stops at the first failure.
///
/// # Errors
/// If a name is unknown or a test fails.
pub fn soak(root: &Path, names: &[&str]) -> anyhow::Result<()> {
    let known = || LONG.iter().map(|long| long.name).chain([SEASON, FUZZ]);
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == **name)) {
        bail!("unknown long form {unknown}; choose from: {}", known().collect::<Vec<_>>().join(", "));
    }
    setup::setup(root, &["python"])?;
    for name in known().filter(|name| names.is_empty() || names.contains(name)) {
        say(&format!("\n== {name}"));
        let started = Instant::now();
        match LONG.iter().find(|long| long.name == name) {
            Some(long) => {
                let mut test = cargo(root, &["test", "--locked"]);
                let separator = ["--"].into_iter().filter(|_| !long.tests.contains(&"--"));
                test.args(long.tests).args(separator).arg("--nocapture").envs(long.variables.iter().copied());
                run(test)?;
            }
            None if name == SEASON => season(root)?,
            None => fuzz::fuzz(root, true)?,
        }
        say(&format!("{name}: {:.0} s", started.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// Plays a season with a debug build, and verifies its records with a release build of the program.
fn season(root: &Path) -> anyhow::Result<()> {
    let target = target_folder(&metadata(root)?)?;
    let folder = target.join("season");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut test = cargo(root, &["test", "--locked", "-p", "arena-record", "--lib", "season::", "--", "--nocapture"]);
    test.env("ARENA_SEASON_GAMES", SEASON_GAMES).env("ARENA_SEASON_FOLDER", &folder);
    run(test)?;
    run(cargo(root, &["build", "--locked", "--release", "-p", "arena-cli"]))?;
    let started = Instant::now();
    let mut verify = Command::new(target.join("release").join(format!("arena{}", std::env::consts::EXE_SUFFIX)));
    verify.arg("verify").arg(&folder);
    run(verify)?;
    say(&format!("{SEASON_GAMES} games verified in {:.1} s", started.elapsed().as_secs_f64()));
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}
