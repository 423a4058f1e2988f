//! Functions that run cargo and its tools. Each command is printed before it starts.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// The version of cargo-deny for which `deny.toml` is written.
const DENY_VERSION: &str = "^0.20";

/// Cargo's settings for a failure in less than a minute without network.
const IMPATIENT: [(&str, &str); 2] = [("CARGO_NET_RETRY", "1"), ("CARGO_HTTP_TIMEOUT", "10")];

/// Prints a line on stderr, in order with the output of cargo.
pub fn say(line: &str) {
    // An error is ignored, because it means that stderr is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns a command for the cargo that runs this program, in the workspace.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root).args(args);
    // Cargo describes this package in its environment. With these variables, the build script of ring would run again
    // after each `cargo test` by hand, and most crates would be compiled again.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Returns the output of `cargo metadata`, without dependencies.
pub fn metadata(root: &Path) -> anyhow::Result<Value> {
    let output =
        cargo(root, &["metadata", "--no-deps", "--format-version", "1"]).output().context("cannot run cargo")?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Returns the target folder, which the output of `cargo metadata` names.
pub fn target_folder(metadata: &Value) -> anyhow::Result<PathBuf> {
    let folder = metadata["target_directory"].as_str();
    folder.map(PathBuf::from).context("the output of `cargo metadata` has no target_directory")
}

/// Returns the packages of the workspace and all their dependencies on this platform, as locked.
pub fn graph(root: &Path) -> anyhow::Result<Value> {
    let host = cargo(root, &["-vV"]).output().context("cannot run cargo")?;
    let host = String::from_utf8_lossy(&host.stdout);
    let host =
        host.lines().find_map(|line| line.strip_prefix("host: ")).context("`cargo -vV` printed no line `host: `")?;
    let args = ["metadata", "--locked", "--format-version", "1", "--filter-platform", host];
    let output = cargo(root, &args).output().context("cannot run cargo")?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Prints a command and runs it to its end. The command's output is not captured.
pub fn run(mut command: Command) -> anyhow::Result<()> {
    let shown = shown(&command);
    say(&format!("$ {shown}"));
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    if !status.success() {
        bail!("{shown} failed ({status})");
    }
    Ok(())
}

/// Fails if a part of the toolchain is missing. The error contains advice on installing it.
pub fn need_components(root: &Path) -> anyhow::Result<()> {
    for component in ["fmt", "clippy"] {
        let mut command = cargo(root, &[component, "--version"]);
        let there = command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !there {
            bail!("`cargo {component}` is missing; install it with `rustup component add rustfmt clippy`");
        }
    }
    Ok(())
}

/// Downloads the crates of Cargo.lock, unless they are there.
pub fn fetch(root: &Path) -> anyhow::Result<()> {
    let mut fetch = cargo(root, &["fetch", "--locked"]);
    fetch.envs(IMPATIENT);
    run(fetch)
}

/// Returns a command for cargo-deny, as [`tool`] does.
pub fn deny(root: &Path) -> anyhow::Result<Command> {
    tool(root, "deny", DENY_VERSION)
}

/// Returns a command for a subcommand of cargo in a version: the program on the path, or else a program in
/// `target/tools`, which is built if necessary.
pub fn tool(root: &Path, name: &str, version: &str) -> anyhow::Result<Command> {
    let package = format!("cargo-{name}");
    let tools = root.join("target/tools");
    let own = tools.join("bin").join(format!("{package}{}", std::env::consts::EXE_SUFFIX));
    let is_right = |program: &PathBuf| {
        let said = Command::new(program).args([name, "--version"]).stderr(Stdio::null()).output();
        let wanted = format!("{package} {}.", version.trim_start_matches('^'));
        said.is_ok_and(|output| output.stdout.starts_with(wanted.as_bytes()))
    };
    let program = match [PathBuf::from(&package), own.clone()].into_iter().find(is_right) {
        Some(program) => program,
        None => {
            say(&format!("{package} is not installed; building it under target/tools (once, one or two minutes)"));
            let mut install = cargo(root, &["install", "--quiet", "--locked", "--debug", "--version", version]);
            let build = tools.join("build");
            // The build folder is ten times as large as the program, so it is removed afterwards.
            install.arg("--root").arg(&tools).arg("--target-dir").arg(&build).arg(&package).envs(IMPATIENT);
            run(install)?;
            fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
            own
        }
    };
    let mut command = Command::new(program);
    command.current_dir(root).arg(name);
    Ok(command)
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
