//! The Python environment for the tests of the wire protocol and of `clients/python`. It is below the target folder
//! and has the packages of `xtask/python-requirements.txt`. After a change of that file, the next setup creates the
//! environment again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo::{metadata, run, say};
use crate::packages::Program;

/// The list of packages with exact versions.
const REQUIREMENTS: &str = "xtask/python-requirements.txt";

/// The name of Python's module for environments in lists of programs.
pub const VENV: &str = "python3 -m venv";

/// Python's programs and their packages in Debian.
pub const PROGRAMS: [Program; 2] = [("python3", "python3"), (VENV, "python3-venv")];

/// The arguments of pip for a quick failure without network.
pub const IMPATIENT: [&str; 4] = ["--retries", "1", "--timeout", "10"];

/// The commands that create an environment; the folder is added as the last argument.
const MAKERS: [&[&str]; 3] = [&["python3", "-m", "venv"], &["python3", "-m", "virtualenv"], &["virtualenv"]];

/// Creates the environment if it is missing or outdated. Tests find its interpreter at `tools/python/bin/python` in the
/// target folder.
///
/// # Errors
/// If no environment can be created, or a package can't be downloaded.
pub fn prepare(root: &Path) -> anyhow::Result<()> {
    let home = tools(root)?.join("python");
    let wanted = fs::read_to_string(root.join(REQUIREMENTS)).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    // This file is written last, so that an interrupted installation is repeated.
    let stamp = home.join("requirements.txt");
    let interpreter = home.join("bin").join("python");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && runs(&interpreter) {
        say("the packages of xtask/python-requirements.txt are installed");
        return Ok(());
    }
    make(&home)?;
    let mut install = Command::new(&interpreter);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    install.args(IMPATIENT).current_dir(root).args(["--requirement", REQUIREMENTS]);
    run(install)?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Returns the interpreter that [`prepare`] creates.
pub fn interpreter(root: &Path) -> anyhow::Result<PathBuf> {
    Ok(tools(root)?.join("python").join("bin").join("python"))
}

/// Checks the spelling of all files, with the settings in `typos.toml`.
///
/// # Errors
/// If a word is misspelled, or the environment is missing.
pub fn check_spelling(root: &Path) -> anyhow::Result<()> {
    let mut typos = Command::new(tools(root)?.join("python").join("bin").join("typos"));
    typos.current_dir(root).args(["--format", "brief"]);
    run(typos)
}

/// Returns the folder for tools of the tests, below cargo's target folder.
pub fn tools(root: &Path) -> anyhow::Result<PathBuf> {
    let folder = &metadata(root)?["target_directory"];
    let folder =
        folder.as_str().map(PathBuf::from).context("the output of `cargo metadata` has no target_directory")?;
    Ok(folder.join("tools"))
}

/// Returns true if Python can create environments without another program. Debian's `venv` lacks `ensurepip` unless the
/// package `python3-venv` is installed.
pub fn has_venv() -> bool {
    let mut command = Command::new("python3");
    command.args(["-c", "import ensurepip"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// An environment's interpreter fails to start if the system's Python was replaced.
fn runs(interpreter: &Path) -> bool {
    let mut command = Command::new(interpreter);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Creates an empty environment at `home` with the first command of [`MAKERS`] that succeeds, and removes an older one.
fn make(home: &Path) -> anyhow::Result<()> {
    for maker in MAKERS {
        if home.exists() {
            fs::remove_dir_all(home).with_context(|| format!("cannot remove {}", home.display()))?;
        }
        let mut command = Command::new(maker[0]);
        command.args(&maker[1..]).arg(home);
        match run(command) {
            Ok(()) => return Ok(()),
            Err(error) => say(&format!("{error:#}")),
        }
    }
    bail!("cannot create a Python environment")
}
