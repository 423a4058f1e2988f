//! The packages of Node.js with which some tests run: `cargo xtask setup node` installs them.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder `node_modules` with the packages of `xtask/node/package-lock.json`. `scratch` is the `CARGO_TARGET_TMPDIR` of the
/// test, by which the target folder is found.
///
/// # Panics
/// If it isn't there, or has the packages of another day; says what to do.
#[track_caller]
pub fn node_packages(scratch: &str) -> PathBuf {
    crate::tier::need_service("Node.js with packages");
    let home = Path::new(scratch).parent().expect("the target folder").join("tools/node");
    let wanted = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/node/package-lock.json")).ok();
    let installed = fs::read(home.join("installed.json")).ok();
    assert!(
        wanted.is_some() && installed == wanted,
        "this test needs packages of Node.js: run `cargo xtask setup node` first"
    );
    home.join("node_modules")
}
