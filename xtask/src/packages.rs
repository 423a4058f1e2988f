//! Programs that tests need, from the system's packages: installed where they are missing and we may.

use std::process::Command;

use anyhow::{Context, bail};

use crate::cargo::say;

/// Sees to it that there is a `program`, which is in the system's package `package`.
///
/// # Errors
/// If it is missing and can't be installed; says what to do.
pub fn need(program: &str, package: &str) -> anyhow::Result<()> {
    need_found(program, package, || version(program))
}

/// The same for what isn't found by starting it from the path: `find` says which version there is.
///
/// # Errors
/// As [`need`].
pub fn need_found(program: &str, package: &str, find: impl Fn() -> Option<String>) -> anyhow::Result<()> {
    if let Some(version) = find() {
        say(&version);
        return Ok(());
    }
    say(&format!("there is no {program}; installing {package} from the system's packages"));
    for args in [&["update", "-q"][..], &["install", "-y", "-q", "--no-install-recommends", package]] {
        let status = Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.with_context(|| {
            format!("there is no {program}, and no apt-get to install it with: install {package} by hand")
        })?;
        if !status.success() {
            bail!("there is no {program}, and apt-get {} failed ({status}): install {package} by hand", args.join(" "));
        }
    }
    say(&find().with_context(|| format!("{package} was installed, and there is no {program}"))?);
    Ok(())
}

/// What a program says of its version.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then(|| if said.starts_with('v') { format!("{program} {said}") } else { said })
}
