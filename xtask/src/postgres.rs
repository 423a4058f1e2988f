//! PostgreSQL and its pooler PgBouncer for tests, which start their own clusters.

use std::path::PathBuf;
use std::process::Command;

use crate::packages;

/// The folder of the server's programs on Debian, with one folder per version. These folders aren't on the path.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Installs PostgreSQL and PgBouncer if they are missing.
pub fn prepare() -> anyhow::Result<()> {
    packages::need_found("PostgreSQL", "postgresql", version)?;
    packages::need_found("PgBouncer", "pgbouncer", pooler_version)
}

/// Returns the version of PgBouncer. Debian installs PgBouncer in a folder that only root has on the path.
fn pooler_version() -> Option<String> {
    ["/usr/sbin/pgbouncer", "pgbouncer"].into_iter().find_map(|program| {
        let output = Command::new(program).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        output.status.success().then(|| said.lines().next().unwrap_or_default().trim().to_owned())
    })
}

/// Returns the version of `initdb`, the program that creates clusters.
fn version() -> Option<String> {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().filter_map(Result::ok);
    let programs = versions.map(|entry| entry.path().join("bin").join("initdb")).chain([PathBuf::from("initdb")]);
    programs.into_iter().find_map(|initdb| {
        let output = Command::new(initdb).arg("--version").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    })
}
