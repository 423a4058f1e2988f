//! The Node.js packages that some tests need: those of `xtask/node/package-lock.json`, installed below the target
//! folder, and again when that file changes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::cargo::{run, say};
use crate::python;

/// The folder with the list of packages and the lock file, which pins their versions and hashes.
const FOLDER: &str = "xtask/node";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages if they are missing or outdated. Tests find them at `tools/node/node_modules` in the target
/// folder.
///
/// # Errors
/// If a package can't be downloaded.
pub fn prepare(root: &Path) -> anyhow::Result<()> {
    let home = python::tools(root)?.join("node");
    let lock =
        fs::read(root.join(FOLDER).join(FILES[1])).with_context(|| format!("cannot read {FOLDER}/{}", FILES[1]))?;
    // This file is written last, so that an interrupted installation is repeated.
    let stamp = home.join("installed.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        say(&format!("the packages of {FOLDER} are installed"));
        return Ok(());
    }
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    for name in FILES {
        fs::copy(root.join(FOLDER).join(name), home.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&home);
    // Without network, this fails in less than a minute.
    install.args(["--fetch-retries=0", "--fetch-timeout=30000"]);
    run(install)?;
    fs::write(&stamp, lock).with_context(|| format!("cannot write {}", stamp.display()))
}
