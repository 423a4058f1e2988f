//! The Python package in `clients/python`: its format, its types, and its own tests, which run against the binary under
//! test.
//!
//! These tests need the packages that `cargo xtask setup python` installs. They write nothing to the source folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use arena_testkit::python;

use crate::program::folder;

/// Runs a Python module in the package's folder. Its output is shown if it fails.
#[track_caller]
fn check(module: &str, args: &[&str]) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python").canonicalize().unwrap();
    let mut command = Command::new(python(env!("CARGO_TARGET_TMPDIR")));
    command.args(["-B", "-m", module]).args(args).current_dir(package);
    command.env("ARENA_BINARY", env!("CARGO_BIN_EXE_arena")).env("PYTHONDONTWRITEBYTECODE", "1");
    // A development dependency of this crate.
    command.env("ARENA_RULES", Path::new(env!("CARGO_BIN_EXE_arena")).with_file_name("deps/libarena_python.so"));
    let output = command.output().unwrap();
    let (outcome, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{module} {}: {}\n{outcome}\n{said}", args.join(" "), output.status);
}

#[test]
fn python_client_is_formatted_and_free_of_lint() {
    check("ruff", &["format", "--no-cache", "--check"]);
    check("ruff", &["check", "--no-cache"]);
}

#[test]
fn python_client_is_typed() {
    // The cache is kept between runs, because checking the types of the dependencies takes most of the time.
    let cache: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    check("mypy", &["--cache-dir", cache.to_str().unwrap()]);
}

#[test]
fn python_client_passes_its_tests() {
    let scratch = folder();
    check("pytest", &["--quiet", "--basetemp", scratch.path().join("pytest").to_str().unwrap()]);
}
