//! Installation of programs for tests from the system's packages. A missing program is installed with `apt-get`,
//! which needs root permissions.

use std::process::Command;

use anyhow::{Context, bail};

use crate::cargo::say;

/// Installs the system package `package` if `program` is missing.
///
/// # Errors
/// If the program is missing and cannot be installed. The error names the package to install by hand.
pub fn need(program: &str, package: &str) -> anyhow::Result<()> {
    need_found(program, package, || version(program))
}

/// Installs `package` if `find` returns no version of the program. Use this for programs that are not on the path.
///
/// # Errors
/// As [`need`].
pub fn need_found(program: &str, package: &str, find: impl Fn() -> Option<String>) -> anyhow::Result<()> {
    if let Some(version) = find() {
        say(&version);
        return Ok(());
    }
    say(&format!("{program} is missing; installing the system package {package}"));
    for args in [&["update", "-q"][..], &["install", "-y", "-q", "--no-install-recommends", package]] {
        let status = Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.with_context(|| format!("{program} and apt-get are missing; install {package} by hand"))?;
        if !status.success() {
            bail!("{program} is missing and `apt-get {}` failed ({status}); install {package} by hand", args.join(" "));
        }
    }
    say(&find().with_context(|| format!("{package} is installed, but {program} is still missing"))?);
    Ok(())
}

/// Installs programs from packages of the same names. `folder` is the folder of the programs in Debian, which most users
/// don't have on their path.
///
/// # Errors
/// As [`need`].
pub fn need_in(folder: &str, programs: &[&str]) -> anyhow::Result<()> {
    for program in programs {
        let find = || {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut folders = std::env::split_paths(&path).chain([folder.into()]);
            folders.any(|folder| folder.join(program).is_file()).then(|| (*program).to_owned())
        };
        need_found(program, program, find)?;
    }
    Ok(())
}

/// Returns the output of the program with `--version`.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then(|| if said.starts_with('v') { format!("{program} {said}") } else { said })
}
