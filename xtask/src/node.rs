//! Node.js, in which some of the example agents are written: the tests play them. Installed from the system's packages where it is
//! missing and we may.

use std::process::Command;

use anyhow::{Context, bail};

use crate::cargo::say;

/// Sees to it that there is a `node`.
pub fn prepare() -> anyhow::Result<()> {
    if let Some(version) = version() {
        say(&format!("node {version}"));
        return Ok(());
    }
    say("there is no node; installing nodejs from the system's packages");
    for args in [&["update", "-q"][..], &["install", "-y", "-q", "--no-install-recommends", "nodejs"]] {
        let status = Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.context("there is no node, and no apt-get to install it with: install Node.js by hand")?;
        if !status.success() {
            bail!("there is no node, and apt-get {} failed ({status}): install Node.js by hand", args.join(" "));
        }
    }
    let version = version().context("nodejs was installed, and there is no node")?;
    say(&format!("node {version}"));
    Ok(())
}

fn version() -> Option<String> {
    let output = Command::new("node").arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
