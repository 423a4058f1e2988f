//! The NATS server for tests, which start their own instances.

use std::process::Command;

use crate::packages;

/// The possible paths of the server's program. Debian installs the program in a folder that most users don't have on
/// their path. The test kit (`arena-testkit`) looks in the same folders.
const PROGRAMS: [&str; 2] = ["nats-server", "/usr/sbin/nats-server"];

/// Installs a NATS server if there is none.
pub fn prepare() -> anyhow::Result<()> {
    packages::need_found("nats-server", "nats-server", version)
}

fn version() -> Option<String> {
    PROGRAMS.into_iter().find_map(|program| {
        let output = Command::new(program).arg("--version").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    })
}
