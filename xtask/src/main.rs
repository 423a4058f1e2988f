//! Checks and chores of the workspace: `cargo xtask ci` is the one command that a change has to pass.

mod browser;
mod cargo;
mod ci;
mod dist;
mod facts;
mod fuzz;
mod nats;
mod node;
mod packages;
mod postgres;
mod python;
mod rules;
mod setup;
mod soak;
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

const USAGE: &str = "\
Usage: cargo xtask <CHORE>

Chores:
  ci               everything that a change has to pass: format, lints, house rules, licenses, setup, all tests
  dist             builds a release in `dist`: an archive, and a Python wheel that carries the program
  facts            numbers of the tree: lines of code by crate, dependencies, size of the release binary
  fuzz [--long]    requests of all sorts against the description in /openapi.json (--long: half an hour of others)
  rules            the house rules alone (seconds)
  setup [PART...]  installs what tests need besides Rust: python, node, postgres, nats, faketime, sqlite3, browser
  soak [NAME...]   the long forms of tests, hours in all; `cargo xtask soak rules crash` runs two of them
  screenshots      makes the pictures of pages in docs/screens anew
  test [TIER]      the quick tests, which need Rust alone; or those of a tier: services, program, browser, cluster";

fn main() -> ExitCode {
    let chores: Vec<String> = std::env::args().skip(1).collect();
    let done = root().and_then(|root| match chores.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["ci"] => ci::run(&root),
        ["dist"] => dist::dist(&root),
        ["facts"] => facts::print(&root),
        ["fuzz"] => fuzz::fuzz(&root, false),
        ["fuzz", "--long"] => fuzz::fuzz(&root, true),
        ["rules"] => rules::check(&root),
        ["setup", ref names @ ..] => setup::setup(&root, names),
        ["soak", ref names @ ..] => soak::soak(&root, names),
        ["screenshots"] => browser::screenshots(&root),
        ["test"] => tests::test(&root, ""),
        ["test", tier] => tests::test(&root, tier),
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

/// The workspace: the folder above this crate, as cargo says when it runs us.
fn root() -> anyhow::Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("run me as `cargo xtask`")?;
    let root = PathBuf::from(manifest).parent().context("this crate lies in no workspace")?.to_owned();
    Ok(root)
}
