//! `cargo xtask setup`: installs the programs that tests need besides Rust. Tests install nothing themselves.

use std::path::Path;

use anyhow::bail;

use crate::cargo::say;
use crate::{browser, nats, node, packages, postgres, python};

/// The name of a part, and the function that installs it.
type SetupPart = (&'static str, fn(&Path) -> anyhow::Result<()>);

const PARTS: [SetupPart; 10] = [
    ("python", python::prepare),
    ("node", node::prepare),
    ("postgres", |_| postgres::prepare()),
    ("nats", |_| nats::prepare()),
    ("faketime", |_| packages::need("faketime", "faketime")),
    ("sqlite3", |_| packages::need("sqlite3", "sqlite3")),
    ("engines", |_| packages::need_in("/usr/games", &["stockfish", "gnuchess"])),
    ("monitoring", |_| {
        packages::need("promtool", "prometheus")?;
        packages::need("systemd-analyze", "systemd")
    }),
    ("balancers", |_| packages::need_in("/usr/sbin", &["nginx", "haproxy", "caddy"])),
    ("browser", browser::prepare),
];

/// Installs the named parts, or all parts if no name is given. Parts that are installed already are skipped.
///
/// # Errors
/// If a name is unknown, or a missing part cannot be installed.
pub fn setup(root: &Path, names: &[&str]) -> anyhow::Result<()> {
    let known = || PARTS.iter().map(|(name, _)| *name);
    if let Some(unknown) = names.iter().find(|name| !known().any(|known| known == **name)) {
        bail!("unknown part {unknown}; choose from: {}", known().collect::<Vec<_>>().join(", "));
    }
    for (name, prepare) in PARTS.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
        say(&format!("-- {name}"));
        prepare(root)?;
    }
    Ok(())
}
