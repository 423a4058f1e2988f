//! The Python environment that some tests need; `cargo xtask setup python` creates it.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the interpreter with the packages of `xtask/python-requirements.txt`. `scratch` is the `CARGO_TARGET_TMPDIR`
/// of the test, a subfolder of the target folder.
///
/// # Panics
/// If the environment is missing or outdated. The message names the command that creates it.
#[track_caller]
pub fn python(scratch: &str) -> PathBuf {
    crate::tier::need_service("Python with packages");
    let home = Path::new(scratch).parent().expect("the target folder").join("tools/python");
    let read = |path: PathBuf| fs::read_to_string(path).ok();
    let wanted = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/python-requirements.txt"));
    let installed = read(home.join("requirements.txt"));
    assert!(wanted.is_some() && installed == wanted, "this test needs Python packages; run `cargo xtask setup python`");
    home.join("bin/python")
}
