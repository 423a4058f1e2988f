//! The Python in which the tests of the wire and of `clients/python` run: an environment of its own below the target folder,
//! with the packages of `xtask/python-requirements.txt`, made once and made anew when that file changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo::{metadata, run, say};

/// Which packages, and exactly which versions.
const REQUIREMENTS: &str = "xtask/python-requirements.txt";

/// Ways to make an environment; the folder comes last. Debian has the first in a package of its own.
const MAKERS: [&[&str]; 3] = [&["python3", "-m", "venv"], &["python3", "-m", "virtualenv"], &["virtualenv"]];

/// Makes the environment, unless it is there. Tests find its interpreter at `tools/python/bin/python` in the target folder.
///
/// # Errors
/// If Python or the means to make environments are missing, or the packages can't be had.
pub fn prepare(root: &Path) -> anyhow::Result<()> {
    let home = tools(root)?.join("python");
    let wanted = fs::read_to_string(root.join(REQUIREMENTS)).with_context(|| format!("can't read {REQUIREMENTS}"))?;
    // Written last, so that an environment that was left half made is made anew.
    let stamp = home.join("requirements.txt");
    let interpreter = home.join("bin").join("python");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && runs(&interpreter) {
        say("the packages of xtask/python-requirements.txt are installed");
        return Ok(());
    }
    make(&home)?;
    let mut install = Command::new(&interpreter);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    install.current_dir(root).arg(REQUIREMENTS);
    run(install)?;
    fs::write(&stamp, wanted).with_context(|| format!("can't write {}", stamp.display()))
}

/// Its interpreter, once [`prepare`] has made it.
pub fn interpreter(root: &Path) -> anyhow::Result<PathBuf> {
    Ok(tools(root)?.join("python").join("bin").join("python"))
}

/// Where tools of the tests are: below the folder in which cargo builds.
pub fn tools(root: &Path) -> anyhow::Result<PathBuf> {
    let folder = &metadata(root)?["target_directory"];
    let folder = folder.as_str().map(PathBuf::from).context("cargo metadata names no target_directory")?;
    Ok(folder.join("tools"))
}

/// Whether an interpreter can be started. One whose Python was replaced since can't.
fn runs(interpreter: &Path) -> bool {
    let mut command = Command::new(interpreter);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// An empty environment at `home`, whatever was there before. Where Debian's package for that is missing and we may install
/// it, as on a fresh build machine, we do.
fn make(home: &Path) -> anyhow::Result<()> {
    if try_makers(home)? || (rustix::process::geteuid().is_root() && install_venv() && try_makers(home)?) {
        return Ok(());
    }
    bail!("tests need Python 3 and its venv module; on Debian, install the package python3-venv")
}

/// Whether one of the ways to make an environment worked.
fn try_makers(home: &Path) -> anyhow::Result<bool> {
    for maker in MAKERS {
        if home.exists() {
            fs::remove_dir_all(home).with_context(|| format!("can't remove {}", home.display()))?;
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
