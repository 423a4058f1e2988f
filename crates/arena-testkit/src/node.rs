//! The Node.js packages that some tests need; `cargo xtask setup node` installs them.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder `node_modules` with the packages of `xtask/node/package-lock.json`. `scratch` is the
/// `CARGO_TARGET_TMPDIR` of the test, a subfolder of the target folder.
///
/// # Panics
/// If the packages are missing or outdated. The message names the command that installs them.
#[track_caller]
pub fn node_packages(scratch: &str) -> PathBuf {
    crate::tier::need_service("Node.js with packages");
    let home = Path::new(scratch).parent().expect("the target folder").join("tools/node");
    let wanted = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/node/package-lock.json")).ok();
    let installed = fs::read(home.join("installed.json")).ok();
    assert!(wanted.is_some() && installed == wanted, "this test needs Node.js packages; run `cargo xtask setup node`");
    home.join("node_modules")
}
