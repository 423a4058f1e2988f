//! The Python in which some tests run: `cargo xtask setup python` makes it.

use std::fs;
use std::path::{Path, PathBuf};

/// The interpreter that has the packages of `xtask/python-requirements.txt`. `scratch` is the `CARGO_TARGET_TMPDIR` of the
/// test, by which the target folder is found.
///
/// # Panics
/// If it isn't there, or has the packages of another day; says what to do.
#[track_caller]
pub fn python(scratch: &str) -> PathBuf {
    crate::tier::need_service("Python with packages");
    let home = Path::new(scratch).parent().expect("the target folder").join("tools/python");
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    let wanted = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/python-requirements.txt"));
    let installed = read(home.join("requirements.txt"));
    assert!(
        wanted.is_some() && installed == wanted,
        "this test needs Python packages: run `cargo xtask setup python` first"
    );
    home.join("bin/python")
}
