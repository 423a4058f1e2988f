//! `cargo xtask setup`: installs the requirements of checks and tests besides Rust. Tests install nothing themselves.

use std::path::Path;

use anyhow::{anyhow, bail};

use crate::cargo::{self, say};
use crate::packages::{self, Program};
use crate::{browser, node, python, tiers};

struct Part {
    name: &'static str,
    /// The tiers of tests that need the part. `cargo xtask ci` needs all parts.
    tiers: &'static [&'static str],
    programs: &'static [Program],
    /// Downloads the rest, unless it is there.
    prepare: fn(&Path) -> anyhow::Result<()>,
}

/// The tiers with nodes that share services.
const NODES: [&str; 3] = ["services", "program", "cluster"];

const NOTHING: fn(&Path) -> anyhow::Result<()> = |_| Ok(());

const PARTS: [Part; 12] = [
    Part { name: "crates", tiers: &tiers::NAMES, programs: &[], prepare: cargo::fetch },
    Part { name: "cargo-deny", tiers: &[], programs: &[], prepare: |root| cargo::deny(root).map(drop) },
    Part { name: "python", tiers: &NODES, programs: &python::PROGRAMS, prepare: python::prepare },
    Part {
        name: "node",
        tiers: &["services", "program"],
        programs: &[("node", "nodejs"), ("npm", "npm")],
        prepare: node::prepare,
    },
    Part {
        name: "postgres",
        tiers: &NODES,
        programs: &[("initdb", "postgresql"), ("pgbouncer", "pgbouncer")],
        prepare: NOTHING,
    },
    Part { name: "nats", tiers: &NODES, programs: &[("nats-server", "nats-server")], prepare: NOTHING },
    Part { name: "faketime", tiers: &["cluster"], programs: &[("faketime", "faketime")], prepare: NOTHING },
    Part { name: "sqlite3", tiers: &["program"], programs: &[("sqlite3", "sqlite3")], prepare: NOTHING },
    Part {
        name: "engines",
        tiers: &["program"],
        programs: &[("stockfish", "stockfish"), ("gnuchess", "gnuchess")],
        prepare: NOTHING,
    },
    Part {
        name: "monitoring",
        tiers: &["program"],
        programs: &[("promtool", "prometheus"), ("systemd-analyze", "systemd")],
        prepare: NOTHING,
    },
    Part {
        name: "balancers",
        tiers: &["cluster"],
        programs: &[("nginx", "nginx"), ("haproxy", "haproxy"), ("caddy", "caddy")],
        prepare: NOTHING,
    },
    // The browser's script is downloaded by Python.
    Part {
        name: "browser",
        tiers: &["browser"],
        programs: &[
            python::PROGRAMS[0],
            python::PROGRAMS[1],
            ("chromium", "chromium"),
            ("chromedriver", "chromium-driver"),
        ],
        prepare: browser::prepare,
    },
];

/// Installs the named parts, or all parts if no name is given. Takes about a second if nothing is missing.
///
/// # Errors
/// If a name is unknown, or a missing part can't be installed. The error lists all such parts, and the tiers of tests
/// that run without them.
pub fn setup(root: &Path, names: &[&str]) -> anyhow::Result<()> {
    let known = || PARTS.iter().map(|part| part.name);
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == **name)) {
        bail!("unknown part {unknown}; choose from: {}", known().collect::<Vec<_>>().join(", "));
    }
    let parts = || PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.name));
    let missing = packages::missing(parts().flat_map(|part| part.programs));
    let installed = if missing.is_empty() { Ok(()) } else { packages::install(&missing) };
    let mut faults = Vec::new();
    for part in parts() {
        say(&format!("-- {}", part.name));
        let missing = packages::missing(part.programs);
        let done = if missing.is_empty() { (part.prepare)(root) } else { Err(anyhow!("{}", advice(&missing))) };
        faults.extend(done.err().map(|fault| (part, format!("{fault:#}"))));
    }
    if faults.is_empty() {
        return Ok(());
    }
    let reason = installed.err().map(|reason| format!("{reason:#}\n")).unwrap_or_default();
    bail!("{reason}{}", report(&faults))
}

/// Returns the programs with the packages to install by hand.
fn advice(missing: &[Program]) -> String {
    let each = missing.iter().map(|(program, package)| format!("{program} (system package {package})"));
    format!("install {}", each.collect::<Vec<_>>().join(", "))
}

/// Lists the parts that couldn't be installed with their faults, and the tiers that need none of them.
fn report(faults: &[(&Part, String)]) -> String {
    let mut report = String::from("this machine lacks:\n");
    for (part, fault) in faults {
        let needed = if part.tiers.is_empty() { "`cargo xtask ci` only".to_owned() } else { part.tiers.join(", ") };
        report += &format!("  {}, needed by {needed}: {fault}\n", part.name);
    }
    let runs = |tier: &&str| !faults.iter().any(|(part, _)| part.tiers.contains(tier));
    let rest: Vec<&str> = tiers::NAMES.into_iter().filter(runs).collect();
    report
        + &match rest[..] {
            [] => "no tests run without them".to_owned(),
            _ => format!("these tiers of `cargo xtask test` run without them: {}", rest.join(", ")),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_tiers_that_run() {
        let cases = [
            (&["postgres", "sqlite3"][..], "without them: quick, http, slow, browser"),
            (&["cargo-deny"], "without them: quick, http, slow, services, program, browser, cluster"),
            (&["crates"], "no tests run without them"),
        ];
        for (names, expected) in cases {
            let parts = PARTS.iter().filter(|part| names.contains(&part.name));
            let faults: Vec<_> = parts.map(|part| (part, advice(part.programs))).collect();
            let report = report(&faults);
            assert!(report.ends_with(expected), "{report}");
            assert_eq!(
                report.contains("\n  postgres, needed by services, program, cluster: install initdb"),
                names.len() == 2
            );
        }
    }
}
