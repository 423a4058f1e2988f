//! PostgreSQL, of which the tests run clusters of their own, beside SQLite; and PgBouncer, the pooler in front of it.

use std::path::PathBuf;
use std::process::Command;

use crate::packages;

/// Where Debian keeps the programs of the server, out of the path: a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Sees to it that there is a Postgres to make clusters with.
pub fn prepare() -> anyhow::Result<()> {
    packages::need_found("PostgreSQL", "postgresql", version)?;
    packages::need_found("PgBouncer", "pgbouncer", pooler_version)
}

/// The version of PgBouncer, which Debian keeps where only root's path leads. The tests look for it in the same places.
fn pooler_version() -> Option<String> {
    ["/usr/sbin/pgbouncer", "pgbouncer"].into_iter().find_map(|program| {
        let output = Command::new(program).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        output.status.success().then(|| said.lines().next().unwrap_or_default().trim().to_owned())
    })
}

/// What `initdb` says of itself, the program that makes clusters. The tests look for it in the same places.
fn version() -> Option<String> {
    let versions = std::fs::read_dir(DEBIAN).into_iter().flatten().filter_map(Result::ok);
    let programs = versions.map(|entry| entry.path().join("bin").join("initdb")).chain([PathBuf::from("initdb")]);
    programs.into_iter().find_map(|initdb| {
        let output = Command::new(initdb).arg("--version").output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    })
}
