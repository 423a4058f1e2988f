//! Checks and tasks of the workspace. Every change must pass `cargo xtask ci`.

mod browser;
mod budget;
mod cargo;
mod ci;
mod circles;
mod dist;
mod duplicates;
mod facts;
mod fuzz;
mod mutants;
mod node;
mod packages;
mod prose;
mod python;
mod quotes;
mod rules;
mod sbom;
mod setup;
mod soak;
mod suite;
mod symbols;
mod tiers;
mod times;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

const USAGE: &str = "\
Usage: cargo xtask <COMMAND>

Commands:
  ci               Run every check that a change must pass: setup, format, house rules, lints, licenses, all tests
  dist             Build a release in `dist`: an archive, and Python wheels with the program and the package
  facts            Print lines of code by package, the sizes in xtask/budget.toml, repeated type names,
                   duplicates, files per guide, times of the last checks and tests, and size of the program
  fuzz [--long]    Send generated requests and check the answers against /openapi.json (--long: more
                   cases with a new seed, about half an hour)
  mutants [--sample N] [--seed N]
                   Change the rules at random places, and print the share of changes that quick tests
                   notice [default: 300 changes, seed 1, which takes hours]
  rules            Check the house rules, including the language of texts, the links and the budget (seconds)
  setup [PART...]  Install what checks and tests need: crates, cargo-deny, python, node, postgres, nats,
                   faketime, sqlite3, engines, monitoring, balancers, browser [default: all]
  soak [NAME...]   Run long forms of tests: rules, crash, faults, siege, eval, docs, properties, fuzz
                   [default: all, which takes hours]
  screenshots      Take the pictures of pages in docs/screens again
  test [TIER]      Run the tests of a tier: quick (needs Rust only), http, slow, services, program, browser,
                   cluster [default: quick]";

fn main() -> ExitCode {
    let chores: Vec<String> = std::env::args().skip(1).collect();
    let done = root().and_then(|root| match chores.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci::run(&root),
        ["dist"] => dist::dist(&root),
        ["facts"] => facts::print(&root),
        ["fuzz"] => fuzz::fuzz(&root, false),
        ["fuzz", "--long"] => fuzz::fuzz(&root, true),
        ["mutants", ref options @ ..] => mutants::mutants(&root, options),
        ["rules"] => rules::check(&root),
        ["setup", ref names @ ..] => setup::setup(&root, names),
        ["soak", ref names @ ..] => soak::soak(&root, names),
        ["screenshots"] => browser::screenshots(&root),
        ["test"] => tiers::test(&root, ""),
        ["test", tier] => tiers::test(&root, tier),
        _ => anyhow::bail!("{USAGE}"),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            cargo::say(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns the workspace's folder, which is the parent of this crate's folder.
fn root() -> anyhow::Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set; run this program as `cargo xtask`")?;
    let root = PathBuf::from(manifest).parent().context("CARGO_MANIFEST_DIR has no parent folder")?.to_owned();
    Ok(root)
}
