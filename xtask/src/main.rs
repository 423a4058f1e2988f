//! Checks and chores of the workspace: `cargo xtask ci` is the one command that a change has to pass.

mod browser;
mod cargo;
mod ci;
mod fuzz;
mod nats;
mod node;
mod packages;
mod postgres;
mod python;
mod rules;
mod soak;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

const USAGE: &str = "\
Usage: cargo xtask <CHORE>

Chores:
  browser      the browser and its driver, in which the pages are tested, and axe (part of ci)
  ci           everything that a change has to pass: format, lints, house rules, licences, tests
  fuzz         requests of all sorts against the description in /openapi.json (part of ci; --long: half an hour of others)
  node         the packages of Node.js that some tests need, installed below the target folder (part of ci)
  python       the packages that some tests need, installed below the target folder (part of ci)
  rules        the house rules alone (seconds)
  soak         the long forms of tests, hours in all; `cargo xtask soak rules crash` runs two of them
  screenshots  the pictures of pages in docs/screens, made anew";

fn main() -> ExitCode {
    let chores: Vec<String> = std::env::args().skip(1).collect();
    let done = root().and_then(|root| match chores.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["browser"] => browser::prepare(&root),
        ["ci"] => ci::run(&root),
        ["fuzz"] => fuzz::fuzz(&root, false),
        ["fuzz", "--long"] => fuzz::fuzz(&root, true),
        ["node"] => node::prepare(&root),
        ["python"] => python::prepare(&root),
        ["rules"] => rules::check(&root),
        ["soak", ref names @ ..] => soak::soak(&root, names),
        ["screenshots"] => browser::screenshots(&root),
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
