//! NATS, of which the tests run servers of their own.

use std::process::Command;

use crate::packages;

/// The server, as it is found in the path, and where Debian keeps it, out of the path of most users. The tests look there too.
const PROGRAMS: [&str; 2] = ["nats-server", "/usr/sbin/nats-server"];

/// Sees to it that there is a NATS server.
pub fn prepare() -> anyhow::Result<()> {
    packages::need_found("nats-server", "nats-server", version)
}

fn version() -> Option<String> {
    PROGRAMS.into_iter().find_map(|program| {
        let output = Command::new(program).arg("--version").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    })
}
