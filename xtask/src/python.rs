//! The Python environment for the tests of the wire protocol and of `clients/python`. It is below the target folder
//! and has the packages of `xtask/python-requirements.txt`. After a change of that file, the next setup creates the
//! environment again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo::{metadata, run, say};

/// The list of packages with exact versions.
const REQUIREMENTS: &str = "xtask/python-requirements.txt";

/// The commands that create an environment; the folder is added as the last argument. On Debian, the module `venv` of
/// the first command is in the package `python3-venv`.
const MAKERS: [&[&str]; 3] = [&["python3", "-m", "venv"], &["python3", "-m", "virtualenv"], &["virtualenv"]];

/// Creates the environment if it is missing or outdated. Tests find its interpreter at `tools/python/bin/python` in the
/// target folder.
///
/// # Errors
/// If Python or its environment module is missing, or a package can't be downloaded.
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
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "--requirement"]);
    install.current_dir(root).arg(REQUIREMENTS);
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

/// Returns true if an interpreter starts. An environment's interpreter fails to start if the system's Python was
/// replaced.
fn runs(interpreter: &Path) -> bool {
    let mut command = Command::new(interpreter);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Creates an empty environment at `home` and removes an older one. If all commands
/// fail and the user is root, the function installs Debian's package `python3-venv` and tries them again.
fn make(home: &Path) -> anyhow::Result<()> {
    if try_makers(home)? || (rustix::process::geteuid().is_root() && install_venv() && try_makers(home)?) {
        return Ok(());
    }
    bail!("cannot create a Python environment: install Python 3 and its venv module (Debian: package python3-venv)")
}

/// Tries the commands of [`MAKERS`] in order. Returns true if a command succeeds.
fn try_makers(home: &Path) -> anyhow::Result<bool> {
    for maker in MAKERS {
        if home.exists() {
            fs::remove_dir_all(home).with_context(|| format!("cannot remove {}", home.display()))?;
        }
        let mut command = Command::new(maker[0]);
        command.args(&maker[1..]).arg(home);
        match run(command) {
            Ok(()) => return Ok(true),
            Err(error) => say(&format!("{error:#}")),
        }
    }
    Ok(false)
}

fn install_venv() -> bool {
    let mut command = Command::new("apt-get");
    command.args(["install", "--yes", "--no-install-recommends", "python3-venv"]);
    run(command).inspect_err(|error| say(&format!("{error:#}"))).is_ok()
}
