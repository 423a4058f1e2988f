//! Programs for tests from the system's packages. Missing ones are installed with `apt-get`, which needs root
//! permissions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::bail;

use crate::cargo::run;
use crate::python;

/// A program, or [`python::VENV`], and the system package that contains it.
pub type Program = (&'static str, &'static str);

/// The folders of programs in Debian that most users don't have on their path.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/games"];

/// The folder of PostgreSQL in Debian, with a folder `bin` for each version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// Returns the programs that are neither on the path nor in the folders of Debian.
pub fn missing<'p>(programs: impl IntoIterator<Item = &'p Program>) -> Vec<Program> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir(POSTGRES).into_iter().flatten().filter_map(Result::ok);
    let folders: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(FOLDERS.map(PathBuf::from))
        .chain(versions.map(|version| version.path().join("bin")))
        .collect();
    let is_file = |name| folders.iter().any(|folder| folder.join(name).is_file());
    let is_there =
        |name| if name == python::VENV { python::has_venv() || is_file("virtualenv") } else { is_file(name) };
    programs.into_iter().copied().filter(|(name, _)| !is_there(name)).collect()
}

/// Installs the packages of `programs` together.
///
/// # Errors
/// If the user isn't root, or `apt-get` is missing or fails.
pub fn install(programs: &[Program]) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("only root can install system packages");
    }
    // Without network, this fails in less than a minute.
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20"]).args(args);
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    run(apt(&["update"]))?;
    let mut install = apt(&["install", "-y", "--no-install-recommends"]);
    install.args(programs.iter().map(|(_, package)| package));
    run(install)
}
